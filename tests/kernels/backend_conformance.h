#ifndef ROWHOUSE_TESTS_KERNELS_BACKEND_CONFORMANCE_H_
#define ROWHOUSE_TESTS_KERNELS_BACKEND_CONFORMANCE_H_

/// One suite that every backend must pass. The `*_conformance.cc` files hold
/// the tests; a `*_backend_test.cc` links them and instantiates `BackendTest`.

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "kernels/backend.h"
#include "tests/kernels/require_gpu.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::kernels {

using ::rowhouse::testing::IsOk;
using ::rowhouse::testing::StatusIs;

/// A backend under test.
struct BackendCase {
  std::string name;
  std::function<absl::StatusOr<std::unique_ptr<Backend>>()> make;
  bool is_gpu = false;
};

inline void PrintTo(const BackendCase& backend, std::ostream* out) {
  *out << backend.name;
}

inline std::string NameOfCase(
    const ::testing::TestParamInfo<BackendCase>& info) {
  return info.param.name;
}

/// An array in a backend's memory.
template <typename T>
class BackendArray {
 public:
  BackendArray(Backend& backend, const std::vector<T>& values)
      : backend_(backend), count_(values.size()) {
    absl::StatusOr<Buffer> buffer =
        backend.Allocate(static_cast<int64_t>(count_ * sizeof(T)));
    EXPECT_THAT(buffer, IsOk());
    if (!buffer.ok()) return;
    buffer_ = *std::move(buffer);
    Upload(values);
  }

  T* data() const { return buffer_.as<T>(); }
  std::span<T> span() const { return {data(), count_}; }

  void Upload(const std::vector<T>& values) {
    ASSERT_EQ(values.size(), count_);
    EXPECT_THAT(backend_.Copy(values.data(), data(), size_bytes()), IsOk());
    EXPECT_THAT(backend_.Synchronize(), IsOk());
  }

  std::vector<T> Download() const {
    std::vector<T> values(count_);
    EXPECT_THAT(backend_.Copy(data(), values.data(), size_bytes()), IsOk());
    EXPECT_THAT(backend_.Synchronize(), IsOk());
    return values;
  }

 private:
  int64_t size_bytes() const {
    return static_cast<int64_t>(count_ * sizeof(T));
  }

  Backend& backend_;
  size_t count_;
  Buffer buffer_;
};

class BackendTest : public ::testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override {
    absl::StatusOr<std::unique_ptr<Backend>> made = GetParam().make();
    // A CPU may lack an instruction set.
    const bool may_lack = GetParam().is_gpu ? MayLackGpu(made.status())
                                            : absl::IsNotFound(made.status());
    if (may_lack) GTEST_SKIP() << made.status();
    ASSERT_THAT(made, IsOk());
    backend_ = *std::move(made);
  }

  template <typename T>
  BackendArray<T> Array(const std::vector<T>& values) {
    return BackendArray<T>(*backend_, values);
  }

  std::unique_ptr<Backend> backend_;
};

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_TESTS_KERNELS_BACKEND_CONFORMANCE_H_
