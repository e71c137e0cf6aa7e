#include "tests/client/in_memory_convert.h"

#include <variant>

#include "kernels/dense_table.h"
#include "kernels/row_table.h"

namespace rowhouse::testing {

using client::AdamWScalars;
using client::EventCommit;
using client::RowAdamScalars;
using client::internal::EventWait;
using client::internal::TrainerSession;

server::TrainerSession ToServer(const TrainerSession& trainer) {
  return {trainer.rank, trainer.session};
}

kernels::DType ToKernel(client::DType dtype) {
  switch (dtype) {
    case client::DType::kBf16:
      return kernels::DType::kBf16;
    case client::DType::kFp32:
      return kernels::DType::kFp32;
    case client::DType::kFp16:
      return kernels::DType::kFp16;
  }
  return kernels::DType::kBf16;
}

client::DType FromKernel(kernels::DType dtype) {
  if (dtype == kernels::DType::kFp32) return client::DType::kFp32;
  if (dtype == kernels::DType::kFp16) return client::DType::kFp16;
  return client::DType::kBf16;
}

server::EventCommit ToServer(const EventCommit& commit) {
  server::EventCommit result;
  result.sessions = commit.sessions;
  if (const auto* row_adam = std::get_if<RowAdamScalars>(&commit.update)) {
    result.scalars = {row_adam->step_size, row_adam->decay, row_adam->beta2,
                      row_adam->eps, row_adam->gradient_scale};
  } else if (const auto* adamw = std::get_if<AdamWScalars>(&commit.update)) {
    result.adamw = {adamw->learning_rate,
                    adamw->weight_decay,
                    adamw->beta1,
                    adamw->beta2,
                    adamw->eps,
                    adamw->bias_correction1,
                    adamw->bias_correction2,
                    adamw->gradient_scale};
  } else {
    result.skip = true;
  }
  return result;
}

server::EventWait ToServer(const EventWait& wait) {
  server::EventWait result;
  result.sealed_event = wait.sealed_event;
  result.applied_event = wait.applied_event;
  if (wait.folded.has_value()) {
    result.folded_event = wait.folded->event;
    result.folded_rank = wait.folded->rank;
    result.folded_part_count = wait.folded->part_count;
  }
  return result;
}

EventCommit FromServer(const server::EventCommit& commit) {
  EventCommit result{commit.sessions, {}};
  if (commit.skip) return result;
  if (commit.adamw.has_value()) {
    const kernels::AdamWScalars& adamw = *commit.adamw;
    result.update = AdamWScalars{adamw.learning_rate,
                                 adamw.weight_decay,
                                 adamw.beta1,
                                 adamw.beta2,
                                 adamw.eps,
                                 adamw.bias_correction1,
                                 adamw.bias_correction2,
                                 adamw.gradient_scale};
    return result;
  }
  const kernels::RowAdamScalars& scalars = commit.scalars;
  result.update =
      RowAdamScalars{scalars.step_size, scalars.decay, scalars.beta2,
                     scalars.eps, scalars.gradient_scale};
  return result;
}

client::EventState FromServer(const server::EventState& state) {
  client::EventState result;
  result.event = state.event;
  for (const server::OpenEventState& open : state.open_events) {
    result.open_events.push_back(
        {open.event, open.trainer_count, open.all_sealed, {}});
    for (const server::ContributionState& contribution : open.contributions) {
      result.open_events.back().contributions.push_back(
          {contribution.trainer_rank, contribution.session, contribution.sealed,
           contribution.part_count, contribution.row_count,
           contribution.token_count, contribution.folded_part_count});
    }
  }
  for (const server::AppliedEventState& applied : state.applied_events) {
    result.applied_events.push_back(
        {applied.event, FromServer(applied.commit), applied.report.entry_count,
         applied.report.row_visits, applied.report.untouched_row_count,
         applied.report.bytes_moved});
  }
  for (const server::SessionState& session : state.sessions) {
    result.sessions.push_back({session.trainer.trainer_rank,
                               session.trainer.session, session.idle,
                               session.lease_expired});
  }
  const server::ShardLoad& load = state.load;
  result.load = {load.lane_call_count,       load.max_lane_call_count,
                 load.parked_call_count,     load.max_parked_call_count,
                 load.open_pull_count,       load.landing_part_count,
                 load.open_head_call_count,  load.staged_bytes,
                 load.recording_count,       load.recording_held_bytes,
                 load.recording_buffer_bytes};
  return result;
}

}  // namespace rowhouse::testing
