#include "server/staging.h"

#include <cstddef>
#include <memory>
#include <utility>

#include "proto/wire/status_macros.h"
#include "server/service/limits.h"

namespace rowhouse::server {

Staging::Staging(kernels::Backend& backend, const InFlight::Limits& limits)
    : in_flight_(limits),
      blocks_([&backend]() -> absl::StatusOr<wire::BlockPool::Memory> {
        ROWHOUSE_ASSIGN_OR_RETURN(kernels::Buffer made,
                                  backend.AllocateHost(kMaxPayloadBytes));
        const auto buffer = std::make_shared<kernels::Buffer>(std::move(made));
        return wire::BlockPool::Memory(buffer, buffer->as<std::byte>());
      }) {}

void Staging::Take(const std::string& client, const void* owner, Done done) {
  in_flight_.Take(client, kMaxPayloadBytes, owner,
                  [this, done = std::move(done)](InFlight::Room room) mutable {
                    done(blocks_.Take(std::move(room)));
                  });
}

}  // namespace rowhouse::server
