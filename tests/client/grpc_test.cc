// The library over gRPC, to real servers in this process.

#include <unistd.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "rowhouse/cluster.h"
#include "rowhouse/ngram_embedding.h"
#include "rowhouse/trainer.h"
#include "server/server.h"
#include "tests/client/path.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::ListenAddress;
using rowhouse::testing::Path;
using rowhouse::testing::StatusIs;

/// Two servers. The parameter: what they listen on; and whether they offer the
/// one-sided path, and the client takes it.
class GrpcTest : public ::testing::TestWithParam<Path> {
 protected:
  void SetUp() override {
    for (int32_t index = 0; index < 2; ++index) {
      servers_.push_back(Serve(index, ListenAddress(GetParam(), index)));
      ASSERT_NE(servers_.back(), nullptr);
      options_.addresses.push_back(servers_.back()->address());
    }
    options_.cluster_id = "test";
    options_.one_sided.allow = GetParam() == Path::kOneSided;
    absl::StatusOr<std::unique_ptr<Cluster>> cluster =
        Cluster::Connect(options_);
    ASSERT_THAT(cluster, IsOk());
    cluster_ = *std::move(cluster);
  }

  static std::unique_ptr<server::Server> Serve(int32_t index,
                                               const std::string& address) {
    config::v1::ServerConfig config;
    config.set_cluster_id("test");
    config.set_server_index(index);
    config.set_server_count(2);
    config.set_listen_address(address);
    config.set_backend("cpu");
    config.set_thread_count(1);
    config.set_memory_limit_bytes(int64_t{1} << 30);
    if (GetParam() == Path::kOneSided) config.mutable_one_sided();
    auto server = server::Server::Start(config);
    EXPECT_THAT(server, IsOk());
    return server.ok() ? *std::move(server) : nullptr;
  }

  static TableSpec Spec() {
    TableSpec spec;
    spec.row_count = 100'000;
    spec.dim = 64;
    spec.row_dtype = DType::kFp32;
    spec.gradient_dtype = DType::kFp32;
    spec.shard_count = 2;
    spec.trainer_count = 1;
    spec.gradient_reduction = GradientReduction::kSum;
    spec.max_contribution_row_count = 50'000;
    spec.max_part_count = 4;
    return spec;
  }

  static RowAdamScalars SignStep() {
    return {.step_size = 1, .decay = 0, .beta2 = 0, .eps = 0};
  }

  std::unique_ptr<Trainer> Join(const std::string& table) {
    auto trainer = Trainer::Join(*cluster_, table, 0);
    EXPECT_THAT(trainer, IsOk());
    return trainer.ok() ? *std::move(trainer) : nullptr;
  }

  std::vector<std::unique_ptr<server::Server>> servers_;
  ClusterOptions options_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_P(GrpcTest, TheServersSayWhoTheyAre) {
  ASSERT_EQ(cluster_->servers().size(), 2);
  const ServerInfo& server = cluster_->servers()[1];
  EXPECT_EQ(server.server_index, 1);
  EXPECT_EQ(server.server_count, 2);
  EXPECT_EQ(server.cluster_id, "test");
  EXPECT_EQ(server.max_pull_row_count, 400'000);
  EXPECT_NE(server.incarnation, 0);
}

TEST_P(GrpcTest, AWrongClusterIsNamed) {
  ClusterOptions options = options_;
  options.cluster_id = "other";
  EXPECT_THAT(Cluster::Connect(options),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       options.addresses[0] + ": cluster id test"));
  options = options_;
  std::swap(options.addresses[0], options.addresses[1]);
  EXPECT_THAT(Cluster::Connect(options),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "server index 1, wanted 0"));
}

TEST_P(GrpcTest, AServerThatIsNotThereEndsTheConnect) {
  ClusterOptions options = options_;
  options.addresses[1] = "127.0.0.1:1";
  options.connect_timeout = absl::Milliseconds(300);
  EXPECT_THAT(Cluster::Connect(options), ::testing::Not(IsOk()));
}

TEST_P(GrpcTest, ATableComesBackAsItWasMade) {
  TableSpec spec = Spec();
  spec.shard_bounds = {0, 1000, 100'000};
  spec.max_pull_bytes = 1 << 20;
  spec.initializer = {Initializer::Kind::kUniform, ~uint64_t{0}, 0.5F};
  spec.non_finite_policy = NonFinitePolicy::kSkipRow;
  spec.ngram = NgramMetadata{~uint64_t{5}, 2, {1, ~uint64_t{0}}};
  ASSERT_THAT(cluster_->CreateTable("t", spec), IsOk());
  const auto table = cluster_->GetTable("t");
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->spec, spec);
  EXPECT_EQ(table->shards[1].first_row, 1000);
  EXPECT_EQ(cluster_->ListTables()->size(), 1);
  EXPECT_THAT(cluster_->DeleteTable("t"), IsOk());
  EXPECT_THAT(cluster_->GetTable("t"),
              StatusIs(absl::StatusCode::kNotFound, ""));
}

