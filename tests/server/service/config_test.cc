#include "server/config.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using config::v1::ServerConfig;
using server::LoadConfig;
using server::ServerOptions;
using server::ToOptions;

constexpr absl::StatusCode kInvalid = absl::StatusCode::kInvalidArgument;

std::string Write(const std::string& text) {
  std::string path = ::testing::TempDir() + "/rowhouse_config_XXXXXX";
  const int file = mkstemp(path.data());
  EXPECT_GE(file, 0);
  close(file);
  std::ofstream(path) << text;
  return path;
}

ServerConfig Good() {
  ServerConfig config;
  config.set_cluster_id("c");
  config.set_server_count(2);
  return config;
}

TEST(LoadConfigTest, NamesFileLineAndColumnOfAFault) {
  const std::string path = Write("cluster_id: 'c'\nserver_cuont: 2\n");
  EXPECT_THAT(LoadConfig(path), StatusIs(kInvalid, path + ":2:13: "));
  std::remove(path.c_str());
}

TEST(LoadConfigTest, NamesAFileThatIsNotThere) {
  EXPECT_THAT(LoadConfig("/nowhere/config"),
              StatusIs(absl::StatusCode::kNotFound, "/nowhere/config"));
}

TEST(LoadConfigTest, TheExampleIsValid) {
  const auto config = LoadConfig(ROWHOUSE_EXAMPLE_CONFIG);
  ASSERT_THAT(config, IsOk());
  EXPECT_THAT(ToOptions(*config), IsOk());
}

TEST(ToOptionsTest, FillsInDefaults) {
  const auto options = ToOptions(Good());
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(options->listen_host, "127.0.0.1");
  EXPECT_EQ(options->listen_port, 0);
  EXPECT_EQ(options->backend.kind, kernels::BackendKind::kCpu);
  EXPECT_EQ(options->memory_limit_bytes, 0);
  EXPECT_EQ(options->limits.max_wait, absl::Seconds(30));
  EXPECT_EQ(options->limits.lease, absl::Seconds(30));
  EXPECT_EQ(options->limits.lane_capacity, 4096);
  EXPECT_EQ(options->limits.max_parked_read_count, 1024);
  EXPECT_EQ(options->limits.max_anonymous_pull_count, 8);
  EXPECT_EQ(options->limits.max_anonymous_head_call_count, 2);
  EXPECT_EQ(options->limits.head_blocks.token_count, 1024);
  EXPECT_EQ(options->limits.head_blocks.row_count, 2048);
  EXPECT_EQ(options->limits.logits_budget_bytes, int64_t{64} << 20);
  EXPECT_EQ(options->drain_delay, absl::ZeroDuration());
  EXPECT_EQ(options->drain_timeout, absl::Seconds(30));
}

TEST(ToOptionsTest, ADeviceHasLargerBlocksAndRoomForLogits) {
  ServerConfig config = Good();
  config.set_backend("cuda");
  auto options = ToOptions(config);
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(options->limits.head_blocks.token_count, 8192);
  EXPECT_EQ(options->limits.head_blocks.row_count, 16000);
  EXPECT_EQ(options->limits.logits_budget_bytes, int64_t{4} << 30);
  config.set_head_row_block(100);
  config.set_logits_budget_bytes(0);
  options = ToOptions(config);
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(options->limits.head_blocks.token_count, 8192);
  EXPECT_EQ(options->limits.head_blocks.row_count, 100);
  EXPECT_EQ(options->limits.logits_budget_bytes, 0);
}

TEST(ToOptionsTest, TakesAnIpv6AddressInBrackets) {
  ServerConfig config = Good();
  config.set_listen_address("[::1]:7070");
  const auto options = ToOptions(config);
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(options->listen_host, "[::1]");
  EXPECT_EQ(options->listen_port, 7070);
}

TEST(ToOptionsTest, TakesSocketsAndFurtherAddresses) {
  ServerConfig config = Good();
  config.set_listen_address("unix:/run/rowhouse");
  config.add_more_listen_addresses("0.0.0.0:7070");
  config.add_more_listen_addresses("unix:/run/other");
  const auto options = ToOptions(config);
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(options->listen_host, "unix:/run/rowhouse");
  EXPECT_THAT(options->more_listen_addresses,
              ::testing::ElementsAre("0.0.0.0:7070", "unix:/run/other"));
}

