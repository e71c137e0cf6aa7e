#ifndef ROWHOUSE_KERNELS_CUDA_HEAD_H_
#define ROWHOUSE_KERNELS_CUDA_HEAD_H_

/// The host's side of the LM head; the contracts are those of `Backend`.
/// Logits exist in blocks only. The gradients first wait for the stream's work:
/// which tokens take part is decided on the host. The commonest head has a way
/// of its own (bf16_head.h).

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "kernels/cuda/gemm.h"
#include "kernels/cuda/stream.h"
#include "kernels/dense_table.h"
#include "kernels/linear_cross_entropy.h"

namespace rowhouse::kernels::cuda {

absl::Status HeadTokenStatistics(Stream& stream, Gemm& gemm,
                                 const HeadSlice& slice,
                                 const HeadInputs& inputs,
                                 const HeadBlocks& blocks,
                                 const HeadStatistics& statistics,
                                 std::span<std::byte> kept);

absl::Status HeadHiddenGradient(Stream& stream, Gemm& gemm,
                                const HeadSlice& slice,
                                const HeadInputs& inputs,
                                const HeadMerged& merged,
                                const HeadBlocks& blocks,
                                std::span<std::byte> kept, bool has_logits,
                                float* hidden_gradient);

absl::Status HeadWeightGradient(Stream& stream, Gemm& gemm,
                                const HeadSlice& slice,
                                const HeadInputs& inputs,
                                const HeadMerged& merged,
                                const HeadBlocks& blocks,
                                std::span<const std::byte> kept,
                                const MainGrad& main_grad, float* bias_grad);

absl::Status HeadGradients(Stream& stream, Gemm& gemm, const HeadSlice& slice,
                           const HeadInputs& inputs, const HeadMerged& merged,
                           const HeadBlocks& blocks, std::span<std::byte> kept,
                           float* hidden_gradient, const MainGrad& main_grad,
                           float* bias_grad);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_HEAD_H_
