#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/checkpoint_directory.h"
#include "server/checkpoint/checkpoint_paths.h"
#include "server/checkpoint/file_errors.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/pending_file.h"

namespace rowhouse::server {
namespace {

// What is unfinished and older than the newest whole one by this was left.
constexpr absl::Duration kLeftAfter = absl::Hours(1);

// What is in a checkpoint's directory.
struct Content {
  std::vector<std::string> files;
  std::vector<std::string> directories;  // The outermost last.
  std::optional<std::string> foreign;    // The first that is none of ours.
  absl::Time change_time = absl::InfinitePast();  // The last, of all within.
};

absl::Status AddContent(Files& files, const std::string& directory,
                        bool may_have_directories, Content& content) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries,
                            files.List(directory));
  for (const DirectoryEntry& entry : entries) {
    const std::string path = absl::StrCat(directory, "/", entry.name);
    content.change_time = std::max(content.change_time, entry.change_time);
    const bool ours =
        entry.is_directory
            ? may_have_directories && CheckName("table", entry.name).ok()
            : IsFileOfCheckpoints(entry.name);
    if (!ours) {
      if (!content.foreign.has_value()) content.foreign = path;
    } else if (entry.is_directory) {
      ROWHOUSE_RETURN_IF_ERROR(AddContent(files, path, false, content));
    } else {
      content.files.push_back(path);
    }
  }
  content.directories.push_back(directory);
  return absl::OkStatus();
}

absl::StatusOr<Content> ContentOf(Files& files, const std::string& directory) {
  Content content;
  ROWHOUSE_RETURN_IF_ERROR(AddContent(files, directory, true, content));
  return content;
}

absl::Status InUseError(std::string_view checkpoint, const std::string& user) {
  return wire::Error(
      absl::StatusCode::kFailedPrecondition, wire::reasons::kCheckpointInUse,
      absl::StrCat("checkpoint ", user, " is based on ",
                   std::string(checkpoint), "; delete or compact it first"),
      {{"checkpoint", user}});
}

// OK unless a manifest cannot be read for now: what that checkpoint is based on
// is not known then. One that is damaged needs its base no more.
absl::Status CheckBasesKnown(const CheckpointList& list) {
  for (const auto& [checkpoint, fault] : list.damaged) {
    if (!absl::IsDataLoss(fault)) return fault;
  }
  return absl::OkStatus();
}

// The first of `candidates` that none of `manifests` is based on, if any.
std::optional<std::string> FirstUnused(
    const std::vector<Manifest>& manifests,
    const std::set<std::string>& candidates) {
  for (const Manifest& manifest : manifests) {
    const bool used = std::any_of(
        manifests.begin(), manifests.end(),
        [&](const Manifest& m) { return m.base == manifest.checkpoint; });
    if (!used && candidates.contains(manifest.checkpoint)) {
      return manifest.checkpoint;
    }
  }
  return std::nullopt;
}

}  // namespace

absl::StatusOr<CheckpointList> CheckpointDirectory::List() {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<DirectoryEntry> entries,
                            files_.List(paths_.root()));
  CheckpointList list;
  for (const DirectoryEntry& entry : entries) {
    if (!entry.is_directory || !CheckName("checkpoint", entry.name).ok()) {
      continue;
    }
    absl::StatusOr<Manifest> manifest = LoadManifest(entry.name);
    if (manifest.ok()) {
      list.whole.push_back(*std::move(manifest));
    } else if (absl::IsNotFound(manifest.status())) {
      list.unfinished.push_back(entry.name);
    } else {
      list.damaged.emplace_back(entry.name, manifest.status());
    }
  }
  std::stable_sort(list.whole.begin(), list.whole.end(),
                   [](const Manifest& a, const Manifest& b) {
                     return a.created_time < b.created_time;
                   });
  return list;
}

absl::Status CheckpointDirectory::RemoveCheckpoint(
    std::string_view checkpoint) {
  const std::string directory = paths_.Checkpoint(checkpoint);
  const std::string manifest = paths_.Manifest(checkpoint);
  ROWHOUSE_ASSIGN_OR_RETURN(const Content content,
                            ContentOf(files_, directory));
  if (content.foreign.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        *content.foreign, " is none of a checkpoint's; remove it first"));
  }
  // From here on it is not whole, whatever happens.
  ROWHOUSE_RETURN_IF_ERROR(RemoveLasting(files_, manifest));
  for (const std::string& file : content.files) {
    ROWHOUSE_RETURN_IF_ERROR(files_.Remove(file));
  }
  for (const std::string& inner : content.directories) {
    ROWHOUSE_RETURN_IF_ERROR(files_.Remove(inner));
  }
  return files_.SyncDirectory(paths_.root());
}

absl::Status CheckpointDirectory::Delete(std::string_view checkpoint) {
  ROWHOUSE_RETURN_IF_ERROR(CheckName("checkpoint", checkpoint));
  const std::string directory = paths_.Checkpoint(checkpoint);
  ROWHOUSE_ASSIGN_OR_RETURN(const bool exists, files_.Exists(directory));
  if (!exists) {
    return NoSuchCheckpointError(
        absl::StrCat("checkpoint ", std::string(checkpoint)), directory);
  }
  ROWHOUSE_ASSIGN_OR_RETURN(const CheckpointList list, List());
  ROWHOUSE_RETURN_IF_ERROR(CheckBasesKnown(list));
  for (const Manifest& manifest : list.whole) {
    if (manifest.base == checkpoint) {
      return InUseError(checkpoint, manifest.checkpoint);
    }
  }
  return RemoveCheckpoint(checkpoint);
}

absl::StatusOr<std::vector<std::string>> CheckpointDirectory::Retain(
    int64_t keep, const std::set<std::string>& under_way) {
  ROWHOUSE_ASSIGN_OR_RETURN(CheckpointList list, List());
  ROWHOUSE_RETURN_IF_ERROR(CheckBasesKnown(list));
  std::vector<std::string> deleted;
  if (list.whole.empty()) return deleted;
  const absl::Time newest = list.whole.back().created_time;

  std::set<std::string> doomed;
  const auto whole_count = static_cast<int64_t>(list.whole.size());
  for (int64_t i = 0; i < whole_count - keep; ++i) {
    doomed.insert(list.whole[static_cast<size_t>(i)].checkpoint);
  }
  // A delta goes before its base, so that no base is ever missing.
  while (const auto name = FirstUnused(list.whole, doomed)) {
    doomed.erase(*name);
    const absl::Status removed = RemoveCheckpoint(*name);
    // It has other files: it stays, and so does what it is based on.
    if (absl::IsFailedPrecondition(removed)) continue;
    ROWHOUSE_RETURN_IF_ERROR(removed);
    deleted.push_back(*name);
    std::erase_if(list.whole,
                  [&](const Manifest& m) { return m.checkpoint == *name; });
  }
  for (const std::string& name : list.unfinished) {
    if (under_way.contains(name)) continue;
    ROWHOUSE_ASSIGN_OR_RETURN(const Content content,
                              ContentOf(files_, paths_.Checkpoint(name)));
    if (content.foreign.has_value()) continue;
    if (content.change_time > newest - kLeftAfter) continue;
    ROWHOUSE_RETURN_IF_ERROR(RemoveCheckpoint(name));
    deleted.push_back(name);
  }
  return deleted;
}

}  // namespace rowhouse::server
