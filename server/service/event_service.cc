#include "server/service/event_service.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"
#include "server/service/record_call.h"
#include "server/service/unary_call.h"
#include "server/shard/shard.h"
#include "spdlog/spdlog.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;

// Gives the call the shard of `request.table()`.
template <typename Request>
absl::StatusOr<Shard*> AttachShard(const TableRegistry& tables,
                                   const Request& request, UnaryCall& call) {
  ROWHOUSE_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard,
                            tables.FindShard(request.table()));
  Shard* const result = shard.get();
  call.active().Attach(std::move(shard));
  return result;
}

absl::Status CheckPartCount(int32_t part_count, const ShardSpec& spec) {
  if (part_count >= 0 && part_count <= spec.max_part_count) {
    return absl::OkStatus();
  }
  return FieldError(
      reasons::kBadPart, "part_count", int64_t{part_count},
      absl::StrCat("in [0, ", spec.max_part_count, "], the table's limit"));
}

absl::StatusOr<EventCommit> CommitOf(const v1::CommitEventRequest& request) {
  if (!request.has_commit()) return MissingError("commit");
  return ToCommit(request.commit());
}

absl::StatusOr<EventWait> WaitOf(const v1::GetEventStateRequest& request) {
  EventWait wait;
  if (request.has_wait_sealed_event()) {
    wait.sealed_event = request.wait_sealed_event();
    ROWHOUSE_RETURN_IF_ERROR(
        CheckEvent("wait_sealed_event", *wait.sealed_event, 1));
  }
  if (request.has_wait_applied_event()) {
    wait.applied_event = request.wait_applied_event();
    ROWHOUSE_RETURN_IF_ERROR(
        CheckEvent("wait_applied_event", *wait.applied_event, 0));
  }
  if (!request.has_wait_folded()) return wait;
  const v1::FoldedParts& folded = request.wait_folded();
  wait.folded_event = folded.event();
  wait.folded_rank = folded.trainer_rank();
  wait.folded_part_count = folded.part_count();
  ROWHOUSE_RETURN_IF_ERROR(CheckEvent("wait_folded.event", folded.event(), 1));
  if (folded.trainer_rank() < 0) {
    return FieldError(reasons::kBadRank, "wait_folded.trainer_rank",
                      int64_t{folded.trainer_rank()}, "at least 0");
  }
  if (folded.part_count() < 0) {
    return FieldError(reasons::kBadPart, "wait_folded.part_count",
                      int64_t{folded.part_count()}, "at least 0");
  }
  return wait;
}

}  // namespace

