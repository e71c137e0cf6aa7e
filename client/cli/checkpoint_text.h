#ifndef ROWHOUSE_CLIENT_CLI_CHECKPOINT_TEXT_H_
#define ROWHOUSE_CLIENT_CLI_CHECKPOINT_TEXT_H_

#include <string>
#include <vector>

#include "client/cli/json.h"
#include "rowhouse/checkpoint.h"

namespace rowhouse::cli {

// Checkpoints as tables for people, with line ends.

/// One line each.
std::string CheckpointListText(
    const std::vector<client::CheckpointInfo>& checkpoints, bool color);

/// One, and its tables.
std::string CheckpointText(const client::CheckpointInfo& checkpoint,
                           bool color);

/// Tables side by side; those that are equal are faint.
std::string DiffText(const std::vector<client::CheckpointTableDiff>& tables,
                     bool color);

// And for machines. Members have the names of the fields; what is not there is
// null.
Json ToJson(const client::CheckpointInfo& checkpoint);
Json ToJson(const client::CheckpointTableDiff& table);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_CHECKPOINT_TEXT_H_
