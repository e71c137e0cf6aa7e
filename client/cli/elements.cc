#include "client/cli/elements.h"

#include <cstring>

#include "absl/strings/str_format.h"
#include "kernels/arithmetic.h"

namespace rowhouse::cli {
namespace {

template <typename Bits, typename Convert>
std::vector<float> Converted(std::span<const std::byte> bytes,
                             Convert convert) {
  std::vector<float> elements(bytes.size() / sizeof(Bits));
  for (size_t i = 0; i < elements.size(); ++i) {
    Bits bits;
    std::memcpy(&bits, bytes.data() + i * sizeof(Bits), sizeof(Bits));
    elements[i] = convert(bits);
  }
  return elements;
}

template <typename Bits, typename Convert>
std::vector<std::byte> ConvertedBack(std::span<const float> elements,
                                     Convert convert) {
  std::vector<std::byte> bytes(elements.size() * sizeof(Bits));
  for (size_t i = 0; i < elements.size(); ++i) {
    const Bits bits = convert(elements[i]);
    std::memcpy(bytes.data() + i * sizeof(Bits), &bits, sizeof(Bits));
  }
  return bytes;
}

float Same(float value) { return value; }

}  // namespace

const char* NameOf(client::DType dtype) {
  switch (dtype) {
    case client::DType::kBf16:
      return "bf16";
    case client::DType::kFp32:
      return "fp32";
    case client::DType::kFp16:
      return "fp16";
  }
  return "?";
}

std::vector<float> Elements(client::DType dtype,
                            std::span<const std::byte> bytes) {
  switch (dtype) {
    case client::DType::kBf16:
      return Converted<uint16_t>(bytes, kernels::Bf16ToFloat);
    case client::DType::kFp16:
      return Converted<uint16_t>(bytes, kernels::Fp16ToFloat);
    case client::DType::kFp32:
      break;
  }
  return Converted<float>(bytes, Same);
}

std::vector<std::byte> BytesOf(client::DType dtype,
                               std::span<const float> elements) {
  switch (dtype) {
    case client::DType::kBf16:
      return ConvertedBack<uint16_t>(elements, kernels::FloatToBf16);
    case client::DType::kFp16:
      return ConvertedBack<uint16_t>(elements, kernels::FloatToFp16);
    case client::DType::kFp32:
      break;
  }
  return ConvertedBack<float>(elements, Same);
}

std::string Number(float value) { return absl::StrFormat("%.6g", value); }

}  // namespace rowhouse::cli
