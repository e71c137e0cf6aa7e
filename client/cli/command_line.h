#ifndef ROWHOUSE_CLIENT_CLI_COMMAND_LINE_H_
#define ROWHOUSE_CLIENT_CLI_COMMAND_LINE_H_

#include "CLI/CLI.hpp"
#include "client/cli/command.h"

namespace rowhouse::cli {

/// Adds all commands and the flags that they share. `app` and `context` must
/// outlive the parse and the command.
void AddCommands(CLI::App& app, Context& context);

/// Reads the arguments, runs the command, and says what went wrong on stderr;
/// returns the exit code.
int Main(int argc, char** argv);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_COMMAND_LINE_H_