TEST_P(GrpcTest, ManyMessagesMakeOneEvent) {
  ASSERT_THAT(cluster_->CreateTable("t", Spec()), IsOk());
  const auto trainer = Join("t");
  // 5 MB each way, a repeat, and both shards in turn.
  std::vector<int64_t> row_ids;
  for (int64_t i = 0; i < 20'000; ++i) row_ids.push_back((i * 51'001) % 99'991);
  std::vector<float> rows(row_ids.size() * 64);
  const auto pulled =
      trainer->Pull(row_ids, std::as_writable_bytes(std::span(rows)));
  ASSERT_THAT(pulled, IsOk());
  const std::vector<float> gradients(rows.size(), 1.0F);
  ASSERT_THAT(trainer->Push(1, *pulled, std::as_bytes(std::span(gradients)),
                            {.seal = true}),
              IsOk());
  ASSERT_THAT(trainer->Commit(1, SignStep()), IsOk());
  ASSERT_THAT(trainer->Pull(row_ids, std::as_writable_bytes(std::span(rows)),
                            {.min_event = 1}),
              IsOk());
  EXPECT_THAT(rows, ::testing::Each(-1.0F));
  // Landed again by handle: the same.
  std::vector<float> again(rows.size());
  const auto second =
      trainer->Pull(row_ids, std::as_writable_bytes(std::span(rows)));
  ASSERT_THAT(second, IsOk());
  ASSERT_THAT(
      trainer->Repull(*second, std::as_writable_bytes(std::span(again))),
      IsOk());
  EXPECT_EQ(again, rows);
  EXPECT_EQ(cluster_->Digest("t")->event, 1);
}

