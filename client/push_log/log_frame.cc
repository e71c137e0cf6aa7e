#include "client/push_log/log_frame.h"

#include <zlib.h>

namespace rowhouse::client::push_log {

Word ToWord(uint32_t value) {
  Word word;
  for (size_t i = 0; i < word.size(); ++i) {
    word[i] = static_cast<unsigned char>(value >> (8 * i));
  }
  return word;
}

uint32_t FromWord(const unsigned char* word) {
  return uint32_t{word[0]} | uint32_t{word[1]} << 8 | uint32_t{word[2]} << 16 |
         uint32_t{word[3]} << 24;
}

uint32_t Checksum(std::string_view bytes) {
  return static_cast<uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(bytes.data()),
            static_cast<uInt>(bytes.size())));
}

uint32_t Checksum(const Word& word) {
  return Checksum({reinterpret_cast<const char*>(word.data()), word.size()});
}

}  // namespace rowhouse::client::push_log
