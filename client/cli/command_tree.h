#ifndef ROWHOUSE_CLIENT_CLI_COMMAND_TREE_H_
#define ROWHOUSE_CLIENT_CLI_COMMAND_TREE_H_

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

/// The commands of the tool, or of a group of it.
std::vector<const CLI::App*> Subcommands(const CLI::App& app);
std::vector<std::string> CommandsOf(const CLI::App& app);  ///< Their names.

/// Those, and those of each group right after it.
std::vector<const CLI::App*> AllCommands(const CLI::App& app);

bool IsGroup(const CLI::App& command);

/// A command's first arguments that name what is there.
struct NameArguments {
  std::string source;  ///< The command that lists the names; empty: none.
  int count = 0;
};

NameArguments NameArgumentsOf(const CLI::App& command);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_COMMAND_TREE_H_
