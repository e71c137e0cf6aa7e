#ifndef ROWHOUSE_KERNELS_CUDA_MAIN_GRAD_ROWS_H_
#define ROWHOUSE_KERNELS_CUDA_MAIN_GRAD_ROWS_H_

#include <cstddef>

#include "absl/status/status.h"
#include "kernels/cuda/head_block.h"
#include "kernels/cuda/status.h"
#include "kernels/dense_table.h"
#include "kernels/linear_cross_entropy.h"

namespace rowhouse::kernels::cuda {

/// Calls `add(float* sum, int64_t stride)` with rows `rows` of main_grad in
/// fp32: as they lie; or, where they are of another type, in `copy`, [rows,
/// dim], from which they are rounded back once. What `add` enqueues goes to
/// `stream`.
template <typename Add>
absl::Status AddToRows(const MainGrad& main_grad, const BlockRange& rows,
                       float* copy, cudaStream_t stream, Add add) {
  const RowBlock main = {
      static_cast<std::byte*>(main_grad.data) +
          rows.first * main_grad.row_stride * SizeOf(main_grad.dtype),
      main_grad.dtype, main_grad.row_stride};
  if (main_grad.dtype == DType::kFp32) {
    add(static_cast<float*>(main.data), main.stride);
    return absl::OkStatus();
  }
  const RowBlock wide = {copy, DType::kFp32, main_grad.dim};
  const auto convert = [&](const RowBlock& from, const RowBlock& to) {
    return ToStatus(LaunchCopyRows(from, nullptr, to, nullptr, rows.count,
                                   main_grad.dim, stream),
                    "converting a weight gradient");
  };
  absl::Status converted = convert(main, wide);
  add(copy, wide.stride);
  converted.Update(convert(wide, main));
  return converted;
}

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_MAIN_GRAD_ROWS_H_
