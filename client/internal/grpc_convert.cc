#include "client/internal/grpc_convert.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

constexpr std::string_view kTablePrefix = "tables/";

v1::NonFinitePolicy ToProto(NonFinitePolicy policy) {
  switch (policy) {
    case NonFinitePolicy::kReject:
      return v1::NON_FINITE_POLICY_REJECT;
    case NonFinitePolicy::kSkipRow:
      return v1::NON_FINITE_POLICY_SKIP_ROW;
    case NonFinitePolicy::kPropagate:
      return v1::NON_FINITE_POLICY_PROPAGATE;
  }
  return v1::NON_FINITE_POLICY_UNSPECIFIED;
}

NonFinitePolicy FromProto(v1::NonFinitePolicy policy) {
  switch (policy) {
    case v1::NON_FINITE_POLICY_SKIP_ROW:
      return NonFinitePolicy::kSkipRow;
    case v1::NON_FINITE_POLICY_PROPAGATE:
      return NonFinitePolicy::kPropagate;
    default:  // Protobuf's own values; REJECT is the stated default.
      return NonFinitePolicy::kReject;
  }
}

absl::StatusOr<DType> FromProto(v1::DataType type) {
  if (type == v1::DATA_TYPE_BF16) return DType::kBf16;
  if (type == v1::DATA_TYPE_FP32) return DType::kFp32;
  return absl::UnimplementedError(
      absl::StrCat("data type ", v1::DataType_Name(type),
                   ", wanted one that this library knows"));
}

void ToProto(const NgramMetadata& ngram, v1::NgramTable& proto) {
  proto.set_sign_seed(static_cast<int64_t>(ngram.sign_seed));
  proto.set_sign_row_count(ngram.sign_row_count);
  proto.set_sign_words(ngram.sign_words.data(),
                       ngram.sign_words.size() * sizeof(uint64_t));
}

NgramMetadata FromProto(const v1::NgramTable& proto) {
  NgramMetadata ngram{
      static_cast<uint64_t>(proto.sign_seed()), proto.sign_row_count(), {}};
  ngram.sign_words.resize(proto.sign_words().size() / sizeof(uint64_t));
  if (!ngram.sign_words.empty()) {
    std::memcpy(ngram.sign_words.data(), proto.sign_words().data(),
                ngram.sign_words.size() * sizeof(uint64_t));
  }
  return ngram;
}

Initializer FromProto(const v1::RowInitializer& proto) {
  if (!proto.has_uniform()) return {};
  return {Initializer::Kind::kUniform,
          static_cast<uint64_t>(proto.uniform().seed()),
          proto.uniform().bound()};
}

std::optional<GradientReduction> FromProto(v1::GradientReduction reduction) {
  if (reduction == v1::GRADIENT_REDUCTION_SUM) return GradientReduction::kSum;
  if (reduction == v1::GRADIENT_REDUCTION_MEAN) {
    return GradientReduction::kMean;
  }
  return std::nullopt;
}

absl::StatusOr<TableSpec> FromProto(const v1::TableSpec& proto) {
  if (!proto.has_sparse()) {
    return absl::UnimplementedError("a dense table, wanted a sparse one");
  }
  TableSpec spec;
  spec.row_count = proto.row_count();
  spec.dim = proto.dim();
  ROWHOUSE_ASSIGN_OR_RETURN(spec.row_dtype, FromProto(proto.row_dtype()));
  ROWHOUSE_ASSIGN_OR_RETURN(spec.gradient_dtype,
                            FromProto(proto.gradient_dtype()));
  spec.shard_count = proto.shard_count();
  spec.shard_bounds = {proto.shard_bounds().begin(),
                       proto.shard_bounds().end()};
  spec.initializer = FromProto(proto.initializer());
  spec.trainer_count = proto.trainer_count();
  spec.gradient_reduction = FromProto(proto.gradient_reduction());
  spec.non_finite_policy = FromProto(proto.sparse().non_finite_policy());
  spec.max_contribution_row_count = proto.max_contribution_row_count();
  spec.max_part_count = proto.max_part_count();
  spec.max_pull_bytes = proto.max_pull_bytes();
  if (proto.has_ngram()) spec.ngram = FromProto(proto.ngram());
  return spec;
}

EventCommit FromProto(const v1::EventCommit& proto) {
  EventCommit commit;
  commit.sessions = {proto.sessions().begin(), proto.sessions().end()};
  if (proto.has_row_adam()) {
    const v1::RowAdamScalars& scalars = proto.row_adam();
    commit.scalars = {scalars.step_size(), scalars.decay(), scalars.beta2(),
                      scalars.eps(), scalars.gradient_scale()};
  }
  return commit;
}

