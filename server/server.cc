#include "server/server.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/ext/proto_server_reflection_plugin.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server_builder.h"
#include "kernels/cpu_isa.h"
#include "kernels/openblas.h"
#include "proto/wire/status_macros.h"
#include "server/transport/retry_allocation.h"
#include "server/version.h"
#include "spdlog/spdlog.h"

namespace rowhouse::server {
namespace {

// What is still open when all calls have ended: streams of health and
// reflection.
constexpr absl::Duration kCloseTimeout = absl::Seconds(1);

// Of one connection; a client's further calls wait for one to end.
constexpr int kMostConnectionCalls = 1024;

int64_t NewIncarnation() {
  std::random_device random;
  const auto high = static_cast<uint64_t>(random()) << 32;
  return static_cast<int64_t>(high | random());
}

constexpr std::string_view kUnix = "unix:";

std::string NameOf(kernels::BackendKind kind) {
  return kind == kernels::BackendKind::kCuda ? "cuda" : "cpu";
}

std::shared_ptr<grpc::ServerCredentials> ToCredentials(
    const ServerOptions& options) {
  if (!options.tls.has_value()) return grpc::InsecureServerCredentials();
  grpc::SslServerCredentialsOptions ssl(
      options.tls->client_ca.empty()
          ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
          : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  ssl.pem_key_cert_pairs.push_back(
      {options.tls->private_key, options.tls->certificate});
  ssl.pem_root_certs = options.tls->client_ca;
  return grpc::SslServerCredentials(ssl);
}

void SetChannelArguments(grpc::ServerBuilder& builder) {
  // Two servers on one port would each get some of the calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  // Clients ping every 10 s, also without calls; faster ones are cut off.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(
      GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  // Sound clients have far fewer calls open; each may hold messages.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS,
                             kMostConnectionCalls);
  // A client whose machine has gone frees its pulls.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 30'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 20'000);
}

absl::Status SetMemoryLimit(kernels::Backend& backend, ServerOptions& options) {
  if (options.memory_limit_bytes != 0) return absl::OkStatus();
  ROWHOUSE_ASSIGN_OR_RETURN(const kernels::MemoryState memory,
                            backend.Memory());
  switch (options.backend.kind) {
    case kernels::BackendKind::kCpu:
      options.memory_limit_bytes = memory.total_bytes / 10 * 8;
      break;
    case kernels::BackendKind::kCuda:
      // The rest is for scratch memory, which is reserved beside it.
      options.memory_limit_bytes = memory.free_bytes / 100 * 95;
      break;
  }
  return absl::OkStatus();
}

TableRegistry::Options RegistryOptions(const ServerOptions& options) {
  return {.server_index = options.server_index,
          .server_count = options.server_count,
          .memory_limit_bytes = options.memory_limit_bytes,
          .limits = options.limits};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    const config::v1::ServerConfig& config) {
  ROWHOUSE_ASSIGN_OR_RETURN(const ServerOptions options, ToOptions(config));
  const absl::Duration patience = options.limits.one_sided
                                      ? options.one_sided.allocation_timeout
                                      : absl::ZeroDuration();
  ROWHOUSE_ASSIGN_OR_RETURN(std::unique_ptr<Server> server,
                            RetryAllocation<std::unique_ptr<Server>>(
                                patience, [&] { return MakeTables(options); }));
  ROWHOUSE_RETURN_IF_ERROR(server->Listen());
  return server;
}

absl::StatusOr<std::unique_ptr<Server>> Server::MakeTables(
    const ServerOptions& options) {
  ServerOptions limited = options;
  ROWHOUSE_ASSIGN_OR_RETURN(std::unique_ptr<kernels::Backend> backend,
                            kernels::MakeBackend(options.backend));
  ROWHOUSE_RETURN_IF_ERROR(SetMemoryLimit(*backend, limited));
  std::unique_ptr<Server> server(
      new Server(std::move(limited), std::move(backend)));
  ROWHOUSE_RETURN_IF_ERROR(server->CreateTables());
  return server;
}

Server::Server(ServerOptions options, std::unique_ptr<kernels::Backend> backend)
    : options_(std::move(options)),
      backend_(std::move(backend)),
      timers_(MakeSystemTimerQueue()),
      tables_(RegistryOptions(options_), *backend_, *timers_),
      staging_(*backend_, options_.in_flight),
      row_service_(tables_, calls_, staging_),
      event_service_(tables_, calls_),
      table_service_(tables_, calls_),
      server_service_({.cluster_id = options_.cluster_id,
                       .incarnation = NewIncarnation(),
                       .backend = NameOf(options_.backend.kind),
                       .device_index = options_.backend.device_index},
                      tables_, calls_, [this] { Drain(); }),
      lm_head_service_(tables_, calls_, mappings_, links_),
      transport_service_(tables_, calls_, mappings_, options_.one_sided, links_,
                         options_.backend, options_.links),
      checkpoints_(options_.checkpoints.has_value()
                       ? std::make_unique<Checkpoints>(*options_.checkpoints)
                       : nullptr),
      checkpoint_service_(tables_, calls_, *timers_, checkpoints_.get()) {}

Server::~Server() {
  if (!drain_thread_.joinable()) return;  // It never served.
  {
    MutexLock lock(mutex_);
    at_once_ = true;
    changed_.SignalAll();
  }
  Drain();
  drain_thread_.join();
}

std::string Server::address() const { return AddressWith(port_); }

std::string Server::AddressWith(int32_t port) const {
  if (options_.listen_host.starts_with(kUnix)) return options_.listen_host;
  return absl::StrCat(options_.listen_host, ":", port);
}

void Server::Drain() {
  MutexLock lock(mutex_);
  draining_ = true;
  changed_.SignalAll();
}

void Server::Wait() {
  MutexLock lock(mutex_);
  while (!ended_) changed_.Wait(mutex_);
}

absl::Status Server::CreateTables() {
  for (const config::v1::TableConfig& table : options_.tables) {
    // One file serves a cluster; not every table is on every server.
    if (table.spec().shard_count() <= options_.server_index) continue;
    Mutex mutex;
    CondVar changed;
    std::optional<absl::Status> status;
    tables_.Create(table.name(), table.spec(), std::make_shared<Call>(),
                   [&](absl::StatusOr<CreatedTable> created) {
                     MutexLock lock(mutex);
                     status = created.status();
                     changed.SignalAll();
                   });
    MutexLock lock(mutex);
    while (!status.has_value()) changed.Wait(mutex);
    if (status->ok()) continue;
    return absl::Status(status->code(),
                        absl::StrCat("table ", table.name(),
                                     " cannot be made: ", status->message()));
  }
  return absl::OkStatus();
}

absl::Status Server::Listen() {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  SetChannelArguments(builder);
  std::vector<std::string> addresses = {AddressWith(options_.listen_port)};
  addresses.insert(addresses.end(), options_.more_listen_addresses.begin(),
                   options_.more_listen_addresses.end());
  std::vector<int> ports(addresses.size());
  for (size_t i = 0; i < addresses.size(); ++i) {
    std::string bound = addresses[i];
    if (bound.starts_with(kUnix)) {
      sockets_.emplace_back(bound.substr(kUnix.size()));
      bound = std::string(kUnix) + sockets_.back().bound();
    }
    builder.AddListeningPort(bound, ToCredentials(options_), &ports[i]);
  }
  builder.RegisterService(&row_service_);
  builder.RegisterService(&event_service_);
  builder.RegisterService(&table_service_);
  builder.RegisterService(&server_service_);
  builder.RegisterService(&lm_head_service_);
  builder.RegisterService(&transport_service_);
  builder.RegisterService(&checkpoint_service_);
  grpc_ = builder.BuildAndStart();
  const auto unbound = std::find(ports.begin(), ports.end(), 0);
  if (unbound != ports.end()) {
    return absl::UnavailableError(absl::StrCat(
        addresses[static_cast<size_t>(unbound - ports.begin())],
        " cannot be bound; it must be a free port of this machine, or a path "
        "where a socket can be made"));
  }
  if (grpc_ == nullptr) {
    return absl::UnavailableError(
        absl::StrCat(addresses[0], " cannot be served"));
  }
  port_ = ports[0];
  for (SocketPath& socket : sockets_) {
    ROWHOUSE_RETURN_IF_ERROR(socket.Publish());
  }
  SetHealth(true);
  drain_thread_ = std::thread([this] { RunDrain(); });
  addresses[0] = address();
  spdlog::info("server {} of {} of cluster {}, version {}, listens on {}",
               options_.server_index, options_.server_count,
               options_.cluster_id, std::string(Version()),
               absl::StrJoin(addresses, ", "));
  LogBackend();
  return absl::OkStatus();
}

void Server::LogBackend() const {
  spdlog::info("backend: {}; tables may reserve {} bytes",
               backend_->Description(), options_.memory_limit_bytes);
  if (options_.backend.kind != kernels::BackendKind::kCpu) return;
  const auto isa = kernels::ChooseCpuIsa(options_.backend.cpu_isa);
  if (!isa.ok()) return;
  const std::optional<std::string> advice = kernels::OpenBlasAdvice(*isa);
  if (advice.has_value()) spdlog::warn(*advice);
}

void Server::SetHealth(bool serving) {
  grpc::HealthCheckServiceInterface& health = *grpc_->GetHealthCheckService();
  health.SetServingStatus(serving);
  for (const char* service : {v1::RowService::service_full_name(),
                              v1::EventService::service_full_name(),
                              v1::TableService::service_full_name(),
                              v1::ServerService::service_full_name(),
                              v1::LmHeadService::service_full_name(),
                              v1::TransportService::service_full_name()}) {
    health.SetServingStatus(service, serving);
  }
}

void Server::AwaitDrain() {
  MutexLock lock(mutex_);
  while (!draining_) changed_.Wait(mutex_);
}

void Server::RunDrain() {
  AwaitDrain();
  SetHealth(false);
  spdlog::info("draining: calls are refused in {}",
               absl::FormatDuration(options_.drain_delay));
  const absl::Time refuse_time = absl::Now() + options_.drain_delay;
  bool at_once = false;
  {
    MutexLock lock(mutex_);
    while (!at_once_ && absl::Now() < refuse_time) {
      changed_.WaitUntil(mutex_, absl::ToChronoTime(refuse_time));
    }
    at_once = at_once_;
  }
  calls_.Drain();
  const int64_t left = calls_.WaitUntilIdle(
      at_once ? absl::Now() : absl::Now() + options_.drain_timeout);
  if (left > 0) spdlog::warn("draining: {} calls are cancelled", left);
  transport_service_.EndLinks();
  sockets_.clear();
  grpc_->Shutdown(absl::ToChronoTime(
      absl::Now() + (left > 0 ? absl::ZeroDuration() : kCloseTimeout)));
  spdlog::info("drained");
  MutexLock lock(mutex_);
  ended_ = true;
  changed_.SignalAll();
}

}  // namespace rowhouse::server
