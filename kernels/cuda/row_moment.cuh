#ifndef ROWHOUSE_KERNELS_CUDA_ROW_MOMENT_CUH_
#define ROWHOUSE_KERNELS_CUDA_ROW_MOMENT_CUH_

/// A row's state through an event, the same for rows of any width.

#include <cstdint>

#include "kernels/arithmetic.h"
#include "kernels/cuda/row_adam.h"

namespace rowhouse::kernels::cuda {

__device__ inline void Count(unsigned long long& counter) {
  atomicAdd(&counter, 1ULL);
}

/// The second moment of a row as this event leaves it. Nothing applies where
/// the policy asks for finite values and one is not; one thread counts why.
struct Moment {
  bool applies;
  float v;
};

__device__ inline Moment NextMoment(const RowAdamLaunch& e,
                                    const RowState& state, float sum_of_squares,
                                    bool counts) {
  const bool any_value = e.policy == NonFinitePolicy::kPropagate;
  const float mean_square = sum_of_squares / static_cast<float>(e.table.dim);
  // A sum that is not finite has a mean square that is not finite.
  if (!any_value && !IsFinite(mean_square)) {
    if (counts) Count(e.counts->bad_mean_squares);
    return {false, 0.0F};
  }
  const float replayed =
      ReplaySecondMoment(state.second_moment, e.beta2, e.suffix_min,
                         int64_t{state.last_event} + 1, e.event_count);
  const float next =
      Canonical(UpdateSecondMoment(replayed, mean_square, e.factors));
  if (!any_value && !IsFinite(next)) {
    if (counts) Count(e.counts->bad_second_moments);
    return {false, 0.0F};
  }
  return {true, next};
}

__device__ inline void StoreMoment(const RowAdamLaunch& e, int64_t slot,
                                   float v) {
  e.table.states[slot] = {v, static_cast<int32_t>(e.event_count + 1)};
}

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_ROW_MOMENT_CUH_
