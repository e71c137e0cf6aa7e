#ifndef ROWHOUSE_PROTO_WIRE_HOST_IDENTITY_H_
#define ROWHOUSE_PROTO_WIRE_HOST_IDENTITY_H_

#include <cstdint>
#include <string>

namespace rowhouse::wire {

/// A host, and the user whom a process of it runs as. Equal ones can map each
/// other's memory, where nothing else keeps them apart.
struct HostIdentity {
  std::string boot_id;  ///< The kernel's, random for each boot; or empty.
  int64_t user_id = 0;  ///< Effective.

  friend bool operator==(const HostIdentity&, const HostIdentity&) = default;
};

/// That of this process.
HostIdentity ThisHost();

}  // namespace rowhouse::wire

#endif  // ROWHOUSE_PROTO_WIRE_HOST_IDENTITY_H_
