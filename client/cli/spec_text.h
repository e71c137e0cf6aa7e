#ifndef ROWHOUSE_CLIENT_CLI_SPEC_TEXT_H_
#define ROWHOUSE_CLIENT_CLI_SPEC_TEXT_H_

#include <string>

#include "rowhouse/types.h"

namespace rowhouse::cli {

/// A spec for people, a line a field.
std::string SpecText(const client::TableSpec& spec, bool color);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_SPEC_TEXT_H_
