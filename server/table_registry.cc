#include "server/table_registry.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/service/active_calls.h"
#include "server/service/convert.h"
#include "server/service/spec_validation.h"
#include "spdlog/spdlog.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;

absl::Status NoSuchTableError(std::string_view name) {
  return wire::Error(
      absl::StatusCode::kNotFound, reasons::kNoSuchTable,
      absl::StrCat("this server has no table ", std::string(name)),
      {{"table", std::string(name)}});
}

absl::Status NotPlacedError(std::string_view name, int32_t shard_count,
                            int32_t server_index) {
  return wire::Error(
      absl::StatusCode::kFailedPrecondition, reasons::kNotPlaced,
      absl::StrCat(std::string(name), " has ", shard_count,
                   " shards, on the servers before index ", shard_count,
                   "; this is the server of index ", server_index),
      {{"table", std::string(name)},
       {"shard_count", absl::StrCat(shard_count)},
       {"server_index", absl::StrCat(server_index)}});
}

// What the backend says of want of memory, for clients; other errors as they
// are.
absl::Status ForClients(std::string_view name, absl::Status status) {
  if (!absl::IsResourceExhausted(status)) return status;
  return wire::Error(absl::StatusCode::kResourceExhausted, reasons::kMemory,
                     absl::StrCat(std::string(name), ": ", status.message()),
                     {{"table", std::string(name)}});
}

// Why a call that has waited for its turn must not begin any more.
absl::Status CheckAlive(const Call& call, absl::Time now) {
  if (call.cancelled) return absl::CancelledError("the caller has gone");
  if (now >= call.deadline) {
    return absl::DeadlineExceededError(
        "the deadline passed before the call had its turn");
  }
  return absl::OkStatus();
}

}  // namespace

TableRegistry::TableRegistry(const Options& options, kernels::Backend& backend,
                             TimerQueue& timers)
    : options_(options), backend_(backend), timers_(timers) {}

TableRegistry::~TableRegistry() {
  Tables tables;
  {
    MutexLock lock(mutex_);
    tables.swap(tables_);
  }
  for (const auto& [name, table] : tables) table->shard->Close(DrainingError());
}

absl::StatusOr<std::shared_ptr<ServedTable>> TableRegistry::Find(
    std::string_view name) const {
  {
    MutexLock lock(mutex_);
    const auto found = tables_.find(name);
    if (found != tables_.end()) return found->second;
  }
  ROWHOUSE_RETURN_IF_ERROR(CheckTableName(name));
  return NoSuchTableError(name);
}

absl::StatusOr<std::shared_ptr<Shard>> TableRegistry::FindShard(
    std::string_view name) const {
  ROWHOUSE_ASSIGN_OR_RETURN(std::shared_ptr<ServedTable> table, Find(name));
  Shard* const shard = table->shard.get();
  return std::shared_ptr<Shard>(std::move(table), shard);
}

std::vector<std::shared_ptr<ServedTable>> TableRegistry::ListAfter(
    std::string_view name, int64_t max_count) const {
  std::vector<std::shared_ptr<ServedTable>> result;
  MutexLock lock(mutex_);
  for (auto table = tables_.upper_bound(name);
       table != tables_.end() &&
       static_cast<int64_t>(result.size()) < max_count;
       ++table) {
    result.push_back(table->second);
  }
  return result;
}

void TableRegistry::Create(std::string name, const v1::TableSpec& spec,
                           std::shared_ptr<Call> call,
                           Done<CreatedTable> done) {
  absl::StatusOr<v1::TableSpec> canonical = CheckCreation(name, spec);
  if (!canonical.ok()) return done(canonical.status());
  admin_.Post([this, name = std::move(name), canonical = *std::move(canonical),
               call = std::move(call), done = std::move(done)]() mutable {
    absl::Status alive = CheckAlive(*call, timers_.Now());
    if (!alive.ok()) return done(std::move(alive));
    done(CreateNow(name, canonical));
  });
}

void TableRegistry::Delete(std::string name, std::shared_ptr<Call> call,
                           absl::AnyInvocable<void(absl::Status)> done) {
  admin_.Post([this, name = std::move(name), call = std::move(call),
               done = std::move(done)]() mutable {
    absl::Status alive = CheckAlive(*call, timers_.Now());
    done(alive.ok() ? DeleteNow(name) : std::move(alive));
  });
}

int64_t TableRegistry::reserved_bytes() const {
  MutexLock lock(mutex_);
  return reserved_bytes_;
}

absl::StatusOr<v1::TableSpec> TableRegistry::CheckCreation(
    const std::string& name, const v1::TableSpec& spec) const {
  ROWHOUSE_RETURN_IF_ERROR(CheckTableName(name));
  ROWHOUSE_ASSIGN_OR_RETURN(v1::TableSpec canonical,
                            CanonicalSpec(spec, options_.server_count));
  if (options_.server_index >= canonical.shard_count()) {
    return NotPlacedError(name, canonical.shard_count(), options_.server_index);
  }
  return canonical;
}

