#ifndef ROWHOUSE_CLIENT_CLI_CHECKS_H_
#define ROWHOUSE_CLIENT_CLI_CHECKS_H_

#include <cstdint>
#include <functional>
#include <string>

namespace rowhouse::cli {

/// Of an argument's text: empty where it is good, or what is wrong with it; for
/// `CLI::Option::check`.
using Check = std::function<std::string(const std::string&)>;

/// A whole number of at least `least`.
Check AtLeast(int64_t least);

/// A table's or a checkpoint's name, as the servers have them.
std::string CheckTableName(const std::string& text);
std::string CheckCheckpointName(const std::string& text);

/// HOST:PORT with a port of 1 to 65535, or unix:PATH.
std::string CheckAddress(const std::string& text);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_CHECKS_H_
