#ifndef ROWHOUSE_TESTS_CLIENT_IN_MEMORY_RECORD_STREAM_H_
#define ROWHOUSE_TESTS_CLIENT_IN_MEMORY_RECORD_STREAM_H_

#include <memory>

#include "absl/status/statusor.h"
#include "client/internal/record_stream.h"
#include "server/shard/shard.h"

namespace rowhouse::testing {

/// A recording of a shard without a transport; its pieces are small.
absl::StatusOr<std::unique_ptr<client::internal::RecordStream>>
OpenInMemoryRecordStream(server::Shard& shard,
                         const client::internal::RecordCall& call,
                         const client::internal::CallContext& context);

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_CLIENT_IN_MEMORY_RECORD_STREAM_H_
