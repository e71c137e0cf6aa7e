#include "client/cli/bench_report.h"

#include "absl/strings/str_cat.h"
#include "client/cli/text_table.h"
#include "client/cli/units.h"

namespace rowhouse::cli {
namespace {

std::string Milliseconds(absl::Duration duration) {
  return Figure(absl::ToDoubleMilliseconds(duration));
}

double Rate(double amount, const BenchReport& report) {
  return amount / absl::ToDoubleSeconds(report.measured);
}

double CpuPerGigabyte(const BenchReport& report) {
  return report.cpu_seconds / (static_cast<double>(report.size_bytes()) * 1e-9);
}

void AddRow(const std::string& name, const OperationReport& operation,
            const BenchReport& report, TextTable& table) {
  const Latencies& latencies = operation.latencies;
  if (latencies.count() == 0) return;
  const bool rows = operation.row_count > 0;
  const auto size = static_cast<double>(operation.size_bytes);
  table.AddRow(
      {name, Count(latencies.count()),
       Figure(Rate(static_cast<double>(latencies.count()), report)),
       rows ? Figure(Rate(static_cast<double>(operation.row_count), report))
            : "",
       rows ? Figure(Rate(size * 1e-9, report)) : "",
       Milliseconds(latencies.Quantile(0.5)),
       Milliseconds(latencies.Quantile(0.99)),
       Milliseconds(latencies.Quantile(0.999))});
}

Json ToJson(const OperationReport& operation, const BenchReport& report) {
  const Latencies& latencies = operation.latencies;
  const auto quantile = [&](double share) {
    return absl::ToDoubleSeconds(latencies.Quantile(share));
  };
  return {{"calls", latencies.count()},
          {"calls_per_second",
           Rate(static_cast<double>(latencies.count()), report)},
          {"rows_per_second",
           Rate(static_cast<double>(operation.row_count), report)},
          {"gigabytes_per_second",
           Rate(static_cast<double>(operation.size_bytes) * 1e-9, report)},
          {"p50_seconds", quantile(0.5)},
          {"p99_seconds", quantile(0.99)},
          {"p999_seconds", quantile(0.999)}};
}

}  // namespace

client::TableSpec SpecOf(const BenchTable& table) {
  client::TableSpec spec;
  spec.row_count = table.row_count;
  spec.dim = table.dim;
  spec.row_dtype =
      table.dtype == "fp32" ? client::DType::kFp32 : client::DType::kBf16;
  spec.gradient_dtype = spec.row_dtype;
  spec.shard_count = table.server_count;
  // Rows of zeros would be pages that nobody has touched.
  spec.initializer = {client::Initializer::Kind::kUniform, 1, 0.02F};
  spec.gradient_reduction = client::GradientReduction::kSum;
  return spec;
}

std::string ReportText(const BenchTable& table, const BenchLoad& load,
                       const BenchReport& report, bool color) {
  TextTable text({{"operation"},
                  {"calls", Align::kRight},
                  {"calls/s", Align::kRight},
                  {"rows/s", Align::kRight},
                  {"GB/s", Align::kRight},
                  {"p50 ms", Align::kRight},
                  {"p99 ms", Align::kRight},
                  {"p99.9 ms", Align::kRight}});
  AddRow("pull", report.pull, report, text);
  AddRow("push", report.push, report, text);
  AddRow("event", report.event, report, text);
  return absl::StrCat(
      Count(table.row_count), " rows of ", table.dim, " ", table.dtype, " on ",
      table.server_count, " servers, ", load.trainer_count, " trainers, ",
      Count(load.batch_rows), " rows a call, ",
      Figure(absl::ToDoubleSeconds(report.measured)), " s\n\n",
      text.ToString(color), "\nclient CPU ", Figure(CpuPerGigabyte(report)),
      " s per GB, ", Figure(static_cast<double>(report.size_bytes()) * 1e-9),
      " GB moved\n");
}

Json ReportJson(const BenchTable& table, const BenchLoad& load,
                const BenchReport& report) {
  return {{"row_count", table.row_count},
          {"dim", table.dim},
          {"dtype", table.dtype},
          {"server_count", table.server_count},
          {"trainer_count", load.trainer_count},
          {"batch_row_count", load.batch_rows},
          {"pulls_per_event", load.pull_count},
          {"pushes_per_event", load.push_count},
          {"measured_seconds", absl::ToDoubleSeconds(report.measured)},
          {"pull", ToJson(report.pull, report)},
          {"push", ToJson(report.push, report)},
          {"event", ToJson(report.event, report)},
          {"client_cpu_seconds_per_gigabyte", CpuPerGigabyte(report)}};
}

}  // namespace rowhouse::cli
