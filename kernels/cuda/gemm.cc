#include "kernels/cuda/gemm.h"

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/memory.h"
#include "kernels/cuda/status.h"

namespace rowhouse::kernels::cuda {
namespace {

constexpr int64_t kWorkspaceBytes = int64_t{32} << 20;
constexpr size_t kMostWays = 4096;  // That are remembered.
constexpr int kProposals = 8;

absl::Status FromLibrary(cublasStatus_t status, const char* doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(doing, ": ", cublasLtGetStatusString(status)));
}

cudaDataType_t TypeOf(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return CUDA_R_16BF;
    case DType::kFp16:
      return CUDA_R_16F;
    case DType::kFp32:
      break;
  }
  return CUDA_R_32F;
}

// cuBLASLt's descriptions, destroyed with their scope.
template <auto kDestroy>
struct Destroy {
  template <typename T>
  void operator()(T* description) const {
    (void)kDestroy(description);
  }
};
template <typename Handle, auto kDestroy>
using Description =
    std::unique_ptr<std::remove_pointer_t<Handle>, Destroy<kDestroy>>;
using Layout =
    Description<cublasLtMatrixLayout_t, &cublasLtMatrixLayoutDestroy>;
using Product = Description<cublasLtMatmulDesc_t, &cublasLtMatmulDescDestroy>;
using Preference =
    Description<cublasLtMatmulPreference_t, &cublasLtMatmulPreferenceDestroy>;

// A row-major matrix is a column-major one, transposed: `columns` come first.
Layout LayoutOf(cudaDataType_t type, int64_t rows, int64_t columns,
                int64_t stride) {
  cublasLtMatrixLayout_t layout = nullptr;
  (void)cublasLtMatrixLayoutCreate(&layout, type,
                                   static_cast<uint64_t>(columns),
                                   static_cast<uint64_t>(rows), stride);
  return Layout(layout);
}

Layout LayoutOf(cudaDataType_t type, const Operand& operand, int64_t rows,
                int64_t columns) {
  if (operand.transposed) std::swap(rows, columns);
  return LayoutOf(type, rows, columns, operand.stride);
}

Product ProductOf(const Operand& first, const Operand& second) {
  cublasLtMatmulDesc_t product = nullptr;
  (void)cublasLtMatmulDescCreate(&product, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  const auto transpose = [&](cublasLtMatmulDescAttributes_t which,
                             const Operand& operand) {
    const cublasOperation_t operation =
        operand.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
    (void)cublasLtMatmulDescSetAttribute(product, which, &operation,
                                         sizeof(operation));
  };
  transpose(CUBLASLT_MATMUL_DESC_TRANSA, first);
  transpose(CUBLASLT_MATMUL_DESC_TRANSB, second);
  return Product(product);
}

// The largest power of two, up to 16, that divides the address: more gains
// nothing, and the same product elsewhere in memory goes the same way.
uint32_t AlignmentOf(const void* data) {
  const auto address = reinterpret_cast<uintptr_t>(data) | 16U;
  return static_cast<uint32_t>(address & -address);
}

Preference PreferenceOf(const void* first, const void* second,
                        const void* out) {
  cublasLtMatmulPreference_t preference = nullptr;
  (void)cublasLtMatmulPreferenceCreate(&preference);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t which,
                       const auto& value) {
    (void)cublasLtMatmulPreferenceSetAttribute(preference, which, &value,
                                               sizeof(value));
  };
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, uint64_t{kWorkspaceBytes});
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, AlignmentOf(first));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, AlignmentOf(second));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, AlignmentOf(out));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, AlignmentOf(out));
  return Preference(preference);
}

