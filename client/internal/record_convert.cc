#include "client/internal/record_convert.h"

#include <utility>

#include "absl/status/status.h"
#include "client/internal/grpc_convert.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

std::optional<ShardDigest> DigestOf(bool has, const v1::RecordedDigest& digest,
                                    int64_t event) {
  if (!has) return std::nullopt;
  return ShardDigest{event, static_cast<uint64_t>(digest.row_sum()),
                     static_cast<uint64_t>(digest.history_sum())};
}

absl::Status CheckCounts(const RecordedPart& part) {
  const int64_t count = std::ssize(part.ids);
  if (part.item_count < 0 || part.first_item < 0 ||
      part.first_item > part.item_count - count) {
    return absl::DataLossError("a piece that reaches past its part");
  }
  const bool full = !part.payload.empty();
  for (const std::vector<float>* values :
       {&part.max_logits, &part.exp_sums, &part.upstream}) {
    if (std::ssize(*values) != (part.head && full ? count : 0)) {
      return absl::DataLossError("a head part with values missing");
    }
  }
  const bool coefficients = !part.target.empty();
  for (const std::vector<float>* values : {&part.target, &part.smoothing}) {
    if (std::ssize(*values) != (coefficients && full ? count : 0)) {
      return absl::DataLossError("a head part with coefficients missing");
    }
  }
  if (part.class_weights.empty() || count == 0) return absl::OkStatus();
  return absl::DataLossError("class weights together with tokens");
}

}  // namespace

std::vector<TrainerCountChange> FromProto(const TrainerCountsProto& proto) {
  std::vector<TrainerCountChange> changes;
  for (const v1::TrainerCountChange& change : proto) {
    changes.push_back({change.from_event(), change.trainer_count()});
  }
  return changes;
}

void Fill(const std::vector<TrainerCountChange>& changes,
          TrainerCountsProto& proto) {
  proto.Clear();
  for (const TrainerCountChange& change : changes) {
    v1::TrainerCountChange& out = *proto.Add();
    out.set_from_event(change.from_event);
    out.set_trainer_count(change.trainer_count);
  }
}

RecordingStart FromProto(const v1::RecordingStart& proto) {
  return {proto.event(),
          proto.first_row_id(),
          proto.row_count(),
          proto.arithmetic(),
          FromProto(proto.trainer_counts()),
          DigestOf(proto.has_digest(), proto.digest(), proto.event())};
}

RecordedEvent FromProto(const v1::RecordedEvent& proto) {
  RecordedEvent event;
  event.event = proto.event();
  event.commit = FromProto(proto.commit());
  for (const v1::RecordedContribution& contribution : proto.contributions()) {
    event.contributions.push_back({contribution.trainer_rank(),
                                   contribution.session(),
                                   contribution.part_count()});
  }
  event.trainer_counts = FromProto(proto.trainer_counts());
  event.digest = DigestOf(proto.has_digest(), proto.digest(), proto.event());
  return event;
}

absl::StatusOr<RecordedPart> TakeFromProto(v1::RecordedPart& proto) {
  RecordedPart part;
  part.rank = proto.trainer_rank();
  part.part = proto.part();
  if (proto.has_rows()) {
    v1::RecordedRows& rows = *proto.mutable_rows();
    part.item_count = rows.row_count();
    part.first_item = rows.first_row();
    part.ids = {rows.row_ids().begin(), rows.row_ids().end()};
    part.payload = std::move(*rows.mutable_rows());
  } else if (proto.has_tokens()) {
    v1::RecordedTokens& tokens = *proto.mutable_tokens();
    part.head = true;
    part.item_count = tokens.token_count();
    part.first_item = tokens.first_token();
    ROWHOUSE_ASSIGN_OR_RETURN(part.hidden_dtype,
                              FromProto(tokens.hidden_dtype()));
    part.ids = {tokens.targets().begin(), tokens.targets().end()};
    part.max_logits = {tokens.max_logits().begin(), tokens.max_logits().end()};
    part.exp_sums = {tokens.exp_sums().begin(), tokens.exp_sums().end()};
    part.upstream = {tokens.upstream_gradients().begin(),
                     tokens.upstream_gradients().end()};
    part.target = {tokens.target_coefficients().begin(),
                   tokens.target_coefficients().end()};
    part.smoothing = {tokens.smoothing_coefficients().begin(),
                      tokens.smoothing_coefficients().end()};
    part.softcap = tokens.softcap();
    part.class_weights = {tokens.class_weights().begin(),
                          tokens.class_weights().end()};
    part.first_class_weight = tokens.first_class_weight();
    part.payload = std::move(*tokens.mutable_hidden());
  } else {
    return absl::DataLossError("a part of no kind");
  }
  ROWHOUSE_RETURN_IF_ERROR(CheckCounts(part));
  return part;
}

void Fill(const RecordedEvent& event, v1::RecordedEvent& proto) {
  proto.Clear();
  proto.set_event(event.event);
  *proto.mutable_commit() = ToProto(event.commit);
  for (const RecordedContribution& contribution : event.contributions) {
    v1::RecordedContribution& out = *proto.add_contributions();
    out.set_trainer_rank(contribution.rank);
    out.set_session(contribution.session);
    out.set_part_count(contribution.part_count);
  }
  Fill(event.trainer_counts, *proto.mutable_trainer_counts());
}

void TakeInto(RecordedPart& part, v1::RecordedPart& proto) {
  proto.Clear();
  proto.set_trainer_rank(part.rank);
  proto.set_part(part.part);
  if (!part.head) {
    v1::RecordedRows& rows = *proto.mutable_rows();
    rows.set_row_count(part.item_count);
    rows.set_first_row(part.first_item);
    rows.mutable_row_ids()->Assign(part.ids.begin(), part.ids.end());
    *rows.mutable_rows() = std::move(part.payload);
    return;
  }
  v1::RecordedTokens& tokens = *proto.mutable_tokens();
  tokens.set_token_count(part.item_count);
  tokens.set_first_token(part.first_item);
  tokens.set_hidden_dtype(ToProto(part.hidden_dtype));
  tokens.mutable_targets()->Assign(part.ids.begin(), part.ids.end());
  tokens.mutable_max_logits()->Assign(part.max_logits.begin(),
                                      part.max_logits.end());
  tokens.mutable_exp_sums()->Assign(part.exp_sums.begin(), part.exp_sums.end());
  tokens.mutable_upstream_gradients()->Assign(part.upstream.begin(),
                                              part.upstream.end());
  tokens.mutable_target_coefficients()->Assign(part.target.begin(),
                                               part.target.end());
  tokens.mutable_smoothing_coefficients()->Assign(part.smoothing.begin(),
                                                  part.smoothing.end());
  tokens.set_softcap(part.softcap);
  tokens.mutable_class_weights()->Assign(part.class_weights.begin(),
                                         part.class_weights.end());
  tokens.set_first_class_weight(part.first_class_weight);
  *tokens.mutable_hidden() = std::move(part.payload);
}

}  // namespace rowhouse::client::internal
