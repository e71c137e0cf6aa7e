#ifndef ROWHOUSE_SERVER_CHECKPOINT_CHECKSUM_H_
#define ROWHOUSE_SERVER_CHECKPOINT_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rowhouse::server {

/// XXH3-64 of xxHash, seed 0. Finds faults, not attacks.
uint64_t ChecksumOf(std::span<const std::byte> bytes);
uint64_t ChecksumOf(std::string_view text);

/// 16 hexadecimal digits, lower case, the highest first.
std::string ChecksumText(uint64_t checksum);

/// The inverse; nothing for any other text.
std::optional<uint64_t> ParseChecksum(std::string_view text);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_CHECKSUM_H_
