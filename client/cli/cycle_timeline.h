#ifndef ROWHOUSE_CLIENT_CLI_CYCLE_TIMELINE_H_
#define ROWHOUSE_CLIENT_CLI_CYCLE_TIMELINE_H_

#include "absl/time/time.h"
#include "client/cli/cycle_run.h"
#include "client/cli/timeline.h"

namespace rowhouse::cli {

/// Two measured cycles of rank 0, of which the first is neither slow nor fast,
/// and what all trainers did meanwhile: a lane of each trainer's own work, of
/// its pulls and of its pushes at each shard, and of each shard's events. One
/// cycle where there is no other.
///
/// `length`: of the picture; zero: as long as the cycles.
Timeline TimelineOf(const CycleTrace& trace, absl::Duration length);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_CYCLE_TIMELINE_H_
