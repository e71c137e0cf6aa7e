#ifndef ROWHOUSE_CLIENT_CLI_COMPLETION_H_
#define ROWHOUSE_CLIENT_CLI_COMPLETION_H_

#include <string>
#include <vector>

#include "CLI/CLI.hpp"

namespace rowhouse::cli {

/// A flag, `--name`, and what it means.
struct FlagName {
  std::string name;
  std::string description;
  bool takes_value = false;
};

/// The long flags of a command, without those of its parent.
std::vector<FlagName> FlagsOf(const CLI::App& command);

/// The names of the subcommands.
std::vector<std::string> CommandsOf(const CLI::App& app);

// Scripts that complete subcommands and flags, from the tree of commands, and
// tables: they ask the servers that the line or ROWHOUSE_SERVERS names, for a
// second, and offer nothing where those do not answer.
std::string BashCompletion(const CLI::App& app);
std::string ZshCompletion(const CLI::App& app);
std::string FishCompletion(const CLI::App& app);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_COMPLETION_H_
