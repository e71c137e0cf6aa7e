#ifndef ROWHOUSE_KERNELS_CUDA_SCRATCH_H_
#define ROWHOUSE_KERNELS_CUDA_SCRATCH_H_

#include <cstddef>
#include <cstdint>

namespace rowhouse::kernels::cuda {

/// Cuts scratch memory into arrays, each aligned to 256 bytes. From null it
/// only counts: cut once from null for the size, then from memory of that size.
class ScratchCutter {
 public:
  explicit ScratchCutter(void* base) : base_(static_cast<char*>(base)) {}

  template <typename T>
  T* Take(int64_t count) {
    constexpr int64_t kAlignment = 256;
    char* const taken = base_ == nullptr ? nullptr : base_ + size_bytes_;
    const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
    size_bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return reinterpret_cast<T*>(taken);
  }

  int64_t size_bytes() const { return size_bytes_; }

 private:
  char* base_;
  int64_t size_bytes_ = 0;
};

}  // namespace rowhouse::kernels::cuda

#endif  // ROWHOUSE_KERNELS_CUDA_SCRATCH_H_
