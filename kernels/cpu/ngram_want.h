#ifndef ROWHOUSE_KERNELS_CPU_NGRAM_WANT_H_
#define ROWHOUSE_KERNELS_CPU_NGRAM_WANT_H_

#include <cstdint>
#include <span>

#include "kernels/cpu/executor.h"

namespace rowhouse::kernels::cpu {

/// See `Backend::NgramWantList`; returns the count. On two threads: one sorts
/// the bigrams' ids by radix, the other the trigrams'. Moves 8 bytes an id and
/// 11 bits of the greatest.
int64_t NgramWantList(Executor& executor,
                      std::span<const std::span<const int32_t>> steps,
                      int64_t table_row_count, std::span<int64_t> want);

}  // namespace rowhouse::kernels::cpu

#endif  // ROWHOUSE_KERNELS_CPU_NGRAM_WANT_H_