TEST(ToOptionsTest, BytesInFlightHaveDefaultsAndLimits) {
  ServerConfig config = Good();
  auto options = ToOptions(config);
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(options->in_flight.total_bytes, int64_t{512} << 20);
  EXPECT_EQ(options->in_flight.client_bytes, int64_t{8} << 20);
  config.set_max_in_flight_bytes(1 << 22);
  config.set_max_client_in_flight_bytes(1 << 21);
  options = ToOptions(config);
  ASSERT_THAT(options, IsOk());
  EXPECT_EQ(options->in_flight.total_bytes, 1 << 22);
  EXPECT_EQ(options->in_flight.client_bytes, 1 << 21);
}

TEST(ToOptionsTest, NamesTheFieldThatIsWrong) {
  struct Case {
    std::string fields;
    std::string message;
  };
  const std::vector<Case> cases = {
      {"cluster_id: ''", "cluster_id is ''"},
      {"server_count: 0", "server_count is 0; it must be in [1, 65536]"},
      {"server_index: 2", "server_index is 2; it must be in [0, 1]"},
      {"server_index: -1", "server_index is -1"},
      {"listen_address: '127.0.0.1'", "listen_address is '127.0.0.1'"},
      {"listen_address: ':80'", "listen_address is ':80'"},
      {"listen_address: 'h:65536'", "listen_address is 'h:65536'"},
      {"listen_address: 'h:x'", "listen_address is 'h:x'"},
      {"listen_address: '::1:80'", "listen_address is '::1:80'"},
      {"listen_address: 'unix:x'", "listen_address is 'unix:x'"},
      {"listen_address: 'unix:/" + std::string(98, 'x') + "'",
       "an absolute path of at most 98 bytes"},
      {"more_listen_addresses: ['h:1', 'h:0']",
       "more_listen_addresses[1] is 'h:0'"},
      {"max_in_flight_bytes: 2097151", "max_in_flight_bytes is 2097151"},
      {"max_client_in_flight_bytes: -1", "max_client_in_flight_bytes is -1"},
      {"backend: 'tpu'", "backend is 'tpu'; it must be 'cpu' or 'cuda'"},
      {"device_index: -1", "device_index is -1"},
      {"thread_count: -1", "thread_count is -1"},
      {"memory_limit_bytes: -1", "memory_limit_bytes is -1"},
      {"lane_capacity: -1", "lane_capacity is -1"},
      {"max_parked_read_count: -1", "max_parked_read_count is -1"},
      {"max_anonymous_pull_count: -1", "max_anonymous_pull_count is -1"},
      {"max_anonymous_head_call_count: -1",
       "max_anonymous_head_call_count is -1"},
      {"head_token_block: -1", "head_token_block is -1"},
      {"head_row_block: -1", "head_row_block is -1"},
      {"max_wait_duration {}", "max_wait_duration is 0"},
      {"lease_duration { seconds: -1 }", "lease_duration is -1s"},
      {"drain_delay_duration { seconds: 86401 }",
       "drain_delay_duration is 24h"},
      {"drain_timeout_duration { nanos: -1 }",
       "drain_timeout_duration is -1ns"},
      {"tables { name: 'x' }", "tables[0]: the table's name is 'x'"},
      {"tables { name: 'tables/x' spec { sparse {} } }",
       "tables[0]: spec.row_count is 0"},
  };
  for (const Case& bad : cases) {
    ServerConfig config = Good();
    google::protobuf::TextFormat::Parser parser;
    ASSERT_TRUE(parser.MergeFromString(bad.fields, &config)) << bad.fields;
    EXPECT_THAT(ToOptions(config), StatusIs(kInvalid, bad.message));
  }
}

TEST(ToOptionsTest, NamesAKeyFileThatIsNotThere) {
  ServerConfig config = Good();
  config.mutable_tls()->set_certificate_file("/nowhere/server.pem");
  EXPECT_THAT(ToOptions(config),
              StatusIs(absl::StatusCode::kNotFound, "/nowhere/server.pem"));
}

}  // namespace
}  // namespace rowhouse::testing
