#ifndef ROWHOUSE_TESTS_SERVER_SERVICE_TEST_SERVER_H_
#define ROWHOUSE_TESTS_SERVER_SERVICE_TEST_SERVER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/channel.h"
#include "grpcpp/client_context.h"
#include "proto/wire/status.h"
#include "rowhouse/config/v1/server_config.pb.h"
#include "rowhouse/v1/event_service.grpc.pb.h"
#include "rowhouse/v1/row_service.grpc.pb.h"
#include "rowhouse/v1/server_service.grpc.pb.h"
#include "rowhouse/v1/table_service.grpc.pb.h"
#include "server/server.h"

namespace rowhouse::testing {

/// Parses a textproto; a fault fails the test.
template <typename Message>
Message FromText(const std::string& text);

/// Gives a call a deadline that no sound test reaches.
void SetDeadline(grpc::ClientContext& context);

/// Calls a unary method.
template <typename Stub, typename Request, typename Response>
absl::StatusOr<Response> Invoke(
    Stub& stub,
    grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                 Response*),
    const Request& request) {
  grpc::ClientContext context;
  SetDeadline(context);
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) return wire::FromGrpc(status);
  return response;
}

/// A whole PullRows answer.
struct PulledRows {
  int64_t event = 0;
  int64_t handle = 0;
  int64_t row_count = 0;
  int64_t message_count = 0;
  int64_t largest_message_bytes = 0;
  std::string rows;

  std::vector<float> Floats() const;
};

/// A server in this process on a free port of 127.0.0.1, and stubs over a
/// channel of default settings.
class TestServer {
 public:
  /// Server `index` of `count` of the cluster "test", with one CPU thread.
  explicit TestServer(int32_t index = 0, int32_t count = 1);
  explicit TestServer(const config::v1::ServerConfig& config);

  static config::v1::ServerConfig Config(int32_t index, int32_t count);

  server::Server& server() { return *server_; }
  std::shared_ptr<grpc::Channel> channel() const { return channel_; }
  v1::RowService::Stub& rows() { return *rows_; }
  v1::EventService::Stub& events() { return *events_; }
  v1::TableService::Stub& tables() { return *tables_; }
  v1::ServerService::Stub& servers() { return *servers_; }

  absl::StatusOr<v1::Table> CreateTable(const std::string& name,
                                        const std::string& spec);
  absl::StatusOr<PulledRows> Pull(const v1::PullRowsRequest& request);
  absl::StatusOr<PulledRows> Pull(const std::string& request);
  absl::StatusOr<v1::PushGradientsResponse> Push(
      const std::vector<v1::PushGradientsRequest>& messages);
  absl::StatusOr<v1::ImportRowsResponse> Import(
      const std::vector<v1::ImportRowsRequest>& messages);

  /// Opens session `session` of `rank`.
  absl::Status OpenSession(const std::string& table, int32_t rank,
                           int64_t session);
  absl::Status Seal(const std::string& table, int32_t rank, int64_t session,
                    int64_t event, int32_t part_count);
  absl::Status Commit(const std::string& request);
  absl::StatusOr<v1::DigestTableResponse> Digest(const std::string& table,
                                                 int64_t event);

 private:
  std::unique_ptr<server::Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::RowService::Stub> rows_;
  std::unique_ptr<v1::EventService::Stub> events_;
  std::unique_ptr<v1::TableService::Stub> tables_;
  std::unique_ptr<v1::ServerService::Stub> servers_;
};

/// The bytes of `values`, as fp32.
std::string Fp32(const std::vector<float>& values);

// --------------------------------------------------------------------- bodies
// --

void ParseText(const std::string& text, google::protobuf::Message& message);

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  ParseText(text, message);
  return message;
}

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_SERVICE_TEST_SERVER_H_