OpenEventState FromProto(const v1::OpenEventState& proto) {
  OpenEventState open{
      proto.event(), proto.trainer_count(), proto.all_sealed(), {}};
  for (const v1::ContributionState& contribution : proto.contributions()) {
    open.contributions.push_back({contribution.trainer_rank(),
                                  contribution.session(),
                                  contribution.sealed()});
  }
  return open;
}

}  // namespace

std::string ResourceName(std::string_view table) {
  std::string name(kTablePrefix);
  name += table;
  return name;
}

v1::DataType ToProto(DType dtype) {
  return dtype == DType::kFp32 ? v1::DATA_TYPE_FP32 : v1::DATA_TYPE_BF16;
}

v1::TableSpec ToProto(const TableSpec& spec) {
  v1::TableSpec proto;
  proto.set_row_count(spec.row_count);
  proto.set_dim(spec.dim);
  proto.set_row_dtype(ToProto(spec.row_dtype));
  proto.set_gradient_dtype(ToProto(spec.gradient_dtype));
  proto.set_shard_count(spec.shard_count);
  proto.mutable_shard_bounds()->Add(spec.shard_bounds.begin(),
                                    spec.shard_bounds.end());
  if (spec.initializer.kind == Initializer::Kind::kUniform) {
    auto& uniform = *proto.mutable_initializer()->mutable_uniform();
    uniform.set_seed(static_cast<int64_t>(spec.initializer.seed));
    uniform.set_bound(spec.initializer.bound);
  } else {
    proto.mutable_initializer()->mutable_zeros();
  }
  proto.set_trainer_count(spec.trainer_count);
  if (spec.gradient_reduction.has_value()) {
    proto.set_gradient_reduction(*spec.gradient_reduction ==
                                         GradientReduction::kSum
                                     ? v1::GRADIENT_REDUCTION_SUM
                                     : v1::GRADIENT_REDUCTION_MEAN);
  }
  proto.set_max_contribution_row_count(spec.max_contribution_row_count);
  proto.set_max_part_count(spec.max_part_count);
  proto.set_max_pull_bytes(spec.max_pull_bytes);
  proto.mutable_sparse()->set_non_finite_policy(
      ToProto(spec.non_finite_policy));
  if (spec.ngram.has_value()) ToProto(*spec.ngram, *proto.mutable_ngram());
  return proto;
}

v1::TrainerSession ToProto(const TrainerSession& trainer) {
  v1::TrainerSession proto;
  proto.set_trainer_rank(trainer.rank);
  proto.set_session(trainer.session);
  return proto;
}

v1::EventCommit ToProto(const EventCommit& commit) {
  v1::EventCommit proto;
  proto.mutable_sessions()->Add(commit.sessions.begin(), commit.sessions.end());
  if (!commit.scalars.has_value()) {
    proto.mutable_skip();
    return proto;
  }
  v1::RowAdamScalars& scalars = *proto.mutable_row_adam();
  scalars.set_step_size(commit.scalars->step_size);
  scalars.set_decay(commit.scalars->decay);
  scalars.set_beta2(commit.scalars->beta2);
  scalars.set_eps(commit.scalars->eps);
  scalars.set_gradient_scale(commit.scalars->gradient_scale);
  return proto;
}

absl::StatusOr<ShardTable> FromProto(const v1::Table& table) {
  ShardTable result;
  result.name = table.name().starts_with(kTablePrefix)
                    ? table.name().substr(kTablePrefix.size())
                    : table.name();
  ROWHOUSE_ASSIGN_OR_RETURN(result.spec, FromProto(table.spec()));
  result.bounds = {table.shard_bounds().begin(), table.shard_bounds().end()};
  result.shard_index = table.shard_index();
  result.event = table.event();
  for (const v1::TrainerCountChange& change : table.trainer_counts()) {
    result.trainer_counts.push_back(
        {change.from_event(), change.trainer_count()});
  }
  result.reserved_bytes = table.reserved_bytes();
  return result;
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
          .version = server.version()};
}

EventState FromProto(const v1::GetEventStateResponse& state) {
  EventState result;
  result.event = state.event();
  for (const v1::OpenEventState& open : state.open_events()) {
    result.open_events.push_back(FromProto(open));
  }
  for (const v1::AppliedEventState& applied : state.applied_events()) {
    result.applied_events.push_back(
        {applied.event(), FromProto(applied.commit())});
  }
  for (const v1::SessionState& session : state.sessions()) {
    result.sessions.push_back(
        {session.trainer().trainer_rank(), session.trainer().session()});
  }
  return result;
}

absl::Duration FromProto(const google::protobuf::Duration& duration) {
  return absl::Seconds(duration.seconds()) +
         absl::Nanoseconds(duration.nanos());
}

}  // namespace rowhouse::client::internal
