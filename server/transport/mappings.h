#ifndef ROWHOUSE_SERVER_TRANSPORT_MAPPINGS_H_
#define ROWHOUSE_SERVER_TRANSPORT_MAPPINGS_H_

#include <atomic>
#include <memory>

#include "absl/status/status.h"
#include "kernels/buffer.h"
#include "proto/wire/reasons.h"
#include "server/shard/shard.h"
#include "server/table_registry.h"
#include "server/transport/numbered.h"

namespace rowhouse::server {

/// One client's mapping of a shard. As long as it lives, so does the shard's
/// memory.
struct Mapping {
  /// Gives a call the inbox, and the staging, to itself.
  ///
  /// Errors:
  ///   kAborted  BUSY: another call has it.
  absl::Status Take();
  void Give() { taken = false; }

  std::shared_ptr<Shard> shard;
  std::shared_ptr<void> reservation;  ///< Of the memory below.
  kernels::Buffer inbox;              ///< Shared; empty without one.
  kernels::Buffer staging;  ///< Where pieces of the inbox are copied to.
  std::atomic<bool> taken = false;
};

/// Errors:
///   kNotFound            there is no such table any more.
///   kFailedPrecondition  MAPPING_GONE: it was deleted, and made again.
absl::Status CheckIsCurrent(const Mapping& mapping,
                            const TableRegistry& tables);

/// The mappings of a server; one that is not there is MAPPING_GONE, as is that
/// of a table that was made again (`CheckIsCurrent`).
class Mappings : public Numbered<Mapping> {
 public:
  Mappings() : Numbered("mapping", wire::reasons::kMappingGone) {}
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_MAPPINGS_H_