TEST_P(GrpcTest, ImportedRowsAreReadBack) {
  ASSERT_THAT(cluster_->CreateTable("t", Spec()), IsOk());
  std::vector<float> rows(10'000 * 64);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<float>(i);
  ASSERT_THAT(cluster_->ImportRows("t", 45'000, std::as_bytes(std::span(rows))),
              IsOk());
  const auto trainer = Join("t");
  std::vector<float> out(64);
  const std::vector<int64_t> row_ids = {54'999};
  ASSERT_THAT(trainer->Pull(row_ids, std::as_writable_bytes(std::span(out))),
              IsOk());
  EXPECT_EQ(out[63], 10'000 * 64 - 1);
}

TEST_P(GrpcTest, FaultsKeepTheirReasons) {
  ASSERT_THAT(cluster_->CreateTable("t", Spec()), IsOk());
  const auto trainer = Join("t");
  const std::vector<float> gradients(64);
  const std::vector<int64_t> row_ids = {3};
  const auto pushed =
      trainer->Push(9, row_ids, std::as_bytes(std::span(gradients)));
  EXPECT_EQ(pushed.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(wire::ReasonOf(pushed.status()), "EVENT_AHEAD");
}

TEST_P(GrpcTest, APullSentAheadIsServedByItsEventOrCancelled) {
  ASSERT_THAT(cluster_->CreateTable("t", Spec()), IsOk());
  const auto trainer = Join("t");
  const std::vector<int64_t> row_ids = {3, 99'999};
  std::vector<float> out(2 * 64);
  std::vector<float> never(2 * 64);
  PendingPull ahead = trainer->PullAsync(
      row_ids, std::as_writable_bytes(std::span(out)), {.exact_event = 1});
  {
    const PendingPull dropped =
        trainer->PullAsync(row_ids, std::as_writable_bytes(std::span(never)),
                           {.timeout = absl::Hours(1), .min_event = 5});
  }
  const std::vector<float> gradients(2 * 64, -1.0F);
  ASSERT_THAT(trainer->Push(1, row_ids, std::as_bytes(std::span(gradients)),
                            {.seal = true}),
              IsOk());
  ASSERT_THAT(trainer->Commit(1, SignStep()), IsOk());
  ASSERT_THAT(ahead.Wait(), IsOk());
  EXPECT_THAT(out, ::testing::Each(1.0F));
}

TEST_P(GrpcTest, AServerThatIsGoneEndsCallsByTheirDeadline) {
  ASSERT_THAT(cluster_->CreateTable("t", Spec()), IsOk());
  const auto trainer = Join("t");
  servers_[1].reset();
  const std::vector<int64_t> row_ids = {3, 99'999};
  std::vector<float> out(2 * 64);
  const auto pulled =
      trainer->Pull(row_ids, std::as_writable_bytes(std::span(out)),
                    {.timeout = absl::Milliseconds(300)});
  EXPECT_THAT(pulled, ::testing::Not(IsOk()));
  EXPECT_THAT(std::string(pulled.status().message()),
              ::testing::HasSubstr(options_.addresses[1]));
}

TEST_P(GrpcTest, AnNgramTableTrains) {
  TableSpec spec = Spec();
  spec.row_dtype = DType::kBf16;
  spec.gradient_dtype = DType::kBf16;
  spec.ngram = NgramMetadata{1, 8192, {}};
  ASSERT_THAT(cluster_->CreateTable("t", spec), IsOk());
  const auto trainer = Join("t");
  NgramOptions options;
  options.cache_row_count = 4096;
  options.thread_count = 1;
  const auto embedding = NgramEmbedding::Create(*trainer, options);
  ASSERT_THAT(embedding, IsOk());
  std::vector<int32_t> tokens(500);
  for (size_t t = 0; t < tokens.size(); ++t) {
    tokens[t] = static_cast<int32_t>(t * t % 5003);
  }
  const std::vector<Tokens> steps = {tokens, tokens};
  std::vector<uint16_t> out(tokens.size() * 64);
  for (int64_t cycle = 0; cycle < 3; ++cycle) {
    ASSERT_THAT((*embedding)->StartCycle(2 * cycle, steps), IsOk());
    ASSERT_THAT((*embedding)->PrefetchNextCycle(steps), IsOk());
    for (int step = 0; step < 2; ++step) {
      const auto bytes = std::as_writable_bytes(std::span(out));
      ASSERT_THAT((*embedding)->Embed(tokens, bytes), IsOk());
      const std::vector<uint16_t> gradient(out.size(), 0x3f80);  // 1.
      ASSERT_THAT(
          (*embedding)
              ->AccumulateGradient(tokens, std::as_bytes(std::span(gradient))),
          IsOk());
    }
    EXPECT_EQ(
        *(*embedding)
             ->FinishCycle(RowAdamSchedule().Scalars(2 * cycle + 1, cycle + 1)),
        cycle + 1);
  }
  ASSERT_THAT(trainer->WaitForEvent(3), IsOk());
  // The gradient of every output is 1, so the embedding has fallen.
  EXPECT_THAT(out, ::testing::Contains(::testing::Gt(0x8000)));
}

// 16 MB each way: many messages, of rows that are scattered over two shards and
// of rows that are one run.
TEST_P(GrpcTest, RowsComeBackAsTheyWerePushedOverPortsAndSockets) {
  std::vector<std::unique_ptr<server::Server>> socket_servers;
  ClusterOptions sockets = options_;
  for (int32_t index = 0; index < 2; ++index) {
    sockets.addresses[static_cast<size_t>(index)] = absl::StrCat(
        "unix:", ::testing::TempDir(), "/rowhouse_", getpid(), "_", index);
    socket_servers.push_back(
        Serve(index, sockets.addresses[static_cast<size_t>(index)]));
  }
  sockets.connection_count = 3;
  const auto socket_cluster = Cluster::Connect(sockets);
  ASSERT_THAT(socket_cluster, IsOk());
  for (Cluster* const cluster : {cluster_.get(), socket_cluster->get()}) {
    TableSpec spec = Spec();
    spec.max_pull_bytes = 3 << 20;  // Several calls a shard.
    ASSERT_THAT(cluster->CreateTable("t", spec), IsOk());
    auto trainer = Trainer::Join(*cluster, "t", 0);
    ASSERT_THAT(trainer, IsOk());
    std::vector<int64_t> ids(64'000);
    std::vector<float> gradients(ids.size() * 64);
    for (size_t i = 0; i < ids.size(); ++i) {
      // The first half is a run on shard 0; the rest is on both.
      const size_t id = i < 32'000 ? i : i % 2 * 18'000 + 16'000 + i;
      ids[i] = static_cast<int64_t>(id);
      for (size_t j = 0; j < 64; ++j) {
        gradients[i * 64 + j] = (id * 7 + j) % 3 == 0 ? -1.0F : 1.0F;
      }
    }
    ASSERT_THAT((*trainer)->Push(1, ids, std::as_bytes(std::span(gradients)),
                                 {.seal = true}),
                IsOk());
    ASSERT_THAT((*trainer)->Commit(1, SignStep()), IsOk());
    std::vector<float> rows(gradients.size());
    const auto pulled = (*trainer)->Pull(
        ids, std::as_writable_bytes(std::span(rows)), {.min_event = 1});
    ASSERT_THAT(pulled, IsOk());
    for (float& x : gradients) x = -x;
    EXPECT_TRUE(rows == gradients);
  }
}

INSTANTIATE_TEST_SUITE_P(Paths, GrpcTest, rowhouse::testing::Paths(),
                         rowhouse::testing::PathName);

TEST(ConnectTest, RefusesACountOfConnectionsThatIsNone) {
  for (const int32_t count : {0, 65}) {
    ClusterOptions options;
    options.addresses = {"127.0.0.1:1"};
    options.connection_count = count;
    EXPECT_THAT(Cluster::Connect(options),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         absl::StrCat("connection_count ", count)));
  }
}

}  // namespace
}  // namespace rowhouse::client
