#include "kernels/cuda/columns.cuh"
#include "kernels/cuda/embedding_gradient.h"
#include "kernels/cuda/sum_runs.cuh"
#include "kernels/element.h"

namespace rowhouse::kernels::cuda {
namespace {

// Source of run-sums: the rows of one part.
template <typename Gradient>
struct PartRows {
  using Element = Gradient;
  using Row = const Gradient*;

  __device__ Row At(uint64_t row) const {
    return reinterpret_cast<const Gradient*>(row);
  }
  template <bool kVector>
  __device__ Columns<Gradient> Load(Row row, int64_t column,
                                    int64_t dim) const {
    return LoadColumns<kVector>(row, column, dim);
  }
  __device__ float Value(Row, int64_t, int, Gradient element) const {
    return Widen(element);
  }
};

// Sink of run-sums: `main = RNE(fl32(main + r))`, `r` being the sum rounded to
// the gradient's type.
template <typename Main, typename Gradient>
struct MainRows {
  using State = Columns<Main>;

  template <bool kVector>
  __device__ State Load(int64_t slot, int64_t column, int64_t dim) const {
    return LoadColumns<kVector>(data + slot * stride, column, dim);
  }
  template <bool kVector>
  __device__ void Store(int64_t slot, int64_t column, int64_t dim, State main,
                        const float (&sum)[kLaneColumns]) const {
#pragma unroll
    for (int c = 0; c < kLaneColumns; ++c) {
      const float r = Widen(Narrow<Gradient>(sum[c]));
      main.x[c] = Narrow<Main>(Widen(main.x[c]) + r);
    }
    StoreColumns<kVector>(main, data + slot * stride, column, dim);
  }

  Main* data;
  int64_t stride;
};

}  // namespace

cudaError_t LaunchAccumulateEmbeddingGradient(const MainGrad& main_grad,
                                              const EmbeddingGradient& gradient,
                                              const Entries& entries,
                                              cudaStream_t stream) {
  cudaError_t error = cudaSuccess;
  WithDenseElement(main_grad.dtype, [&]<typename Main>() {
    WithDenseElement(gradient.dtype, [&]<typename Gradient>() {
      const bool vector_rows =
          main_grad.dim % kLaneColumns == 0 &&
          IsVectorRow(main_grad.data, main_grad.row_stride) &&
          IsVectorRow(gradient.rows, gradient.row_stride);
      const MainRows<Main, Gradient> sink = {static_cast<Main*>(main_grad.data),
                                             main_grad.row_stride};
      error = LaunchSumRuns(entries, main_grad.dim, PartRows<Gradient>(), sink,
                            vector_rows, stream);
    });
  });
  return error;
}

}  // namespace rowhouse::kernels::cuda
