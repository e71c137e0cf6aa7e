#ifndef ROWHOUSE_KERNELS_CPU_EMBEDDING_GRADIENT_H_
#define ROWHOUSE_KERNELS_CPU_EMBEDDING_GRADIENT_H_

#include "kernels/cpu/executor.h"
#include "kernels/dense_table.h"

namespace rowhouse::kernels::cpu {

/// See `Backend::AccumulateEmbeddingGradient`. A slot's entries are summed by
/// one thread.
void AccumulateEmbeddingGradient(Executor& executor, const MainGrad& main_grad,
                                 const EmbeddingGradient& gradient);

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_EMBEDDING_GRADIENT_H_
