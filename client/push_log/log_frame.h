#ifndef ROWHOUSE_CLIENT_PUSH_LOG_LOG_FRAME_H_
#define ROWHOUSE_CLIENT_PUSH_LOG_LOG_FRAME_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// How records lie in a log file; `format.md` says it in words.
namespace rowhouse::client::push_log {

inline constexpr std::string_view kMagic = "RHPUSHLG";
inline constexpr uint32_t kFormatVersion = 1;
inline constexpr size_t kPrefixBytes = 12;  ///< Magic and version.

/// Longest payload of a record.
inline constexpr uint32_t kMaxPayloadBytes = uint32_t{4} << 20;

/// Before each payload: its length, and the length's checksum. After it comes
/// its own checksum.
inline constexpr size_t kFrameBytes = 8;
inline constexpr size_t kChecksumBytes = 4;

using Word = std::array<unsigned char, 4>;  ///< Little-endian.
Word ToWord(uint32_t value);
uint32_t FromWord(const unsigned char* word);

/// CRC-32 as in zlib, gzip and PNG.
uint32_t Checksum(std::string_view bytes);
uint32_t Checksum(const Word& word);

}  // namespace rowhouse::client::push_log

#endif  // ROWHOUSE_CLIENT_PUSH_LOG_LOG_FRAME_H_
