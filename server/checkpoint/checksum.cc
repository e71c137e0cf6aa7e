#include "server/checkpoint/checksum.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace rowhouse::server {

uint64_t ChecksumOf(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

uint64_t ChecksumOf(std::string_view text) {
  return ChecksumOf(std::as_bytes(std::span(text)));
}

std::string ChecksumText(uint64_t checksum) {
  return absl::StrCat(absl::Hex(checksum, absl::kZeroPad16));
}

std::optional<uint64_t> ParseChecksum(std::string_view text) {
  uint64_t checksum = 0;
  if (!absl::SimpleHexAtoi(absl::string_view(text.data(), text.size()),
                           &checksum) ||
      ChecksumText(checksum) != text) {
    return std::nullopt;
  }
  return checksum;
}

}  // namespace rowhouse::server
