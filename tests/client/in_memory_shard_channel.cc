#include "tests/client/in_memory_shard_channel.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "client/internal/part_rows.h"
#include "kernels/backend.h"
#include "proto/wire/status_macros.h"
#include "tests/client/in_memory_convert.h"
#include "tests/client/in_memory_head_stream.h"
#include "tests/client/in_memory_record_stream.h"
#include "tests/client/running_call.h"
#include "tests/server/shard/pending.h"

namespace rowhouse::testing {
namespace {

using client::EventCommit;
using client::internal::CallContext;
using client::internal::PullAnswer;
using client::internal::PullCall;
using client::internal::PushAnswer;
using client::internal::PushCall;
using client::internal::ShardTable;
using client::internal::TrainerSession;

constexpr int64_t kRowsPerMessage = 3;  // Of pulls: few, so there are many.

class InMemoryShardChannel final : public client::internal::ShardChannel {
 public:
  InMemoryShardChannel(InMemoryCluster& cluster, int32_t server, FaultHook hook)
      : cluster_(cluster),
        server_(server),
        hook_(std::move(hook)),
        address_("memory:" + std::to_string(server)) {}

  const std::string& address() const override { return address_; }

  absl::StatusOr<client::ServerInfo> GetServer(const CallContext&) override {
    return Make<client::ServerInfo>("GetServer", [&] {
      client::ServerInfo info;
      info.address = address_;
      info.cluster_id = "memory";
      info.server_index = server_;
      info.server_count = cluster_.server_count();
      return absl::StatusOr<client::ServerInfo>(info);
    });
  }

  absl::StatusOr<ShardTable> CreateTable(std::string_view table,
                                         const client::TableSpec& spec,
                                         const CallContext& context) override {
    return Make<ShardTable>("CreateTable", [&]() -> absl::StatusOr<ShardTable> {
      ROWHOUSE_RETURN_IF_ERROR(cluster_.Create(server_, table, spec).status());
      return Describe(table, context);
    });
  }

  absl::StatusOr<ShardTable> GetTable(std::string_view table,
                                      const CallContext& context) override {
    return Make<ShardTable>("GetTable",
                            [&] { return Describe(table, context); });
  }

  absl::StatusOr<client::internal::ShardTablePage> ListTables(
      const std::string&, const CallContext& context) override {
    client::internal::ShardTablePage page;
    for (const std::string& name : cluster_.TableNames(server_)) {
      ROWHOUSE_ASSIGN_OR_RETURN(ShardTable table, Describe(name, context));
      page.tables.push_back(std::move(table));
    }
    return page;
  }

  absl::Status UpdateTable(std::string_view table, int32_t trainer_count,
                           int64_t from_event,
                           const CallContext& context) override {
    return Ask<server::ShardInfo>(
               "UpdateTable", table, context,
               [&](server::Shard& shard, auto call, auto done) {
                 shard.SetTrainerCount(trainer_count, from_event, call,
                                       std::move(done));
               })
        .status();
  }

  absl::Status ResetTable(std::string_view table,
                          const CallContext& context) override {
    return Ask<server::ShardInfo>(
               "ResetTable", table, context,
               [&](server::Shard& shard, auto call, auto done) {
                 shard.Reset(call, std::move(done));
               })
        .status();
  }

  absl::Status DeleteTable(std::string_view table,
                           const CallContext&) override {
    return cluster_.Delete(server_, table);
  }

  absl::StatusOr<client::internal::ShardDigest> DigestTable(
      std::string_view table, std::optional<int64_t> exact_event,
      const CallContext& context) override {
    ROWHOUSE_ASSIGN_OR_RETURN(
        const server::ShardDigest digest,
        Ask<server::ShardDigest>(
            "DigestTable", table, context,
            [&](server::Shard& shard, auto call, auto done) {
              shard.Digest(exact_event, call, std::move(done));
            }));
    return client::internal::ShardDigest{digest.event, digest.row_sum,
                                         digest.history_sum};
  }

