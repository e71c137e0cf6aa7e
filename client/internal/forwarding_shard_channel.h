#ifndef ROWHOUSE_CLIENT_INTERNAL_FORWARDING_SHARD_CHANNEL_H_
#define ROWHOUSE_CLIENT_INTERNAL_FORWARDING_SHARD_CHANNEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "client/internal/record_stream.h"
#include "client/internal/shard_channel.h"

namespace rowhouse::client::internal {

/// Makes every call on another channel: for those that change some calls.
///
/// Thread-safe, as the other is.
class ForwardingShardChannel : public ShardChannel {
 public:
  explicit ForwardingShardChannel(std::unique_ptr<ShardChannel> inner)
      : inner_(std::move(inner)) {}

  const std::string& address() const override { return inner_->address(); }
  absl::StatusOr<ServerInfo> GetServer(const CallContext& context) override {
    return inner_->GetServer(context);
  }
  absl::StatusOr<ShardTable> CreateTable(std::string_view table,
                                         const TableSpec& spec,
                                         const CallContext& context) override {
    return inner_->CreateTable(table, spec, context);
  }
  absl::StatusOr<ShardTable> GetTable(std::string_view table,
                                      const CallContext& context) override {
    return inner_->GetTable(table, context);
  }
  absl::StatusOr<ShardTablePage> ListTables(
      const std::string& page_token, const CallContext& context) override {
    return inner_->ListTables(page_token, context);
  }
  absl::Status UpdateTable(std::string_view table, int32_t trainer_count,
                           int64_t from_event,
                           const CallContext& context) override {
    return inner_->UpdateTable(table, trainer_count, from_event, context);
  }
  absl::Status ResetTable(std::string_view table,
                          const CallContext& context) override {
    return inner_->ResetTable(table, context);
  }
  absl::Status DeleteTable(std::string_view table,
                           const CallContext& context) override {
    return inner_->DeleteTable(table, context);
  }
  absl::StatusOr<ShardDigest> DigestTable(std::string_view table,
                                          std::optional<int64_t> exact_event,
                                          const CallContext& context) override {
    return inner_->DigestTable(table, exact_event, context);
  }
  absl::Status ImportRows(std::string_view table, int64_t first_row_id,
                          DType dtype, int64_t row_bytes,
                          std::span<const std::byte> rows,
                          const CallContext& context) override {
    return inner_->ImportRows(table, first_row_id, dtype, row_bytes, rows,
                              context);
  }
  absl::StatusOr<absl::Duration> OpenSession(
      std::string_view table, TrainerSession trainer, int64_t owner,
      const CallContext& context) override {
    return inner_->OpenSession(table, trainer, owner, context);
  }
  absl::StatusOr<absl::Duration> KeepAlive(
      std::string_view table, TrainerSession trainer,
      const CallContext& context) override {
    return inner_->KeepAlive(table, trainer, context);
  }
  absl::Status Seal(std::string_view table, TrainerSession trainer,
                    int64_t event, int32_t part_count,
                    const CallContext& context) override {
    return inner_->Seal(table, trainer, event, part_count, context);
  }
  absl::Status Discard(std::string_view table, TrainerSession trainer,
                       int64_t event, const CallContext& context) override {
    return inner_->Discard(table, trainer, event, context);
  }
  absl::StatusOr<EventState> GetEventState(
      std::string_view table, const EventWait& wait,
      const CallContext& context) override {
    return inner_->GetEventState(table, wait, context);
  }
  absl::StatusOr<ShardStatistics> GetEventStatistics(
      std::string_view table, int64_t event,
      const CallContext& context) override {
    return inner_->GetEventStatistics(table, event, context);
  }
  absl::Status Commit(std::string_view table, TrainerSession trainer,
                      int64_t event, const EventCommit& commit,
                      const CallContext& context) override {
    return inner_->Commit(table, trainer, event, commit, context);
  }
  absl::StatusOr<PullAnswer> Pull(const PullCall& call, RowSink sink,
                                  const CallContext& context) override {
    return inner_->Pull(call, sink, context);
  }
  absl::StatusOr<PushAnswer> Push(const PushCall& call,
                                  const CallContext& context) override {
    return inner_->Push(call, context);
  }
  absl::StatusOr<std::unique_ptr<RecordStream>> OpenRecording(
      const RecordCall& call, const CallContext& context) override {
    return inner_->OpenRecording(call, context);
  }
  absl::StatusOr<std::unique_ptr<HeadStream>> OpenHead(
      const HeadHeader& header, const CallContext& context) override {
    return inner_->OpenHead(header, context);
  }
  CheckpointChannel& checkpoints() override { return inner_->checkpoints(); }

  /// The channel that calls are forwarded to.
  ShardChannel& inner() const { return *inner_; }

 private:
  const std::unique_ptr<ShardChannel> inner_;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_FORWARDING_SHARD_CHANNEL_H_
