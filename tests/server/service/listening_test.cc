// Where a server listens, and what one connection may have of it.

#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/service/raw_call.h"
#include "tests/server/service/test_server.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

absl::Status CallOver(const std::string& address) {
  const auto stub = v1::ServerService::NewStub(ChannelTo(address));
  return Invoke(*stub, &v1::ServerService::Stub::GetServer,
                v1::GetServerRequest())
      .status();
}

TEST(SocketTest, AServerListensOnSocketsBesideItsPort) {
  config::v1::ServerConfig config = TestServer::Config(0, 1);
  const std::string path =
      absl::StrCat("unix:", ::testing::TempDir(), "/rowhouse_", getpid());
  config.add_more_listen_addresses(path);
  TestServer server(config);
  const auto stub = v1::ServerService::NewStub(ChannelTo(path));
  const auto over_socket = Invoke(*stub, &v1::ServerService::Stub::GetServer,
                                  v1::GetServerRequest());
  ASSERT_THAT(over_socket, IsOk());
  const auto over_port =
      Invoke(server.servers(), &v1::ServerService::Stub::GetServer,
             v1::GetServerRequest());
  ASSERT_THAT(over_port, IsOk());
  EXPECT_EQ(over_socket->incarnation(), over_port->incarnation());
}

TEST(SocketTest, AServerMayListenOnASocketAlone) {
  config::v1::ServerConfig config = TestServer::Config(0, 1);
  const std::string path =
      absl::StrCat("unix:", ::testing::TempDir(), "/rowhouse_only_", getpid());
  config.set_listen_address(path);
  TestServer server(config);
  EXPECT_EQ(server.server().address(), path);
  EXPECT_THAT(Invoke(server.servers(), &v1::ServerService::Stub::GetServer,
                     v1::GetServerRequest()),
              IsOk());
}

TEST(SocketTest, AServerThatEndsLeavesItsSuccessorsSocket) {
  config::v1::ServerConfig config = TestServer::Config(0, 1);
  const std::string file =
      absl::StrCat(::testing::TempDir(), "/rowhouse_successor_", getpid());
  const std::string path = absl::StrCat("unix:", file);
  config.add_more_listen_addresses(path);
  auto first = std::make_unique<TestServer>(config);
  EXPECT_THAT(CallOver(path), IsOk());
  auto second = std::make_unique<TestServer>(config);
  first.reset();
  EXPECT_THAT(CallOver(path), IsOk());
  // Nothing is left of the last.
  second.reset();
  EXPECT_NE(access(file.c_str(), F_OK), 0);
}

TEST(SocketTest, AFileThatIsNoSocketIsLeftAlone) {
  config::v1::ServerConfig config = TestServer::Config(0, 1);
  const std::string file =
      absl::StrCat(::testing::TempDir(), "/rowhouse_file_", getpid());
  std::ofstream(file) << "kept";
  config.add_more_listen_addresses(absl::StrCat("unix:", file));
  EXPECT_THAT(server::Server::Start(config),
              StatusIs(absl::StatusCode::kUnavailable,
                       absl::StrCat("unix:", file, " cannot be bound")));
  std::string content;
  std::ifstream(file) >> content;
  EXPECT_EQ(content, "kept");
  unlink(file.c_str());
}

TEST(SocketTest, AnAddressThatCannotBeBoundIsNamed) {
  config::v1::ServerConfig config = TestServer::Config(0, 1);
  config.add_more_listen_addresses("unix:/nowhere/socket");
  EXPECT_THAT(server::Server::Start(config),
              StatusIs(absl::StatusCode::kUnavailable,
                       "unix:/nowhere/socket cannot be bound"));
}

// A push that says nothing yet.
struct SilentPush {
  explicit SilentPush(v1::RowService::Stub& stub)
      : writer(stub.PushGradients(&context, &response)) {}
  grpc::ClientContext context;
  v1::PushGradientsResponse response;
  std::unique_ptr<grpc::ClientWriter<v1::PushGradientsRequest>> writer;
};

TEST(ConnectionTest, ItHasSoManyCallsOpenAndOthersTheirs) {
  TestServer server;
  const std::string address = server.server().address();
  const auto full = ChannelTo(address);
  const auto rows = v1::RowService::NewStub(full);
  std::vector<std::unique_ptr<SilentPush>> pushes;
  for (int i = 0; i < 1024; ++i) {
    pushes.push_back(std::make_unique<SilentPush>(*rows));
  }
  while (server.server().calls().active_count() < 1024) {
    std::this_thread::yield();
  }
  const auto servers = v1::ServerService::NewStub(full);
  grpc::ClientContext late;
  late.set_deadline(std::chrono::system_clock::now() +
                    std::chrono::milliseconds(300));
  v1::GetServerResponse response;
  EXPECT_EQ(servers->GetServer(&late, {}, &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(CallOver(address), IsOk());
  // Whoever ends makes room.
  pushes.back()->context.TryCancel();
  EXPECT_THAT(Invoke(*servers, &v1::ServerService::Stub::GetServer,
                     v1::GetServerRequest()),
              IsOk());
  for (auto& push : pushes) push->context.TryCancel();
  for (auto& push : pushes) (void)push->writer->Finish();
}

}  // namespace
}  // namespace rowhouse::testing
