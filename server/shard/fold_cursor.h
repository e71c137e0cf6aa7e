#ifndef ROWHOUSE_SERVER_SHARD_FOLD_CURSOR_H_
#define ROWHOUSE_SERVER_SHARD_FOLD_CURSOR_H_

#include <cstdint>

#include "server/shard/events.h"

namespace rowhouse::server {

/// Whose turn it is to be folded into main_grad: the parts of the next event in
/// the order (part, trainer_rank), where a rank that has sealed fewer parts is
/// passed over.
///
/// Thread-compatible.
class FoldCursor {
 public:
  /// The part whose turn it is; null until it has been staged, and after the
  /// last one of an event that all ranks have sealed.
  const StagedPart* Next(const Events& events);

  /// After `Next` gave a part: it has been folded.
  void Advance() {
    ++rank_;
    folded_ = true;
  }

  /// Back to part 0 of rank 0.
  void Restart() { *this = FoldCursor(); }

  /// Whether a part has been folded since the start.
  bool folded() const { return folded_; }

  /// Parts of a rank's contribution that are folded.
  int32_t FoldedCount(const Contribution& contribution,
                      int32_t trainer_rank) const;

 private:
  int32_t part_ = 0;
  int32_t rank_ = 0;  // May be the trainer count: the next part begins then.
  bool folded_ = false;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_FOLD_CURSOR_H_
