#include "kernels/cuda/head_run.h"

namespace rowhouse::kernels::cuda {

Operand HeadRun::Hidden(const BlockRange& tokens) {
  const int64_t dim = call_.slice.dim;
  const DType dtype = call_.inputs.hidden_dtype;
  auto* data = static_cast<std::byte*>(const_cast<void*>(call_.inputs.hidden));
  const bool gathers = call_.tokens != nullptr;
  if (!gathers) data += tokens.first * dim * SizeOf(dtype);
  if (!gathers && dtype == call_.compute) return {data, dim};
  Check(LaunchCopyRows({data, dtype, dim},
                       gathers ? call_.tokens + tokens.first : nullptr,
                       {scratch_.hidden, call_.compute, dim}, nullptr,
                       tokens.count, dim, stream_.get()),
        "gathering hidden rows");
  return {scratch_.hidden, dim};
}

Operand HeadRun::Weights(const BlockRange& rows) {
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

LogitBlock HeadRun::Logits(const BlockRange& tokens, const BlockRange& rows,
                           const Operand& hidden, const Operand& weights) {
  Multiply(hidden, {weights.data, weights.stride, true},
           {tokens.count, rows.count, call_.slice.dim}, Into::kWrite,
           scratch_.logits, rows.count);
  return {scratch_.logits, tokens, rows};
}

void HeadRun::Multiply(const Operand& a, const Operand& b,
                       const ProductShape& shape, Into into, float* out,
                       int64_t stride) {
  status_.Update(gemm_.Multiply(call_.compute, a, b, shape, into, out, stride,
                                stream_.get()));
}

absl::StatusOr<std::vector<int64_t>> TokensOf(Stream& stream,
                                              const HeadMerged& merged,
                                              int64_t token_count) {
  std::vector<float> probability;
  std::vector<float> target;
  std::vector<float> smoothing;
  absl::Status read;
  const auto fetch = [&](const float* from, std::vector<float>& to) {
    to.resize(static_cast<size_t>(token_count));
    read.Update(
        ToStatus(cudaMemcpyAsync(to.data(), from, to.size() * sizeof(float),
                                 cudaMemcpyDeviceToHost, stream.get()),
                 "reading a loss's gradient"));
    return to.data();
  };
  HeadMerged host;
  host.probability = fetch(merged.probability, probability);
  host.target = merged.target == merged.probability
                    ? host.probability
                    : fetch(merged.target, target);
  if (merged.smoothing != nullptr) {
    host.smoothing = fetch(merged.smoothing, smoothing);
  }
  read.Update(ToStatus(cudaStreamSynchronize(stream.get()),
                       "waiting for a loss's gradient"));
  if (!read.ok()) return read;
  return TokensWithGradient(host, token_count);
}

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

}  // namespace rowhouse::kernels::cuda
