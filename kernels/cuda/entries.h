#ifndef ROWHOUSE_KERNELS_CUDA_ENTRIES_H_
#define ROWHOUSE_KERNELS_CUDA_ENTRIES_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "kernels/cuda/scratch.h"
#include "kernels/row_table.h"

namespace rowhouse::kernels::cuda {

/// Gradient rows on their way to slots, on the device: by slot, and those of
/// one slot in canonical order.
struct Entries {
  const int64_t* slots = nullptr;  ///< [count], never decreasing.
  const uint64_t* rows = nullptr;  ///< [count]: where each gradient row is.
  int64_t count = 0;
};

/// Scratch of `LaunchSortEntries`.
struct EntryScratch {
  int64_t* slots[2] = {};  ///< [count] each.
  uint64_t* rows[2] = {};  ///< [count] each.
  void* sort = nullptr;    ///< What CUB asks for, `sort_bytes`.
  int64_t sort_bytes = 0;

  static EntryScratch Cut(ScratchCutter& cutter, int64_t count);
};

/// Enqueues the gathering of `parts`, rows of which are `row_stride_bytes`
/// apart, and a stable sort by slot; `entries` are then those in `scratch`.
/// Up to 32,768 entries of up to 64 parts are sorted by one kernel that ranks
/// each among all; CUB's radix sort does the rest. Slots are below
/// `2^slot_bits`, `slot_bits` at most 63.
///
/// The radix sort moves 32 bytes an entry and pass, 8 slot bits a pass; ranking
/// reads all slots once for every 64 entries.
cudaError_t LaunchSortEntries(std::span<const GradientPart> parts,
                              int64_t row_stride_bytes, int slot_bits,
                              const EntryScratch& scratch, Entries& entries,
                              cudaStream_t stream);

/// Enqueues `*unordered = 1` where `slots` do not increase strictly.
cudaError_t LaunchCheckIncreasing(const int64_t* slots, int64_t count,
                                  int32_t* unordered, cudaStream_t stream);

/// Whether merging is the way for `parts` that may be in order, each by itself:
/// several, not too many, and more entries than are sorted by ranking.
bool MayMergeParts(std::span<const GradientPart> parts);

/// As `LaunchSortEntries`, for parts in order: each entry finds its place by
/// binary search in the other parts. Sets `*unordered` to 1 where
/// slots of a part decrease; then the entries mean nothing. Moves 32 bytes an
/// entry, and what searches read from the cache.
///
/// REQUIRES: `MayMergeParts(parts)`.
cudaError_t LaunchMergeParts(std::span<const GradientPart> parts,
                             int64_t row_stride_bytes,
                             const EntryScratch& scratch, Entries& entries,
                             int32_t* unordered, cudaStream_t stream);

/// Enqueues `*bits |= slot` for all of `slots`.
cudaError_t LaunchCombineBits(const int64_t* slots, int64_t count,
                              unsigned long long* bits, cudaStream_t stream);

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_ENTRIES_H_
