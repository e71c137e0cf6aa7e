#ifndef ROWHOUSE_CLIENT_INTERNAL_MAP_BACKEND_H_
#define ROWHOUSE_CLIENT_INTERNAL_MAP_BACKEND_H_

#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "kernels/backend.h"

namespace rowhouse::client::internal {

/// Gives the backend that maps memory of a kind, `cpu` or `cuda`. Thread-safe.
///
/// Errors:
///   kUnimplemented  this build has none of that kind, or nobody knows it.
///   kNotFound       there is no such device.
using MapBackend =
    std::function<absl::StatusOr<std::shared_ptr<kernels::Backend>>(
        std::string_view kind)>;

/// Makes one backend of a kind when it is first asked for, and shares it. GPU
/// memory is mapped for device `device_index`.
MapBackend ShareMapBackends(int device_index);

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_MAP_BACKEND_H_
