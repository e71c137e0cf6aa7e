#ifndef ROWHOUSE_SERVER_SERVICE_LIMITS_H_
#define ROWHOUSE_SERVER_SERVICE_LIMITS_H_

#include <cstdint>

namespace rowhouse::server {

/// Most row ids of one pull call: 3.2 MB, below the 4 MiB that a default server
/// or client takes in one message.
inline constexpr int64_t kMaxPullRowCount = 400'000;

/// Most payload bytes of one stream message.
inline constexpr int64_t kMaxPayloadBytes = int64_t{1} << 20;

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_LIMITS_H_
