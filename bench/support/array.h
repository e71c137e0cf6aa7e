#ifndef ROWHOUSE_BENCH_SUPPORT_ARRAY_H_
#define ROWHOUSE_BENCH_SUPPORT_ARRAY_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "bench/support/check.h"
#include "bench/support/run.h"
#include "kernels/backend.h"

namespace rowhouse::bench {

/// Elements in the backend's memory, every page of which has been written.
template <typename T>
class Array {
 public:
  Array() = default;

  /// `count` elements: `pattern` over and over, or zeros.
  explicit Array(int64_t count, const std::vector<T>& pattern = {})
      : count_(count), buffer_(Allocate(count)) {
    const std::vector<T> block =
        pattern.empty() ? std::vector<T>(kBlock) : pattern;
    const auto length = static_cast<int64_t>(block.size());
    for (int64_t i = 0; i < count; i += length) {
      Write(block.data(), i, std::min(length, count - i));
    }
    Check(TheBackend().Synchronize());
  }

  explicit Array(const std::vector<T>& values)
      : Array(static_cast<int64_t>(values.size()), values) {}

  T* data() const { return buffer_.template as<T>(); }
  int64_t count() const { return count_; }
  int64_t size_bytes() const { return count_ * int64_t{sizeof(T)}; }
  std::span<const T> span() const {
    return {data(), static_cast<size_t>(count_)};
  }

  /// Takes the elements of another array of the same size.
  void CopyFrom(const Array& other) {
    Check(TheBackend().Copy(other.data(), data(), size_bytes()));
    Check(TheBackend().Synchronize());
  }

 private:
  static constexpr int64_t kBlock = 1 << 20;

  static kernels::Buffer Allocate(int64_t count) {
    return Check(TheBackend().Allocate(count * int64_t{sizeof(T)}));
  }
  void Write(const T* from, int64_t first, int64_t count) {
    Check(TheBackend().Copy(from, data() + first, count * int64_t{sizeof(T)}));
  }

  int64_t count_ = 0;
  kernels::Buffer buffer_;
};

}  // namespace rowhouse::bench

#endif  // ROWHOUSE_BENCH_SUPPORT_ARRAY_H_
