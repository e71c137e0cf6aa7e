// A table's digest.

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/strings/str_format.h"
#include "client/cli/checks.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/json.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {
namespace {

constexpr char kExamples[] =
    "  rowhouse digest ngram\n"
    "  rowhouse digest ngram --event=1000 --timeout=60   waits for event "
    "1000\n";

absl::StatusOr<int> Run(const Context& context,
                        const std::optional<int64_t>& event) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  const absl::StatusOr<client::TableDigest> digest = cluster->Digest(
      context.table, event, {.timeout = context.connection.timeout()});
  ROWHOUSE_RETURN_IF_ERROR(WhileWaiting(digest.status(), event));
  const std::string hex = absl::StrFormat("%016x", digest->digest);
  if (context.json) {
    PrintJson(
        {{"table", context.table}, {"digest", hex}, {"event", digest->event}});
  } else {
    Print(absl::StrFormat("%s  %s at event %d\n", hex, context.table,
                          digest->event));
  }
  return 0;
}

}  // namespace

void AddDigest(CLI::App& app, Context& context) {
  const auto event = std::make_shared<std::optional<int64_t>>();
  CLI::App& command = AddCommand(
      app, context, "digest",
      "Prints a table's digest: equal digests mean equal weights, optimizer "
      "state and history. Reads every row",
      kExamples, [&context, event] { return Run(context, *event); });
  AddTable(command, context);
  command
      .add_option_function<int64_t>(
          "--event", [event](int64_t value) { *event = value; },
          "The digest as of this event; waits for it")
      ->type_name("EVENT")
      ->check(AtLeast(0));
}

}  // namespace rowhouse::cli
