#include "tests/server/same_bits/sharded_table.h"

#include <numeric>
#include <utility>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/executor.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::testing {

ShardedTable::ShardedTable(const Scenario& scenario, const Layout& layout)
    : scenario_(scenario),
      layout_(layout),
      backend_(kernels::cpu::MakeCpuBackend(
          kernels::cpu::MakeThreadExecutor(layout.thread_count))),
      timers_(server::MakeSystemTimerQueue()) {}

absl::StatusOr<std::unique_ptr<ShardedTable>> ShardedTable::Create(
    const Scenario& scenario, const Layout& layout) {
  std::unique_ptr<ShardedTable> table(new ShardedTable(scenario, layout));
  for (int32_t s = 0; s < layout.placement.shard_count(); ++s) {
    server::ShardSpec spec = scenario.spec;
    spec.placement = layout.placement;
    spec.shard_index = s;
    ROWHOUSE_ASSIGN_OR_RETURN(
        std::unique_ptr<server::Shard> shard,
        server::Shard::Create(spec, {}, *table->backend_, *table->timers_));
    table->blocking_.emplace_back(*shard);
    table->shards_.push_back(std::move(shard));
  }
  ROWHOUSE_RETURN_IF_ERROR(table->OpenSessions(scenario.spec.trainer_count));
  return table;
}

absl::Status ShardedTable::OpenSessions(int32_t end_rank) {
  for (; session_count_ < end_rank; ++session_count_) {
    for (BlockingShard& shard : blocking_) {
      ROWHOUSE_RETURN_IF_ERROR(shard.OpenSession({session_count_, 1}).status());
    }
  }
  return absl::OkStatus();
}

absl::Status ShardedTable::SetTrainerCount(int32_t trainer_count,
                                           int64_t from_event) {
  for (BlockingShard& shard : blocking_) {
    ROWHOUSE_RETURN_IF_ERROR(
        shard.SetTrainerCount(trainer_count, from_event).status());
  }
  return OpenSessions(trainer_count);
}

std::vector<ShardPart> ShardedTable::PartsOf(const ScenarioEvent& event) const {
  std::vector<ShardPart> parts;
  for (const auto& [name, entries] : event.contributions) {
    std::vector<ShardPart> split(static_cast<size_t>(shard_count()));
    for (int s = 0; s < shard_count(); ++s) {
      split[s] = {s, name.first, name.second, {}};
    }
    for (const reference::EagerTable::Entry& entry : entries) {
      split[layout_.placement.ShardOf(entry.row_id)].entries.push_back(entry);
    }
    parts.insert(parts.end(), std::make_move_iterator(split.begin()),
                 std::make_move_iterator(split.end()));
  }
  return parts;
}

absl::Status ShardedTable::Push(int64_t event, const ShardPart& part,
                                const PushStyle& style) {
  BlockingShard& shard = blocking_[part.shard];
  PartToPush push;
  push.trainer = {part.rank, 1};
  push.event = event;
  push.part = part.part;
  push.rows_per_message = style.rows_per_message;
  std::vector<int64_t> row_ids;
  for (const reference::EagerTable::Entry& entry : part.entries) {
    row_ids.push_back(entry.row_id);
    push.rows += ToBytes(entry.values, scenario_.spec.gradient_dtype);
  }
  if (style.by_handle && !row_ids.empty()) {
    server::PullRequest request;
    request.trainer = push.trainer;
    request.return_handle = true;
    request.training = true;
    ROWHOUSE_ASSIGN_OR_RETURN(const PulledRows pulled,
                              shard.Pull(row_ids, std::move(request)));
    push.handles = {pulled.handle};
  } else {
    push.row_ids = std::move(row_ids);
  }
  return shard.Push(push).status();
}

absl::Status ShardedTable::SealAll(int64_t event,
                                   const ScenarioEvent& content) {
  for (BlockingShard& shard : blocking_) {
    for (int32_t rank = 0; rank < content.trainer_count; ++rank) {
      ROWHOUSE_RETURN_IF_ERROR(
          shard.Seal({rank, 1}, event, content.PartCount(rank)).status());
    }
  }
  return absl::OkStatus();
}

absl::Status ShardedTable::CommitAll(int64_t event,
                                     const ScenarioEvent& content) {
  server::EventCommit commit;
  commit.sessions.assign(static_cast<size_t>(content.trainer_count), 1);
  commit.skip = content.skip;
  if (!content.skip) commit.scalars = content.scalars;
  for (BlockingShard& shard : blocking_) {
    ROWHOUSE_RETURN_IF_ERROR(shard.Commit({0, 1}, event, commit).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> ShardedTable::Digest(int64_t event) {
  uint64_t sum = 0;
  uint64_t history = 0;
  for (BlockingShard& shard : blocking_) {
    ROWHOUSE_ASSIGN_OR_RETURN(const server::ShardDigest digest,
                              shard.Digest(event));
    sum += digest.row_sum;
    history = digest.history_sum;
  }
  return sum + history;
}

absl::StatusOr<std::vector<std::string>> ShardedTable::Rows() {
  const auto row_bytes = static_cast<size_t>(
      scenario_.spec.dim * kernels::SizeOf(scenario_.spec.row_dtype));
  std::vector<std::string> rows;
  for (int s = 0; s < shard_count(); ++s) {
    std::vector<int64_t> ids(static_cast<size_t>(
        layout_.placement.end_row(s) - layout_.placement.first_row(s)));
    std::iota(ids.begin(), ids.end(), layout_.placement.first_row(s));
    ROWHOUSE_ASSIGN_OR_RETURN(const PulledRows pulled, shard(s).Pull(ids));
    for (size_t i = 0; i < ids.size(); ++i) {
      rows.push_back(pulled.rows.substr(i * row_bytes, row_bytes));
    }
  }
  return rows;
}

}  // namespace rowhouse::testing
