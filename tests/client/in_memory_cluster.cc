#include "tests/client/in_memory_cluster.h"

#include <utility>

#include "client/internal/clock.h"
#include "kernels/cpu/cpu_backend.h"
#include "proto/wire/error.h"
#include "proto/wire/placement.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "tests/client/in_memory_convert.h"
#include "tests/client/in_memory_shard_channel.h"

namespace rowhouse::testing {
namespace {

wire::Placement PlacementOf(const client::TableSpec& spec) {
  if (spec.shard_bounds.empty()) {
    return wire::Placement::Even(spec.row_count, spec.shard_count);
  }
  return *wire::Placement::Explicit(spec.row_count, spec.shard_bounds);
}

server::ShardSpec ToShardSpec(std::string_view table,
                              const client::TableSpec& spec, int32_t server) {
  server::ShardSpec shard{.table = "tables/" + std::string(table),
                          .placement = PlacementOf(spec),
                          .shard_index = server,
                          .dim = spec.dim,
                          .row_dtype = ToKernel(spec.row_dtype),
                          .gradient_dtype = ToKernel(spec.gradient_dtype),
                          .initializer = {}};
  if (spec.initializer.kind == client::Initializer::Kind::kUniform) {
    shard.initializer = {kernels::Initializer::Kind::kUniform,
                         spec.initializer.seed, spec.initializer.bound};
  }
  shard.policy = static_cast<kernels::NonFinitePolicy>(spec.non_finite_policy);
  shard.reduction =
      static_cast<server::GradientReduction>(*spec.gradient_reduction);
  shard.trainer_count = spec.trainer_count;
  shard.max_contribution_row_count = spec.max_contribution_row_count;
  shard.max_part_count = spec.max_part_count;
  if (spec.max_pull_bytes > 0) shard.max_pull_bytes = spec.max_pull_bytes;
  if (spec.dense.has_value()) {
    shard.dense = {ToKernel(spec.dense->main_grad_dtype),
                   spec.dense->has_master, spec.dense->has_bias,
                   spec.dense->max_head_token_count};
  }
  return shard;
}

}  // namespace

InMemoryCluster::InMemoryCluster(int32_t server_count, int thread_count)
    : server_count_(server_count),
      backend_(kernels::cpu::MakeCpuBackend(
          kernels::cpu::MakeThreadExecutor(thread_count))),
      timers_(server::MakeSystemTimerQueue()),
      down_(server_count),
      tables_(server_count) {
  limits_.max_wait = absl::Milliseconds(200);
}

InMemoryCluster::~InMemoryCluster() {
  MutexLock lock(mutex_);
  for (auto& tables : tables_) {
    for (auto& [name, table] : tables) {
      table.shard->Close(absl::UnavailableError("the server has ended"));
    }
    tables.clear();
  }
}

std::unique_ptr<client::Cluster> InMemoryCluster::Connect(
    FaultHook hook, std::shared_ptr<kernels::Backend> device) {
  std::vector<std::unique_ptr<client::internal::ShardChannel>> channels;
  for (int32_t server = 0; server < server_count_; ++server) {
    channels.push_back(MakeInMemoryShardChannel(*this, server, hook));
  }
  client::RetryOptions retry;
  retry.initial_backoff = absl::Milliseconds(1);
  retry.max_backoff = absl::Milliseconds(20);
  return std::make_unique<client::Cluster>(
      std::make_shared<client::internal::ClusterCore>(
          std::move(channels), client::internal::MakeSystemClock(), retry,
          std::move(device)));
}

void InMemoryCluster::SetDown(int32_t server, bool down) {
  MutexLock lock(mutex_);
  down_[server] = down;
}

bool InMemoryCluster::IsDown(int32_t server) const {
  MutexLock lock(mutex_);
  return down_[server];
}

absl::StatusOr<InMemoryCluster::Table*> InMemoryCluster::Find(
    int32_t server, std::string_view table) {
  MutexLock lock(mutex_);
  const auto found = tables_[server].find(table);
  if (found != tables_[server].end()) return &found->second;
  return wire::Error(absl::StatusCode::kNotFound, wire::reasons::kNoSuchTable,
                     "no such table");
}

absl::StatusOr<InMemoryCluster::Table*> InMemoryCluster::Create(
    int32_t server, std::string_view table, const client::TableSpec& spec) {
  MutexLock lock(mutex_);
  const auto found = tables_[server].find(table);
  if (found != tables_[server].end()) {
    if (found->second.spec == spec) return &found->second;
    return wire::Error(absl::StatusCode::kAlreadyExists,
                       wire::reasons::kTableDiffers, "another table");
  }
  ROWHOUSE_ASSIGN_OR_RETURN(
      std::unique_ptr<server::Shard> shard,
      server::Shard::Create(ToShardSpec(table, spec, server), limits_,
                            *backend_, *timers_));
  Table& created = tables_[server][std::string(table)];
  created = {spec, std::move(shard)};
  return &created;
}

absl::Status InMemoryCluster::Delete(int32_t server, std::string_view table) {
  MutexLock lock(mutex_);
  const auto found = tables_[server].find(table);
  if (found == tables_[server].end()) {
    return wire::Error(absl::StatusCode::kNotFound, wire::reasons::kNoSuchTable,
                       "no such table");
  }
  found->second.shard->Close(absl::NotFoundError("deleted"));
  tables_[server].erase(found);
  return absl::OkStatus();
}

std::vector<std::string> InMemoryCluster::TableNames(int32_t server) const {
  MutexLock lock(mutex_);
  std::vector<std::string> names;
  for (const auto& [name, table] : tables_[server]) names.push_back(name);
  return names;
}

}  // namespace rowhouse::testing
