#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/ngram_embed.h"
#include "kernels/cuda/signs.cuh"
#include "kernels/element.h"
#include "kernels/ngram_hash.h"

namespace rowhouse::kernels::cuda {
namespace {

// A warp a token.
struct Place {
  int64_t token;
  int lane;

  static __device__ Place Of() {
    return {int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize,
            static_cast<int>(threadIdx.x) % kWarpSize};
  }
};

template <bool kVector, typename T>
__global__ void __launch_bounds__(kThreads)
    ForwardKernel(const T* __restrict__ cache, int64_t dim,
                  const int32_t* __restrict__ tokens, int64_t count,
                  const int64_t* __restrict__ slots, SignPool pool,
                  T* __restrict__ out) {
  const auto [t, lane] = Place::Of();
  if (t >= count) return;
  const int64_t bigram_signs = BigramSignRow(tokens, t, pool.row_count);
  const int64_t trigram_signs = TrigramSignRow(tokens, t, pool.row_count);
  const T* bigram = cache + slots[t] * dim;
  const T* trigram = cache + slots[count + t] * dim;
  for (int64_t j = lane * kLaneColumns; j < dim; j += kGroupColumns) {
    const auto a = LoadColumns<kVector>(bigram, j, dim);
    const auto b = LoadColumns<kVector>(trigram, j, dim);
    const uint64_t a_signs = SignBits(pool, dim, bigram_signs, j);
    const uint64_t b_signs = SignBits(pool, dim, trigram_signs, j);
    Columns<T> sum;
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) {
      sum.x[c] = Narrow<T>(Widen(Flip(a.x[c], a_signs, c)) +
                           Widen(Flip(b.x[c], b_signs, c)));
    }
    StoreColumns<kVector>(sum, out + t * dim, j, dim);
  }
}

template <bool kVector, typename T>
__global__ void __launch_bounds__(kThreads)
    BackwardKernel(const T* __restrict__ gradient, int64_t dim,
                   const int32_t* __restrict__ tokens, int64_t count,
                   SignPool pool, T* __restrict__ row_gradient) {
  const auto [t, lane] = Place::Of();
  if (t >= count) return;
  const int64_t bigram_signs = BigramSignRow(tokens, t, pool.row_count);
  const int64_t trigram_signs = TrigramSignRow(tokens, t, pool.row_count);
  for (int64_t j = lane * kLaneColumns; j < dim; j += kGroupColumns) {
    const auto g = LoadColumns<kVector>(gradient + t * dim, j, dim);
    const auto write = [&](int64_t sign_row, int64_t row) {
      const uint64_t signs = SignBits(pool, dim, sign_row, j);
      Columns<T> flipped;
#pragma unroll
      for (int c = 0; c < kLaneColumns; ++c) {
        flipped.x[c] = Flip(g.x[c], signs, c);
      }
      StoreColumns<kVector>(flipped, row_gradient + row * dim, j, dim);
    };
    write(bigram_signs, t);
    write(trigram_signs, count + t);
  }
}

}  // namespace

cudaError_t LaunchNgramEmbedForward(const void* cache, DType dtype, int64_t dim,
                                    std::span<const int32_t> tokens,
                                    std::span<const int64_t> slots,
                                    const SignPool& pool, void* out,
                                    cudaStream_t stream) {
  if (tokens.empty()) return cudaSuccess;
  const auto count = static_cast<int64_t>(tokens.size());
  WithElement(dtype, [&]<typename T>() {
    const bool vector_rows = IsVectorRow(cache, dim) && IsVectorRow(out, dim);
    const auto kernel =
        vector_rows ? ForwardKernel<true, T> : ForwardKernel<false, T>;
    kernel<<<BlocksFor(count, kWarps), kThreads, 0, stream>>>(
        static_cast<const T*>(cache), dim, tokens.data(), count, slots.data(),
        pool, static_cast<T*>(out));
  });
  return cudaGetLastError();
}

cudaError_t LaunchNgramEmbedBackward(const void* gradient, DType dtype,
                                     int64_t dim,
                                     std::span<const int32_t> tokens,
                                     const SignPool& pool, void* row_gradient,
                                     cudaStream_t stream) {
  if (tokens.empty()) return cudaSuccess;
  const auto count = static_cast<int64_t>(tokens.size());
  WithElement(dtype, [&]<typename T>() {
    const bool vector_rows =
        IsVectorRow(gradient, dim) && IsVectorRow(row_gradient, dim);
    const auto kernel =
        vector_rows ? BackwardKernel<true, T> : BackwardKernel<false, T>;
    kernel<<<BlocksFor(count, kWarps), kThreads, 0, stream>>>(
        static_cast<const T*>(gradient), dim, tokens.data(), count, pool,
        static_cast<T*>(row_gradient));
  });
  return cudaGetLastError();
}

}  // namespace rowhouse::kernels::cuda
