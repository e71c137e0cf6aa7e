#include "server/version.h"

#include <string_view>

namespace rowhouse::server {

std::string_view Version() { return ROWHOUSE_VERSION; }

}  // namespace rowhouse::server
