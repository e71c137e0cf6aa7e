#include "kernels/cuda/nccl_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace rowhouse::kernels::cuda {
namespace {

absl::StatusOr<NcclLibrary> Open() {
  setenv("NCCL_NVLS_ENABLE", "0", /*replace=*/0);
  void* const file = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) {
    return absl::UnimplementedError(absl::StrCat("no NCCL: ", dlerror()));
  }
  NcclLibrary library;
  const char* missing = nullptr;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(file, name));
    if (function == nullptr) missing = name;
  };
  find("ncclGetUniqueId", library.get_unique_id);
  find("ncclCommInitRankConfig", library.comm_init_rank_config);
  find("ncclCommGetAsyncError", library.comm_get_async_error);
  find("ncclCommAbort", library.comm_abort);
  find("ncclSend", library.send);
  find("ncclRecv", library.recv);
  find("ncclGetErrorString", library.get_error_string);
  find("ncclGetLastError", library.get_last_error);
  if (missing == nullptr) return library;  // Open until the process ends.
  dlclose(file);
  return absl::UnimplementedError(
      absl::StrCat("the NCCL that is there is too old: it has no ", missing));
}

}  // namespace

absl::StatusOr<const NcclLibrary*> NcclLibrary::Find() {
  static const absl::StatusOr<NcclLibrary> library = Open();
  if (!library.ok()) return library.status();
  return &*library;
}

}  // namespace rowhouse::kernels::cuda
