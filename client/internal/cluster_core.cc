#include "client/internal/cluster_core.h"

#include <string>
#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

absl::Status Differs(const ServerInfo& info, std::string_view what,
                     std::string_view found, std::string_view wanted) {
  return wire::Error(
      absl::StatusCode::kFailedPrecondition, wire::reasons::kServerDiffers,
      absl::StrCat(info.address, ": ", std::string(what), " ",
                   std::string(found), ", wanted ", std::string(wanted)),
      {{"address", info.address},
       {"found", std::string(found)},
       {"wanted", std::string(wanted)}});
}

}  // namespace

absl::Status CheckServer(const ServerInfo& info, std::string_view cluster_id,
                         int32_t index, int32_t count) {
  if (!cluster_id.empty() && info.cluster_id != cluster_id) {
    return Differs(info, "cluster id", info.cluster_id, cluster_id);
  }
  if (info.server_index != index) {
    return Differs(info, "server index", std::to_string(info.server_index),
                   std::to_string(index));
  }
  if (info.server_count != count) {
    return Differs(info, "server count", std::to_string(info.server_count),
                   std::to_string(count));
  }
  return absl::OkStatus();
}

absl::Status AtAddress(const absl::Status& status, std::string_view address) {
  if (status.ok()) return status;
  absl::Status result(status.code(), absl::StrCat(std::string(address), ": ",
                                                  status.message()));
  status.ForEachPayload(
      [&](absl::string_view type_url, const absl::Cord& payload) {
        result.SetPayload(type_url, payload);
      });
  return result;
}

absl::StatusOr<kernels::Backend*> ClusterCore::DeviceOf(
    std::span<const std::byte> buffer) const {
  if (device_ == nullptr) return nullptr;
  ROWHOUSE_ASSIGN_OR_RETURN(
      const bool is_device,
      device_->IsDeviceMemory(buffer.data(), std::ssize(buffer)));
  return is_device ? device_.get() : nullptr;
}

absl::Status ClusterCore::CheckServers(std::string_view cluster_id,
                                       const CallContext& context) {
  std::vector<ServerInfo> servers(server_count());
  ROWHOUSE_RETURN_IF_ERROR(CallServers(
      server_count(), context, [&](int32_t index, ShardChannel& channel) {
        absl::StatusOr<ServerInfo> info = channel.GetServer(context);
        if (info.ok()) servers[index] = *std::move(info);
        return info.status();
      }));
  for (int32_t index = 0; index < server_count(); ++index) {
    // Servers of one cluster agree on its name, given or not.
    ROWHOUSE_RETURN_IF_ERROR(CheckServer(
        servers[index], cluster_id.empty() ? servers[0].cluster_id : cluster_id,
        index, server_count()));
  }
  servers_ = std::move(servers);
  return absl::OkStatus();
}

absl::Status ClusterCore::CallServer(
    int32_t server, const CallContext& context,
    absl::FunctionRef<absl::Status(ShardChannel&)> call) const {
  ShardChannel& channel = *channels_[server];
  return AtAddress(
      RetryUntil(*clock_, retry_, context, [&] { return call(channel); }),
      channel.address());
}

absl::Status ClusterCore::CallServers(
    int32_t count, const CallContext& context,
    absl::FunctionRef<absl::Status(int32_t, ShardChannel&)> call) {
  return pool_.FanOut(count, [&](int32_t server) {
    return CallServer(server, context, [&](ShardChannel& channel) {
      return call(server, channel);
    });
  });
}

}  // namespace rowhouse::client::internal
