#include "client/internal/grpc_convert.h"

#include <variant>

namespace rowhouse::client::internal {
namespace {

OpenEventState FromProto(const v1::OpenEventState& proto) {
  OpenEventState open{
      proto.event(), proto.trainer_count(), proto.all_sealed(), {}};
  for (const v1::ContributionState& contribution : proto.contributions()) {
    open.contributions.push_back(
        {contribution.trainer_rank(), contribution.session(),
         contribution.sealed(), contribution.part_count(),
         contribution.row_count(), contribution.token_count(),
         contribution.folded_part_count()});
  }
  return open;
}

ShardLoad FromProto(const v1::ShardLoad& proto) {
  return {.lane_call_count = proto.lane_call_count(),
          .max_lane_call_count = proto.max_lane_call_count(),
          .parked_call_count = proto.parked_call_count(),
          .max_parked_call_count = proto.max_parked_call_count(),
          .open_pull_count = proto.open_pull_count(),
          .landing_part_count = proto.landing_part_count(),
          .open_head_call_count = proto.open_head_call_count(),
          .staged_bytes = proto.staged_bytes(),
          .recording_count = proto.recording_count(),
          .recording_held_bytes = proto.recording_held_bytes(),
          .recording_buffer_bytes = proto.recording_buffer_bytes()};
}

void Fill(const RowAdamScalars& scalars, v1::RowAdamScalars& proto) {
  proto.set_step_size(scalars.step_size);
  proto.set_decay(scalars.decay);
  proto.set_beta2(scalars.beta2);
  proto.set_eps(scalars.eps);
  proto.set_gradient_scale(scalars.gradient_scale);
}

void Fill(const AdamWScalars& scalars, v1::AdamWScalars& proto) {
  proto.set_learning_rate(scalars.learning_rate);
  proto.set_weight_decay(scalars.weight_decay);
  proto.set_beta1(scalars.beta1);
  proto.set_beta2(scalars.beta2);
  proto.set_eps(scalars.eps);
  proto.set_bias_correction1(scalars.bias_correction1);
  proto.set_bias_correction2(scalars.bias_correction2);
  proto.set_gradient_scale(scalars.gradient_scale);
}

}  // namespace

v1::TrainerSession ToProto(const TrainerSession& trainer) {
  v1::TrainerSession proto;
  proto.set_trainer_rank(trainer.rank);
  proto.set_session(trainer.session);
  return proto;
}

v1::PullRowsRequest ToProto(const PullCall& pull) {
  v1::PullRowsRequest request;
  request.set_table(ResourceName(pull.table));
  if (pull.handle.has_value()) {
    request.set_handle(*pull.handle);
  } else {
    request.mutable_row_ids()->Add(pull.row_ids.begin(), pull.row_ids.end());
  }
  if (pull.trainer.has_value()) {
    *request.mutable_trainer() = ToProto(*pull.trainer);
  }
  if (pull.min_event.has_value()) request.set_min_event(*pull.min_event);
  if (pull.exact_event.has_value()) request.set_exact_event(*pull.exact_event);
  request.set_return_handle(pull.return_handle);
  request.set_training(pull.training);
  return request;
}

v1::PushGradientsHeader ToProto(const PushCall& push) {
  v1::PushGradientsHeader header;
  header.set_table(ResourceName(push.table));
  *header.mutable_trainer() = ToProto(push.trainer);
  header.set_event(push.event);
  header.set_part(push.part);
  header.set_dtype(ToProto(push.dtype));
  header.set_row_count(push.selection->size());
  header.mutable_handles()->Add(push.handles.begin(), push.handles.end());
  if (push.seal_part_count.has_value()) {
    header.set_seal_part_count(*push.seal_part_count);
  }
  return header;
}

v1::EventCommit ToProto(const EventCommit& commit) {
  v1::EventCommit proto;
  proto.mutable_sessions()->Add(commit.sessions.begin(), commit.sessions.end());
  if (const auto* row_adam = std::get_if<RowAdamScalars>(&commit.update)) {
    Fill(*row_adam, *proto.mutable_row_adam());
  } else if (const auto* adamw = std::get_if<AdamWScalars>(&commit.update)) {
    Fill(*adamw, *proto.mutable_adamw());
  } else {
    proto.mutable_skip();
  }
  return proto;
}

EventCommit FromProto(const v1::EventCommit& proto) {
  EventCommit commit;
  commit.sessions = {proto.sessions().begin(), proto.sessions().end()};
  if (proto.has_row_adam()) {
    const v1::RowAdamScalars& scalars = proto.row_adam();
    commit.update =
        RowAdamScalars{scalars.step_size(), scalars.decay(), scalars.beta2(),
                       scalars.eps(), scalars.gradient_scale()};
  } else if (proto.has_adamw()) {
    const v1::AdamWScalars& scalars = proto.adamw();
    commit.update = AdamWScalars{scalars.learning_rate(),
                                 scalars.weight_decay(),
                                 scalars.beta1(),
                                 scalars.beta2(),
                                 scalars.eps(),
                                 scalars.bias_correction1(),
                                 scalars.bias_correction2(),
                                 scalars.gradient_scale()};
  }
  return commit;
}

v1::GetEventStateRequest ToProto(std::string_view table,
                                 const EventWait& wait) {
  v1::GetEventStateRequest proto;
  proto.set_table(ResourceName(table));
  if (wait.sealed_event.has_value()) {
    proto.set_wait_sealed_event(*wait.sealed_event);
  }
  if (wait.applied_event.has_value()) {
    proto.set_wait_applied_event(*wait.applied_event);
  }
  if (wait.folded.has_value()) {
    v1::FoldedParts& folded = *proto.mutable_wait_folded();
    folded.set_event(wait.folded->event);
    folded.set_trainer_rank(wait.folded->rank);
    folded.set_part_count(wait.folded->part_count);
  }
  return proto;
}

ServerInfo FromProto(const v1::GetServerResponse& server,
                     const std::string& address) {
  const v1::ServerLimits& limits = server.limits();
  return {.address = address,
          .cluster_id = server.cluster_id(),
          .server_index = server.server_index(),
          .server_count = server.server_count(),
          .incarnation = server.incarnation(),
          .draining = server.state() == v1::GetServerResponse::STATE_DRAINING,
          .max_pull_row_count = limits.max_pull_row_count(),
          .max_message_payload_bytes = limits.max_message_payload_bytes(),
          .max_wait = FromProto(limits.max_wait_duration()),
          .memory_limit_bytes = limits.memory_limit_bytes(),
          .reserved_bytes = server.reserved_bytes(),
          .backend = server.backend(),
          .version = server.version(),
          .device = {.description = server.device().description(),
                     .index = server.device().index(),
                     .memory_bytes = server.device().memory_bytes(),
                     .free_memory_bytes = server.device().free_memory_bytes()}};
}

EventState FromProto(const v1::GetEventStateResponse& state) {
  EventState result;
  result.event = state.event();
  for (const v1::OpenEventState& open : state.open_events()) {
    result.open_events.push_back(FromProto(open));
  }
  for (const v1::AppliedEventState& applied : state.applied_events()) {
    result.applied_events.push_back(
        {applied.event(), FromProto(applied.commit()), applied.entry_count(),
         applied.row_count(), applied.untouched_row_count(),
         applied.moved_bytes()});
  }
  for (const v1::SessionState& session : state.sessions()) {
    result.sessions.push_back(
        {session.trainer().trainer_rank(), session.trainer().session(),
         FromProto(session.idle_time()), session.lease_expired()});
  }
  result.load = FromProto(state.load());
  return result;
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) +
         absl::Nanoseconds(duration.nanos());
}

}  // namespace rowhouse::client::internal
