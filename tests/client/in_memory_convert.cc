#include "tests/client/in_memory_convert.h"

#include <optional>

#include "kernels/row_table.h"

namespace rowhouse::testing {

using client::internal::EventCommit;
using client::internal::TrainerSession;

server::TrainerSession ToServer(const TrainerSession& trainer) {
  return {trainer.rank, trainer.session};
}

server::EventCommit ToServer(const EventCommit& commit) {
  server::EventCommit result;
  result.sessions = commit.sessions;
  result.skip = !commit.scalars.has_value();
  if (commit.scalars.has_value()) {
    const client::RowAdamScalars& scalars = *commit.scalars;
    result.scalars = {scalars.step_size, scalars.decay, scalars.beta2,
                      scalars.eps, scalars.gradient_scale};
  }
  return result;
}

namespace {

EventCommit FromServer(const server::EventCommit& commit) {
  EventCommit result{commit.sessions, std::nullopt};
  const kernels::RowAdamScalars& scalars = commit.scalars;
  if (!commit.skip) {
    result.scalars = {scalars.step_size, scalars.decay, scalars.beta2,
                      scalars.eps, scalars.gradient_scale};
  }
  return result;
}

}  // namespace

client::internal::EventState FromServer(const server::EventState& state) {
  client::internal::EventState result;
  result.event = state.event;
  for (const server::OpenEventState& open : state.open_events) {
    result.open_events.push_back(
        {open.event, open.trainer_count, open.all_sealed, {}});
    for (const server::ContributionState& contribution : open.contributions) {
      result.open_events.back().contributions.push_back(
          {contribution.trainer_rank, contribution.session,
           contribution.sealed});
    }
  }
  for (const server::AppliedEventState& applied : state.applied_events) {
    result.applied_events.push_back(
        {applied.event, FromServer(applied.commit)});
  }
  for (const server::SessionState& session : state.sessions) {
    result.sessions.push_back(
        {session.trainer.trainer_rank, session.trainer.session});
  }
  return result;
}

}  // namespace rowhouse::testing
