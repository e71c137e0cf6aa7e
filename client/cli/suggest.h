#ifndef ROWHOUSE_CLIENT_CLI_SUGGEST_H_
#define ROWHOUSE_CLIENT_CLI_SUGGEST_H_

#include <string>
#include <string_view>
#include <vector>

namespace rowhouse::cli {

/// The one of `known` that `word` was most likely meant to be: fewest single
/// characters to insert, drop, change or swap; empty when it is far from all.
std::string Nearest(std::string_view word,
                    const std::vector<std::string>& known);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_SUGGEST_H_
