#ifndef ROWHOUSE_SERVER_VERSION_H_
#define ROWHOUSE_SERVER_VERSION_H_

#include <string_view>

namespace rowhouse::server {

/// Version of the server, `major.minor.patch`.
std::string_view Version();

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_VERSION_H_
