#include "server/shard/beta2_history.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/hash.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::server {
namespace {

constexpr int64_t kFirstCapacity = 1024;

}  // namespace

absl::StatusOr<Beta2History> Beta2History::Create(kernels::Backend& backend) {
  Beta2History history(backend);
  ROWHOUSE_RETURN_IF_ERROR(history.Grow());
  return history;
}

absl::Status Beta2History::Append(float beta2) {
  beta2_.push_back(beta2);
  suffix_min_.push_back(beta2);
  int64_t first = event_count();
  while (first > 1 && suffix_min_[first - 1] > beta2) {
    suffix_min_[--first] = beta2;
  }
  if (event_count() + 1 > capacity_) return Grow();
  return Upload(first);
}

absl::Status Beta2History::Grow() {
  const int64_t capacity = std::max(kFirstCapacity, 2 * capacity_);
  const auto size_bytes = capacity * static_cast<int64_t>(sizeof(float));
  ROWHOUSE_ASSIGN_OR_RETURN(kernels::Buffer beta2,
                            backend_->Allocate(size_bytes));
  ROWHOUSE_ASSIGN_OR_RETURN(kernels::Buffer suffix_min,
                            backend_->Allocate(size_bytes));
  device_beta2_ = std::move(beta2);
  device_suffix_min_ = std::move(suffix_min);
  capacity_ = capacity;
  return Upload(0);
}

absl::Status Beta2History::Upload(int64_t first) {
  const auto end = static_cast<int64_t>(beta2_.size());
  const auto size_bytes = (end - first) * static_cast<int64_t>(sizeof(float));
  // Values never change: only the newest one, or all after growing.
  const int64_t first_value = first == 0 ? 0 : end - 1;
  ROWHOUSE_RETURN_IF_ERROR(backend_->Copy(
      beta2_.data() + first_value, device_beta2_.as<float>() + first_value,
      (end - first_value) * static_cast<int64_t>(sizeof(float))));
  ROWHOUSE_RETURN_IF_ERROR(
      backend_->Copy(suffix_min_.data() + first,
                     device_suffix_min_.as<float>() + first, size_bytes));
  return backend_->Synchronize();
}

kernels::Beta2History Beta2History::view() const {
  return {device_beta2_.as<float>(), device_suffix_min_.as<float>(),
          event_count()};
}

uint64_t Beta2History::Digest() const {
  return kernels::HistoryDigest(beta2_.data(), event_count());
}

}  // namespace rowhouse::server