  absl::Status ImportRows(std::string_view table, int64_t first_row_id,
                          client::DType, int64_t row_bytes,
                          std::span<const std::byte> rows,
                          const CallContext& context) override {
    return Ask<int64_t>(
               "ImportRows", table, context,
               [&](server::Shard& shard, auto call, auto done) {
                 shard.Import(
                     first_row_id, std::ssize(rows) / row_bytes,
                     {reinterpret_cast<const char*>(rows.data()), rows.size()},
                     call, std::move(done));
               })
        .status();
  }

  absl::StatusOr<absl::Duration> OpenSession(
      std::string_view table, TrainerSession trainer, int64_t owner,
      const CallContext& context) override {
    ROWHOUSE_RETURN_IF_ERROR(
        Ask<int64_t>("OpenSession", table, context,
                     [&](server::Shard& shard, auto call, auto done) {
                       shard.OpenSession(ToServer(trainer), owner, call,
                                         std::move(done));
                     })
            .status());
    return cluster_.limits().lease;
  }

  absl::StatusOr<absl::Duration> KeepAlive(
      std::string_view table, TrainerSession trainer,
      const CallContext& context) override {
    ROWHOUSE_RETURN_IF_ERROR(
        Ask<int64_t>("KeepAlive", table, context,
                     [&](server::Shard& shard, auto call, auto done) {
                       shard.KeepAlive(ToServer(trainer), call,
                                       std::move(done));
                     })
            .status());
    return cluster_.limits().lease;
  }

  absl::Status Seal(std::string_view table, TrainerSession trainer,
                    int64_t event, int32_t part_count,
                    const CallContext& context) override {
    return Ask<int64_t>("Seal", table, context,
                        [&](server::Shard& shard, auto call, auto done) {
                          shard.Seal(ToServer(trainer), event, part_count, call,
                                     std::move(done));
                        })
        .status();
  }

  absl::Status Discard(std::string_view table, TrainerSession trainer,
                       int64_t event, const CallContext& context) override {
    return Ask<int32_t>("Discard", table, context,
                        [&](server::Shard& shard, auto call, auto done) {
                          shard.Discard(ToServer(trainer), event, call,
                                        std::move(done));
                        })
        .status();
  }

  absl::StatusOr<client::EventState> GetEventState(
      std::string_view table, const client::internal::EventWait& wait,
      const CallContext& context) override {
    ROWHOUSE_ASSIGN_OR_RETURN(
        const server::EventState state,
        Ask<server::EventState>(
            "GetEventState", table, context,
            [&](server::Shard& shard, auto call, auto done) {
              shard.GetEventState(ToServer(wait), call, std::move(done));
            }));
    return FromServer(state);
  }

  absl::StatusOr<client::internal::ShardStatistics> GetEventStatistics(
      std::string_view table, int64_t event,
      const CallContext& context) override {
    ROWHOUSE_ASSIGN_OR_RETURN(
        const kernels::GradientStatistics statistics,
        Ask<kernels::GradientStatistics>(
            "GetEventStatistics", table, context,
            [&](server::Shard& shard, auto call, auto done) {
              shard.GetEventStatistics(event, call, std::move(done));
            }));
    return client::internal::ShardStatistics{
        {std::begin(statistics.significand_sums),
         std::end(statistics.significand_sums)},
        statistics.row_count,
        statistics.non_finite_row_count};
  }

  absl::Status Commit(std::string_view table, TrainerSession trainer,
                      int64_t event, const EventCommit& commit,
                      const CallContext& context) override {
    return Ask<bool>("Commit", table, context,
                     [&](server::Shard& shard, auto call, auto done) {
                       shard.Commit(ToServer(trainer), event, ToServer(commit),
                                    call, std::move(done));
                     })
        .status();
  }

  absl::StatusOr<PullAnswer> Pull(const PullCall& call,
                                  client::internal::RowSink sink,
                                  const CallContext& context) override {
    std::vector<std::string> messages;
    absl::StatusOr<PullAnswer> answer = Make<PullAnswer>(
        "Pull", [&] { return MakePull(call, messages, context); });
    // Rows land even if the end of the answer is lost.
    int64_t row = 0;
    for (const std::string& rows : messages) {
      ROWHOUSE_RETURN_IF_ERROR(sink(row, rows));
      row += kRowsPerMessage;
    }
    return answer;
  }

