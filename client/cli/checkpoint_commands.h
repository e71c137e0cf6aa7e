#ifndef ROWHOUSE_CLIENT_CLI_CHECKPOINT_COMMANDS_H_
#define ROWHOUSE_CLIENT_CLI_CHECKPOINT_COMMANDS_H_

#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "client/cli/command.h"

namespace rowhouse::cli {

/// Adds a checkpoint's name as the next positional argument.
CLI::Option& AddCheckpointName(CLI::App& command, std::string& name,
                               const std::string& argument = "checkpoint");

// One a subcommand of `rowhouse checkpoint`.
void AddCheckpointCreate(CLI::App& group, Context& context);
void AddCheckpointList(CLI::App& group, Context& context);
void AddCheckpointInspect(CLI::App& group, Context& context);
void AddCheckpointVerify(CLI::App& group, Context& context);
void AddCheckpointDiff(CLI::App& group, Context& context);
void AddCheckpointCompact(CLI::App& group, Context& context);
void AddCheckpointRestore(CLI::App& group, Context& context);
void AddCheckpointDelete(CLI::App& group, Context& context);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_CHECKPOINT_COMMANDS_H_
