// The binary: flags, exit codes, and how it ends.

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "grpcpp/channel.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "gtest/gtest.h"
#include "rowhouse/cluster.h"
#include "rowhouse/survey.h"
#include "rowhouse/v1/server_service.grpc.pb.h"
#include "tests/integration/process.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

constexpr char kListening[] = "rowhouse-server listening on ";

std::string TableText(int64_t row_count) {
  return "tables { name: 'tables/big' spec { row_count: " +
         std::to_string(row_count) +
         " dim: 4 row_dtype: DATA_TYPE_FP32 gradient_dtype: DATA_TYPE_FP32 "
         "shard_count: 1 trainer_count: 1 "
         "gradient_reduction: GRADIENT_REDUCTION_SUM "
         "max_contribution_row_count: 1 max_part_count: 1 sparse {} } }\n";
}

// A port of this machine on which nobody listens, and which a server can take.
class ReservedPort {
 public:
  ReservedPort() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    EXPECT_EQ(setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)),
              0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, generic, size), 0);
    EXPECT_EQ(getsockname(socket_, generic, &size), 0);
    address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  }
  ~ReservedPort() { close(socket_); }
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;

  const std::string& address() const { return address_; }

 private:
  const int socket_;
  std::string address_;
};

class ServerProcessTest : public ::testing::Test {
 protected:
  void SetUp() override { WriteConfig(""); }
  void TearDown() override { std::remove(config_.c_str()); }

  // A configuration that is good, followed by `more`.
  void WriteConfig(const std::string& more) {
    if (config_.empty()) {
      config_ = ::testing::TempDir() + "/rowhouse_server_XXXXXX";
      const int file = mkstemp(config_.data());
      ASSERT_GE(file, 0);
      close(file);
    }
    std::ofstream(config_) << "cluster_id: 'test'\nserver_count: 2\n"
                              "thread_count: 1\n"
                           << more;
  }

  std::unique_ptr<Process> Run(const std::vector<std::string>& arguments) {
    std::vector<std::string> command = {ROWHOUSE_SERVER_BINARY};
    command.insert(command.end(), arguments.begin(), arguments.end());
    return std::make_unique<Process>(command);
  }

  std::unique_ptr<Process> Serve(std::vector<std::string> arguments = {}) {
    arguments.push_back("--config=" + config_);
    return Run(arguments);
  }

  // The address that a starting server prints.
  static std::string AddressOf(Process& process) {
    const std::string line = process.ReadOut();
    EXPECT_THAT(line, StartsWith(kListening)) << process.RestOfErr();
    return line.substr(std::min(line.size(), sizeof(kListening) - 1));
  }

  void ExpectRefusal(const std::vector<std::string>& arguments, int exit_code,
                     const std::string& message) {
    const std::unique_ptr<Process> process = Run(arguments);
    EXPECT_THAT(process->RestOfErr(), HasSubstr(message));
    EXPECT_EQ(process->RestOfOut(), "");
    EXPECT_EQ(process->Wait(), exit_code);
  }

  std::string config_;
};

TEST_F(ServerProcessTest, ServesThenDrainsOnSigterm) {
  const std::unique_ptr<Process> process = Serve({"--server_index", "1"});
  const std::string address = AddressOf(*process);
  EXPECT_THAT(address, MatchesRegex("127\\.0\\.0\\.1:[1-9][0-9]*"));
  const auto stub = v1::ServerService::NewStub(
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  v1::GetServerResponse about;
  ASSERT_TRUE(stub->GetServer(&context, {}, &about).ok());
  EXPECT_EQ(about.server_index(), 1);
  EXPECT_EQ(about.server_count(), 2);
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(), 0);
}

TEST_F(ServerProcessTest, DrainsOnSigint) {
  const std::unique_ptr<Process> process = Serve();
  AddressOf(*process);
  process->Signal(SIGINT);
  EXPECT_EQ(process->Wait(), 0);
}

TEST_F(ServerProcessTest, ASecondSignalEndsItAtOnce) {
  WriteConfig("drain_delay_duration { seconds: 3600 }\n");
  const std::unique_ptr<Process> process = Serve();
  AddressOf(*process);
  process->Signal(SIGTERM);
  std::string line;
  do {
    line = process->ReadErr();
  } while (!line.empty() && line.find("draining") == std::string::npos);
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(), 1);
}

