#ifndef ROWHOUSE_TESTS_CLIENT_DEVICE_BUFFER_H_
#define ROWHOUSE_TESTS_CLIENT_DEVICE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {

/// An array in a device's memory.
template <typename T>
class DeviceBuffer {
 public:
  DeviceBuffer(kernels::Backend& device, const std::vector<T>& values)
      : device_(device), count_(values.size()) {
    auto allocated = device.AllocateUninitialized(size_bytes());
    EXPECT_THAT(allocated, IsOk());
    if (allocated.ok()) memory_ = *std::move(allocated);
    EXPECT_THAT(device.Copy(values.data(), memory_.data(), size_bytes()),
                IsOk());
    EXPECT_THAT(device.Synchronize(), IsOk());
  }

  std::span<T> span() const { return {memory_.template as<T>(), count_}; }
  std::span<std::byte> bytes() const { return std::as_writable_bytes(span()); }

  std::vector<T> Read() const {
    std::vector<T> values(count_);
    EXPECT_THAT(device_.Copy(memory_.data(), values.data(), size_bytes()),
                IsOk());
    EXPECT_THAT(device_.Synchronize(), IsOk());
    return values;
  }

 private:
  int64_t size_bytes() const {
    return static_cast<int64_t>(count_ * sizeof(T));
  }

  kernels::Backend& device_;
  const size_t count_;
  kernels::Buffer memory_;
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_CLIENT_DEVICE_BUFFER_H_
