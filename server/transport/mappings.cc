#include "server/transport/mappings.h"

#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::server {

absl::Status Mapping::Take() {
  if (!taken.exchange(true)) return absl::OkStatus();
  return wire::Error(absl::StatusCode::kAborted, wire::reasons::kBusy,
                     "another call has the mapping's inbox; repeat the call");
}

int64_t Mappings::Add(std::shared_ptr<Mapping> mapping) {
  std::random_device random;
  MutexLock lock(mutex_);
  int64_t number = 0;
  while (number == 0 || mappings_.contains(number)) {
    number = static_cast<int64_t>((uint64_t{random()} << 32) | random());
  }
  mappings_[number] = std::move(mapping);
  return number;
}

void Mappings::Remove(int64_t number) {
  std::shared_ptr<Mapping> removed;  // Freed with no lock held.
  MutexLock lock(mutex_);
  const auto found = mappings_.find(number);
  if (found == mappings_.end()) return;
  removed = std::move(found->second);
  mappings_.erase(found);
}

absl::StatusOr<std::shared_ptr<Mapping>> Mappings::Find(int64_t number) const {
  MutexLock lock(mutex_);
  const auto found = mappings_.find(number);
  if (found != mappings_.end()) return found->second;
  return wire::Error(absl::StatusCode::kFailedPrecondition,
                     wire::reasons::kMappingGone,
                     absl::StrCat("this server has no mapping ", number),
                     {{"mapping", absl::StrCat(number)}});
}

}  // namespace rowhouse::server
