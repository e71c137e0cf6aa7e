#include "tests/server/service/test_server.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"

namespace rowhouse::testing {
namespace {

// Writes all messages; a server that ends the call early is asked why.
template <typename Response, typename Stub, typename Message>
absl::StatusOr<Response> WriteAll(Stub& stub,
                                  std::unique_ptr<grpc::ClientWriter<Message>> (
                                      Stub::*method)(grpc::ClientContext*,
                                                     Response*),
                                  const std::vector<Message>& messages) {
  grpc::ClientContext context;
  SetDeadline(context);
  Response response;
  const std::unique_ptr<grpc::ClientWriter<Message>> writer =
      (stub.*method)(&context, &response);
  for (const Message& message : messages) {
    if (!writer->Write(message)) break;
  }
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  if (!status.ok()) return wire::FromGrpc(status);
  return response;
}

}  // namespace

void ParseText(const std::string& text, google::protobuf::Message& message) {
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message))
      << text;
}

void SetDeadline(grpc::ClientContext& context) {
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(60));
}

std::string Fp32(const std::vector<float>& values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  if (!values.empty()) {
    std::memcpy(bytes.data(), values.data(), bytes.size());
  }
  return bytes;
}

std::vector<float> PulledRows::Floats() const {
  std::vector<float> values(rows.size() / sizeof(float));
  std::memcpy(values.data(), rows.data(), rows.size());
  return values;
}

TestServer::TestServer(int32_t index, int32_t count)
    : TestServer(Config(index, count)) {}

TestServer::TestServer(const config::v1::ServerConfig& config) {
  absl::StatusOr<std::unique_ptr<server::Server>> server =
      server::Server::Start(config);
  if (!server.ok()) {
    ADD_FAILURE() << server.status();
    std::abort();
  }
  server_ = *std::move(server);
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  channel_ = grpc::CreateCustomChannel(
      server_->address(), grpc::InsecureChannelCredentials(), arguments);
  rows_ = v1::RowService::NewStub(channel_);
  events_ = v1::EventService::NewStub(channel_);
  tables_ = v1::TableService::NewStub(channel_);
  servers_ = v1::ServerService::NewStub(channel_);
}

config::v1::ServerConfig TestServer::Config(int32_t index, int32_t count) {
  config::v1::ServerConfig config;
  config.set_cluster_id("test");
  config.set_server_index(index);
  config.set_server_count(count);
  config.set_thread_count(1);
  config.set_memory_limit_bytes(int64_t{1} << 30);
  return config;
}

absl::StatusOr<v1::Table> TestServer::CreateTable(const std::string& name,
                                                  const std::string& spec) {
  v1::CreateTableRequest request;
  request.set_name(name);
  ParseText(spec, *request.mutable_spec());
  absl::StatusOr<v1::CreateTableResponse> response =
      Invoke(tables(), &v1::TableService::Stub::CreateTable, request);
  if (!response.ok()) return response.status();
  return response->table();
}

absl::StatusOr<PulledRows> TestServer::Pull(
    const v1::PullRowsRequest& request) {
  grpc::ClientContext context;
  SetDeadline(context);
  const auto reader = rows().PullRows(&context, request);
  PulledRows result;
  v1::PullRowsResponse message;
  while (reader->Read(&message)) {
    if (result.message_count == 0) {
      result.event = message.event();
      result.handle = message.handle();
      result.row_count = message.row_count();
    }
    EXPECT_EQ(message.event(), result.event);
    ++result.message_count;
    result.largest_message_bytes =
        std::max(result.largest_message_bytes,
                 static_cast<int64_t>(message.ByteSizeLong()));
    result.rows += message.rows();
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return wire::FromGrpc(status);
  return result;
}

absl::StatusOr<PulledRows> TestServer::Pull(const std::string& request) {
  return Pull(FromText<v1::PullRowsRequest>(request));
}

absl::StatusOr<v1::PushGradientsResponse> TestServer::Push(
    const std::vector<v1::PushGradientsRequest>& messages) {
  return WriteAll(rows(), &v1::RowService::Stub::PushGradients, messages);
}

absl::StatusOr<v1::ImportRowsResponse> TestServer::Import(
    const std::vector<v1::ImportRowsRequest>& messages) {
  return WriteAll(rows(), &v1::RowService::Stub::ImportRows, messages);
}

absl::Status TestServer::OpenSession(const std::string& table, int32_t rank,
                                     int64_t session) {
  v1::OpenSessionRequest request;
  request.set_table(table);
  request.mutable_trainer()->set_trainer_rank(rank);
  request.mutable_trainer()->set_session(session);
  request.set_owner(1);
  return Invoke(events(), &v1::EventService::Stub::OpenSession, request)
      .status();
}

absl::Status TestServer::Seal(const std::string& table, int32_t rank,
                              int64_t session, int64_t event,
                              int32_t part_count) {
  v1::SealContributionRequest request;
  request.set_table(table);
  request.mutable_trainer()->set_trainer_rank(rank);
  request.mutable_trainer()->set_session(session);
  request.set_event(event);
  request.set_part_count(part_count);
  return Invoke(events(), &v1::EventService::Stub::SealContribution, request)
      .status();
}

absl::Status TestServer::Commit(const std::string& request) {
  return Invoke(events(), &v1::EventService::Stub::CommitEvent,
                FromText<v1::CommitEventRequest>(request))
      .status();
}

absl::StatusOr<v1::DigestTableResponse> TestServer::Digest(
    const std::string& table, int64_t event) {
  v1::DigestTableRequest request;
  request.set_name(table);
  request.set_exact_event(event);
  return Invoke(tables(), &v1::TableService::Stub::DigestTable, request);
}

}  // namespace rowhouse::testing
