#ifndef ROWHOUSE_TESTS_CLIENT_IN_MEMORY_HEAD_STREAM_H_
#define ROWHOUSE_TESTS_CLIENT_IN_MEMORY_HEAD_STREAM_H_

#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "client/internal/head_stream.h"
#include "server/shard/shard.h"
#include "tests/client/in_memory_cluster.h"

namespace rowhouse::testing {

/// What becomes of a phase of a head call: `OpenHead`, `HeadStatistics` or
/// `HeadGradient`.
using HeadFaults = std::function<Fault(std::string_view phase)>;

/// Opens a head call on `shard`, which outlives it. Its messages have three
/// tokens. A repeated phase is made twice, and the second answer counts: of
/// `HeadGradient` the whole call. The first rows of a lost gradient arrive.
absl::StatusOr<std::unique_ptr<client::internal::HeadStream>>
OpenInMemoryHeadStream(server::Shard& shard,
                       const client::internal::HeadHeader& header,
                       HeadFaults faults,
                       const client::internal::CallContext& context);

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_CLIENT_IN_MEMORY_HEAD_STREAM_H_
