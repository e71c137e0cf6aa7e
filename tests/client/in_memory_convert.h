#ifndef ROWHOUSE_TESTS_CLIENT_IN_MEMORY_CONVERT_H_
#define ROWHOUSE_TESTS_CLIENT_IN_MEMORY_CONVERT_H_

#include "client/internal/shard_channel.h"
#include "kernels/dtype.h"
#include "rowhouse/types.h"
#include "server/shard/shard.h"

namespace rowhouse::testing {

/// The client library's structs as the shard's, and back.
kernels::DType ToKernel(client::DType dtype);
client::DType FromKernel(kernels::DType dtype);
server::TrainerSession ToServer(
    const client::internal::TrainerSession& trainer);
server::EventCommit ToServer(const client::EventCommit& commit);
server::EventWait ToServer(const client::internal::EventWait& wait);
client::EventCommit FromServer(const server::EventCommit& commit);
client::EventState FromServer(const server::EventState& state);

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_CLIENT_IN_MEMORY_CONVERT_H_
