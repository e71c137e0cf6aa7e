#ifndef ROWHOUSE_SERVER_SHARD_TRAINER_SESSION_H_
#define ROWHOUSE_SERVER_SHARD_TRAINER_SESSION_H_

#include <cstdint>

namespace rowhouse::server {

/// One life of a trainer on one table.
struct TrainerSession {
  int32_t trainer_rank = 0;
  int64_t session = 0;

  friend bool operator==(const TrainerSession&,
                         const TrainerSession&) = default;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_TRAINER_SESSION_H_
