#ifndef ROWHOUSE_KERNELS_SHARED_MEMORY_H_
#define ROWHOUSE_KERNELS_SHARED_MEMORY_H_

#include <cstdint>
#include <string>

namespace rowhouse::kernels {

/// Names memory of one process to others of the host; see `Backend::Share`.
struct SharedMemory {
  std::string handle;        ///< Names an allocation, in the backend's own way.
  int64_t offset_bytes = 0;  ///< Where the memory begins within it.
  int64_t size_bytes = 0;

  friend bool operator==(const SharedMemory&, const SharedMemory&) = default;
};

enum class MapAccess : uint8_t {
  kRead = 1,   ///< Writing faults, where the device can tell.
  kWrite = 2,  ///< Reading too.
};

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_SHARED_MEMORY_H_
