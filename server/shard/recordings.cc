#include "server/shard/recordings.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {

Recordings::Load Recordings::DescribeLoad() const {
  Load load;
  double most = -1;
  for (const auto& recording : recordings_) {
    if (recording->finished() || recording->cancelled()) continue;
    ++load.count;
    const int64_t held_bytes = recording->held_bytes();
    const int64_t buffer_bytes = recording->buffer_bytes();
    const double share =
        static_cast<double>(held_bytes) /
        static_cast<double>(std::max<int64_t>(buffer_bytes, 1));
    if (share <= most) continue;
    most = share;
    load.held_bytes = held_bytes;
    load.buffer_bytes = buffer_bytes;
  }
  return load;
}

absl::Status Recordings::CheckRoom() const {
  if (std::ssize(recordings_) < kMost) return absl::OkStatus();
  return wire::Error(
      absl::StatusCode::kResourceExhausted, wire::reasons::kRecordingsOpen,
      absl::StrCat(recordings_.size(),
                   " recordings of the shard are under way; at most ", kMost,
                   " may be"),
      {{"limit", "recordings of a shard"}, {"value", absl::StrCat(kMost)}},
      kRetryDelay);
}

bool Recordings::WantsDigest(int64_t event) const {
  return std::any_of(recordings_.begin(), recordings_.end(),
                     [&](const std::shared_ptr<Recording>& recording) {
                       return recording->WantsDigest(event);
                     });
}

void Recordings::Record(const Recording::Event& event, int64_t size_bytes) {
  for (const auto& recording : recordings_) recording->Add(event, size_bytes);
  DropFinished();
}

void Recordings::EndAll(const absl::Status& reason) {
  for (const auto& recording : recordings_) recording->End(reason);
  recordings_.clear();
}

void Recordings::EndCancelled() {
  for (const auto& recording : recordings_) {
    if (!recording->cancelled()) continue;
    recording->End(absl::CancelledError("the caller has gone"));
  }
  DropFinished();
}

void Recordings::DropFinished() {
  std::erase_if(recordings_, [](const std::shared_ptr<Recording>& recording) {
    return recording->finished();
  });
}

}  // namespace rowhouse::server
