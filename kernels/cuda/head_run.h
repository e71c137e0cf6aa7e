#ifndef ROWHOUSE_KERNELS_CUDA_HEAD_RUN_H_
#define ROWHOUSE_KERNELS_CUDA_HEAD_RUN_H_

/// What the head's operations share: a call's blocks, its scratch and the steps
/// over one block.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/head_block.h"
#include "kernels/cuda/stream.h"
#include "kernels/linear_cross_entropy.h"

namespace rowhouse::kernels::cuda {

/// What every block of one call shares.
struct HeadCall {
  HeadSlice slice;
  HeadInputs inputs;
  const int64_t* tokens = nullptr;  ///< Those that take part; null: all.
  BlockCut token_cut;               ///< Of positions in `tokens`.
  BlockCut row_cut;
  DType compute = DType::kFp32;

  static HeadCall Of(const HeadSlice& slice, const HeadInputs& inputs,
                     int64_t token_count, const HeadBlocks& blocks) {
    return {slice,
            inputs,
            nullptr,
            {token_count, blocks.token_count},
            {slice.row_count, std::min(blocks.row_count, HeadKept::kMostRows)},
            ComputeType(inputs.hidden_dtype, slice.dtype)};
  }
  bool has_bias() const { return slice.bias != nullptr; }

  /// Elements of the largest block of each operand.
  int64_t hidden_elements() const { return token_cut.largest() * slice.dim; }
  int64_t weight_elements() const { return row_cut.largest() * slice.dim; }
  int64_t logits() const { return token_cut.largest() * row_cut.largest(); }
};

/// Scratch of a call: one block of each operand.
struct HeadScratch {
  int64_t* tokens = nullptr;
  std::byte* hidden = nullptr;   ///< In the compute type,
  std::byte* weights = nullptr;  ///< where they are not in the slice.
  float* logits = nullptr;
  std::byte* p = nullptr;        ///< In the compute type.
  float* sum = nullptr;          ///< Of hidden rows or of weights.
  float* column_sums = nullptr;  ///< Of every block of tokens.

  static HeadScratch Cut(ScratchCutter& cutter, const HeadCall& call,
                         int64_t sum_elements) {
    const int64_t element_bytes = SizeOf(call.compute);
    const bool converts = call.slice.dtype != call.compute;
    HeadScratch scratch;
    scratch.tokens = cutter.Take<int64_t>(call.token_cut.total);
    scratch.hidden =
        cutter.Take<std::byte>(call.hidden_elements() * element_bytes);
    scratch.weights = cutter.Take<std::byte>(
        converts ? call.weight_elements() * element_bytes : 0);
    scratch.logits = cutter.Take<float>(call.logits());
    scratch.p = cutter.Take<std::byte>(
        call.token_cut.largest() * HeadKept::Stride(call.row_cut.largest()) *
        element_bytes);
    scratch.sum = cutter.Take<float>(sum_elements);
    scratch.column_sums = cutter.Take<float>(
        call.has_bias() ? call.token_cut.count() * call.row_cut.largest() : 0);
    return scratch;
  }
};

/// Column sums of a block of rows, of each block of tokens.
struct ColumnSums {
  float* data = nullptr;  ///< Null: none are wanted.
  int64_t stride = 0;     ///< From one block of tokens to the next.

  float* Of(int64_t token_block) const {
    return data == nullptr ? nullptr : data + token_block * stride;
  }
};

/// Where the logit gradient of a call and its column sums lie: in what the
/// caller keeps, as far as that goes, or in scratch, a block at a time.
struct LogitGradient {
  std::byte* kept = nullptr;
  int64_t kept_row_count = 0;  ///< Rows before this one are kept.
  float* kept_sums = nullptr;  ///< Null where there is no bias.

  static LogitGradient In(const HeadCall& call, std::span<std::byte> kept,
                          const HeadBlocks& blocks) {
    if (kept.empty()) return {};
    const HeadKept layout = HeadKept::Of(call.slice, call.inputs.token_count,
                                         call.inputs.hidden_dtype, blocks);
    const int64_t row_bytes = call.token_cut.total * SizeOf(call.compute);
    return {kept.data() + layout.gradient_offset,
            layout.RowsIn(static_cast<int64_t>(kept.size()), call.row_cut,
                          row_bytes),
            call.has_bias() ? reinterpret_cast<float*>(kept.data()) : nullptr};
  }

  bool Keeps(const BlockRange& rows) const {
    return rows.first < kept_row_count;
  }

  // Of one width wherever it lies, so that products go the same way.
  RowBlock Block(const HeadCall& call, const HeadScratch& scratch,
                 const BlockRange& tokens, const BlockRange& rows) const {
    const int64_t stride = HeadKept::Stride(rows.count);
    if (!Keeps(rows)) return {scratch.p, call.compute, stride};
    const int64_t at = rows.first / call.row_cut.size * call.token_cut.total *
                           HeadKept::Stride(call.row_cut.size) +
                       tokens.first * stride;
    return {kept + at * SizeOf(call.compute), call.compute, stride};
  }

  /// What is kept of them.
  ColumnSums KeptSums(const HeadCall& call, const BlockRange& rows) const {
    if (kept_sums == nullptr || !Keeps(rows)) return {};
    return {kept_sums + rows.first, call.slice.row_count};
  }
  ColumnSums Sums(const HeadCall& call, const HeadScratch& scratch,
                  const BlockRange& rows) const {
    if (!call.has_bias()) return {};
    return Keeps(rows) ? KeptSums(call, rows)
                       : ColumnSums{scratch.column_sums,
                                    call.row_cut.largest()};
  }
};

/// The steps of one call, enqueued one after another; after an error the rest
/// changes nothing that counts.
class HeadRun {
 public:
  HeadRun(Stream& stream, Gemm& gemm, const HeadCall& call,
          const HeadScratch& scratch)
      : stream_(stream), gemm_(gemm), call_(call), scratch_(scratch) {}

  /// Hidden rows of a block of tokens, in the compute type.
  Operand Hidden(const BlockRange& tokens);

  /// Weights of a block of rows, in the compute type.
  Operand Weights(const BlockRange& rows);

  LogitBlock Logits(const BlockRange& tokens, const BlockRange& rows,
                    const Operand& hidden, const Operand& weights);

  /// See `Gemm::Multiply`.
  void Multiply(const Operand& a, const Operand& b, const ProductShape& shape,
                Into into, float* out, int64_t stride);

  void Check(cudaError_t error, const char* doing) {
    status_.Update(ToStatus(error, doing));
  }

  void Check(const absl::Status& status) { status_.Update(status); }

  /// The first error.
  const absl::Status& status() const { return status_; }

 private:
  Stream& stream_;
  Gemm& gemm_;
  const HeadCall& call_;
  const HeadScratch& scratch_;
  absl::Status status_;
};

/// The tokens that take part in the gradients. Waits for the stream.
absl::StatusOr<std::vector<int64_t>> TokensOf(Stream& stream,
                                              const HeadMerged& merged,
                                              int64_t token_count);

/// Takes scratch for a call of `tokens` and puts them there, for the call too.
absl::StatusOr<HeadScratch> TakeScratch(Stream& stream,
                                        const std::vector<int64_t>& tokens,
                                        int64_t sum_elements, HeadCall& call);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_HEAD_RUN_H_
