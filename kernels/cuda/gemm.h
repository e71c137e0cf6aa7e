#ifndef ROWHOUSE_KERNELS_CUDA_GEMM_H_
#define ROWHOUSE_KERNELS_CUDA_GEMM_H_

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <tuple>

#include "absl/status/status.h"
#include "kernels/buffer.h"
#include "kernels/dtype.h"

namespace rowhouse::kernels::cuda {

/// An operand of a product, row-major: element (i, j) is `data[i * stride +
/// j]`, or with `transposed` `data[j * stride + i]`.
struct Operand {
  const void* data = nullptr;
  int64_t stride = 0;
  bool transposed = false;
};

/// Sizes of a product [m, k] x [k, n].
struct ProductShape {
  int64_t m;
  int64_t n;
  int64_t k;
};

enum class Into : uint8_t { kWrite, kAdd };

/// Products by cuBLASLt on one stream, with a workspace of its own: the same
/// call gives the same bits on one kind of device with one version of the
/// library. The order of sums is the library's; it is asked once for each kind
/// of product.
///
/// Thread-compatible.
class Gemm {
 public:
  Gemm() = default;
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  /// `out = a x b` or `out += a x b`: elements of `dtype`, products and sums in
  /// fp32. Row `i` of `out` begins at `i * stride`. The first call makes the
  /// library's handle and the workspace.
  ///
  /// Errors:
  ///   kResourceExhausted  there is too little memory; names the bytes.
  ///   kInternal           the library failed, or has no way to form it.
  absl::Status Multiply(DType dtype, const Operand& a, const Operand& b,
                        const ProductShape& shape, Into into, float* out,
                        int64_t stride, cudaStream_t stream);

  /// Makes handle and workspace now, where they are not there. Errors: as
  /// above.
  absl::Status Make();

 private:
  // All that the library's choice may depend on: type, sizes, operands'
  // strides, orders and alignments.
  using Kind = std::tuple<DType, Into, int64_t, int64_t, int64_t, int64_t, bool,
                          int64_t, bool, int64_t, uint32_t, uint32_t, uint32_t>;

  cublasLtHandle_t handle_ = nullptr;
  std::map<Kind, cublasLtMatmulAlgo_t> ways_;
  Buffer workspace_;
};

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_GEMM_H_
