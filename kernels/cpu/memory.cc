#include "kernels/cpu/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace rowhouse::kernels::cpu {
namespace {

constexpr size_t kPageBytes = 4096;
constexpr size_t kHugePageBytes = size_t{2} << 20;

size_t RoundUp(size_t size, size_t unit) {
  return (size + unit - 1) / unit * unit;
}

void Unmap(void* /*owner*/, void* data, int64_t size_bytes) {
  munmap(data, RoundUp(static_cast<size_t>(size_bytes), kPageBytes));
}

// Cuts the mapping `[data, data + size + kHugePageBytes)` down to `size` bytes
// that begin at a huge page.
std::byte* AlignToHugePage(std::byte* data, size_t size) {
  const size_t misalignment = reinterpret_cast<size_t>(data) % kHugePageBytes;
  const size_t head = misalignment == 0 ? 0 : kHugePageBytes - misalignment;
  if (head > 0) munmap(data, head);
  if (head < kHugePageBytes) {
    munmap(data + head + size, kHugePageBytes - head);
  }
  return data + head;
}

}  // namespace

absl::StatusOr<Buffer> AllocateMemory(int64_t size_bytes) {
  if (size_bytes == 0) return Buffer();
  // As the largest size_t a negative size is refused like any other too large.
  const size_t size =
      size_bytes < 0 ? SIZE_MAX - kHugePageBytes
                     : RoundUp(static_cast<size_t>(size_bytes), kPageBytes);
  const bool huge = size >= kHugePageBytes;
  void* mapped =
      mmap(nullptr, huge ? size + kHugePageBytes : size, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) {
    return absl::ResourceExhaustedError(
        absl::StrCat("cannot allocate ", size_bytes,
                     " bytes of memory: ", std::strerror(errno)));
  }
  auto* data = static_cast<std::byte*>(mapped);
  if (huge) {
    data = AlignToHugePage(data, size);
    // Advice only: without huge pages everything works, slower.
    (void)madvise(data, size, MADV_HUGEPAGE);
  }
  return Buffer(data, size_bytes, &Unmap);
}

MemoryState MachineMemory() {
  const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  return {.total_bytes = sysconf(_SC_PHYS_PAGES) * page_bytes,
          .free_bytes = sysconf(_SC_AVPHYS_PAGES) * page_bytes};
}

}  // namespace rowhouse::kernels::cpu
