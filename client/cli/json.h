#ifndef ROWHOUSE_CLIENT_CLI_JSON_H_
#define ROWHOUSE_CLIENT_CLI_JSON_H_

#include "nlohmann/json.hpp"
#include "rowhouse/survey.h"
#include "rowhouse/types.h"

namespace rowhouse::cli {

/// Members in the order they are added.
using Json = nlohmann::ordered_json;

// Members have the names of the fields; durations are in seconds.
Json ToJson(const client::TableSpec& spec);
Json ToJson(const client::TableInfo& table);
Json ToJson(const client::ServerState& server);
Json ToJson(const client::EventState& state);

/// `sum`, `mean`.
const char* NameOf(client::GradientReduction reduction);
/// `reject`, `skip_row`, `propagate`.
const char* NameOf(client::NonFinitePolicy policy);
/// `skip`, `row_adam`, `adamw`.
const char* NameOf(const client::EventUpdate& update);

/// Writes `json` to stdout, with line ends.
void PrintJson(const Json& json);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_JSON_H_
