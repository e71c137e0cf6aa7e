#include "proto/wire/host_identity.h"

#include <unistd.h>

#include <fstream>
#include <string>

namespace rowhouse::wire {

HostIdentity ThisHost() {
  HostIdentity host;
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::getline(file, host.boot_id);
  host.user_id = geteuid();
  return host;
}

}  // namespace rowhouse::wire