grpc::ServerUnaryReactor* EventService::OpenSession(
    grpc::CallbackServerContext* context, const v1::OpenSessionRequest* request,
    v1::OpenSessionResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_ASSIGN_OR_RETURN(Shard* const shard,
                              AttachShard(tables_, *request, call));
    ROWHOUSE_ASSIGN_OR_RETURN(const TrainerSession trainer,
                              TrainerOf(*request));
    if (request->owner() == 0) {
      return FieldError(reasons::kBadSession, "owner", int64_t{0},
                        "a random number, not 0");
    }
    const absl::Duration lease = tables_.options().limits.lease;
    shard->OpenSession(
        trainer, request->owner(), call.call(),
        call.Ending<int64_t>([shard, trainer, response, lease](int64_t event) {
          spdlog::info("{}: session {} of rank {} opened at event {}",
                       shard->spec().table, trainer.session,
                       trainer.trainer_rank, event);
          *response->mutable_lease_duration() = ToProto(lease);
          response->set_event(event);
        }));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* EventService::KeepAlive(
    grpc::CallbackServerContext* context, const v1::KeepAliveRequest* request,
    v1::KeepAliveResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_ASSIGN_OR_RETURN(Shard* const shard,
                              AttachShard(tables_, *request, call));
    ROWHOUSE_ASSIGN_OR_RETURN(const TrainerSession trainer,
                              TrainerOf(*request));
    const absl::Duration lease = tables_.options().limits.lease;
    shard->KeepAlive(trainer, call.call(),
                     call.Ending<int64_t>([response, lease](int64_t) {
                       *response->mutable_lease_duration() = ToProto(lease);
                     }));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* EventService::SealContribution(
    grpc::CallbackServerContext* context,
    const v1::SealContributionRequest* request,
    v1::SealContributionResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_ASSIGN_OR_RETURN(Shard* const shard,
                              AttachShard(tables_, *request, call));
    ROWHOUSE_ASSIGN_OR_RETURN(const TrainerSession trainer,
                              TrainerOf(*request));
    ROWHOUSE_RETURN_IF_ERROR(CheckEvent("event", request->event(), 1));
    ROWHOUSE_RETURN_IF_ERROR(
        CheckPartCount(request->part_count(), shard->spec()));
    shard->Seal(trainer, request->event(), request->part_count(), call.call(),
                call.Ending<int64_t>(
                    [response](int64_t event) { response->set_event(event); }));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* EventService::DiscardContribution(
    grpc::CallbackServerContext* context,
    const v1::DiscardContributionRequest* request,
    v1::DiscardContributionResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_ASSIGN_OR_RETURN(Shard* const shard,
                              AttachShard(tables_, *request, call));
    ROWHOUSE_ASSIGN_OR_RETURN(const TrainerSession trainer,
                              TrainerOf(*request));
    ROWHOUSE_RETURN_IF_ERROR(CheckEvent("event", request->event(), 1));
    shard->Discard(trainer, request->event(), call.call(),
                   call.Ending<int32_t>([response](int32_t part_count) {
                     response->set_part_count(part_count);
                   }));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* EventService::GetEventState(
    grpc::CallbackServerContext* context,
    const v1::GetEventStateRequest* request,
    v1::GetEventStateResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_ASSIGN_OR_RETURN(Shard* const shard,
                              AttachShard(tables_, *request, call));
    ROWHOUSE_ASSIGN_OR_RETURN(const EventWait wait, WaitOf(*request));
    if (wait != EventWait()) call.active().BeginWait();
    shard->GetEventState(
        wait, call.call(),
        call.Ending<EventState>(
            [response](const EventState& state) { Fill(state, *response); }));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* EventService::GetEventStatistics(
    grpc::CallbackServerContext* context,
    const v1::GetEventStatisticsRequest* request,
    v1::GetEventStatisticsResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_ASSIGN_OR_RETURN(Shard* const shard,
                              AttachShard(tables_, *request, call));
    const int64_t event = request->event();
    ROWHOUSE_RETURN_IF_ERROR(CheckEvent("event", event, 1));
    shard->GetEventStatistics(
        event, call.call(),
        call.Ending<kernels::GradientStatistics>(
            [response, event](const kernels::GradientStatistics& statistics) {
              response->set_event(event);
              Fill(statistics, *response);
            }));
    return absl::OkStatus();
  });
}

grpc::ServerUnaryReactor* EventService::CommitEvent(
    grpc::CallbackServerContext* context, const v1::CommitEventRequest* request,
    v1::CommitEventResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_ASSIGN_OR_RETURN(Shard* const shard,
                              AttachShard(tables_, *request, call));
    ROWHOUSE_ASSIGN_OR_RETURN(const TrainerSession trainer,
                              TrainerOf(*request));
    const int64_t event = request->event();
    ROWHOUSE_RETURN_IF_ERROR(CheckEvent("event", event, 1));
    ROWHOUSE_ASSIGN_OR_RETURN(EventCommit commit, CommitOf(*request));
    shard->Commit(trainer, event, std::move(commit), call.call(),
                  call.Ending<bool>([response, event](bool duplicate) {
                    response->set_event(event);
                    response->set_duplicate(duplicate);
                  }));
    return absl::OkStatus();
  });
}

grpc::ServerWriteReactor<v1::RecordEventsResponse>* EventService::RecordEvents(
    grpc::CallbackServerContext* context,
    const v1::RecordEventsRequest* request) {
  auto* const call = new RecordCall(calls_, *context);
  call->Start(tables_, *request);
  return call;
}

}  // namespace rowhouse::server
