#ifndef ROWHOUSE_SERVER_TRANSPORT_MAP_CALL_H_
#define ROWHOUSE_SERVER_TRANSPORT_MAP_CALL_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "kernels/mutex.h"
#include "rowhouse/v1/transport_service.pb.h"
#include "server/service/active_calls.h"
#include "server/shard/shard.h"
#include "server/table_registry.h"
#include "server/transport/mappings.h"
#include "server/transport/one_sided_options.h"

namespace rowhouse::server {

/// One MapTable call: shares a shard's memory and keeps it until the client has
/// unmapped it, which it says by closing its side, or has gone.
///
/// When the shard is closed, or the server drains, it asks the client to unmap
/// and waits for that. Deletes itself.
class MapCall final : public grpc::ServerBidiReactor<v1::MapTableRequest,
                                                     v1::MapTableResponse> {
 public:
  /// The references must outlive it.
  MapCall(ActiveCalls& calls, const grpc::CallbackServerContext& context,
          TableRegistry& tables, Mappings& mappings,
          const OneSidedOptions& options)
      : active_(calls, context),
        tables_(tables),
        mappings_(mappings),
        options_(options) {}

  /// Begins to read, or ends the call.
  void Start();

  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override { active_.Cancel(); }
  void OnDone() override { delete this; }

 private:
  absl::Status Open();
  void OnShared(absl::StatusOr<SharedRows> shared);
  absl::Status Answer(const SharedRows& shared);
  absl::Status MakeInbox(Mapping& mapping);
  void OnShardEnd(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  void OnClientEnd() ABSL_LOCKS_EXCLUDED(mutex_);
  void EndWhenAllHave() ABSL_LOCKS_EXCLUDED(mutex_);
  void End(absl::Status status);

  ActiveCall active_;
  TableRegistry& tables_;
  Mappings& mappings_;
  const OneSidedOptions& options_;
  v1::MapTableRequest request_;
  v1::MapTableResponse response_;
  bool mapped_ = false;  // The answer has been sent.
  int64_t number_ = 0;   // Of the mapping, once there is one.

  // The last of these ends the call.
  Mutex mutex_;
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<absl::Status> shard_end_ ABSL_GUARDED_BY(mutex_);
  bool client_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_MAP_CALL_H_
