#include "client/cli/table_view.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"

namespace rowhouse::cli {
namespace {

int32_t TrainerCountAt(const client::ShardState& shard, int64_t event) {
  int32_t count = shard.spec.trainer_count;
  for (const client::TrainerCountChange& change : shard.trainer_counts) {
    if (change.from_event <= event) count = change.trainer_count;
  }
  return count;
}

void AddContributions(const client::OpenEventState& open, OpenEventView& view) {
  for (const client::ContributionState& contribution : open.contributions) {
    if (contribution.rank >= std::ssize(view.ranks)) continue;
    RankView& rank = view.ranks[contribution.rank];
    ++rank.begun_on;
    rank.sealed_on += contribution.sealed ? 1 : 0;
    rank.session = std::max(rank.session, contribution.session);
    rank.part_count = std::max(rank.part_count, contribution.part_count);
    rank.row_count += contribution.row_count;
    rank.token_count = std::max(rank.token_count, contribution.token_count);
  }
}

void AddSessions(const client::EventState& state, OpenEventView& view) {
  for (const client::SessionState& session : state.sessions) {
    if (session.rank >= std::ssize(view.ranks)) continue;
    RankView& rank = view.ranks[session.rank];
    rank.session = std::max(rank.session, session.session);
    rank.idle = std::max(rank.idle.value_or(session.idle), session.idle);
    rank.lease_expired = rank.lease_expired || session.lease_expired;
  }
}

}  // namespace

std::vector<int32_t> OpenEventView::Awaited(int32_t shard_count) const {
  std::vector<int32_t> awaited;
  for (const RankView& rank : ranks) {
    if (rank.sealed_on < shard_count) awaited.push_back(rank.rank);
  }
  return awaited;
}

int64_t TableView::reserved_bytes() const {
  int64_t sum = 0;
  for (const client::ShardState* shard : shards) sum += shard->reserved_bytes;
  return sum;
}

std::vector<OpenEventView> TableView::OpenEvents() const {
  std::set<int64_t> events = {event + 1};
  for (const client::ShardState* shard : shards) {
    for (const client::OpenEventState& open : shard->events.open_events) {
      if (open.event > event) events.insert(open.event);
    }
  }
  std::vector<OpenEventView> views;
  for (const int64_t number : events) {
    OpenEventView& view = views.emplace_back();
    view.event = number;
    view.ranks.resize(TrainerCountAt(*shards[0], number));
    for (size_t i = 0; i < view.ranks.size(); ++i) {
      view.ranks[i].rank = static_cast<int32_t>(i);
    }
    for (const client::ShardState* shard : shards) {
      AddSessions(shard->events, view);
      if (shard->events.event >= number) {  // Applied here already.
        for (RankView& rank : view.ranks) ++rank.sealed_on;
      }
      for (const client::OpenEventState& open : shard->events.open_events) {
        if (open.event == number) AddContributions(open, view);
      }
    }
  }
  return views;
}

std::vector<AppliedEventView> TableView::AppliedEvents() const {
  std::map<int64_t, AppliedEventView> views;
  for (const client::ShardState* shard : shards) {
    for (const client::AppliedEventState& applied :
         shard->events.applied_events) {
      AppliedEventView& view = views[applied.event];
      view.event = applied.event;
      view.update = applied.commit.update;
      ++view.applied_on;
      view.entry_count += applied.entry_count;
      view.row_count += applied.row_count;
      view.untouched_row_count += applied.untouched_row_count;
      view.moved_bytes += applied.moved_bytes;
    }
  }
  std::vector<AppliedEventView> result;
  result.reserve(views.size());
  for (const auto& [number, view] : views) result.push_back(view);
  return result;
}

std::vector<TableView> TablesOf(
    const std::vector<client::ServerState>& servers) {
  std::map<std::string, TableView> views;
  for (const client::ServerState& server : servers) {
    for (const client::ShardState& shard : server.shards) {
      TableView& view = views[shard.table];
      view.event = view.shards.empty()
                       ? shard.events.event
                       : std::min(view.event, shard.events.event);
      view.name = shard.table;
      view.spec = shard.spec;
      view.shards.push_back(&shard);
    }
  }
  std::vector<TableView> result;
  for (auto& [name, view] : views) result.push_back(std::move(view));
  return result;
}

std::string Ranks(const std::vector<int32_t>& ranks) {
  std::string text;
  for (size_t i = 0; i < ranks.size();) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    absl::StrAppend(&text, text.empty() ? "" : ", ", ranks[i]);
    if (end - i > 1) absl::StrAppend(&text, "-", ranks[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace rowhouse::cli