absl::StatusOr<CreatedTable> TableRegistry::CreateNow(
    const std::string& name, const v1::TableSpec& canonical) {
  absl::StatusOr<std::shared_ptr<ServedTable>> existing = Find(name);
  if (existing.ok()) {
    ROWHOUSE_RETURN_IF_ERROR(CheckSameSpec(name, (*existing)->spec, canonical));
    return CreatedTable{*std::move(existing), true};
  }
  const ShardSpec shard_spec =
      ToShardSpec(name, canonical, options_.server_index);
  const int64_t bytes = Shard::ReservedBytes(shard_spec, options_.limits);
  ROWHOUSE_RETURN_IF_ERROR(Reserve(name, bytes));
  absl::StatusOr<std::unique_ptr<Shard>> shard =
      Shard::Create(shard_spec, options_.limits, backend_, timers_);
  if (!shard.ok()) {
    Release(bytes);
    spdlog::error("{}: cannot be created: {}", name, shard.status().ToString());
    return ForClients(name, shard.status());
  }
  std::shared_ptr<ServedTable> table =
      Own(new ServedTable{name, canonical, bytes, *std::move(shard)});
  table->needed_bytes = bytes;
  {
    MutexLock lock(mutex_);
    tables_[name] = table;
  }
  spdlog::info("{}: created, shard {} of {}, {} bytes", name,
               options_.server_index, canonical.shard_count(), bytes);
  return CreatedTable{std::move(table), false};
}

std::shared_ptr<ServedTable> TableRegistry::Own(ServedTable* table) {
  // The last holder may be the shard's own lane, which cannot free it.
  return std::shared_ptr<ServedTable>(table, [this](ServedTable* unused) {
    admin_.Post([this, unused] {
      const int64_t freed_bytes = unused->reserved_bytes;
      delete unused;
      Release(freed_bytes);
    });
  });
}

absl::Status TableRegistry::DeleteNow(const std::string& name) {
  ROWHOUSE_ASSIGN_OR_RETURN(std::shared_ptr<ServedTable> table, Find(name));
  {
    MutexLock lock(mutex_);
    tables_.erase(name);
  }
  table->shard->Close(NoSuchTableError(name));
  table->imports.InterruptAll(NoSuchTableError(name));
  spdlog::info("{}: deleted", name);
  return absl::OkStatus();
}

absl::StatusOr<int64_t> TableRegistry::BeginChange(ServedTable& table,
                                                   int32_t trainer_count) {
  ShardSpec spec = table.shard->spec();
  spec.trainer_count = trainer_count;
  const int64_t bytes = Shard::ReservedBytes(spec, options_.limits);
  MutexLock lock(mutex_);
  const int64_t added = bytes - table.reserved_bytes;
  if (added > 0) {
    ROWHOUSE_RETURN_IF_ERROR(CountLocked(table.name, added));
    // Holding the lock: changes are few, and small beside tables.
    absl::Status taken = SetAside(table.name, added);
    if (!taken.ok()) {
      reserved_bytes_ -= added;
      return taken;
    }
    table.reserved_bytes += added;
  }
  table.wanted_bytes.insert(bytes);
  return bytes;
}

void TableRegistry::EndChange(ServedTable& table, int64_t wanted_bytes,
                              bool made) {
  MutexLock lock(mutex_);
  table.wanted_bytes.erase(table.wanted_bytes.find(wanted_bytes));
  // Fewer trainers give nothing back: events under way have the old count.
  if (made) table.needed_bytes = std::max(table.needed_bytes, wanted_bytes);
  int64_t most = table.needed_bytes;
  if (!table.wanted_bytes.empty()) {
    most = std::max(most, *table.wanted_bytes.rbegin());
  }
  const int64_t unused = table.reserved_bytes - most;
  reserved_bytes_ -= unused;
  table.reserved_bytes = most;
  backend_.GiveBack(unused);
}

absl::StatusOr<std::shared_ptr<void>> TableRegistry::ReserveAside(
    std::string_view what, int64_t bytes) {
  ROWHOUSE_RETURN_IF_ERROR(Reserve(what, bytes));
  return std::shared_ptr<void>(nullptr,
                               [this, bytes](void*) { Release(bytes); });
}

absl::Status TableRegistry::Reserve(std::string_view name, int64_t bytes) {
  {
    MutexLock lock(mutex_);
    ROWHOUSE_RETURN_IF_ERROR(CountLocked(name, bytes));
  }
  absl::Status taken = SetAside(name, bytes);
  if (!taken.ok()) {
    MutexLock lock(mutex_);
    reserved_bytes_ -= bytes;
  }
  return taken;
}

absl::Status TableRegistry::SetAside(std::string_view name, int64_t bytes) {
  return ForClients(name, backend_.SetAside(bytes));
}

absl::Status TableRegistry::CountLocked(std::string_view name, int64_t bytes) {
  const int64_t limit = options_.memory_limit_bytes;
  if (bytes > limit - reserved_bytes_) {
    return wire::Error(
        absl::StatusCode::kResourceExhausted, reasons::kMemory,
        absl::StrCat(std::string(name), " needs ", bytes, " bytes; ",
                     reserved_bytes_, " of ", limit, " bytes are reserved"),
        {{"table", std::string(name)},
         {"needed_bytes", absl::StrCat(bytes)},
         {"reserved_bytes", absl::StrCat(reserved_bytes_)},
         {"limit_bytes", absl::StrCat(limit)}});
  }
  reserved_bytes_ += bytes;
  return absl::OkStatus();
}

void TableRegistry::Release(int64_t bytes) {
  backend_.GiveBack(bytes);
  MutexLock lock(mutex_);
  reserved_bytes_ -= bytes;
}

}  // namespace rowhouse::server
