#ifndef ROWHOUSE_CLIENT_CLI_COMMAND_H_
#define ROWHOUSE_CLIENT_CLI_COMMAND_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "client/cli/connection.h"

namespace rowhouse::cli {

/// What all commands share, and the one that was chosen.
struct Context {
  ConnectionFlags connection;
  bool json = false;
  bool quiet = false;
  std::string table;    ///< That the command names, for advice.
  std::string command;  ///< The words of the one that was chosen.
  /// The command; its value is the exit code.
  std::function<absl::StatusOr<int>()> run;
};

/// Adds a subcommand whose `run` is called once all arguments are read.
/// `examples`: whole lines, for its help.
CLI::App& AddCommand(CLI::App& app, Context& context, const std::string& name,
                     const std::string& description,
                     const std::string& examples,
                     std::function<absl::StatusOr<int>()> run);

/// Adds a command that is nothing without one of its subcommands.
CLI::App& AddGroup(CLI::App& app, const std::string& name,
                   const std::string& description,
                   const std::string& examples);

/// The words that choose a command: `checkpoint list`. Empty: of the tool.
std::string PathOf(const CLI::App& command);

/// Adds the table's name as the first positional argument.
CLI::Option& AddTable(CLI::App& command, Context& context);

/// Adds a count that may have a suffix (`ParseCount`), in [least, most].
CLI::Option& AddCount(CLI::App& command, const std::string& flag,
                      int64_t& value, const std::string& description,
                      int64_t least = 0,
                      int64_t most = std::numeric_limits<int64_t>::max());

/// Writes to stdout. If that fails it says so, once, and `std::cout` is bad
/// from then on: the process ends with `kRefused`.
void Print(const std::string& text);

/// Says on stderr what failed and what to do next; returns the exit code.
int PrintFault(const absl::Status& status, const Context& context);

// One a command.
void AddStatus(CLI::App& app, Context& context);
void AddList(CLI::App& app, Context& context);
void AddDescribe(CLI::App& app, Context& context);
void AddCreate(CLI::App& app, Context& context);
void AddImport(CLI::App& app, Context& context);
void AddPull(CLI::App& app, Context& context);
void AddDigest(CLI::App& app, Context& context);
void AddEvents(CLI::App& app, Context& context);
void AddRecord(CLI::App& app, Context& context);
void AddReplay(CLI::App& app, Context& context);
void AddReset(CLI::App& app, Context& context);
void AddDelete(CLI::App& app, Context& context);
void AddCheckpoint(CLI::App& app, Context& context);
void AddBench(CLI::App& app, Context& context);
void AddCompletion(CLI::App& app, Context& context);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_COMMAND_H_
