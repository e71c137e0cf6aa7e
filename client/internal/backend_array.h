#ifndef ROWHOUSE_CLIENT_INTERNAL_BACKEND_ARRAY_H_
#define ROWHOUSE_CLIENT_INTERNAL_BACKEND_ARRAY_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {

/// An array in a backend's memory, which it keeps for longer ones to come. Must
/// not outlive its backend.
///
/// Thread-compatible.
template <typename T>
class BackendArray {
 public:
  /// Makes room for `count` elements; what they are is undefined.
  ///
  /// Errors: those of `Backend::AllocateUninitialized`; it is empty then.
  absl::Status Resize(kernels::Backend& backend, int64_t count) {
    const int64_t size_bytes = count * static_cast<int64_t>(sizeof(T));
    count_ = 0;
    if (size_bytes > memory_.size_bytes()) {
      memory_ = kernels::Buffer();
      ROWHOUSE_ASSIGN_OR_RETURN(memory_,
                                backend.AllocateUninitialized(size_bytes));
    }
    count_ = static_cast<size_t>(count);
    return absl::OkStatus();
  }

  /// Takes `values`, of the host's memory or the backend's. They must stay
  /// until the thread synchronizes.
  absl::Status Assign(kernels::Backend& backend, std::span<const T> values) {
    ROWHOUSE_RETURN_IF_ERROR(Resize(backend, std::ssize(values)));
    return backend.Copy(values.data(), data(),
                        static_cast<int64_t>(values.size_bytes()));
  }

  T* data() const { return memory_.as<T>(); }
  std::span<T> span() const { return {data(), count_}; }

 private:
  kernels::Buffer memory_;
  size_t count_ = 0;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_BACKEND_ARRAY_H_
