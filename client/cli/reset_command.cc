// Reset and delete: what cannot be taken back.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/json.h"
#include "client/cli/table_view.h"
#include "client/cli/terminal.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {
namespace {

using Change = absl::Status (client::Cluster::*)(std::string_view,
                                                 const client::CallOptions&);

constexpr char kResetExamples[] =
    "  rowhouse reset ngram          asks first\n"
    "  rowhouse reset ngram --yes    in scripts\n";
constexpr char kDeleteExamples[] =
    "  rowhouse delete ngram          asks first\n"
    "  rowhouse delete ngram --yes    in scripts\n";

absl::StatusOr<int> Run(const Context& context, const std::string& verb,
                        const std::string& done, Change change, bool yes) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  const client::CallOptions options{.timeout = context.connection.timeout()};
  // Nobody is asked about a table that is not there.
  const std::vector<client::ServerState> servers =
      cluster->Survey({.timeout = options.timeout, .table = context.table});
  if (!TablesOf(servers).empty()) {
    ROWHOUSE_RETURN_IF_ERROR(
        Confirm(absl::StrCat(verb, " table ", context.table, " on all servers"),
                context.table, yes));
  }
  ROWHOUSE_RETURN_IF_ERROR(((*cluster).*change)(context.table, options));
  if (context.json) {
    PrintJson({{"table", context.table}, {"done", verb}});
  } else {
    Print(absl::StrCat("table ", context.table, " ", done, "\n"));
  }
  return 0;
}

void Add(CLI::App& app, Context& context, const std::string& verb,
         const std::string& done, const std::string& description,
         const std::string& examples, Change change) {
  const auto yes = std::make_shared<bool>(false);
  CLI::App& command =
      AddCommand(app, context, verb, description, examples,
                 [&context, verb, done, change, yes] {
                   return Run(context, verb, done, change, *yes);
                 });
  AddTable(command, context);
  command.add_flag("--yes,-y", *yes, "Does not ask");
}

}  // namespace

void AddReset(CLI::App& app, Context& context) {
  Add(app, context, "reset", "is back at event 0",
      "Returns a table to event 0 and its initial rows; closes all sessions",
      kResetExamples, &client::Cluster::ResetTable);
}

void AddDelete(CLI::App& app, Context& context) {
  Add(app, context, "delete", "is deleted", "Deletes a table with all its rows",
      kDeleteExamples, &client::Cluster::DeleteTable);
}

}  // namespace rowhouse::cli