  absl::StatusOr<PushAnswer> Push(const PushCall& call,
                                  const CallContext& context) override {
    return Make<PushAnswer>("Push", [&] { return MakePush(call, context); });
  }

  absl::StatusOr<std::unique_ptr<client::internal::RecordStream>> OpenRecording(
      const client::internal::RecordCall& call,
      const CallContext& context) override {
    using Opened =
        absl::StatusOr<std::unique_ptr<client::internal::RecordStream>>;
    return Make<std::unique_ptr<client::internal::RecordStream>>(
        "OpenRecording", [&]() -> Opened {
          ROWHOUSE_ASSIGN_OR_RETURN(InMemoryCluster::Table* const found,
                                    cluster_.Find(server_, call.table));
          return OpenInMemoryRecordStream(*found->shard, call, context);
        });
  }

  absl::StatusOr<std::unique_ptr<client::internal::HeadStream>> OpenHead(
      const client::internal::HeadHeader& header,
      const CallContext& context) override {
    ROWHOUSE_ASSIGN_OR_RETURN(InMemoryCluster::Table* const found,
                              cluster_.Find(server_, header.table));
    return OpenInMemoryHeadStream(
        *found->shard, header,
        [this](std::string_view phase) { return FaultOf(phase); }, context);
  }

  // This cluster has no files.
  client::internal::CheckpointChannel& checkpoints() override { std::abort(); }

 private:
  Fault FaultOf(std::string_view method) const {
    const Fault fault =
        hook_ == nullptr ? Fault::kNone : hook_(server_, method);
    return cluster_.IsDown(server_) ? Fault::kLoseRequest : fault;
  }

  // Makes a call as the hook says.
  template <typename T>
  absl::StatusOr<T> Make(std::string_view method,
                         absl::FunctionRef<absl::StatusOr<T>()> call) {
    const Fault fault = FaultOf(method);
    if (fault == Fault::kLoseRequest) {
      return absl::UnavailableError("the request was lost");
    }
    absl::StatusOr<T> answer = call();
    if (fault == Fault::kRepeat) answer = call();
    if (fault == Fault::kLoseAnswer) {
      return absl::UnavailableError("the answer was lost");
    }
    return answer;
  }

  // A call of the shard that answers once.
  template <typename T, typename Start>
  absl::StatusOr<T> Ask(std::string_view method, std::string_view table,
                        const CallContext& context, Start start) {
    return Make<T>(method, [&]() -> absl::StatusOr<T> {
      ROWHOUSE_ASSIGN_OR_RETURN(InMemoryCluster::Table* const found,
                                cluster_.Find(server_, table));
      const RunningCall call(context, *found->shard);
      Pending<absl::StatusOr<T>> pending;
      start(*found->shard, call.get(), pending.Callback());
      return pending.Wait();
    });
  }

  absl::StatusOr<ShardTable> Describe(std::string_view table,
                                      const CallContext& context);
  absl::StatusOr<PullAnswer> MakePull(const PullCall& pull,
                                      std::vector<std::string>& messages,
                                      const CallContext& context);
  absl::StatusOr<PushAnswer> MakePush(const PushCall& push,
                                      const CallContext& context);

