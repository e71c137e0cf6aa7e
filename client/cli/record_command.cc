// Writes the events of a table to a push log, while training goes on.

#include <iostream>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/checks.h"
#include "client/cli/command.h"
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
    "  rowhouse record ngram ngram.rhlog                until interrupted\n"
    "  rowhouse record ngram ngram.rhlog --until=1000   up to event 1000\n";

struct Flags {
  std::string file;
  push_log::RecordOptions options;
};

absl::StatusOr<push_log::RecordReport> Record(client::Cluster& cluster,
                                              const Context& context,
                                              Flags flags) {
  push_log::RecordOptions& options = flags.options;
  // The total is known once the first event is: until then there is none.
  std::unique_ptr<Progress> progress;
  int64_t start_event = 0;
  options.progress = [&](const push_log::RecordProgress& now) {
    if (progress == nullptr) {
      start_event = now.event;
      if (!context.quiet) {
        std::cerr << "recording table " << context.table << " after event "
                  << start_event << '\n';
      }
      const int64_t total = options.last_event.has_value()
                                ? *options.last_event - start_event
                                : 0;
      progress = std::make_unique<Progress>("recording", total,
                                            Progress::Unit::kEvents,
                                            StderrScreen(context.quiet));
    }
    progress->Update(
        now.event - start_event,
        absl::StrCat("event ", now.event, ", ", Bytes(now.size_bytes)));
  };
  CatchInterrupts();
  std::stop_source stop;
  options.stop = stop.get_token();
  options.timeout = context.connection.timeout();
  const InterruptWatch watch([&stop] { stop.request_stop(); });
  absl::StatusOr<push_log::RecordReport> report =
      push_log::Record(cluster, context.table, flags.file, options);
  if (absl::IsCancelled(report.status())) {
    return absl::CancelledError("the recording had not begun");
  }
  return report;
}

absl::StatusOr<int> Run(const Context& context, const Flags& flags) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  ROWHOUSE_ASSIGN_OR_RETURN(const push_log::RecordReport report,
                            Record(*cluster, context, flags));
  if (context.json) {
    Json json = ToJson(report.counts);
    json["table"] = context.table;
    json["file"] = flags.file;
    json["start_event"] = report.start_event;
    json["last_event"] = report.last_event;
    json["size_bytes"] = report.size_bytes;
    json["start_digest"] = ToJson(report.start_digest);
    json["end_digest"] = ToJson(report.end_digest);
    json["digest_fault"] = std::string(report.digest_fault.message());
    json["fault"] = std::string(report.fault.message());
    PrintJson(json);
  } else {
    Print(absl::StrCat(
        flags.file, ": ", EventsText(report.start_event, report.last_event),
        " of table ", context.table, ", ", CountsText(report.counts), ", ",
        Bytes(report.size_bytes), "\n", EndDigestText(report, context.table)));
  }
  // The log is good up to there; but more was wanted.
  ROWHOUSE_RETURN_IF_ERROR(report.fault);
  return 0;
}

}  // namespace

void AddRecord(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<Flags>();
  CLI::App& command = AddCommand(
      app, context, "record",
      "Writes a table's events from now on to a push log; training does not "
      "wait for it. Ctrl-C ends it in order, but has no digest of a table that "
      "goes on",
      kExamples, [&context, flags] { return Run(context, *flags); });
  AddTable(command, context);
  command.add_option("file", flags->file, "The push log to write")
      ->required()
      ->type_name("FILE");
  command
      .add_option_function<int64_t>(
          "--until",
          [flags](int64_t event) { flags->options.last_event = event; },
          "Ends after this event, with its digest also where training goes on")
      ->check(AtLeast(1))
      ->type_name("EVENT");
  AddCount(command, "--buffer-bytes", flags->options.buffer_bytes,
           "What each server may hold for a recorder that falls behind; the "
           "most that two events can have when not given");
  command.add_flag_callback(
      "--no-digest", [flags] { flags->options.digest = false; },
      "Takes no digest of the table: each is a pass over its rows");
  command.add_flag("--overwrite", flags->options.overwrite,
                   "Replaces a file that is there");
}

}  // namespace rowhouse::cli
