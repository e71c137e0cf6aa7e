#include "server/service/convert.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/reasons.h"
#include "server/service/field_error.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;

constexpr std::string_view kTablePrefix = "tables/";
constexpr size_t kMaxTableIdBytes = 63;

bool IsLetter(char c) { return c >= 'a' && c <= 'z'; }
bool IsNameCharacter(char c) {
  return IsLetter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

bool IsTableId(std::string_view id) {
  if (id.empty() || id.size() > kMaxTableIdBytes || !IsLetter(id.front())) {
    return false;
  }
  for (const char c : id) {
    if (!IsNameCharacter(c)) return false;
  }
  return true;
}

kernels::RowAdamScalars ToScalars(const v1::RowAdamScalars& scalars) {
  return {.step_size = scalars.step_size(),
          .decay = scalars.decay(),
          .beta2 = scalars.beta2(),
          .eps = scalars.eps(),
          .gradient_scale = scalars.gradient_scale()};
}

kernels::AdamWScalars ToScalars(const v1::AdamWScalars& scalars) {
  return {.learning_rate = scalars.learning_rate(),
          .weight_decay = scalars.weight_decay(),
          .beta1 = scalars.beta1(),
          .beta2 = scalars.beta2(),
          .eps = scalars.eps(),
          .bias_correction1 = scalars.bias_correction1(),
          .bias_correction2 = scalars.bias_correction2(),
          .gradient_scale = scalars.gradient_scale()};
}

void FillScalars(const kernels::RowAdamScalars& scalars,
                 v1::RowAdamScalars& proto) {
  proto.set_step_size(scalars.step_size);
  proto.set_decay(scalars.decay);
  proto.set_beta2(scalars.beta2);
  proto.set_eps(scalars.eps);
  proto.set_gradient_scale(scalars.gradient_scale);
}

void FillScalars(const kernels::AdamWScalars& scalars,
                 v1::AdamWScalars& proto) {
  proto.set_learning_rate(scalars.learning_rate);
  proto.set_weight_decay(scalars.weight_decay);
  proto.set_beta1(scalars.beta1);
  proto.set_beta2(scalars.beta2);
  proto.set_eps(scalars.eps);
  proto.set_bias_correction1(scalars.bias_correction1);
  proto.set_bias_correction2(scalars.bias_correction2);
  proto.set_gradient_scale(scalars.gradient_scale);
}

v1::TrainerSession ToProto(const TrainerSession& trainer) {
  v1::TrainerSession proto;
  proto.set_trainer_rank(trainer.trainer_rank);
  proto.set_session(trainer.session);
  return proto;
}

void FillOpenEvent(const OpenEventState& state, v1::OpenEventState& proto) {
  proto.set_event(state.event);
  proto.set_trainer_count(state.trainer_count);
  proto.set_all_sealed(state.all_sealed);
  for (const ContributionState& contribution : state.contributions) {
    v1::ContributionState& out = *proto.add_contributions();
    out.set_trainer_rank(contribution.trainer_rank);
    out.set_session(contribution.session);
    out.set_part_count(contribution.part_count);
    out.set_row_count(contribution.row_count);
    out.set_sealed(contribution.sealed);
    out.set_token_count(contribution.token_count);
    out.set_folded_part_count(contribution.folded_part_count);
  }
}

void FillAppliedEvent(const AppliedEventState& state,
                      v1::AppliedEventState& proto) {
  proto.set_event(state.event);
  *proto.mutable_commit() = ToProto(state.commit);
  proto.set_entry_count(state.report.entry_count);
  proto.set_row_count(state.report.row_visits);
  proto.set_untouched_row_count(state.report.untouched_row_count);
  proto.set_moved_bytes(state.report.bytes_moved);
}

void FillLoad(const ShardLoad& load, v1::ShardLoad& proto) {
  proto.set_lane_call_count(load.lane_call_count);
  proto.set_max_lane_call_count(load.max_lane_call_count);
  proto.set_parked_call_count(load.parked_call_count);
  proto.set_max_parked_call_count(load.max_parked_call_count);
  proto.set_open_pull_count(load.open_pull_count);
  proto.set_landing_part_count(load.landing_part_count);
  proto.set_open_head_call_count(load.open_head_call_count);
  proto.set_staged_bytes(load.staged_bytes);
  proto.set_recording_count(load.recording_count);
  proto.set_recording_held_bytes(load.recording_held_bytes);
  proto.set_recording_buffer_bytes(load.recording_buffer_bytes);
}

}  // namespace

