#ifndef ROWHOUSE_SERVER_SHARD_HEAD_OPERANDS_H_
#define ROWHOUSE_SERVER_SHARD_HEAD_OPERANDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "kernels/dtype.h"

namespace rowhouse::server {

/// What the weight gradient of a head call is formed from, in one piece of
/// backend memory: hidden states, targets as slots, merged statistics and the
/// upstream gradient of its tokens. Must not outlive its backend.
class HeadOperands {
 public:
  /// Bytes of `token_count` tokens.
  static int64_t SizeBytes(int64_t token_count, int64_t dim,
                           kernels::DType hidden_dtype);

  /// Room for the tokens, not filled.
  ///
  /// Errors: the backend's, for want of memory.
  static absl::StatusOr<HeadOperands> Allocate(kernels::Backend& backend,
                                               int64_t token_count, int64_t dim,
                                               kernels::DType hidden_dtype);

  int64_t token_count() const { return token_count_; }
  int64_t size_bytes() const { return memory_.size_bytes(); }

  std::byte* hidden() const { return At(hidden_offset_); }
  int64_t* targets() const { return reinterpret_cast<int64_t*>(At(0)); }
  float* max_logits() const { return Floats(0); }
  float* exp_sums() const { return Floats(1); }
  float* upstream() const { return Floats(2); }

  kernels::HeadInputs inputs() const;
  kernels::HeadMerged merged() const;

 private:
  std::byte* At(int64_t offset) const {
    return memory_.data() == nullptr ? nullptr
                                     : memory_.as<std::byte>() + offset;
  }
  float* Floats(int64_t array) const;

  kernels::Buffer memory_;
  int64_t token_count_ = 0;
  int64_t hidden_offset_ = 0;
  kernels::DType hidden_dtype_ = kernels::DType::kBf16;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_HEAD_OPERANDS_H_
