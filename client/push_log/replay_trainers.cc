#include "client/push_log/replay_trainers.h"

#include <span>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/internal/head_call.h"
#include "client/internal/head_gradient_sum.h"
#include "client/internal/trainer_core.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::push_log {
namespace {

using internal::RecordedPart;

// Recorded targets have it where they are ignored.
constexpr int64_t kIgnored = -1;

bool TakesPart(const RecordedPart& part, size_t token) {
  return part.upstream[token] != 0 ||
         (!part.target.empty() &&
          (part.target[token] != 0 || part.smoothing[token] != 0));
}

// Statistics to form gradients by: the recorded ones, whose sums are those of
// the trainer's own arithmetic; those of the slices here where they are of
// other logits, which may be larger.
struct ReplayStatistics {
  std::vector<float> max_logits;
  std::vector<float> exp_sums;
  bool as_recorded = true;  // Of all tokens that take part.

  ReplayStatistics(const RecordedPart& part, std::span<const float> max_here,
                   std::span<const float> sums_here)
      : max_logits(max_here.begin(), max_here.end()),
        exp_sums(sums_here.begin(), sums_here.end()) {
    for (size_t t = 0; t < max_here.size(); ++t) {
      if (!TakesPart(part, t)) continue;
      as_recorded = as_recorded && part.max_logits[t] == max_here[t];
      if (part.max_logits[t] < max_here[t]) continue;
      max_logits[t] = part.max_logits[t];
      exp_sums[t] = part.exp_sums[t];
    }
  }
};

}  // namespace

absl::Status ReplayTrainers::SetCount(int32_t count) {
  while (std::ssize(trainers_) > count) trainers_.pop_back();
  while (std::ssize(trainers_) < count) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        std::unique_ptr<Trainer> trainer,
        Trainer::Join(cluster_, table_, static_cast<int32_t>(trainers_.size()),
                      {.timeout = timeout_}));
    trainers_.push_back(std::move(trainer));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> ReplayTrainers::Push(int64_t event,
                                          const RecordedPart& part) {
  if (part.head) return PushHead(event, part);
  ROWHOUSE_RETURN_IF_ERROR(trainers_[part.rank]
                               ->Push(event, part.ids,
                                      std::as_bytes(std::span(part.payload)),
                                      {.timeout = timeout_, .part = part.part})
                               .status());
  return true;
}

// As `LmHead` makes the call, but by the recorded gradients of the loss.
absl::StatusOr<bool> ReplayTrainers::PushHead(int64_t event,
                                              const RecordedPart& part) {
  internal::TrainerCore& trainer = *trainers_[part.rank]->core();
  const TableSpec& spec = trainer.table().spec;
  const int64_t weight_count = std::ssize(part.class_weights);
  if (weight_count != 0 && weight_count != spec.row_count) {
    return absl::DataLossError(absl::StrCat("a head part with ", weight_count,
                                            " class weights, wanted those of ",
                                            spec.row_count, " rows"));
  }
  const internal::HeadHeader header{.table = table_,
                                    .trainer = trainer.session(),
                                    .event = event,
                                    .part = part.part,
                                    .token_count = part.item_count,
                                    .hidden_dtype = part.hidden_dtype,
                                    .ignore_index = kIgnored,
                                    .dim = spec.dim,
                                    .softcap = part.softcap,
                                    .class_weights = weight_count > 0,
                                    .coefficients = !part.target.empty()};
  ROWHOUSE_ASSIGN_OR_RETURN(
      const internal::PartNumber number,
      trainer.contributions().BeginPart(event, part.part));
  internal::HeadCall call(
      trainer.cluster(), trainer.router().placement(), header,
      {part.ids, std::as_bytes(std::span(part.payload)), part.class_weights},
      /*terms=*/{});
  internal::HeadGradientSum unused(trainer.router().shard_count(),
                                   header.token_count, header.dim);
  const internal::CallContext context = trainer.Context(timeout_);
  absl::Status pushed = call.ComputeLosses(context);
  bool as_recorded = true;
  if (pushed.ok()) {
    const ReplayStatistics statistics(part, call.max_logits(), call.exp_sums());
    as_recorded = statistics.as_recorded;
    pushed = call.SumGradients(
        internal::HeadMerged{statistics.max_logits, statistics.exp_sums,
                             part.upstream, part.target, part.smoothing},
        unused, context);
  }
  trainer.contributions().EndPart(event, number, pushed.ok());
  if (!pushed.ok()) return pushed;
  return as_recorded;
}

absl::Status ReplayTrainers::Apply(int64_t event, const EventUpdate& update) {
  const CallOptions options{.timeout = timeout_};
  for (const std::unique_ptr<Trainer>& trainer : trainers_) {
    ROWHOUSE_RETURN_IF_ERROR(trainer->Seal(event, options));
  }
  Trainer& first = *trainers_.front();
  ROWHOUSE_RETURN_IF_ERROR(first.Commit(
      event, std::visit([](const auto& kind) { return CommitDecision(kind); },
                        update)));
  return first.WaitForEvent(event, options);
}

}  // namespace rowhouse::client::push_log
