#include "server/transport/mappings.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::server {

absl::Status Mapping::Take() {
  if (!taken.exchange(true)) return absl::OkStatus();
  return wire::Error(absl::StatusCode::kAborted, wire::reasons::kBusy,
                     "another call has the mapping's inbox; repeat the call");
}

absl::Status CheckIsCurrent(const Mapping& mapping,
                            const TableRegistry& tables) {
  const std::string& table = mapping.shard->spec().table;
  ROWHOUSE_ASSIGN_OR_RETURN(const std::shared_ptr<Shard> current,
                            tables.FindShard(table));
  if (current == mapping.shard) return absl::OkStatus();
  return wire::Error(absl::StatusCode::kFailedPrecondition,
                     wire::reasons::kMappingGone,
                     absl::StrCat("the mapping is of the ", table,
                                  " that was before this one: map it anew"),
                     {{"table", table}});
}

}  // namespace rowhouse::server
