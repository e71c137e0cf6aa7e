#include "tests/testing/safetensors.h"

#include <fstream>
#include <iterator>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/str_cat.h"

namespace rowhouse::testing {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kLengthBytes = 8;

absl::Status Malformed(const std::string& what) {
  return absl::InvalidArgumentError(
      absl::StrCat("not a safetensors file: ", what));
}

std::optional<TensorType> TypeOf(const std::string& name) {
  if (name == "BF16") return TensorType::kBf16;
  if (name == "F32") return TensorType::kF32;
  if (name == "F64") return TensorType::kF64;
  if (name == "I32") return TensorType::kI32;
  if (name == "I64") return TensorType::kI64;
  return std::nullopt;
}

// Bytes of `tensor`'s shape, or nothing where they pass `limit`.
std::optional<uint64_t> BytesOf(const Tensor& tensor, uint64_t limit) {
  uint64_t bytes = static_cast<uint64_t>(SizeOf(tensor.type));
  for (const int64_t extent : tensor.shape) {
    if (extent < 0) return std::nullopt;
    const auto factor = static_cast<uint64_t>(extent);
    if (factor != 0 && bytes > limit / factor) return std::nullopt;
    bytes *= factor;
  }
  return bytes;
}

absl::StatusOr<Tensor> ParseTensor(const std::string& name, const Json& entry,
                                   const std::string& content, uint64_t start) {
  const uint64_t available = content.size() - start;
  Tensor tensor;
  std::vector<uint64_t> offsets;
  std::string type_name;
  try {
    type_name = entry.at("dtype").get<std::string>();
    tensor.shape = entry.at("shape").get<std::vector<int64_t>>();
    offsets = entry.at("data_offsets").get<std::vector<uint64_t>>();
  } catch (const Json::exception& error) {
    return Malformed(absl::StrCat("tensor ", name, ": ", error.what()));
  }
  const std::optional<TensorType> type = TypeOf(type_name);
  if (!type.has_value()) {
    return Malformed(absl::StrCat("tensor ", name, " has dtype ", type_name,
                                  "; known are BF16, F32, F64, I32, I64"));
  }
  tensor.type = *type;
  if (offsets.size() != 2 || offsets[0] > offsets[1] ||
      offsets[1] > available) {
    return Malformed(absl::StrCat("tensor ", name,
                                  " has data_offsets outside the ", available,
                                  " bytes of data"));
  }
  const std::optional<uint64_t> bytes = BytesOf(tensor, available);
  if (bytes != offsets[1] - offsets[0]) {
    return Malformed(absl::StrCat("tensor ", name, " spans ",
                                  offsets[1] - offsets[0],
                                  " bytes, which is not what its shape takes"));
  }
  tensor.bytes = content.substr(start + offsets[0], *bytes);
  return tensor;
}

}  // namespace

int64_t SizeOf(TensorType type) {
  switch (type) {
    case TensorType::kBf16:
      return 2;
    case TensorType::kF32:
    case TensorType::kI32:
      return 4;
    case TensorType::kF64:
    case TensorType::kI64:
      return 8;
  }
  return 0;
}

absl::StatusOr<SafeTensors> SafeTensors::Parse(const std::string& content) {
  if (content.size() < kLengthBytes) {
    return Malformed(absl::StrCat("it has ", content.size(), " bytes"));
  }
  uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, content.data(), kLengthBytes);
  if (header_bytes > content.size() - kLengthBytes) {
    return Malformed(absl::StrCat("a header of ", header_bytes,
                                  " bytes in a file of ", content.size()));
  }
  const Json header =
      Json::parse(content.substr(kLengthBytes, header_bytes), nullptr, false);
  if (!header.is_object()) return Malformed("its header is no JSON object");
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) {
          return Malformed(absl::StrCat("metadata ", key, " is no string"));
        }
        metadata[key] = value.get<std::string>();
      }
      continue;
    }
    absl::StatusOr<Tensor> tensor =
        ParseTensor(name, entry, content, kLengthBytes + header_bytes);
    if (!tensor.ok()) return tensor.status();
    tensors[name] = *std::move(tensor);
  }
  return SafeTensors(std::move(tensors), std::move(metadata));
}

absl::StatusOr<SafeTensors> SafeTensors::Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  const std::string content(std::istreambuf_iterator<char>(file), {});
  return Parse(content);
}

absl::StatusOr<Tensor> SafeTensors::Get(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) {
    return absl::NotFoundError(absl::StrCat("no tensor ", name));
  }
  return found->second;
}

}  // namespace rowhouse::testing