TEST_F(ServerProcessTest, APortServesOneServerOnly) {
  const std::unique_ptr<Process> first = Serve();
  const std::string address = AddressOf(*first);
  ExpectRefusal({"--config=" + config_, "--listen=" + address}, 3,
                address + " cannot be bound");
}

// gRPC brings a connection on only while some thread of the process is in a
// call, or looks every 5 seconds; here none is while the client waits.
TEST_F(ServerProcessTest, AClientFindsAServerThatCameUpAfterItsFirstTry) {
  const ReservedPort port;
  client::ClusterOptions options;
  options.addresses = {port.address()};
  options.check_servers = false;
  const auto cluster = client::Cluster::Connect(options);
  ASSERT_THAT(cluster, IsOk());
  const client::ServerState away = (*cluster)->Survey().front();
  EXPECT_EQ(away.status.code(), absl::StatusCode::kUnavailable);
  const std::unique_ptr<Process> process =
      Serve({"--listen=" + port.address()});
  ASSERT_EQ(AddressOf(*process), port.address());
  EXPECT_THAT((*cluster)->ListTables({.timeout = absl::Seconds(4)}), IsOk());
}

TEST_F(ServerProcessTest, RefusesFlagsThatItDoesNotKnow) {
  ExpectRefusal({"--verbose"}, 2, "'--verbose' is not a flag");
  ExpectRefusal({"--verbose=1"}, 2, "'--verbose=1' is not a flag");
  ExpectRefusal({"config"}, 2, "'config' is not a flag");
}

TEST_F(ServerProcessTest, RefusesValuesThatDoNotParse) {
  ExpectRefusal({"--server_index=one"}, 2,
                "--server_index has the value 'one'");
  ExpectRefusal({"--listen"}, 2, "--listen has no value");
  ExpectRefusal({"--config=" + config_, "--log_level=loud"}, 2,
                "--log_level is 'loud'");
}

TEST_F(ServerProcessTest, RefusesAConfigurationThatIsNotThereOrWrong) {
  ExpectRefusal({}, 2, "--config is not set");
  ExpectRefusal({"--config=/nowhere/config"}, 2, "/nowhere/config");
  ExpectRefusal({"--config=" + ::testing::TempDir()}, 2,
                ::testing::TempDir() + " is a directory");
  ExpectRefusal({"--config=" + config_, "--server_index=2"}, 2,
                "server_index is 2; it must be in [0, 1]");
  ExpectRefusal({"--config=" + config_, "--backend=tpu"}, 2,
                "backend is 'tpu'");
  WriteConfig("server_cuont: 1\n");
  ExpectRefusal({"--config=" + config_}, 2, config_ + ":4:13: ");
}

TEST_F(ServerProcessTest, RefusesTlsFilesThatAreNotWhatTheyShouldBe) {
  // The configuration itself is no PEM.
  WriteConfig("tls { certificate_file: '" + config_ + "' private_key_file: '" +
              config_ + "' }\n");
  ExpectRefusal({"--config=" + config_}, 2,
                "tls.certificate_file names " + config_);
  WriteConfig("tls { certificate_file: '/' }\n");
  ExpectRefusal({"--config=" + config_}, 2, "/ is a directory");
}

TEST_F(ServerProcessTest, RefusesATableThatItCannotMake) {
  WriteConfig("memory_limit_bytes: 1000\n" + TableText(1'000'000));
  ExpectRefusal({"--config=" + config_}, 2,
                "table tables/big cannot be made: ");
  WriteConfig(TableText(10) + TableText(11));
  ExpectRefusal({"--config=" + config_}, 2,
                "table tables/big cannot be made: ");
}

TEST_F(ServerProcessTest, TellsItsVersionAndItsExitCodes) {
  const std::unique_ptr<Process> version = Run({"--version"});
  EXPECT_THAT(version->ReadOut(),
              MatchesRegex("rowhouse-server [0-9]+\\.[0-9]+\\.[0-9]+"));
  EXPECT_EQ(version->Wait(), 0);
  const std::unique_ptr<Process> help = Run({"--help"});
  const std::string text = help->RestOfOut();
  EXPECT_THAT(text, HasSubstr("Exit codes:"));
  EXPECT_THAT(text, HasSubstr("--listen"));
  EXPECT_EQ(help->Wait(), 0);
}

}  // namespace
}  // namespace rowhouse::testing
