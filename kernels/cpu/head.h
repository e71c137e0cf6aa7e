#ifndef ROWHOUSE_KERNELS_CPU_HEAD_H_
#define ROWHOUSE_KERNELS_CPU_HEAD_H_

#include <cstddef>
#include <span>

#include "absl/status/status.h"
#include "kernels/cpu/executor.h"
#include "kernels/cpu/scratch.h"
#include "kernels/dense_table.h"
#include "kernels/linear_cross_entropy.h"

namespace rowhouse::kernels::cpu {

// One thread works on a block at a time: a block of tokens for the statistics
// and the hidden gradient, a block of rows for the weight gradient.

/// See `Backend::HeadTokenStatistics`.
absl::Status HeadTokenStatistics(Executor& executor, ScratchPool& pool,
                                 const HeadSlice& slice,
                                 const HeadInputs& inputs,
                                 const HeadBlocks& blocks,
                                 const HeadStatistics& statistics);

/// See `Backend::HeadHiddenGradient`.
absl::Status HeadHiddenGradient(Executor& executor, ScratchPool& pool,
                                const HeadSlice& slice,
                                const HeadInputs& inputs,
                                const HeadMerged& merged,
                                const HeadBlocks& blocks,
                                std::span<std::byte> kept,
                                float* hidden_gradient);

/// See `Backend::HeadWeightGradient`.
absl::Status HeadWeightGradient(Executor& executor, ScratchPool& pool,
                                const HeadSlice& slice,
                                const HeadInputs& inputs,
                                const HeadMerged& merged,
                                const HeadBlocks& blocks,
                                std::span<const std::byte> kept,
                                const MainGrad& main_grad, float* bias_grad);

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_HEAD_H_
