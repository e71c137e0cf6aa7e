#ifndef ROWHOUSE_KERNELS_BUFFER_H_
#define ROWHOUSE_KERNELS_BUFFER_H_

#include <cstdint>
#include <utility>

namespace rowhouse::kernels {

/// Owns one allocation of a backend; frees it when destroyed. Move-only.
/// Must not outlive its backend.
class Buffer {
 public:
  /// `owner` is what the buffer was made with.
  using Free = void (*)(void* owner, void* data, int64_t size_bytes);

  Buffer() = default;
  Buffer(void* data, int64_t size_bytes, Free free, void* owner = nullptr)
      : data_(data), size_bytes_(size_bytes), free_(free), owner_(owner) {}
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(free_, other.free_);
    std::swap(owner_, other.owner_);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) free_(owner_, data_, size_bytes_);
  }

  void* data() const { return data_; }
  int64_t size_bytes() const { return size_bytes_; }

  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
  int64_t size_bytes_ = 0;
  Free free_ = nullptr;
  void* owner_ = nullptr;
};

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_BUFFER_H_
