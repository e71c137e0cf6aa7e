#include "client/cli/json.h"

#include <string>
#include <variant>

#include "absl/status/status.h"
#include "client/cli/command.h"
#include "client/cli/elements.h"

namespace rowhouse::cli {
namespace {

using namespace client;  // NOLINT: every type here is the client's.

Json ToJson(const TrainerCountChange& change) {
  return {{"from_event", change.from_event},
          {"trainer_count", change.trainer_count}};
}

Json ToJson(const TableShard& shard) {
  return {{"address", shard.address},
          {"first_row", shard.first_row},
          {"end_row", shard.end_row},
          {"event", shard.event},
          {"reserved_bytes", shard.reserved_bytes}};
}

Json ToJson(const ContributionState& contribution) {
  return {{"rank", contribution.rank},
          {"session", contribution.session},
          {"sealed", contribution.sealed},
          {"part_count", contribution.part_count},
          {"row_count", contribution.row_count},
          {"token_count", contribution.token_count},
          {"folded_part_count", contribution.folded_part_count}};
}

// A template finds only what stands before it.
Json ToJson(const OpenEventState& event);
Json ToJson(const AppliedEventState& event);
Json ToJson(const SessionState& session);
Json ToJson(const ShardState& shard);

template <typename T>
Json ToArray(const std::vector<T>& values) {
  Json array = Json::array();
  for (const T& value : values) array.push_back(ToJson(value));
  return array;
}

Json ToJson(const OpenEventState& event) {
  return {{"event", event.event},
          {"trainer_count", event.trainer_count},
          {"all_sealed", event.all_sealed},
          {"contributions", ToArray(event.contributions)}};
}

Json ToJson(const AppliedEventState& event) {
  return {{"event", event.event},
          {"update", NameOf(event.commit.update)},
          {"sessions", event.commit.sessions},
          {"entry_count", event.entry_count},
          {"row_count", event.row_count},
          {"untouched_row_count", event.untouched_row_count},
          {"moved_bytes", event.moved_bytes}};
}

Json ToJson(const SessionState& session) {
  return {{"rank", session.rank},
          {"session", session.session},
          {"idle_seconds", absl::ToDoubleSeconds(session.idle)},
          {"lease_expired", session.lease_expired}};
}

Json ToJson(const ShardLoad& load) {
  return {{"lane_call_count", load.lane_call_count},
          {"max_lane_call_count", load.max_lane_call_count},
          {"parked_call_count", load.parked_call_count},
          {"max_parked_call_count", load.max_parked_call_count},
          {"open_pull_count", load.open_pull_count},
          {"landing_part_count", load.landing_part_count},
          {"open_head_call_count", load.open_head_call_count},
          {"staged_bytes", load.staged_bytes},
          {"recording_count", load.recording_count},
          {"recording_held_bytes", load.recording_held_bytes},
          {"recording_buffer_bytes", load.recording_buffer_bytes}};
}

Json ToJson(const ShardState& shard) {
  return {{"table", shard.table},
          {"shard_index", shard.shard_index},
          {"first_row", shard.first_row},
          {"end_row", shard.end_row},
          {"reserved_bytes", shard.reserved_bytes},
          {"spec", cli::ToJson(shard.spec)},
          {"trainer_counts", ToArray(shard.trainer_counts)},
          {"events", cli::ToJson(shard.events)}};
}

}  // namespace

const char* NameOf(GradientReduction reduction) {
  return reduction == GradientReduction::kSum ? "sum" : "mean";
}

const char* NameOf(NonFinitePolicy policy) {
  switch (policy) {
    case NonFinitePolicy::kReject:
      return "reject";
    case NonFinitePolicy::kSkipRow:
      return "skip_row";
    case NonFinitePolicy::kPropagate:
      return "propagate";
  }
  return "?";
}

const char* NameOf(const EventUpdate& update) {
  if (std::holds_alternative<RowAdamScalars>(update)) return "row_adam";
  if (std::holds_alternative<AdamWScalars>(update)) return "adamw";
  return "skip";
}

Json ToJson(const TableSpec& spec) {
  Json json = {{"row_count", spec.row_count},
               {"dim", spec.dim},
               {"row_dtype", NameOf(spec.row_dtype)},
               {"gradient_dtype", NameOf(spec.gradient_dtype)},
               {"shard_count", spec.shard_count},
               {"trainer_count", spec.trainer_count},
               {"non_finite_policy", NameOf(spec.non_finite_policy)},
               {"max_contribution_row_count", spec.max_contribution_row_count},
               {"max_part_count", spec.max_part_count},
               {"max_pull_bytes", spec.max_pull_bytes}};
  if (!spec.shard_bounds.empty()) json["shard_bounds"] = spec.shard_bounds;
  if (spec.gradient_reduction.has_value()) {
    json["gradient_reduction"] = NameOf(*spec.gradient_reduction);
  }
  if (spec.initializer.kind == Initializer::Kind::kUniform) {
    json["initializer"] = {{"kind", "uniform"},
                           {"seed", spec.initializer.seed},
                           {"bound", spec.initializer.bound}};
  } else {
    json["initializer"] = {{"kind", "zeros"}};
  }
  if (spec.dense.has_value()) {
    json["dense"] = {
        {"main_grad_dtype", NameOf(spec.dense->main_grad_dtype)},
        {"has_master", spec.dense->has_master},
        {"has_bias", spec.dense->has_bias},
        {"max_head_token_count", spec.dense->max_head_token_count}};
  }
  if (spec.ngram.has_value()) {
    json["ngram"] = {{"sign_seed", spec.ngram->sign_seed},
                     {"sign_row_count", spec.ngram->sign_row_count}};
  }
  return json;
}

Json ToJson(const TableInfo& table) {
  return {{"table", table.name},
          {"event", table.event},
          {"spec", ToJson(table.spec)},
          {"trainer_counts", ToArray(table.trainer_counts)},
          {"shards", ToArray(table.shards)}};
}

Json ToJson(const EventState& state) {
  return {{"event", state.event},
          {"open_events", ToArray(state.open_events)},
          {"applied_events", ToArray(state.applied_events)},
          {"sessions", ToArray(state.sessions)},
          {"load", ToJson(state.load)}};
}

Json ToJson(const ServerState& server) {
  Json json = {{"address", server.address}, {"ok", server.status.ok()}};
  if (!server.status.ok()) {
    json["code"] = absl::StatusCodeToString(server.status.code());
    json["error"] = std::string(server.status.message());
  }
  if (server.info.has_value()) {
    const ServerInfo& info = *server.info;
    json["cluster_id"] = info.cluster_id;
    json["server_index"] = info.server_index;
    json["server_count"] = info.server_count;
    json["incarnation"] = info.incarnation;
    json["draining"] = info.draining;
    json["backend"] = info.backend;
    json["version"] = info.version;
    json["device"] = {{"description", info.device.description},
                      {"index", info.device.index},
                      {"memory_bytes", info.device.memory_bytes},
                      {"free_memory_bytes", info.device.free_memory_bytes}};
    json["reserved_bytes"] = info.reserved_bytes;
    json["memory_limit_bytes"] = info.memory_limit_bytes;
  }
  json["shards"] = ToArray(server.shards);
  return json;
}

void PrintJson(const Json& json) { Print(json.dump(2) + "\n"); }

}  // namespace rowhouse::cli
