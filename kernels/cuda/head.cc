#include "kernels/cuda/head.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/head_block.h"

namespace rowhouse::kernels::cuda {
namespace {

// What every block of one call shares.
struct HeadCall {
  HeadSlice slice;
  HeadInputs inputs;
  const int64_t* tokens = nullptr;  // Those that take part; null: all.
  BlockCut token_cut;               // Of positions in `tokens`.
  BlockCut row_cut;
  DType compute = DType::kFp32;

  static HeadCall Of(const HeadSlice& slice, const HeadInputs& inputs,
                     int64_t token_count, const HeadBlocks& blocks) {
    return {slice,
            inputs,
            nullptr,
            {token_count, blocks.token_count},
            {slice.row_count, blocks.row_count},
            ComputeType(inputs.hidden_dtype, slice.dtype)};
  }
  bool has_bias() const { return slice.bias != nullptr; }
  // Elements of the largest block of each operand.
  int64_t hidden_elements() const { return token_cut.largest() * slice.dim; }
  int64_t weight_elements() const { return row_cut.largest() * slice.dim; }
  int64_t logits() const { return token_cut.largest() * row_cut.largest(); }
};

// Scratch of a call: one block of each operand.
struct HeadScratch {
  int64_t* tokens = nullptr;
  std::byte* hidden = nullptr;   // In the compute type,
  std::byte* weights = nullptr;  // where they are not in the slice.
  float* logits = nullptr;
  std::byte* p = nullptr;        // In the compute type.
  float* sum = nullptr;          // Of hidden rows or of weights.
  float* column_sums = nullptr;  // Of every block of tokens.

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
    scratch.p = cutter.Take<std::byte>(call.logits() * element_bytes);
    scratch.sum = cutter.Take<float>(sum_elements);
    scratch.column_sums = cutter.Take<float>(
        call.has_bias() ? call.token_cut.count() * call.row_cut.largest() : 0);
    return scratch;
  }
};

// Where the logit gradient of a call and its column sums lie: in what the
// caller keeps, or in scratch, a block at a time.
struct LogitGradient {
  std::byte* kept = nullptr;
  float* column_sums = nullptr;  // Null where there are none.
  int64_t column_stride = 0;     // From one block of tokens to the next.

  static LogitGradient In(const HeadCall& call, std::span<std::byte> kept,
                          const HeadBlocks& blocks) {
    const HeadKept layout = HeadKept::Of(call.slice, call.inputs.token_count,
                                         call.inputs.hidden_dtype, blocks);
    float* sums =
        reinterpret_cast<float*>(kept.data() + layout.column_sums_offset);
    return {kept.data(), call.has_bias() ? sums : nullptr,
            call.slice.row_count};
  }
  static LogitGradient In(const HeadCall& call, const HeadScratch& scratch) {
    return {nullptr, call.has_bias() ? scratch.column_sums : nullptr,
            call.row_cut.largest()};
  }

  RowBlock Block(const HeadCall& call, const HeadScratch& scratch,
                 const BlockRange& tokens, const BlockRange& rows) const {
    if (kept == nullptr) return {scratch.p, call.compute, rows.count};
    const int64_t at = tokens.first * call.slice.row_count + rows.first;
    return {kept + at * SizeOf(call.compute), call.compute,
            call.slice.row_count};
  }
  float* ColumnSums(int64_t token_block, const BlockRange& rows) const {
    if (column_sums == nullptr) return nullptr;
    return column_sums + token_block * column_stride +
           (kept == nullptr ? 0 : rows.first);
  }
};

// The steps of one call, enqueued one after another; after an error the rest
// changes nothing that counts.
class HeadRun {
 public:
  HeadRun(Stream& stream, Gemm& gemm, const HeadCall& call,
          const HeadScratch& scratch)
      : stream_(stream), gemm_(gemm), call_(call), scratch_(scratch) {}

  // Hidden rows of a block of tokens, in the compute type.
  Operand Hidden(const BlockRange& tokens) {
    const int64_t dim = call_.slice.dim;
    const DType dtype = call_.inputs.hidden_dtype;
    auto* data = static_cast<std::byte*>(const_cast<void*>(call_.inputs.hidden));
    const bool gathers = call_.tokens != nullptr;
    if (!gathers) data += tokens.first * dim * SizeOf(dtype);
    if (!gathers && dtype == call_.compute) return {data, dim};
    Check(LaunchCopyRows(
              {data, dtype, dim}, gathers ? call_.tokens + tokens.first : nullptr,
              {scratch_.hidden, call_.compute, dim}, nullptr, tokens.count, dim,
              stream_.get()),
          "gathering hidden rows");
    return {scratch_.hidden, dim};
  }

  // Weights of a block of rows, in the compute type.
  Operand Weights(const BlockRange& rows) {
    const int64_t dim = call_.slice.dim;
    const DType dtype = call_.slice.dtype;
    auto* data = static_cast<std::byte*>(const_cast<void*>(call_.slice.weights)) +
                 rows.first * dim * SizeOf(dtype);
    if (dtype == call_.compute) return {data, dim};
    Check(LaunchCopyRows({data, dtype, dim}, nullptr,
                         {scratch_.weights, call_.compute, dim}, nullptr,
                         rows.count, dim, stream_.get()),
          "converting weights");
    return {scratch_.weights, dim};
  }

