#ifndef ROWHOUSE_CLIENT_CLI_COMPLETION_H_
#define ROWHOUSE_CLIENT_CLI_COMPLETION_H_

#include <string>

#include "CLI/CLI.hpp"

namespace rowhouse::cli {

// Scripts that complete subcommands and flags, from the tree of commands, and
// names of tables and checkpoints: they ask the servers that the line or
// ROWHOUSE_SERVERS names, for a second, and offer nothing where those do not
// answer.
std::string BashCompletion(const CLI::App& app);
std::string ZshCompletion(const CLI::App& app);
std::string FishCompletion(const CLI::App& app);

/// Text between single quotes, for all three shells.
std::string Quoted(const std::string& text);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_COMPLETION_H_
