#ifndef ROWHOUSE_TESTS_TESTING_SAFETENSORS_H_
#define ROWHOUSE_TESTS_TESTING_SAFETENSORS_H_

#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace rowhouse::testing {

enum class TensorType : uint8_t { kBf16, kF32, kF64, kI32, kI64 };

/// Bytes of one element.
int64_t SizeOf(TensorType type);

/// One tensor, row-major, little-endian.
struct Tensor {
  TensorType type = TensorType::kF32;
  std::vector<int64_t> shape;
  std::string bytes;

  int64_t element_count() const {
    return static_cast<int64_t>(bytes.size()) / SizeOf(type);
  }

  /// The elements as `T`, which must be of the element's size: bf16 as
  /// `uint16_t`, its bits.
  template <typename T>
  std::vector<T> As() const {
    std::vector<T> elements(bytes.size() / sizeof(T));
    if (elements.empty()) return elements;  // memcpy takes no null pointer.
    std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(T));
    return elements;
  }
};

/// A safetensors file, whole.
class SafeTensors {
 public:
  /// Parses the content of a file.
  ///
  /// Errors:
  ///   kInvalidArgument  it is no safetensors file; says what is wrong where.
  static absl::StatusOr<SafeTensors> Parse(const std::string& content);

  /// Errors: those of `Parse`, and
  ///   kNotFound  the file cannot be read.
  static absl::StatusOr<SafeTensors> Read(const std::string& path);

  bool Has(const std::string& name) const { return tensors_.contains(name); }

  /// Errors:
  ///   kNotFound  there is no such tensor.
  absl::StatusOr<Tensor> Get(const std::string& name) const;

  const std::map<std::string, Tensor>& tensors() const { return tensors_; }
  const std::map<std::string, std::string>& metadata() const {
    return metadata_;
  }

 private:
  SafeTensors(std::map<std::string, Tensor> tensors,
              std::map<std::string, std::string> metadata)
      : tensors_(std::move(tensors)), metadata_(std::move(metadata)) {}

  std::map<std::string, Tensor> tensors_;
  std::map<std::string, std::string> metadata_;
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_TESTING_SAFETENSORS_H_