  LogitBlock Logits(const BlockRange& tokens, const BlockRange& rows,
                    const Operand& hidden, const Operand& weights) {
    Multiply(hidden, {weights.data, weights.stride, true},
             {tokens.count, rows.count, call_.slice.dim}, Into::kWrite,
             scratch_.logits, rows.count);
    return {scratch_.logits, tokens, rows};
  }

  void Multiply(const Operand& a, const Operand& b, const ProductShape& shape,
                Into into, float* out, int64_t stride) {
    status_.Update(gemm_.Multiply(call_.compute, a, b, shape, into, out, stride,
                                  stream_.get()));
  }

  void Check(cudaError_t error, const char* doing) {
    status_.Update(ToStatus(error, doing));
  }

  const absl::Status& status() const { return status_; }

 private:
  Stream& stream_;
  Gemm& gemm_;
  const HeadCall& call_;
  const HeadScratch& scratch_;
  absl::Status status_;
};

// The tokens whose upstream is not 0. Waits for the stream.
absl::StatusOr<std::vector<int64_t>> TokensOf(Stream& stream,
                                              const HeadMerged& merged,
                                              int64_t token_count) {
  std::vector<float> upstream(static_cast<size_t>(token_count));
  absl::Status read = ToStatus(
      cudaMemcpyAsync(upstream.data(), merged.upstream,
                      upstream.size() * sizeof(float), cudaMemcpyDeviceToHost,
                      stream.get()),
      "reading the upstream gradient");
  read.Update(ToStatus(cudaStreamSynchronize(stream.get()),
                       "waiting for the upstream gradient"));
  if (!read.ok()) return read;
  return TokensWithGradient(upstream.data(), token_count);
}

// Takes scratch for a call of `tokens`, and puts them there.
absl::StatusOr<HeadScratch> TakeScratch(Stream& stream,
                                        const std::vector<int64_t>& tokens,
                                        int64_t sum_elements, HeadCall& call) {
  absl::StatusOr<HeadScratch> scratch =
      stream.Scratch([&](ScratchCutter& cutter) {
        return HeadScratch::Cut(cutter, call, sum_elements);
      });
  if (!scratch.ok()) return scratch;
  call.tokens = scratch->tokens;
  absl::Status uploaded =
      stream.Upload(tokens.data(), scratch->tokens,
                    static_cast<int64_t>(tokens.size() * sizeof(int64_t)));
  if (!uploaded.ok()) return uploaded;
  return scratch;
}

}  // namespace

absl::Status HeadTokenStatistics(Stream& stream, Gemm& gemm,
                                 const HeadSlice& slice,
                                 const HeadInputs& inputs,
                                 const HeadBlocks& blocks,
                                 const HeadStatistics& statistics) {
  if (inputs.token_count == 0) return absl::OkStatus();
  const HeadCall call =
      HeadCall::Of(slice, inputs, inputs.token_count, blocks);
  const auto scratch = stream.Scratch([&](ScratchCutter& cutter) {
    return HeadScratch::Cut(cutter, call, 0);
  });
  if (!scratch.ok()) return scratch.status();
  HeadRun run(stream, gemm, call, *scratch);
  run.Check(cudaMemsetAsync(
                statistics.target_logits, 0,
                static_cast<size_t>(inputs.token_count) * sizeof(float),
                stream.get()),
            "clearing target logits");
  const auto merge = [&](const LogitBlock& block) {
    run.Check(
        LaunchMergeStatistics(block, slice, inputs, statistics, stream.get()),
        "merging head statistics");
  };
  for (int64_t b = 0; b < call.token_cut.count(); ++b) {
    const BlockRange tokens = call.token_cut[b];
    if (slice.row_count == 0) merge({nullptr, tokens, {}});
    const Operand hidden = run.Hidden(tokens);
    for (int64_t r = 0; r < call.row_cut.count(); ++r) {
      const BlockRange rows = call.row_cut[r];
      merge(run.Logits(tokens, rows, hidden, run.Weights(rows)));
    }
  }
  return run.status();
}

