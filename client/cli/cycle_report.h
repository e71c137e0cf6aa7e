#ifndef ROWHOUSE_CLIENT_CLI_CYCLE_REPORT_H_
#define ROWHOUSE_CLIENT_CLI_CYCLE_REPORT_H_

#include <string>
#include <vector>

#include "client/cli/bench_report.h"
#include "client/cli/cycle_run.h"
#include "client/cli/cycle_summary.h"
#include "client/cli/json.h"

namespace rowhouse::cli {

/// What cycles ran on.
struct CycleBench {
  BenchTable table;
  CycleLoad load;
  int32_t trainer_count = 1;
  std::vector<std::string> addresses;  ///< Of the servers.
};

/// How rows travelled: `one-sided`, or gRPC over `TCP` or a `Unix socket`.
std::string TransportOf(const CycleBench& bench, const CycleSummary& summary);

/// Of a picture: the transport; and what the cycles are, and what of them is
/// work.
std::string TimelineTitle(const CycleBench& bench, const CycleSummary& summary);
std::string TimelineNote(const CycleBench& bench, const CycleSummary& summary);

/// The stages as a table for people.
std::string CycleText(const CycleBench& bench, const CycleSummary& summary,
                      bool color);

/// The same for machines; seconds, and bytes of a cycle.
Json CycleJson(const CycleBench& bench, const CycleSummary& summary);

/// Every span of `trace`, in seconds from the first measured cycle's begin.
Json SpansJson(const CycleTrace& trace);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_CYCLE_REPORT_H_
