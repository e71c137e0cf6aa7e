#ifndef ROWHOUSE_SERVER_SHARD_LEDGER_H_
#define ROWHOUSE_SERVER_SHARD_LEDGER_H_

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/hash.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

/// Names a part of one table.
struct PartName {
  int64_t event = 0;
  int32_t trainer_rank = 0;
  int32_t part = 0;

  // NOLINTNEXTLINE(modernize-use-nullptr): of what the compiler writes.
  friend auto operator<=>(const PartName&, const PartName&) = default;
};

/// What a part says. Absent `ids` means the rows of `handles`, which could not
/// be resolved: equal handles then stand for equal ids.
struct PartContent {
  int64_t row_count = 0;
  std::optional<kernels::ContentSum> ids;
  kernels::ContentSum rows;
  std::vector<int64_t> handles;
};

/// Which parts were accepted, with what content and answer: what makes a retry
/// count once.
///
/// Thread-compatible.
class Ledger {
 public:
  bool Knows(const PartName& name) const { return entries_.contains(name); }

  /// Whether `handles` are those the part was accepted with.
  ///
  /// REQUIRES: the part is known.
  bool HasHandles(const PartName& name,
                  const std::vector<int64_t>& handles) const;

  /// The first answer to a known part, as a duplicate.
  ///
  /// REQUIRES: the part is known.
  ///
  /// Errors:
  ///   kAlreadyExists  PART_DIFFERS: the content is another.
  absl::StatusOr<PartReceipt> Answer(const PartName& name,
                                     const PartContent& content) const;

  /// REQUIRES: the part is not known, and `content.ids` is there.
  void Record(const PartName& name, PartContent content,
              const PartReceipt& receipt);

  /// Forgets a rank's parts of an event.
  void Drop(int64_t event, int32_t trainer_rank);

  /// Forgets all events before `event`.
  void DropBefore(int64_t event);

  void Clear() { entries_.clear(); }

 private:
  struct Entry {
    PartContent content;
    PartReceipt receipt;
  };

  std::map<PartName, Entry> entries_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_LEDGER_H_
