#ifndef ROWHOUSE_OBSERVER_H_
#define ROWHOUSE_OBSERVER_H_

#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace rowhouse::client {

/// What time went to.
enum class Stage : uint8_t {
  // Of an n-gram embedding, on the thread that called it.
  kWantList = 1,    ///< Hashing tokens, and sorting row ids.
  kPullWait = 2,    ///< Until a cycle's rows were in the cache.
  kEmbed = 3,       ///< A step's `Embed`.
  kAccumulate = 4,  ///< A step's `AccumulateGradient`.
  kSum = 5,         ///< Of a cycle's gradients, per row.
  // Of a call to one shard.
  kSendIds = 6,     ///< A pull, until its row ids were on the wire. gRPC alone.
  kAwaitRows = 7,   ///< Then, until the shard began to answer: its event was
                    ///< there.
  kTakeRows = 8,    ///< Then, until all rows were with the caller.
  kPush = 9,        ///< Until the shard had accepted the part.
  kSeal = 10,       ///< A seal that went with no push.
  kCommit = 11,     ///< Until the shard had recorded the decision.
  kAwaitEvent = 12  ///< A `WaitForEvent`, until the event was applied.
};

/// How rows travelled.
enum class Path : uint8_t {
  kGrpc = 1,
  kOneSided = 2,  ///< Through memory that both sides map.
  kLink = 3,      ///< By NCCL.
};

/// What went on from `begin` to `end`. Calls that failed leave none.
struct Span {
  Stage stage = Stage::kWantList;
  int32_t shard = -1;  ///< Of a call to one.
  /// Pulls: of the rows. Else the event that the cycle, the part or the call
  /// belongs to.
  int64_t event = 0;
  absl::Time begin;
  absl::Time end;
  int64_t row_count = 0;  ///< Ids, rows, or rows of a gradient.
  Path path = Path::kGrpc;
};

/// Told of each span when it is over; by several threads, also at once. Must
/// not call the library.
using Observer = std::function<void(const Span&)>;

}  // namespace rowhouse::client

#endif  // ROWHOUSE_OBSERVER_H_
