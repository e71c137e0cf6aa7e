#include "server/shard/row_store.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "proto/wire/status_macros.h"
#include "server/shard/shard.h"

namespace rowhouse::server {

RowStore::RowStore(const ShardSpec& spec, kernels::Backend& backend)
    : backend_(&backend), initializer_(spec.initializer) {
  table_.first_row_id = spec.placement.first_row(spec.shard_index);
  table_.row_count =
      spec.placement.end_row(spec.shard_index) - table_.first_row_id;
  table_.dim = spec.dim;
  table_.dtype = spec.row_dtype;
}

absl::StatusOr<RowStore> RowStore::Create(const ShardSpec& spec,
                                          kernels::Backend& backend) {
  RowStore store(spec, backend);
  ROWHOUSE_RETURN_IF_ERROR(store.Reset());
  return store;
}

absl::Status RowStore::Reset() {
  ROWHOUSE_RETURN_IF_ERROR(backend_->Synchronize());
  { const kernels::Buffer freed(std::move(weights_)); }
  { const kernels::Buffer freed(std::move(second_moment_)); }
  { const kernels::Buffer freed(std::move(last_event_)); }
  const auto state_bytes =
      table_.row_count * static_cast<int64_t>(sizeof(float));
  ROWHOUSE_ASSIGN_OR_RETURN(
      weights_, backend_->Allocate(table_.row_count * table_.row_bytes()));
  ROWHOUSE_ASSIGN_OR_RETURN(second_moment_, backend_->Allocate(state_bytes));
  ROWHOUSE_ASSIGN_OR_RETURN(last_event_, backend_->Allocate(state_bytes));
  table_.weights = weights_.data();
  table_.second_moment = second_moment_.as<float>();
  table_.last_event = last_event_.as<int32_t>();
  ROWHOUSE_RETURN_IF_ERROR(
      backend_->InitializeRows(table_, initializer_, /*fresh=*/true));
  return backend_->Synchronize();
}

}  // namespace rowhouse::server
