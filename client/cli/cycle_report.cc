#include "client/cli/cycle_report.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "client/cli/stage_name.h"
#include "client/cli/text_table.h"
#include "client/cli/units.h"

namespace rowhouse::cli {
namespace {

double ShareOf(absl::Duration part, absl::Duration whole) {
  return whole > absl::ZeroDuration() ? absl::FDivDuration(part, whole) : 0;
}

std::string Percent(double share) {
  return absl::StrCat(std::llround(share * 100), " %");
}

std::string Milliseconds(absl::Duration duration) {
  return Figure(absl::ToDoubleMilliseconds(duration));
}

double PerCycle(int64_t amount, const CycleSummary& summary) {
  return static_cast<double>(amount) /
         static_cast<double>(std::max<int64_t>(summary.cycles.count(), 1));
}

double BytesPerSecond(const StageSummary& stage) {
  return static_cast<double>(stage.size_bytes()) /
         absl::ToDoubleSeconds(stage.total);
}

double TokensPerSecond(const CycleBench& bench, const CycleSummary& summary) {
  return static_cast<double>(bench.load.token_count * bench.load.step_count *
                             bench.trainer_count) /
         absl::ToDoubleSeconds(summary.cycles.Quantile(0.5));
}

void AddRow(const StageSummary& stage, const CycleSummary& summary,
            TextTable& table) {
  const bool moves = stage.size_bytes() > 0;
  table.AddRow(
      {stage.name, Milliseconds(stage.latencies.Quantile(0.5)),
       Percent(ShareOf(stage.total, summary.total)),
       moves ? Figure(PerCycle(stage.size_bytes(), summary) * 1e-6) : "",
       moves ? Figure(BytesPerSecond(stage) * 1e-9) : "",
       stage.in_flight ? Percent(ShareOf(stage.hidden, stage.total)) : ""});
}

Json ToJson(const StageSummary& stage, const CycleSummary& summary) {
  Json json = {
      {"stage", stage.name},
      {"p50_seconds", absl::ToDoubleSeconds(stage.latencies.Quantile(0.5))},
      {"share_of_cycle", ShareOf(stage.total, summary.total)}};
  if (stage.size_bytes() > 0) {
    json["bytes_per_cycle"] = PerCycle(stage.size_bytes(), summary);
    json["bytes_per_second"] = BytesPerSecond(stage);
  }
  if (stage.in_flight) {
    json["share_behind_work"] = ShareOf(stage.hidden, stage.total);
  }
  return json;
}

// What was trained.
std::string LoadText(const CycleBench& bench, const CycleSummary& summary) {
  const BenchTable& table = bench.table;
  return absl::StrCat(
      Count(table.row_count), " rows of ", table.dim, " ", table.dtype, " on ",
      table.server_count, table.server_count == 1 ? " server, " : " servers, ",
      bench.trainer_count,
      bench.trainer_count == 1 ? " trainer, " : " trainers, ",
      bench.load.step_count, " steps of ", Count(bench.load.token_count),
      " tokens a cycle, ",
      Count(std::llround(PerCycle(summary.row_count, summary))), " rows");
}

// What overlaps.
std::string WorkText(const CycleSummary& summary) {
  return absl::StrCat("the trainer works ",
                      Percent(ShareOf(summary.work, summary.total)), ", and ",
                      Percent(ShareOf(summary.pull.hidden, summary.pull.total)),
                      " of ids' and rows' travel is behind that");
}

const char* NameOf(TokenLaw law) {
  switch (law) {
    case TokenLaw::kUniform:
      return "uniform";
    case TokenLaw::kZipf:
      return "zipf";
  }
  return "";
}

}  // namespace

std::string TransportOf(const CycleBench& bench, const CycleSummary& summary) {
  if (summary.pull_count > 0 && summary.one_sided_pulls == summary.pull_count &&
      summary.one_sided_pushes == summary.push_count) {
    return "one-sided";
  }
  const auto is_unix = [](const std::string& address) {
    return address.starts_with("unix:");
  };
  const auto& addresses = bench.addresses;
  const bool all = std::all_of(addresses.begin(), addresses.end(), is_unix);
  const bool any = std::any_of(addresses.begin(), addresses.end(), is_unix);
  const std::string wire = all ? "Unix socket" : any ? "TCP, Unix" : "TCP";
  if (summary.one_sided_pulls + summary.one_sided_pushes == 0) return wire;
  return absl::StrCat(wire, "; one-sided ", summary.one_sided_pulls, " of ",
                      summary.pull_count, " pulls, ", summary.one_sided_pushes,
                      " of ", summary.push_count, " pushes");
}

std::string TimelineTitle(const CycleBench& bench,
                          const CycleSummary& summary) {
  return absl::StrCat(
      TransportOf(bench, summary), ", ids sent ",
      bench.load.prefetch ? "in the cycle before" : "when a cycle begins",
      ": cycle ", Milliseconds(summary.cycles.Quantile(0.5)), " ms");
}

std::string TimelineNote(const CycleBench& bench, const CycleSummary& summary) {
  return absl::StrCat(LoadText(bench, summary), "; ", WorkText(summary));
}

std::string CycleText(const CycleBench& bench, const CycleSummary& summary,
                      bool color) {
  TextTable text({{"stage"},
                  {"p50 ms", Align::kRight},
                  {"of cycle", Align::kRight},
                  {"MB", Align::kRight},
                  {"GB/s", Align::kRight},
                  {"behind work", Align::kRight}});
  for (const StageSummary& stage : summary.stages) {
    AddRow(stage, summary, text);
  }
  return absl::StrCat(
      LoadText(bench, summary), "\n", TransportOf(bench, summary),
      "; ids are sent ",
      bench.load.prefetch ? "in the cycle before" : "when a cycle begins",
      "\n\n", text.ToString(color), "\ncycle ",
      Milliseconds(summary.cycles.Quantile(0.5)), " ms, ",
      Figure(TokensPerSecond(bench, summary)), " tokens/s; ", WorkText(summary),
      "\n");
}

Json CycleJson(const CycleBench& bench, const CycleSummary& summary) {
  Json stages = Json::array();
  for (const StageSummary& stage : summary.stages) {
    stages.push_back(ToJson(stage, summary));
  }
  return {{"transport", TransportOf(bench, summary)},
          {"prefetch", bench.load.prefetch},
          {"row_count", bench.table.row_count},
          {"dim", bench.table.dim},
          {"dtype", bench.table.dtype},
          {"server_count", bench.table.server_count},
          {"trainer_count", bench.trainer_count},
          {"tokens_per_step", bench.load.token_count},
          {"steps_per_cycle", bench.load.step_count},
          {"tokens", NameOf(bench.load.law)},
          {"gpu", bench.load.device_index.has_value()},
          {"model_seconds", absl::ToDoubleSeconds(bench.load.model_time)},
          {"cycle_count", bench.load.cycle_count},
          {"rows_per_cycle", PerCycle(summary.row_count, summary)},
          {"cycle_p50_seconds",
           absl::ToDoubleSeconds(summary.cycles.Quantile(0.5))},
          {"tokens_per_second", TokensPerSecond(bench, summary)},
          {"work_share", ShareOf(summary.work, summary.total)},
          {"pull", ToJson(summary.pull, summary)},
          {"pull_count", summary.pull_count},
          {"one_sided_pull_count", summary.one_sided_pulls},
          {"push_count", summary.push_count},
          {"one_sided_push_count", summary.one_sided_pushes},
          {"stages", std::move(stages)}};
}

Json SpansJson(const CycleTrace& trace) {
  const absl::Time zero = trace.trainers.at(0).starts.at(0);
  const auto seconds = [&](absl::Time time) {
    return absl::ToDoubleSeconds(time - zero);
  };
  Json trainers = Json::array();
  for (const TrainerTrace& trainer : trace.trainers) {
    Json spans = Json::array();
    for (const client::Span& span : trainer.spans) {
      spans.push_back({{"stage", NameOf(span.stage)},
                       {"shard", span.shard},
                       {"event", span.event},
                       {"begin", seconds(span.begin)},
                       {"end", seconds(span.end)},
                       {"rows", span.row_count},
                       {"one_sided", span.path == client::Path::kOneSided}});
    }
    for (const Interval& model : trainer.model) {
      spans.push_back({{"stage", "model"},
                       {"begin", seconds(model.begin)},
                       {"end", seconds(model.end)}});
    }
    Json cycles = Json::array();
    for (const absl::Time start : trainer.starts) {
      cycles.push_back(seconds(start));
    }
    trainers.push_back(
        {{"cycles_begin", std::move(cycles)}, {"spans", std::move(spans)}});
  }
  return {{"first_event", trace.first_event},
          {"trainers", std::move(trainers)}};
}

}  // namespace rowhouse::cli
