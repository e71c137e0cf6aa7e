#include "tests/server/checkpoint/faulty_files.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/file_errors.h"
#include "server/checkpoint/pending_file.h"

namespace rowhouse::server {
namespace {

absl::Status FullError(const std::string& path) {
  return NotWritableError(absl::StatusCode::kResourceExhausted, path,
                          "the disk is full");
}

}  // namespace

class MemoryFile : public File {
 public:
  MemoryFile(FaultyFiles& files, std::string path,
             std::shared_ptr<FaultyFiles::Data> data)
      : files_(files), path_(std::move(path)), data_(std::move(data)) {}

  absl::Status WriteAt(int64_t offset,
                       std::span<const std::byte> bytes) override {
    const absl::Status begun = files_.Begin();
    if (!begun.ok() && files_.crashed()) return begun;
    const auto size = static_cast<int64_t>(bytes.size());
    const int64_t grown = std::max<int64_t>(
        offset + size - static_cast<int64_t>(data_->content.size()), 0);
    const int64_t room = files_.capacity_bytes_ - files_.used_bytes();
    const bool full = grown > room;
    const bool short_write = full || !begun.ok();
    const auto written = static_cast<size_t>(short_write ? size / 2 : size);
    if (!full || grown / 2 < room) {
      FaultyFiles::Write write = {
          offset,
          std::string(reinterpret_cast<const char*>(bytes.data()), written)};
      FaultyFiles::Apply(write, data_->content);
      data_->unsynced.push_back(std::move(write));
      data_->change_time = files_.now_;
    }
    if (full) return FullError(path_);
    return begun.ok() ? files_.End() : begun;
  }

