#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/ngram_sum.h"
#include "kernels/cuda/signs.cuh"
#include "kernels/cuda/sum_runs.cuh"
#include "kernels/element.h"
#include "kernels/ngram_hash.h"

namespace rowhouse::kernels::cuda {
namespace {

// A thread a token: its bigram and its trigram row.
__global__ void __launch_bounds__(kThreads)
    ListSignedRowsKernel(const int32_t* __restrict__ tokens, int64_t count,
                         const int64_t* __restrict__ slots,
                         const char* gradient, int64_t row_bytes,
                         int64_t sign_row_count, SignedRow* __restrict__ rows,
                         uint8_t* __restrict__ in_use) {
  const int64_t t = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (t >= count) return;
  const auto list = [&](int64_t position, int64_t sign_row) {
    rows[position] = {gradient + t * row_bytes, sign_row};
    in_use[slots[position]] = 1;
  };
  list(t, BigramSignRow(tokens, t, sign_row_count));
  list(count + t, TrigramSignRow(tokens, t, sign_row_count));
}

// A warp a slot.
template <typename Wire>
__global__ void __launch_bounds__(kThreads)
    ClearUnusedKernel(const uint8_t* __restrict__ in_use, int64_t slot_count,
                      int64_t dim, Wire* __restrict__ out) {
  const int64_t slot = int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
  if (slot >= slot_count || in_use[slot] != 0) return;
  for (int64_t j = threadIdx.x % kWarpSize; j < dim; j += kWarpSize) {
    out[slot * dim + j] = Wire{};
  }
}

// Source of run-sums: gradient rows with their signs.
template <typename Gradient>
struct SignedRows {
  using Element = Gradient;
  using Row = SignedRow;

  __device__ Row At(uint64_t row) const { return rows[row]; }
  template <bool kVector>
  __device__ Columns<Gradient> Load(const Row& row, int64_t column,
                                    int64_t dim) const {
    return LoadColumns<kVector>(static_cast<const Gradient*>(row.row), column,
                                dim);
  }
  // The word of signs is formed once for all `c`: it depends on none.
  __device__ float Value(const Row& row, int64_t column, int c,
                         Gradient element) const {
    const uint64_t signs =
        column < dim ? SignBits(pool, dim, row.sign_row, column) : 0;
    return Widen(Flip(element, signs, c));
  }

  const SignedRow* rows;
  SignPool pool;
  int64_t dim;
};

// Sink of run-sums: rows to write, rounded once.
template <typename Wire>
struct WireRows {
  struct State {};

  template <bool kVector>
  __device__ State Load(int64_t, int64_t, int64_t) const {
    return {};
  }
  template <bool kVector>
  __device__ void Store(int64_t slot, int64_t column, int64_t dim, State,
                        const float (&sum)[kLaneColumns]) const {
    Columns<Wire> rounded;
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) rounded.x[c] = Narrow<Wire>(sum[c]);
    StoreColumns<kVector>(rounded, data + slot * dim, column, dim);
  }

  Wire* data;
};

bool AreVectorRows(std::span<const NgramStep> steps, int64_t dim,
                   const void* out) {
  bool all = IsVectorRow(out, dim);
  for (const NgramStep& step : steps) {
    all = all && IsVectorRow(step.gradient, dim);
  }
  return all;
}

}  // namespace

cudaError_t LaunchListSignedRows(std::span<const NgramStep> steps,
                                 DType gradient_dtype, int64_t dim,
                                 int64_t sign_row_count, SignedRow* rows,
                                 uint8_t* in_use, cudaStream_t stream) {
  for (const NgramStep& step : steps) {
    if (step.tokens.empty()) continue;
    const auto count = static_cast<int64_t>(step.tokens.size());
    ListSignedRowsKernel<<<BlocksFor(count, kThreads), kThreads, 0, stream>>>(
        step.tokens.data(), count, step.slots.data(),
        static_cast<const char*>(step.gradient), dim * SizeOf(gradient_dtype),
        sign_row_count, rows, in_use);
    rows += 2 * count;
  }
  return cudaGetLastError();
}

cudaError_t LaunchSumNgramGradients(std::span<const NgramStep> steps,
                                    DType gradient_dtype, int64_t dim,
                                    const SignPool& pool, const SignedRow* rows,
                                    const uint8_t* in_use,
                                    const Entries& entries, int64_t slot_count,
                                    DType wire_dtype, void* out,
                                    cudaStream_t stream) {
  if (slot_count == 0) return cudaSuccess;
  cudaError_t error = cudaSuccess;
  WithElement(wire_dtype, [&]<typename Wire>() {
    ClearUnusedKernel<<<BlocksFor(slot_count, kWarps), kThreads, 0, stream>>>(
        in_use, slot_count, dim, static_cast<Wire*>(out));
    error = cudaGetLastError();
    if (error != cudaSuccess) return;
    WithElement(gradient_dtype, [&]<typename Gradient>() {
      error = LaunchSumRuns(entries, dim, SignedRows<Gradient>{rows, pool, dim},
                            WireRows<Wire>{static_cast<Wire*>(out)},
                            AreVectorRows(steps, dim, out), stream);
    });
  });
  return error;
}

}  // namespace rowhouse::kernels::cuda
