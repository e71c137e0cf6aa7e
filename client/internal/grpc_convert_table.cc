// Tables and what they are made of.

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "client/internal/grpc_convert.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

constexpr std::string_view kTablePrefix = "tables/";

v1::NonFinitePolicy PolicyOf(NonFinitePolicy policy) {
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

void Fill(const NgramMetadata& ngram, v1::NgramTable& proto) {
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

absl::StatusOr<DenseTableSpec> FromProto(const v1::DenseTable& proto) {
  DenseTableSpec dense;
  if (proto.main_grad_dtype() != v1::DATA_TYPE_UNSPECIFIED) {
    ROWHOUSE_ASSIGN_OR_RETURN(dense.main_grad_dtype,
                              internal::FromProto(proto.main_grad_dtype()));
  }
  dense.has_master = proto.has_master();
  dense.has_bias = proto.has_bias();
  dense.max_head_token_count = proto.max_head_token_count();
  return dense;
}

void Fill(const DenseTableSpec& dense, v1::DenseTable& proto) {
  proto.set_main_grad_dtype(ToProto(dense.main_grad_dtype));
  proto.set_has_master(dense.has_master);
  proto.set_has_bias(dense.has_bias);
  proto.set_max_head_token_count(dense.max_head_token_count);
}

}  // namespace

std::string ResourceName(std::string_view table) {
  std::string name(kTablePrefix);
  name += table;
  return name;
}

std::string ShortTableName(const std::string& name) {
  return name.starts_with(kTablePrefix) ? name.substr(kTablePrefix.size())
                                        : name;
}

v1::DataType ToProto(DType dtype) {
  switch (dtype) {
    case DType::kBf16:
      return v1::DATA_TYPE_BF16;
    case DType::kFp32:
      return v1::DATA_TYPE_FP32;
    case DType::kFp16:
      return v1::DATA_TYPE_FP16;
  }
  return v1::DATA_TYPE_UNSPECIFIED;
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
  if (spec.dense.has_value()) {
    Fill(*spec.dense, *proto.mutable_dense());
    proto.mutable_dense()->set_non_finite_policy(
        PolicyOf(spec.non_finite_policy));
  } else {
    proto.mutable_sparse()->set_non_finite_policy(
        PolicyOf(spec.non_finite_policy));
  }
  if (spec.ngram.has_value()) Fill(*spec.ngram, *proto.mutable_ngram());
  return proto;
}

absl::StatusOr<DType> FromProto(v1::DataType type) {
  if (type == v1::DATA_TYPE_BF16) return DType::kBf16;
  if (type == v1::DATA_TYPE_FP32) return DType::kFp32;
  if (type == v1::DATA_TYPE_FP16) return DType::kFp16;
  return absl::UnimplementedError(
      absl::StrCat("data type ", v1::DataType_Name(type),
                   ", wanted one that this library knows"));
}

absl::StatusOr<TableSpec> FromProto(const v1::TableSpec& proto) {
  TableSpec spec;
  switch (proto.kind_case()) {
    case v1::TableSpec::kSparse:
      spec.non_finite_policy = FromProto(proto.sparse().non_finite_policy());
      break;
    case v1::TableSpec::kDense: {
      spec.non_finite_policy = FromProto(proto.dense().non_finite_policy());
      ROWHOUSE_ASSIGN_OR_RETURN(spec.dense, FromProto(proto.dense()));
      break;
    }
    case v1::TableSpec::KIND_NOT_SET:
      return absl::UnimplementedError(
          "a table of a kind that this library does not know");
  }
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
  spec.max_contribution_row_count = proto.max_contribution_row_count();
  spec.max_part_count = proto.max_part_count();
  spec.max_pull_bytes = proto.max_pull_bytes();
  if (proto.has_ngram()) spec.ngram = FromProto(proto.ngram());
  return spec;
}

absl::StatusOr<ShardTable> FromProto(const v1::Table& table) {
  ShardTable result;
  result.name = ShortTableName(table.name());
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

}  // namespace rowhouse::client::internal
