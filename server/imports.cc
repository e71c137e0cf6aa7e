#include "server/imports.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "server/shard/shard.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;

absl::Status ImportsOpenError(std::string_view table) {
  return wire::Error(
      absl::StatusCode::kResourceExhausted, reasons::kImportsOpen,
      absl::StrCat(kMostImports, " imports of ", std::string(table),
                   " are under way; no more may be"),
      {{"limit", "imports of a table"}, {"value", absl::StrCat(kMostImports)}},
      absl::Milliseconds(100));
}

absl::Status SilentError() {
  return wire::Error(absl::StatusCode::kAborted, reasons::kSuperseded,
                     "the import's caller sent nothing for the duration of a "
                     "lease, and another import took its place");
}

}  // namespace

absl::StatusOr<int64_t> Imports::Begin(std::string_view table, absl::Time now,
                                       absl::Duration patience,
                                       Interrupt interrupt) {
  Interrupt evicted;
  int64_t import = 0;
  {
    MutexLock lock(mutex_);
    if (!closed_.ok()) return closed_;
    if (places_.size() >= kMostImports) {
      evicted = Evict(now - patience);
      if (evicted == nullptr) return ImportsOpenError(table);
    }
    import = ++last_;
    places_[import] = {now, std::move(interrupt)};
  }
  if (evicted != nullptr) evicted(SilentError());
  return import;
}

Imports::Interrupt Imports::Evict(absl::Time deadline) {
  const auto silent = std::min_element(places_.begin(), places_.end(),
                                       [](const auto& a, const auto& b) {
                                         return a.second.heard < b.second.heard;
                                       });
  if (silent->second.heard > deadline) return nullptr;
  Interrupt interrupt = std::move(silent->second.interrupt);
  places_.erase(silent);
  return interrupt;
}

void Imports::Heard(int64_t import, absl::Time time) {
  MutexLock lock(mutex_);
  const auto place = places_.find(import);
  if (place != places_.end()) place->second.heard = time;
}

void Imports::End(int64_t import) {
  MutexLock lock(mutex_);
  places_.erase(import);
}

void Imports::InterruptAll(const absl::Status& reason) {
  std::map<int64_t, Place> places;
  {
    MutexLock lock(mutex_);
    closed_ = reason;
    places.swap(places_);
  }
  for (auto& [import, place] : places) place.interrupt(reason);
}

int64_t Imports::count() const {
  MutexLock lock(mutex_);
  return static_cast<int64_t>(places_.size());
}

}  // namespace rowhouse::server
