#ifndef ROWHOUSE_CLIENT_CLI_BENCH_REPORT_H_
#define ROWHOUSE_CLIENT_CLI_BENCH_REPORT_H_

#include <cstdint>
#include <string>

#include "client/cli/bench_run.h"
#include "client/cli/json.h"
#include "rowhouse/types.h"

namespace rowhouse::cli {

/// The table that a load ran on.
struct BenchTable {
  int64_t row_count = 1 << 20;
  int64_t dim = 128;
  std::string dtype = "bf16";
  int32_t server_count = 1;
};

/// Its rows, shards and types, for trainers' gradients that are added.
client::TableSpec SpecOf(const BenchTable& table);

/// What was measured, for people.
///
/// REQUIRES: something was moved.
std::string ReportText(const BenchTable& table, const BenchLoad& load,
                       const BenchReport& report, bool color);

/// The same for machines; seconds, and GB of 10^9 bytes.
Json ReportJson(const BenchTable& table, const BenchLoad& load,
                const BenchReport& report);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_BENCH_REPORT_H_
