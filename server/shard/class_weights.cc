#include "server/shard/class_weights.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {
namespace {

kernels::ContentSum ContentOf(std::span<const float> values) {
  kernels::ContentSum content;
  for (size_t i = 0; i < values.size(); ++i) {
    content += kernels::IdContent(static_cast<int64_t>(i),
                                  std::bit_cast<uint32_t>(values[i]));
  }
  return content;
}

absl::Status ClassWeightsFullError() {
  return wire::Error(
      absl::StatusCode::kResourceExhausted, wire::reasons::kClassWeightsFull,
      absl::StrCat("the shard holds ", ClassWeightSets::kMost,
                   " different class weights, as many as it may"),
      {{"limit", "class weights"},
       {"value", absl::StrCat(ClassWeightSets::kMost)}},
      kRetryDelay);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const HeldClassWeights>> ClassWeightSets::Hold(
    std::span<const float> values) {
  auto made = std::make_shared<ClassWeights>();
  made->row_count = static_cast<int64_t>(values.size());
  made->content = ContentOf(values);
  MutexLock lock(mutex_);
  std::erase_if(held_, [](const auto& held) { return held.expired(); });
  for (const std::weak_ptr<const HeldClassWeights>& weak : held_) {
    std::shared_ptr<const HeldClassWeights> held = weak.lock();
    if (held != nullptr && held->set->content == made->content) return held;
  }
  if (std::ssize(held_) >= kMost) return ClassWeightsFullError();
  const auto size_bytes = static_cast<int64_t>(values.size_bytes());
  ROWHOUSE_ASSIGN_OR_RETURN(made->memory, backend_.Allocate(size_bytes));
  ROWHOUSE_RETURN_IF_ERROR(
      backend_.Copy(values.data(), made->memory.data(), size_bytes));
  ROWHOUSE_RETURN_IF_ERROR(backend_.Synchronize());
  made->largest = *std::max_element(values.begin(), values.end());
  auto held = std::make_shared<const HeldClassWeights>(
      HeldClassWeights{std::move(made)});
  held_.push_back(held);
  return held;
}

}  // namespace rowhouse::server
