#include "server/shard/events.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/shard/shard_errors.h"

namespace rowhouse::server {
namespace {

ContributionState StateOf(int32_t trainer_rank,
                          const Contribution& contribution) {
  return {trainer_rank,
          contribution.session,
          static_cast<int32_t>(contribution.parts.size()),
          contribution.row_count,
          contribution.sealed,
          contribution.token_count};
}

}  // namespace

Events::Age Events::AgeOf(int64_t event) const {
  if (event > applied_ + kOpen) return Age::kAhead;
  if (event > applied_) return Age::kOpen;
  return event > std::max(applied_ - kKept, restored_) ? Age::kApplied
                                                       : Age::kForgotten;
}

const Contribution* Events::Find(int64_t event, int32_t trainer_rank) const {
  const auto contributions = open_.find(event);
  if (contributions == open_.end()) return nullptr;
  const auto found = contributions->second.find(trainer_rank);
  return found == contributions->second.end() ? nullptr : &found->second;
}

const Events::Applied* Events::FindApplied(int64_t event) const {
  for (const Applied& applied : kept_) {
    if (applied.state.event == event) return &applied;
  }
  return nullptr;
}

bool Events::AllSealed(int64_t event) const {
  return event <= applied_ || !FirstUnsealed(event, std::nullopt).has_value();
}

std::optional<int32_t> Events::FirstUnsealed(
    int64_t event, std::optional<TrainerSession> sealing) const {
  const int32_t trainer_count = trainer_counts_.At(event);
  for (int32_t rank = 0; rank < trainer_count; ++rank) {
    if (sealing.has_value() && sealing->trainer_rank == rank) continue;
    const Contribution* contribution = Find(event, rank);
    if (contribution == nullptr || !contribution->sealed) return rank;
  }
  return std::nullopt;
}

absl::Status Events::CheckRank(int64_t event, int32_t trainer_rank) const {
  const int32_t trainer_count = trainer_counts_.At(event);
  if (trainer_rank >= 0 && trainer_rank < trainer_count) {
    return absl::OkStatus();
  }
  return BadRankError(trainer_rank, trainer_count);
}

absl::Status Events::CheckPart(const PartName& name) const {
  const Contribution* contribution = Find(name.event, name.trainer_rank);
  if (contribution != nullptr && contribution->sealed) {
    return ContributionSealedError(
        name.event, name.trainer_rank, contribution->session,
        static_cast<int32_t>(contribution->parts.size()));
  }
  return CheckRank(name.event, name.trainer_rank);
}

void Events::Stage(const PartName& name, int64_t session, StagedPart part) {
  Contribution& contribution = open_[name.event][name.trainer_rank];
  contribution.session = session;
  contribution.row_count += part.row_count();
  contribution.token_count += part.token_count();
  contribution.staged_bytes += part.size_bytes();
  contribution.parts[name.part] = std::move(part);
}

void Events::Seal(const TrainerSession& trainer, int64_t event) {
  if (event <= applied_) return;
  Contribution& contribution = open_[event][trainer.trainer_rank];
  if (contribution.sealed) return;
  contribution.session = trainer.session;
  contribution.sealed = true;
}

absl::StatusOr<int32_t> Events::Discard(const TrainerSession& trainer,
                                        int64_t event) {
  if (event < 1) return BadEventError("event", event, 1);
  if (event <= applied_) {
    return EventPastError("nothing can be dropped of event", event, applied_);
  }
  if (AgeOf(event) == Age::kAhead) {
    return EventAheadError(event, applied_, applied_ + kOpen);
  }
  const Contribution* found = Find(event, trainer.trainer_rank);
  if (found == nullptr) return 0;
  const auto part_count = static_cast<int32_t>(found->parts.size());
  if (found->sealed && found->session == trainer.session) {
    return ContributionSealedError(event, trainer.trainer_rank, found->session,
                                   part_count);
  }
  Contributions& contributions = open_[event];
  contributions.erase(trainer.trainer_rank);
  if (contributions.empty()) open_.erase(event);
  return part_count;
}

std::vector<int64_t> Events::DropUnsealed(int32_t trainer_rank) {
  std::vector<int64_t> dropped;
  for (auto it = open_.begin(); it != open_.end();) {
    Contributions& contributions = it->second;
    const auto found = contributions.find(trainer_rank);
    if (found != contributions.end() && !found->second.sealed) {
      dropped.push_back(it->first);
      contributions.erase(found);
    }
    it = contributions.empty() ? open_.erase(it) : std::next(it);
  }
  return dropped;
}

std::vector<kernels::GradientPart> Events::PartsOf(int64_t event) const {
  std::vector<kernels::GradientPart> parts;
  const auto contributions = open_.find(event);
  if (contributions == open_.end()) return parts;
  for (const auto& [rank, contribution] : contributions->second) {
    for (const auto& [number, part] : contribution.parts) {
      if (part.row_count() > 0) parts.push_back(part.view());
    }
  }
  return parts;
}

bool Events::HasHeadParts() const {
  for (const auto& [event, contributions] : open_) {
    for (const auto& [rank, contribution] : contributions) {
      if (contribution.token_count > 0) return true;
    }
  }
  return false;
}

int64_t Events::EntryCount(int64_t event) const {
  int64_t count = 0;
  const auto contributions = open_.find(event);
  if (contributions == open_.end()) return count;
  for (const auto& [rank, contribution] : contributions->second) {
    count += contribution.row_count + contribution.token_count;
  }
  return count;
}

int64_t Events::StagedBytes() const {
  int64_t size_bytes = 0;
  for (const auto& [event, contributions] : open_) {
    for (const auto& [rank, contribution] : contributions) {
      size_bytes += contribution.staged_bytes;
    }
  }
  return size_bytes;
}

Contributions Events::Archive(const EventCommit& commit,
                              const kernels::EventReport& report) {
  ++applied_;
  Applied applied;
  applied.state = {applied_, commit, report};
  Contributions contributions = std::move(open_[applied_]);
  for (const auto& [rank, contribution] : contributions) {
    applied.contributions.push_back(StateOf(rank, contribution));
  }
  open_.erase(applied_);
  kept_.push_back(std::move(applied));
  if (static_cast<int64_t>(kept_.size()) > kKept) kept_.pop_front();
  return contributions;
}

void Events::Reset(int32_t first_trainer_count) {
  Restore(0, TrainerCounts(first_trainer_count));
}

void Events::Restore(int64_t event, TrainerCounts trainer_counts) {
  trainer_counts_ = std::move(trainer_counts);
  applied_ = event;
  restored_ = event;
  open_.clear();
  kept_.clear();
}

std::vector<OpenEventState> Events::DescribeOpen() const {
  std::vector<OpenEventState> states;
  for (const auto& [event, contributions] : open_) {
    OpenEventState state{
        event, trainer_counts_.At(event), AllSealed(event), {}};
    for (const auto& [rank, contribution] : contributions) {
      state.contributions.push_back(StateOf(rank, contribution));
    }
    states.push_back(std::move(state));
  }
  return states;
}

std::vector<AppliedEventState> Events::DescribeApplied() const {
  std::vector<AppliedEventState> states;
  for (const Applied& applied : kept_) states.push_back(applied.state);
  return states;
}

}  // namespace rowhouse::server
