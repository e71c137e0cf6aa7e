#include "kernels/cuda/status.h"

#include "absl/strings/str_cat.h"

namespace rowhouse::kernels::cuda {

absl::Status ToStatus(cudaError_t error, const char* doing) {
  if (error == cudaSuccess) return absl::OkStatus();
  (void)cudaGetLastError();  // Or the next launch would report it again.
  return absl::InternalError(absl::StrCat("CUDA, ", doing, ": ",
                                          cudaGetErrorString(error), " (",
                                          cudaGetErrorName(error), ")"));
}

}  // namespace rowhouse::kernels::cuda
