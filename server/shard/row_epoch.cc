#include "server/shard/row_epoch.h"

#include "proto/wire/status_macros.h"

namespace rowhouse::server {

absl::StatusOr<std::unique_ptr<RowEpoch>> RowEpoch::Create(
    kernels::Backend& backend) {
  ROWHOUSE_ASSIGN_OR_RETURN(kernels::Buffer word,
                            backend.AllocateShared(sizeof(int64_t)));
  return std::unique_ptr<RowEpoch>(new RowEpoch(backend, std::move(word)));
}

absl::Status RowEpoch::Advance() {
  return backend_.StoreEpoch(word_.as<int64_t>(), ++value_);
}

}  // namespace rowhouse::server
