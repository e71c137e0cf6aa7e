// Applies a push log to a table.

#include <iostream>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/checks.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/json.h"
#include "client/cli/progress.h"
#include "client/cli/push_log_text.h"
#include "client/cli/terminal.h"
#include "client/cli/units.h"
#include "client/push_log/push_log.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {
namespace {

namespace push_log = client::push_log;

constexpr char kExamples[] =
    "  rowhouse replay ngram2 ngram.rhlog              makes the table\n"
    "  rowhouse replay ngram2 ngram.rhlog --shards=5\n"
    "  rowhouse replay --inspect ngram.rhlog           asks no server\n";

struct Flags {
  std::string first;  // The table; the file with --inspect.
  std::string file;
  bool inspect = false;
  std::optional<int32_t> shard_count;
};

void Warn(const std::string& warning) {
  std::cerr << "rowhouse: " << warning << '\n';
}

absl::StatusOr<push_log::ReplayReport> Replay(client::Cluster& cluster,
                                              const Context& context,
                                              const Flags& flags) {
  push_log::ReplayOptions options{.shard_count = flags.shard_count,
                                  .timeout = context.connection.work_timeout()};
  std::unique_ptr<Progress> progress;
  std::string applied = "no event has been applied";
  options.progress = [&](const push_log::ReplayProgress& now) {
    applied = absl::StrCat("event ", now.event, " is the last applied");
    if (progress == nullptr) {
      progress = std::make_unique<Progress>("replaying", now.log_event_count,
                                            Progress::Unit::kEvents,
                                            StderrScreen(context.quiet));
    }
    progress->Update(now.event_count, absl::StrCat("event ", now.event));
  };
  options.warn = Warn;
  CatchInterrupts();
  std::stop_source stop;
  options.stop = stop.get_token();
  const InterruptWatch watch([&stop] { stop.request_stop(); },
                             [&cluster] { cluster.CancelCalls(); });
  absl::StatusOr<push_log::ReplayReport> report =
      push_log::Replay(cluster, context.table, flags.file, options);
  if (absl::IsCancelled(report.status())) return absl::CancelledError(applied);
  return report;
}

Json ReplayJson(const std::string& table,
                const push_log::ReplayReport& report) {
  Json json = ToJson(report.counts);
  json["table"] = table;
  json["created"] = report.created;
  json["start_event"] = report.start_event;
  json["last_event"] = report.last_event;
  json["digest"] = ToJson(report.digest);
  json["recorded_digest"] = ToJson(report.recorded_digest);
  json["digests_equal"] = report.digests_equal().has_value()
                              ? Json(*report.digests_equal())
                              : Json(nullptr);
  json["complete"] = report.complete;
  json["has_head_parts"] = report.has_head_parts;
  json["differing_head_part_count"] = report.differing_head_part_count;
  json["warning"] = report.warning;
  return json;
}

std::string Comparison(const push_log::ReplayReport& report) {
  const std::optional<bool> equal = report.digests_equal();
  if (!equal.has_value()) return "the log has no digest to compare with";
  if (*equal) return "the same as the recorded table's";
  return absl::StrCat("NOT the recorded table's, ",
                      DigestText(*report.recorded_digest));
}

absl::StatusOr<int> RunReplay(const Context& context, const Flags& flags) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  ROWHOUSE_ASSIGN_OR_RETURN(const push_log::ReplayReport report,
                            Replay(*cluster, context, flags));
  if (context.json) {
    PrintJson(ReplayJson(context.table, report));
  } else {
    Print(absl::StrCat(
        EventsText(report.start_event, report.last_event), " applied to table ",
        context.table, report.created ? ", which was made" : "", ": ",
        CountsText(report.counts), "\ndigest ", DigestText(report.digest), ", ",
        Comparison(report), "\n"));
  }
  if (!report.warning.empty()) Warn(report.warning);
  if (Interrupted()) return kInterrupted;
  return report.digests_equal().value_or(true) ? kOk : kRefused;
}

absl::StatusOr<int> RunInspect(const Context& context, const Flags& flags) {
  if (!flags.file.empty()) {
    return BadArgument(absl::StrCat("'", flags.file, "' after '", flags.first,
                                    "', wanted the log alone with --inspect"));
  }
  if (flags.shard_count.has_value()) {
    return BadArgument("--shards with --inspect, wanted one of them");
  }
  const std::string& file = flags.first;
  ROWHOUSE_ASSIGN_OR_RETURN(const push_log::LogInfo info,
                            push_log::Inspect(file));
  if (context.json) {
    Json json = ToJson(info.counts);
    json["table"] = info.table;
    json["spec"] = ToJson(info.spec);
    json["shard_bounds"] = info.shard_bounds;
    json["arithmetic"] = info.arithmetic;
    json["start_event"] = info.start_event;
    json["last_event"] = info.last_event;
    json["complete"] = info.complete;
    json["fault"] = info.fault;
    json["size_bytes"] = info.size_bytes;
    json["whole_bytes"] = info.whole_bytes;
    json["start_digest"] = ToJson(info.start_digest);
    json["end_digest"] = ToJson(info.end_digest);
    PrintJson(json);
    return kOk;
  }
  Print(absl::StrCat(
      file, ": ", EventsText(info.start_event, info.last_event), " of table ",
      info.table, ", ", CountsText(info.counts), ", ", Bytes(info.size_bytes),
      info.complete ? "" : ", not ended in order",
      info.fault.empty() ? "" : ": " + info.fault, "\n",
      info.end_digest.has_value()
          ? absl::StrCat("digest ", DigestText(*info.end_digest), "\n")
          : "",
      ArithmeticText(info)));
  return kOk;
}

}  // namespace

void AddReplay(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<Flags>();
  CLI::App& command = AddCommand(
      app, context, "replay",
      "Applies a push log to a table, which it makes if it is not there, and "
      "compares digests",
      kExamples, [&context, flags]() -> absl::StatusOr<int> {
        if (flags->inspect) return RunInspect(context, *flags);
        if (flags->file.empty()) return BadArgument("no push log, wanted FILE");
        context.table = flags->first;
        return RunReplay(context, *flags);
      });
  command
      .add_option("table", flags->first, "The table; the log with --inspect")
      ->required()
      ->type_name("TABLE");
  command.add_option("file", flags->file, "The push log")->type_name("FILE");
  command.add_flag("--inspect", flags->inspect,
                   "Says what a log holds, and checks every byte of it");
  command
      .add_option_function<int32_t>(
          "--shards", [flags](int32_t count) { flags->shard_count = count; },
          "Shards of a table that is made; as recorded when not given")
      ->check(AtLeast(1))
      ->type_name("COUNT");
}

}  // namespace rowhouse::cli