// The first of cuBLASLt's proposals; where it has many tiles for each
// multiprocessor, the first of those kernels whose warp groups have a tile
// each, so that one tile is written while the next is computed. `CUSTOM_OPTION`
// of the kernels for sm_90 says so: 4 and more are those that share a tile.
// Measured (bench/results): 676 against 579 TFLOP/s for 8,192 x 8,192 x 768.
const cublasLtMatmulAlgo_t& BestOf(
    std::span<const cublasLtMatmulHeuristicResult_t> proposals) {
  constexpr float kManyTiles = 4.5F;
  constexpr uint32_t kFirstShared = 4;
  const cublasLtMatmulAlgo_t& first = proposals.front().algo;
  if (proposals.front().wavesCount < kManyTiles) return first;
  for (const cublasLtMatmulHeuristicResult_t& proposal : proposals) {
    uint32_t option = kFirstShared;
    size_t size = 0;
    (void)cublasLtMatmulAlgoConfigGetAttribute(
        &proposal.algo, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, &option,
        sizeof(option), &size);
    if (option < kFirstShared) return proposal.algo;
  }
  return first;
}

// A product over nothing.
absl::Status Clear(float* out, const ProductShape& shape, int64_t stride,
                   cudaStream_t stream) {
  return ToStatus(
      cudaMemset2DAsync(out, static_cast<size_t>(stride) * sizeof(float), 0,
                        static_cast<size_t>(shape.n) * sizeof(float),
                        static_cast<size_t>(shape.m), stream),
      "clearing a product");
}

}  // namespace

Gemm::~Gemm() {
  if (handle_ != nullptr) (void)cublasLtDestroy(handle_);
}

absl::Status Gemm::Make() {
  if (handle_ != nullptr) return absl::OkStatus();
  absl::StatusOr<Buffer> workspace = AllocateMemory(kWorkspaceBytes);
  if (!workspace.ok()) return std::move(workspace).status();
  absl::Status made =
      FromLibrary(cublasLtCreate(&handle_), "starting cuBLASLt");
  if (made.ok()) workspace_ = *std::move(workspace);
  return made;
}

absl::Status Gemm::Multiply(DType dtype, const Operand& a, const Operand& b,
                            const ProductShape& shape, Into into, float* out,
                            int64_t stride, cudaStream_t stream) {
  if (shape.m == 0 || shape.n == 0) return absl::OkStatus();
  if (shape.k == 0) {
    return into == Into::kAdd ? absl::OkStatus()
                              : Clear(out, shape, stride, stream);
  }
  if (absl::Status made = Make(); !made.ok()) return made;
  // Column-major, the product is b^T x a^T: `b` comes first.
  const cudaDataType_t type = TypeOf(dtype);
  const Layout first = LayoutOf(type, b, shape.k, shape.n);
  const Layout second = LayoutOf(type, a, shape.m, shape.k);
  const Layout result = LayoutOf(CUDA_R_32F, shape.m, shape.n, stride);
  const Product product = ProductOf(b, a);
  const Kind kind = {dtype,
                     into,
                     shape.m,
                     shape.n,
                     shape.k,
                     a.stride,
                     a.transposed,
                     b.stride,
                     b.transposed,
                     stride,
                     AlignmentOf(a.data),
                     AlignmentOf(b.data),
                     AlignmentOf(out)};
  auto way = ways_.find(kind);
  if (way == ways_.end()) {
    const Preference preference = PreferenceOf(b.data, a.data, out);
    std::array<cublasLtMatmulHeuristicResult_t, kProposals> proposals = {};
    int count = 0;
    absl::Status found =
        FromLibrary(cublasLtMatmulAlgoGetHeuristic(
                        handle_, product.get(), first.get(), second.get(),
                        result.get(), result.get(), preference.get(),
                        kProposals, proposals.data(), &count),
                    "choosing a matrix product");
    if (!found.ok()) return found;
    if (ways_.size() >= kMostWays) ways_.clear();
    way = ways_
              .emplace(kind,
                       BestOf({proposals.data(), static_cast<size_t>(count)}))
              .first;
  }
  const float alpha = 1.0F;
  const float beta = into == Into::kAdd ? 1.0F : 0.0F;
  return FromLibrary(
      cublasLtMatmul(handle_, product.get(), &alpha, b.data, first.get(),
                     a.data, second.get(), &beta, out, result.get(), out,
                     result.get(), &way->second, workspace_.data(),
                     static_cast<size_t>(kWorkspaceBytes), stream),
      "forming a matrix product");
}

}  // namespace rowhouse::kernels::cuda
