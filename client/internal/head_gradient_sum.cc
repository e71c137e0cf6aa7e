#include "client/internal/head_gradient_sum.h"

#include <algorithm>
#include <cstring>

#include "kernels/arithmetic.h"

namespace rowhouse::client::internal {

absl::Status HeadGradientSum::Add(int32_t slice, int64_t first_token,
                                  std::string_view rows) {
  const auto row_bytes = dim_ * static_cast<int64_t>(sizeof(float));
  const int64_t end = first_token + std::ssize(rows) / row_bytes;
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
  const char* from = rows.data() + (begin - first_token) * row_bytes;
  for (int64_t i = begin * dim_; i < end * dim_; ++i, from += sizeof(float)) {
    float share = 0;  // The bytes may lie anywhere.
    std::memcpy(&share, from, sizeof(float));
    sum_[i] += share;
  }
  MutexLock lock(mutex_);
  token_counts_[slice] = end;
  changed_.SignalAll();
  return absl::OkStatus();
}

void HeadGradientSum::Fail(int32_t slice) {
  MutexLock lock(mutex_);
  first_failed_ = std::min(first_failed_, slice);
  changed_.SignalAll();
}

void HeadGradientSum::Narrow(DType dtype, std::span<std::byte> out) const {
  if (dtype == DType::kFp32) {
    if (!out.empty()) std::memcpy(out.data(), sum_.data(), out.size());
    return;
  }
  for (size_t i = 0; i < sum_.size(); ++i) {
    const uint16_t bits = dtype == DType::kFp16 ? kernels::FloatToFp16(sum_[i])
                                                : kernels::FloatToBf16(sum_[i]);
    std::memcpy(out.data() + i * sizeof(bits), &bits, sizeof(bits));
  }
}

}  // namespace rowhouse::client::internal
