#include "kernels/process_memory.h"

#include <malloc.h>

namespace rowhouse::kernels {

void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 2047 << 20);
}

}  // namespace rowhouse::kernels