absl::Status HeadHiddenGradient(Stream& stream, Gemm& gemm,
                                const HeadSlice& slice,
                                const HeadInputs& inputs,
                                const HeadMerged& merged,
                                const HeadBlocks& blocks,
                                std::span<std::byte> kept,
                                float* hidden_gradient) {
  const int64_t dim = slice.dim;
  if (inputs.token_count == 0 || dim == 0) return absl::OkStatus();
  absl::Status cleared = ToStatus(
      cudaMemsetAsync(
          hidden_gradient, 0,
          static_cast<size_t>(inputs.token_count * dim) * sizeof(float),
          stream.get()),
      "clearing a hidden gradient");
  if (!cleared.ok() || slice.row_count == 0) return cleared;
  const auto tokens_in = TokensOf(stream, merged, inputs.token_count);
  if (!tokens_in.ok()) return tokens_in.status();
  if (tokens_in->empty()) return absl::OkStatus();
  HeadCall call = HeadCall::Of(
      slice, inputs, static_cast<int64_t>(tokens_in->size()), blocks);
  const auto scratch =
      TakeScratch(stream, *tokens_in, call.hidden_elements(), call);
  if (!scratch.ok()) return scratch.status();
  // Only what is kept needs column sums.
  const LogitGradient gradient =
      kept.empty() ? LogitGradient() : LogitGradient::In(call, kept, blocks);
  HeadRun run(stream, gemm, call, *scratch);
  for (int64_t b = 0; b < call.token_cut.count(); ++b) {
    const BlockRange tokens = call.token_cut[b];
    const Operand hidden = run.Hidden(tokens);
    for (int64_t r = 0; r < call.row_cut.count(); ++r) {
      const BlockRange rows = call.row_cut[r];
      const Operand weights = run.Weights(rows);
      const LogitBlock logits = run.Logits(tokens, rows, hidden, weights);
      const RowBlock p = gradient.Block(call, *scratch, tokens, rows);
      run.Check(LaunchFormLogitGradient(logits, slice, inputs, merged,
                                        call.tokens, p,
                                        gradient.ColumnSums(b, rows),
                                        stream.get()),
                "forming a logit gradient");
      run.Multiply({p.data, p.stride}, weights,
                   {tokens.count, dim, rows.count},
                   r == 0 ? Into::kWrite : Into::kAdd, scratch->sum, dim);
    }
    run.Check(LaunchCopyRows({scratch->sum, DType::kFp32, dim}, nullptr,
                             {hidden_gradient, DType::kFp32, dim},
                             call.tokens + tokens.first, tokens.count, dim,
                             stream.get()),
              "storing a hidden gradient");
  }
  return run.status();
}

absl::Status HeadWeightGradient(Stream& stream, Gemm& gemm,
                                const HeadSlice& slice,
                                const HeadInputs& inputs,
                                const HeadMerged& merged,
                                const HeadBlocks& blocks,
                                std::span<const std::byte> kept,
                                const MainGrad& main_grad, float* bias_grad) {
  const int64_t dim = slice.dim;
  if (inputs.token_count == 0 || slice.row_count == 0) return absl::OkStatus();
  const auto tokens_in = TokensOf(stream, merged, inputs.token_count);
  if (!tokens_in.ok()) return tokens_in.status();
  if (tokens_in->empty()) return absl::OkStatus();  // Not even -0 becomes +0.
  HeadCall call = HeadCall::Of(
      slice, inputs, static_cast<int64_t>(tokens_in->size()), blocks);
  const bool through_copy = main_grad.dtype != DType::kFp32;
  const auto scratch = TakeScratch(
      stream, *tokens_in, through_copy ? call.weight_elements() : 0, call);
  if (!scratch.ok()) return scratch.status();
  const LogitGradient gradient =
      kept.empty() ? LogitGradient::In(call, *scratch)
                   // Only read from here on.
                   : LogitGradient::In(
                         call, {const_cast<std::byte*>(kept.data()), kept.size()},
                         blocks);
  HeadRun run(stream, gemm, call, *scratch);
  for (int64_t r = 0; r < call.row_cut.count(); ++r) {
    const BlockRange rows = call.row_cut[r];
    const RowBlock main = {
        static_cast<std::byte*>(main_grad.data) +
            rows.first * main_grad.row_stride * SizeOf(main_grad.dtype),
        main_grad.dtype, main_grad.row_stride};
    const RowBlock copy = {scratch->sum, DType::kFp32, dim};
    const RowBlock& sum = through_copy ? copy : main;
    const auto convert = [&](const RowBlock& from, const RowBlock& to) {
      if (!through_copy) return;
      run.Check(LaunchCopyRows(from, nullptr, to, nullptr, rows.count, dim,
                               stream.get()),
                "converting a weight gradient");
    };
    convert(main, copy);
    const Operand weights = kept.empty() ? run.Weights(rows) : Operand();
    for (int64_t b = 0; b < call.token_cut.count(); ++b) {
      const BlockRange tokens = call.token_cut[b];
      const Operand hidden = run.Hidden(tokens);
      const RowBlock p = gradient.Block(call, *scratch, tokens, rows);
      if (kept.empty()) {
        run.Check(LaunchFormLogitGradient(
                      run.Logits(tokens, rows, hidden, weights), slice, inputs,
                      merged, call.tokens, p, gradient.ColumnSums(b, rows),
                      stream.get()),
                  "forming a logit gradient");
      }
      run.Multiply({p.data, p.stride, true}, hidden,
                   {rows.count, dim, tokens.count}, Into::kAdd,
                   static_cast<float*>(sum.data), sum.stride);
    }
    convert(copy, main);
    if (bias_grad == nullptr) continue;
    run.Check(LaunchAddBiasGradient(
                  gradient.ColumnSums(0, rows), call.token_cut.count(),
                  gradient.column_stride, rows.count, bias_grad + rows.first,
                  stream.get()),
              "adding a bias gradient");
  }
  return run.status();
}

}  // namespace rowhouse::kernels::cuda
