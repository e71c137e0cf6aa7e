#ifndef ROWHOUSE_CLIENT_INTERNAL_HEAD_GRADIENT_SUM_H_
#define ROWHOUSE_CLIENT_INTERNAL_HEAD_GRADIENT_SUM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "client/internal/head_stream.h"
#include "kernels/buffer.h"
#include "kernels/mutex.h"
#include "rowhouse/types.h"

namespace rowhouse::client::internal {

/// The sum of the slices' hidden gradients, [token_count, dim] fp32, in slice
/// order from +0. Slices add as their rows arrive, each token's rows after
/// those of the slice before: nothing but the sum is kept. It is in the memory
/// of `device`, unless that is null.
///
/// Thread-safe, one thread a slice.
class HeadGradientSum {
 public:
  HeadGradientSum(int32_t slice_count, int64_t token_count, int64_t dim,
                  kernels::Backend* device = nullptr)
      : dim_(dim),
        count_(token_count * dim),
        device_(device),
        sum_(device == nullptr ? count_ : 0),
        token_counts_(slice_count),
        first_failed_(slice_count) {}

  /// Takes the device's memory, if there is one; comes first.
  ///
  /// Errors: those of `Backend::Allocate`.
  absl::Status Start();

  kernels::Backend* device() const { return device_; }

  /// Adds a slice's rows, in token order; waits for the slice before. Rows that
  /// a slice has added are passed over: a call that broke is made again, with
  /// the same bits.
  ///
  /// REQUIRES: `rows` is whole rows that follow those before, or are among
  /// them, and not beyond the last token.
  ///
  /// Errors:
  ///   kCancelled  a slice before it has failed.
  ///   Those of the device.
  absl::Status Add(int32_t slice, int64_t first_token, const HeadRows& rows);

  /// Ends the waits of the slices after `slice`, which is not going to add the
  /// rest.
  void Fail(int32_t slice);

  /// Rounds the sum once to `dtype`, to nearest even, into `out`: [token_count,
  /// dim] of that type, in the memory that the sum is in.
  ///
  /// REQUIRES: every slice has added all; `out` is of that size.
  absl::Status Narrow(DType dtype, std::span<std::byte> out) const;

 private:
  bool CanAdd(int32_t slice, int64_t end_token) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return slice == 0 || token_counts_[slice - 1] >= end_token;
  }

  absl::Status AddOnDevice(int64_t begin, int64_t count, const HeadRows& rows,
                           int64_t offset_bytes);

  const int64_t dim_;
  const int64_t count_;  // Of all elements.
  kernels::Backend* const device_;
  kernels::Buffer device_sum_;
  // A slice's thread owns the rows from its own count to that of the slice
  // before.
  std::vector<float> sum_;
  Mutex mutex_;
  CondVar changed_;
  std::vector<int64_t> token_counts_ ABSL_GUARDED_BY(mutex_);  // By slice.
  int32_t first_failed_ ABSL_GUARDED_BY(mutex_);  // Slice; the count: none.
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_HEAD_GRADIENT_SUM_H_