absl::Status CheckTableName(std::string_view name) {
  if (name.starts_with(kTablePrefix) &&
      IsTableId(name.substr(kTablePrefix.size()))) {
    return absl::OkStatus();
  }
  return FieldError(reasons::kBadName, "the table's name",
                    std::string_view(Quoted(name)),
                    "'tables/' and 1 to 63 characters from [a-z0-9_-], the "
                    "first one a letter");
}

absl::StatusOr<TrainerSession> ToTrainer(const v1::TrainerSession* trainer) {
  if (trainer == nullptr) return MissingError("trainer");
  if (trainer->trainer_rank() < 0) {
    return FieldError(reasons::kBadRank, "trainer.trainer_rank",
                      int64_t{trainer->trainer_rank()}, "at least 0");
  }
  if (trainer->session() < 1) {
    return FieldError(reasons::kBadSession, "trainer.session",
                      trainer->session(), "at least 1");
  }
  return TrainerSession{trainer->trainer_rank(), trainer->session()};
}

absl::Status CheckDtype(std::string_view field, v1::DataType found,
                        kernels::DType wanted) {
  if (found == ToProto(wanted)) return absl::OkStatus();
  const std::string name = v1::DataType_IsValid(found)
                               ? v1::DataType_Name(found)
                               : absl::StrCat(static_cast<int>(found));
  return FieldError(reasons::kBadDtype, field, std::string_view(name),
                    v1::DataType_Name(ToProto(wanted)));
}

absl::Status CheckEvent(std::string_view field, int64_t event, int64_t least) {
  if (event >= least) return absl::OkStatus();
  return FieldError(reasons::kBadEvent, field, event,
                    absl::StrCat("at least ", least));
}

absl::StatusOr<EventCommit> ToCommit(const v1::EventCommit& commit) {
  EventCommit result;
  for (const int64_t session : commit.sessions()) {
    if (session < 1) {
      return FieldError(
          reasons::kBadSession,
          absl::StrCat("commit.sessions[", result.sessions.size(), "]"),
          session, "at least 1");
    }
    result.sessions.push_back(session);
  }
  switch (commit.update_case()) {
    case v1::EventCommit::kRowAdam:
      result.scalars = ToScalars(commit.row_adam());
      return result;
    case v1::EventCommit::kSkip:
      result.skip = true;
      return result;
    case v1::EventCommit::kAdamw:
      result.adamw = ToScalars(commit.adamw());
      return result;
    case v1::EventCommit::UPDATE_NOT_SET:
      break;
  }
  return MissingError("commit.update");
}

std::span<const int64_t> SpanOf(
    const google::protobuf::RepeatedField<int64_t>& field) {
  return {field.data(), static_cast<size_t>(field.size())};
}

v1::DataType ToProto(kernels::DType dtype) {
  switch (dtype) {
    case kernels::DType::kBf16:
      return v1::DATA_TYPE_BF16;
    case kernels::DType::kFp32:
      return v1::DATA_TYPE_FP32;
    case kernels::DType::kFp16:
      return v1::DATA_TYPE_FP16;
  }
  return v1::DATA_TYPE_UNSPECIFIED;
}

v1::EventCommit ToProto(const EventCommit& commit) {
  v1::EventCommit proto;
  proto.mutable_sessions()->Add(commit.sessions.begin(), commit.sessions.end());
  if (commit.skip) {
    proto.mutable_skip();
    return proto;
  }
  if (commit.adamw.has_value()) {
    FillScalars(*commit.adamw, *proto.mutable_adamw());
  } else {
    FillScalars(commit.scalars, *proto.mutable_row_adam());
  }
  return proto;
}

google::protobuf::Duration ToProto(absl::Duration duration) {
  google::protobuf::Duration proto;
  absl::Duration rest;
  proto.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &rest));
  proto.set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
  return proto;
}

void Fill(const EventState& state, v1::GetEventStateResponse& response) {
  response.set_event(state.event);
  for (const OpenEventState& event : state.open_events) {
    FillOpenEvent(event, *response.add_open_events());
  }
  for (const AppliedEventState& event : state.applied_events) {
    FillAppliedEvent(event, *response.add_applied_events());
  }
  for (const SessionState& session : state.sessions) {
    v1::SessionState& out = *response.add_sessions();
    *out.mutable_trainer() = ToProto(session.trainer);
    *out.mutable_idle_time() = ToProto(session.idle);
    out.set_lease_expired(session.lease_expired);
  }
  FillLoad(state.load, *response.mutable_load());
}

void Fill(const kernels::GradientStatistics& statistics,
          v1::GetEventStatisticsResponse& response) {
  const std::span<const int64_t> sums(statistics.significand_sums);
  response.mutable_significand_sums()->Add(sums.begin(), sums.end());
  response.set_row_count(statistics.row_count);
  response.set_non_finite_row_count(statistics.non_finite_row_count);
}

}  // namespace rowhouse::server
