#include "client/internal/head_gradient_sum.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "kernels/arithmetic.h"
#include "kernels/backend.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

kernels::DType KernelType(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return kernels::DType::kBf16;
    case DType::kFp16:
      return kernels::DType::kFp16;
    case DType::kFp32:
      break;
  }
  return kernels::DType::kFp32;
}

}  // namespace

absl::Status HeadGradientSum::Start() {
  if (device_ == nullptr) return absl::OkStatus();
  ROWHOUSE_ASSIGN_OR_RETURN(
      device_sum_,
      device_->Allocate(count_ * static_cast<int64_t>(sizeof(float))));
  return absl::OkStatus();
}

absl::Status HeadGradientSum::Add(int32_t slice, int64_t first_token,
                                  const HeadRows& rows) {
  const auto row_bytes = dim_ * static_cast<int64_t>(sizeof(float));
  const int64_t end = first_token + std::ssize(rows.bytes) / row_bytes;
  int64_t begin = first_token;
  {
    MutexLock lock(mutex_);
    while (slice <= first_failed_ && !CanAdd(slice, end)) {
      changed_.Wait(mutex_);
    }
    if (slice > first_failed_) {
      return absl::CancelledError("a slice before this one has failed");
    }
    begin = std::max(begin, token_counts_[slice]);
  }
  if (begin >= end) return absl::OkStatus();
  const int64_t offset_bytes = (begin - first_token) * row_bytes;
  if (device_ != nullptr) {
    ROWHOUSE_RETURN_IF_ERROR(
        AddOnDevice(begin * dim_, (end - begin) * dim_, rows, offset_bytes));
  } else {
    const char* from = rows.bytes.data() + offset_bytes;
    for (int64_t i = begin * dim_; i < end * dim_; ++i, from += sizeof(float)) {
      float share = 0;  // The bytes may lie anywhere.
      std::memcpy(&share, from, sizeof(float));
      sum_[i] += share;
    }
  }
  MutexLock lock(mutex_);
  token_counts_[slice] = end;
  changed_.SignalAll();
  return absl::OkStatus();
}

// Done when it returns, so that the rows may go.
absl::Status HeadGradientSum::AddOnDevice(int64_t begin, int64_t count,
                                          const HeadRows& rows,
                                          int64_t offset_bytes) {
  const std::string_view bytes =
      rows.bytes.substr(static_cast<size_t>(offset_bytes));
  kernels::Buffer copy;
  const auto* from = reinterpret_cast<const float*>(bytes.data());
  absl::Status added = absl::OkStatus();
  if (rows.device != device_) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        copy, device_->AllocateUninitialized(std::ssize(bytes)));
    added = device_->PlaceRows(bytes, std::ssize(bytes), {}, copy.data());
    from = copy.as<float>();
  }
  if (added.ok()) {
    added = device_->AddFloats(from, device_sum_.as<float>() + begin, count);
  }
  added.Update(device_->Synchronize());
  return added;
}

void HeadGradientSum::Fail(int32_t slice) {
  MutexLock lock(mutex_);
  first_failed_ = std::min(first_failed_, slice);
  changed_.SignalAll();
}

absl::Status HeadGradientSum::Narrow(DType dtype,
                                     std::span<std::byte> out) const {
  if (device_ != nullptr) {
    ROWHOUSE_RETURN_IF_ERROR(device_->NarrowFloats(
        device_sum_.as<float>(), count_, KernelType(dtype), out.data()));
    return device_->Synchronize();
  }
  if (dtype == DType::kFp32) {
    if (!out.empty()) std::memcpy(out.data(), sum_.data(), out.size());
    return absl::OkStatus();
  }
  for (size_t i = 0; i < sum_.size(); ++i) {
    const uint16_t bits = dtype == DType::kFp16 ? kernels::FloatToFp16(sum_[i])
                                                : kernels::FloatToBf16(sum_[i]);
    std::memcpy(out.data() + i * sizeof(bits), &bits, sizeof(bits));
  }
  return absl::OkStatus();
}

}  // namespace rowhouse::client::internal