  absl::Status ReadAt(int64_t offset, std::span<std::byte> bytes) override {
    const auto size = static_cast<int64_t>(data_->content.size());
    if (offset + static_cast<int64_t>(bytes.size()) > size) {
      return DamagedError(path_, size, "the file ends here");
    }
    if (!bytes.empty()) {
      std::memcpy(bytes.data(), data_->content.data() + offset, bytes.size());
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    ROWHOUSE_RETURN_IF_ERROR(files_.Begin());
    ROWHOUSE_RETURN_IF_ERROR(files_.End());
    data_->synced = data_->content;
    data_->unsynced.clear();
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> SizeBytes() override {
    return static_cast<int64_t>(data_->content.size());
  }

 private:
  FaultyFiles& files_;
  const std::string path_;
  const std::shared_ptr<FaultyFiles::Data> data_;
};

FaultyFiles::FaultyFiles(std::string root) : root_(std::move(root)) {
  names_[root_] = nullptr;
  synced_names_ = names_;
}

void FaultyFiles::Apply(const NameChange& change, Names& names) {
  if (!change.removed.empty()) names.erase(change.removed);
  if (!change.added.empty()) names[change.added] = change.data;
}

void FaultyFiles::Apply(const Write& write, std::string& content) {
  const size_t end = static_cast<size_t>(write.offset) + write.bytes.size();
  content.resize(std::max(content.size(), end), '\0');
  content.replace(static_cast<size_t>(write.offset), write.bytes.size(),
                  write.bytes);
}

absl::Status FaultyFiles::Begin() {
  ++call_count_;
  if (call_count_ - 1 > crash_at_) return absl::InternalError("crashed before");
  if (call_count_ - 1 == fail_at_) {
    return NotWritableError(absl::StatusCode::kInternal, root_,
                            "a fault that a test asked for");
  }
  return absl::OkStatus();
}

absl::Status FaultyFiles::End() const {
  if (crashed()) return absl::InternalError("crashed");
  return absl::OkStatus();
}

void FaultyFiles::Change(NameChange change) {
  Apply(change, names_);
  unsynced_.push_back(std::move(change));
}

absl::StatusOr<std::unique_ptr<File>> FaultyFiles::Create(
    const std::string& path) {
  ROWHOUSE_RETURN_IF_ERROR(Begin());
  if (names_.contains(path)) return absl::AlreadyExistsError(path);
  if (!names_.contains(DirectoryOf(path))) return absl::NotFoundError(path);
  auto data = std::make_shared<Data>();
  data->change_time = now_;
  Change({"", path, data});
  ROWHOUSE_RETURN_IF_ERROR(End());
  return std::make_unique<MemoryFile>(*this, path, std::move(data));
}

absl::StatusOr<std::unique_ptr<File>> FaultyFiles::Open(
    const std::string& path) {
  if (path == unreadable_) {
    return NotReadableError(absl::StatusCode::kUnavailable, path,
                            "a fault that a test asked for");
  }
  const auto found = names_.find(path);
  if (found == names_.end() || found->second == nullptr) {
    return absl::NotFoundError(path);
  }
  return std::make_unique<MemoryFile>(*this, path, found->second);
}

absl::Status FaultyFiles::Rename(const std::string& from,
                                 const std::string& to) {
  ROWHOUSE_RETURN_IF_ERROR(Begin());
  const auto found = names_.find(from);
  if (found == names_.end()) {
    return NotWritableError(absl::StatusCode::kInternal, to, "it has gone");
  }
  Change({from, to, found->second});
  return End();
}

absl::Status FaultyFiles::Remove(const std::string& path) {
  ROWHOUSE_RETURN_IF_ERROR(Begin());
  const auto inside = names_.upper_bound(path + "/");
  if (inside != names_.end() && inside->first.starts_with(path + "/")) {
    return NotWritableError(absl::StatusCode::kInternal, path, "not empty");
  }
  if (names_.contains(path)) Change({path, "", nullptr});
  return End();
}

absl::StatusOr<std::vector<DirectoryEntry>> FaultyFiles::List(
    const std::string& path) {
  const auto found = names_.find(path);
  if (found == names_.end() || found->second != nullptr) {
    return absl::NotFoundError(path);
  }
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, data] : names_) {
    if (name == path || DirectoryOf(name) != path) continue;
    entries.push_back(
        {name.substr(path.size() + 1), data == nullptr,
         data == nullptr ? absl::InfinitePast() : data->change_time});
  }
  return entries;
}

absl::Status FaultyFiles::MakeDirectory(const std::string& path) {
  ROWHOUSE_RETURN_IF_ERROR(Begin());
  if (!names_.contains(DirectoryOf(path))) {
    return NotWritableError(absl::StatusCode::kInternal, path, "no directory");
  }
  if (!names_.contains(path)) Change({"", path, nullptr});
  return End();
}

absl::Status FaultyFiles::SyncDirectory(const std::string& path) {
  ROWHOUSE_RETURN_IF_ERROR(Begin());
  ROWHOUSE_RETURN_IF_ERROR(End());
  std::erase_if(unsynced_, [&](const NameChange& change) {
    const std::string& name =
        change.added.empty() ? change.removed : change.added;
    if (DirectoryOf(name) != path) return false;
    Apply(change, synced_names_);
    return true;
  });
  return absl::OkStatus();
}

absl::StatusOr<bool> FaultyFiles::Exists(const std::string& path) {
  return names_.contains(path);
}

absl::StatusOr<int64_t> FaultyFiles::FreeBytes(const std::string& /*path*/) {
  return said_free_bytes_.value_or(capacity_bytes_ - used_bytes());
}

std::unique_ptr<FaultyFiles> FaultyFiles::AfterCrash(Survival survival,
                                                     uint64_t seed) const {
  std::mt19937_64 random(seed);
  const auto survives = [&] {
    return survival == Survival::kAll ||
           (survival == Survival::kSome && random() % 2 == 0);
  };
  Names names = synced_names_;
  for (const NameChange& change : unsynced_) {
    if (survives()) Apply(change, names);
  }
  auto after = std::make_unique<FaultyFiles>(root_);
  for (const auto& [path, data] : names) {
    // Nothing is in a directory that is not there; the map has those first.
    if (path != root_ && !after->names_.contains(DirectoryOf(path))) continue;
    if (data == nullptr) {
      after->names_[path] = nullptr;
      continue;
    }
    std::string content = data->synced;
    for (const Write& write : data->unsynced) {
      if (!survives()) continue;
      Write torn = write;
      if (survival == Survival::kSome && random() % 2 == 0) {
        torn.bytes.resize(random() % (torn.bytes.size() + 1));
      }
      Apply(torn, content);
    }
    after->names_[path] =
        std::make_shared<Data>(Data{content, content, {}, data->change_time});
  }
  after->synced_names_ = after->names_;
  after->now_ = now_;
  return after;
}

std::unique_ptr<FaultyFiles> FaultyFiles::Copy() const {
  return AfterCrash(Survival::kAll, 0);
}

std::vector<std::string> FaultyFiles::AllFiles() const {
  std::vector<std::string> files;
  for (const auto& [path, data] : names_) {
    if (data != nullptr) files.push_back(path);
  }
  return files;
}

std::string& FaultyFiles::ContentOf(const std::string& path) {
  return names_.at(path)->content;
}

int64_t FaultyFiles::used_bytes() const {
  int64_t bytes = 0;
  for (const auto& [path, data] : names_) {
    if (data != nullptr) bytes += static_cast<int64_t>(data->content.size());
  }
  return bytes;
}

}  // namespace rowhouse::server
