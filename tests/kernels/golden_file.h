#ifndef ROWHOUSE_TESTS_KERNELS_GOLDEN_FILE_H_
#define ROWHOUSE_TESTS_KERNELS_GOLDEN_FILE_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/arithmetic.h"
#include "tests/testing/golden_path.h"
#include "tests/testing/safetensors.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::kernels {

/// Outputs of the public systems themselves; tests/golden holds the files.
class GoldenFile {
 public:
  explicit GoldenFile(const std::string& name)
      : file_(::rowhouse::testing::SafeTensors::Read(
            ::rowhouse::testing::GoldenPath(name))) {
    EXPECT_THAT(file_, ::rowhouse::testing::IsOk());
  }

  template <typename T>
  std::vector<T> Values(const std::string& name) const {
    const absl::StatusOr<::rowhouse::testing::Tensor> tensor = file_->Get(name);
    EXPECT_THAT(tensor, ::rowhouse::testing::IsOk());
    return tensor.ok() ? tensor->As<T>() : std::vector<T>();
  }
  std::vector<float> Widened(const std::string& name) const {
    std::vector<float> values;
    for (const uint16_t bits : Values<uint16_t>(name)) {
      values.push_back(Bf16ToFloat(bits));
    }
    return values;
  }
  std::vector<int64_t> Indices(const std::string& name) const {
    const std::vector<int32_t> values = Values<int32_t>(name);
    return {values.begin(), values.end()};
  }
  bool Has(const std::string& name) const { return file_->Has(name); }
  std::string Text(const std::string& key) const {
    const auto found = file_->metadata().find(key);
    EXPECT_NE(found, file_->metadata().end()) << key;
    return found->second;
  }
  nlohmann::json Metadata(const std::string& key) const {
    return nlohmann::json::parse(file_->metadata().at(key));
  }

 private:
  absl::StatusOr<::rowhouse::testing::SafeTensors> file_;
};

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_TESTS_KERNELS_GOLDEN_FILE_H_