  InMemoryCluster& cluster_;
  const int32_t server_;
  const FaultHook hook_;
  const std::string address_;
};

absl::StatusOr<ShardTable> InMemoryShardChannel::Describe(
    std::string_view table, const CallContext& context) {
  ROWHOUSE_ASSIGN_OR_RETURN(InMemoryCluster::Table* const found,
                            cluster_.Find(server_, table));
  const RunningCall call(context, *found->shard);
  Pending<absl::StatusOr<server::ShardInfo>> pending;
  found->shard->GetInfo(call.get(), pending.Callback());
  ROWHOUSE_ASSIGN_OR_RETURN(const server::ShardInfo info, pending.Wait());
  ShardTable result;
  result.name = table;
  result.spec = found->spec;
  result.bounds = found->shard->spec().placement.bounds();
  result.shard_index = server_;
  result.event = info.event;
  for (const server::TrainerCountChange& change : info.trainer_counts) {
    result.trainer_counts.push_back({change.from_event, change.trainer_count});
  }
  return result;
}

absl::StatusOr<PullAnswer> InMemoryShardChannel::MakePull(
    const PullCall& pull, std::vector<std::string>& messages,
    const CallContext& context) {
  messages.clear();
  ROWHOUSE_ASSIGN_OR_RETURN(InMemoryCluster::Table* const found,
                            cluster_.Find(server_, pull.table));
  server::Shard& shard = *found->shard;
  server::PullRequest request;
  ROWHOUSE_ASSIGN_OR_RETURN(request.slots, shard.ResolveRowIds(pull.row_ids));
  request.handle = pull.handle;
  if (pull.trainer.has_value()) request.trainer = ToServer(*pull.trainer);
  request.min_event = pull.min_event;
  request.exact_event = pull.exact_event;
  request.return_handle = pull.return_handle;
  request.training = pull.training;
  const RunningCall call(context, shard);
  Pending<absl::StatusOr<std::unique_ptr<server::Pull>>> pending;
  shard.OpenPull(std::move(request), call.get(), pending.Callback());
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<server::Pull> open,
                            pending.Wait());
  const int64_t row_bytes =
      shard.spec().dim * kernels::SizeOf(shard.spec().row_dtype);
  for (int64_t row = 0; row < open->row_count();) {
    const int64_t count = std::min(kRowsPerMessage, open->row_count() - row);
    std::string rows(count * row_bytes, '\0');
    Pending<absl::Status> read;
    open->Read(count, rows.data(), read.Callback());
    ROWHOUSE_RETURN_IF_ERROR(read.Wait());
    messages.push_back(std::move(rows));
    row += count;
  }
  return PullAnswer{open->event(), open->handle(), open->row_count()};
}

absl::StatusOr<PushAnswer> InMemoryShardChannel::MakePush(
    const PushCall& push, const CallContext& context) {
  ROWHOUSE_ASSIGN_OR_RETURN(InMemoryCluster::Table* const found,
                            cluster_.Find(server_, push.table));
  server::Shard& shard = *found->shard;
  const RunningCall call(context, shard);
  Pending<absl::StatusOr<std::unique_ptr<server::PartLanding>>> begun;
  shard.BeginPart({ToServer(push.trainer), push.event, push.part,
                   push.selection->size(), push.handles},
                  call.get(), begun.Callback());
  ROWHOUSE_ASSIGN_OR_RETURN(std::unique_ptr<server::PartLanding> landing,
                            begun.Wait());
  for (int64_t row = 0; row < push.selection->size();) {
    const int64_t count =
        std::min(push.message_row_count, push.selection->size() - row);
    std::string rows(count * push.row_bytes, '\0');
    ROWHOUSE_RETURN_IF_ERROR(client::internal::GatherPart(
        push, row, count, reinterpret_cast<std::byte*>(rows.data())));
    if (push.device != nullptr) {
      ROWHOUSE_RETURN_IF_ERROR(push.device->Synchronize());
    }
    std::span<const int64_t> row_ids;
    if (push.handles.empty()) {
      row_ids = std::span(push.selection->row_ids).subspan(row, count);
    }
    ROWHOUSE_RETURN_IF_ERROR(landing->Append(row, row_ids, rows));
    row += count;
  }
  Pending<absl::StatusOr<server::PartReceipt>> finished;
  shard.FinishPart(std::move(landing), push.seal_part_count, std::nullopt,
                   call.get(), finished.Callback());
  ROWHOUSE_ASSIGN_OR_RETURN(const server::PartReceipt receipt, finished.Wait());
  return PushAnswer{receipt.event, receipt.row_count, receipt.duplicate};
}

}  // namespace

std::unique_ptr<client::internal::ShardChannel> MakeInMemoryShardChannel(
    InMemoryCluster& cluster, int32_t server, FaultHook hook) {
  return std::make_unique<InMemoryShardChannel>(cluster, server,
                                                std::move(hook));
}

}  // namespace rowhouse::testing
