#include "client/push_log/shard_streams.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/internal/table_admin.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::push_log {
namespace {

using internal::CallContext;
using internal::RecordedEvent;
using internal::RecordedPart;
using internal::RecordingStart;
using internal::RecordMessage;
using internal::ShardChannel;

// Until the shards begin with one event, or there is no digest of the start.
constexpr int kOpenings = 8;

absl::Status Missing(std::string_view what) {
  return absl::InternalError(
      absl::StrCat("a recording's stream lacks ", std::string(what)));
}

bool SameEvent(const std::vector<RecordingStart>& starts) {
  return std::all_of(starts.begin(), starts.end(),
                     [&](const RecordingStart& start) {
                       return start.event == starts[0].event;
                     });
}

}  // namespace

int64_t PartCount(const RecordedEvent& event) {
  int64_t count = 0;
  for (const auto& contribution : event.contributions) {
    count += contribution.part_count;
  }
  return count;
}

bool EndsPart(const RecordedPart& piece) {
  return piece.first_item + std::ssize(piece.ids) == piece.item_count;
}

absl::Status ShardStreams::Open() {
  bool together = false;
  for (int opening = 0; opening < kOpenings && !together; ++opening) {
    ROWHOUSE_RETURN_IF_ERROR(OpenOnce());
    together = SameEvent(starts_);
  }
  const auto newest = std::max_element(
      starts_.begin(), starts_.end(),
      [](const auto& a, const auto& b) { return a.event < b.event; });
  newest_ = static_cast<size_t>(newest - starts_.begin());
  readers_ = std::make_unique<StreamReaders>(cluster_, streams_, stop_);
  for (int32_t shard = 0; shard < shard_count(); ++shard) {
    ROWHOUSE_RETURN_IF_ERROR(SkipToStart(shard));
  }
  return together && options_.digest ? MergeDigest() : absl::OkStatus();
}

// On every shard, which may begin with different events.
absl::Status ShardStreams::OpenOnce() {
  streams_.clear();
  streams_.resize(shard_count());
  starts_.assign(shard_count(), {});
  const CallContext context = cluster_.Context(options_.timeout, stop_);
  return cluster_.CallServers(shard_count(), context,
                              [&](int32_t shard, ShardChannel& channel) {
                                return OpenShard(shard, channel);
                              });
}

absl::Status ShardStreams::OpenShard(int32_t shard, ShardChannel& channel) {
  ROWHOUSE_ASSIGN_OR_RETURN(
      streams_[shard],
      channel.OpenRecording({.table = table_.name,
                             .buffer_bytes = options_.buffer_bytes,
                             .last_event = options_.last_event,
                             .digest = options_.digest,
                             .targets_only = shard > 0},
                            {absl::InfiniteFuture(), &stop_}));
  ROWHOUSE_ASSIGN_OR_RETURN(std::optional<RecordMessage> first,
                            streams_[shard]->Read());
  RecordingStart* const start =
      first.has_value() ? std::get_if<RecordingStart>(&*first) : nullptr;
  if (start == nullptr) return Missing("its start");
  if (options_.digest && !start->digest.has_value()) {
    return Missing("the digest of its start");
  }
  starts_[shard] = std::move(*start);
  return absl::OkStatus();
}

absl::Status ShardStreams::MergeDigest() {
  std::vector<internal::ShardDigest> digests;
  for (const RecordingStart& start : starts_) digests.push_back(*start.digest);
  ROWHOUSE_ASSIGN_OR_RETURN(digest_, internal::MergeDigests(digests));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<RecordedEvent>> ShardStreams::ReadEvent(
    int32_t shard) {
  ROWHOUSE_ASSIGN_OR_RETURN(std::optional<RecordMessage> message,
                            readers_->Next(shard, /*event=*/true));
  if (!message.has_value()) return std::nullopt;
  RecordedEvent* const event = std::get_if<RecordedEvent>(&*message);
  if (event == nullptr) return Missing("an event after the parts of another");
  return std::move(*event);
}

absl::StatusOr<RecordedPart> ShardStreams::ReadPart(int32_t shard) {
  ROWHOUSE_ASSIGN_OR_RETURN(std::optional<RecordMessage> message,
                            readers_->Next(shard, /*event=*/false));
  RecordedPart* const part =
      message.has_value() ? std::get_if<RecordedPart>(&*message) : nullptr;
  if (part == nullptr) return Missing("a part that an event has");
  return std::move(*part);
}

// Passes over the events of a shard that began earlier than the newest.
absl::Status ShardStreams::SkipToStart(int32_t shard) {
  for (int64_t event = starts_[shard].event; event < start_event(); ++event) {
    ROWHOUSE_ASSIGN_OR_RETURN(const std::optional<RecordedEvent> passed,
                              ReadEvent(shard));
    if (!passed.has_value()) return Missing("an event before its last");
    for (int64_t left = PartCount(*passed); left > 0;) {
      ROWHOUSE_ASSIGN_OR_RETURN(const RecordedPart piece, ReadPart(shard));
      if (EndsPart(piece)) --left;
    }
  }
  return absl::OkStatus();
}

void ShardStreams::Close() {
  readers_.reset();
  streams_.clear();
}

}  // namespace rowhouse::client::push_log
