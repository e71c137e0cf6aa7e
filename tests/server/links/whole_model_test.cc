// Two trainers on two servers, each server and each trainer with one of two
// GPUs: the whole n-gram table and an LM head's weights, over every transport.

#include <cstddef>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/internal/cluster_core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/arithmetic.h"
#include "rowhouse/adamw.h"
#include "rowhouse/lm_head.h"
#include "rowhouse/trainer.h"
#include "server/server.h"
#include "tests/kernels/require_gpu.h"
#include "tests/server/links/link_cluster.h"
#include "tests/server/one_sided/child.h"
#include "tests/server/one_sided/one_sided_cluster.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using client::Trainer;

constexpr int32_t kRanks = 2;
constexpr int64_t kEvents = 3;

struct Model {
  std::string backend;
  int64_t row_count;
  int64_t dim;
  int64_t vocabulary;
  int64_t hidden_dim;
  int64_t rows_of_event;  ///< Of one trainer.
  int64_t tokens;
};

void PrintTo(const Model& model, std::ostream* out) { *out << model.backend; }

enum class Transport { kGrpc, kOneSided, kLinks };

// Serves both paths until it is killed. Arguments: backend, index.
TEST(WholeModelChild, DISABLED_Server) {
  const std::vector<std::string> arguments = ChildArguments();
  if (arguments.size() != 2) GTEST_SKIP() << "a role of another test's child";
  const int index = std::stoi(arguments[1]);
  config::v1::ServerConfig config = OneSidedConfig(arguments[0], index, kRanks);
  config.set_device_index(index);
  config.set_memory_limit_bytes(0);
  config.mutable_nccl();
  if (arguments[0] == "cpu") config.mutable_nccl()->set_block_bytes(1 << 16);
  const auto server = server::Server::Start(config);
  ASSERT_THAT(server, IsOk());
  Tell("serving " + (*server)->address());
  (*server)->Wait();
}

client::TableSpec RowsSpec(const Model& model) {
  client::TableSpec spec;
  spec.row_count = model.row_count;
  spec.dim = model.dim;
  spec.shard_count = kRanks;
  spec.initializer = {client::Initializer::Kind::kUniform, 7, 0.02F};
  spec.trainer_count = kRanks;
  spec.gradient_reduction = client::GradientReduction::kMean;
  spec.max_contribution_row_count = 2 * model.rows_of_event;
  spec.max_part_count = 2;
  return spec;
}

client::TableSpec HeadSpec(const Model& model) {
  client::TableSpec spec = RowsSpec(model);
  spec.row_count = model.vocabulary;
  spec.dim = model.hidden_dim;
  spec.max_contribution_row_count = 1;
  spec.dense = client::DenseTableSpec{.has_master = true,
                                      .max_head_token_count = model.tokens};
  return spec;
}

std::vector<uint16_t> Bf16(Random& random, int64_t count) {
  std::vector<uint16_t> values(static_cast<size_t>(count));
  for (uint16_t& value : values) value = kernels::FloatToBf16(random.Normal());
  return values;
}

// What a trainer sees, and leaves, in all events.
struct Seen {
  std::vector<std::vector<std::byte>> rows;
  std::vector<float> losses;
  std::vector<std::vector<std::byte>> hidden_gradients;
};

class RankOfModel {
 public:
  RankOfModel(client::Cluster& cluster, const Model& model, int32_t rank)
      : model_(model), rank_(rank), random_(100 + rank) {
    auto rows = Trainer::Join(cluster, "rows", rank);
    auto weights = Trainer::Join(cluster, "head", rank);
    EXPECT_THAT(rows, IsOk());
    EXPECT_THAT(weights, IsOk());
    rows_ = *std::move(rows);
    weights_ = *std::move(weights);
    auto head = client::LmHead::Create(*weights_);
    EXPECT_THAT(head, IsOk());
    head_ = *std::move(head);
  }

  void Step(int64_t event) {
    StepRows(event);
    StepHead(event);
    EXPECT_THAT(rows_->WaitForEvent(event), IsOk());
    EXPECT_THAT(weights_->WaitForEvent(event), IsOk());
  }

  const Seen& seen() const { return seen_; }

 private:
  void StepRows(int64_t event) {
    std::vector<int64_t> ids(static_cast<size_t>(model_.rows_of_event));
    for (int64_t& id : ids) id = random_.Integer(0, model_.row_count - 1);
    std::vector<std::byte> rows(ids.size() * 2 *
                                static_cast<size_t>(model_.dim));
    const auto pulled = rows_->Pull(ids, rows, {.exact_event = event - 1});
    ASSERT_THAT(pulled, IsOk());
    seen_.rows.push_back(std::move(rows));
    const std::vector<uint16_t> gradients =
        Bf16(random_, std::ssize(ids) * model_.dim);
    EXPECT_THAT(
        rows_->Push(event, *pulled, std::as_bytes(std::span(gradients))),
        IsOk());
    End(*rows_, event,
        client::RowAdamScalars{
            .step_size = 0.01, .decay = 0.001, .beta2 = 0.95, .eps = 1e-10});
  }

  void StepHead(int64_t event) {
    const std::vector<uint16_t> hidden =
        Bf16(random_, model_.tokens * model_.hidden_dim);
    std::vector<int64_t> targets(static_cast<size_t>(model_.tokens));
    for (int64_t& target : targets) {
      target = random_.Integer(0, model_.vocabulary - 1);
    }
    const auto loss = head_->Forward(
        {std::as_bytes(std::span(hidden)), client::DType::kBf16, targets},
        {.event = event});
    ASSERT_THAT(loss, IsOk());
    seen_.losses.insert(seen_.losses.end(), (*loss)->token_losses().begin(),
                        (*loss)->token_losses().end());
    std::vector<std::byte> gradient(hidden.size() * sizeof(uint16_t));
    EXPECT_THAT((*loss)->Backward(1.0, gradient), IsOk());
    seen_.hidden_gradients.push_back(std::move(gradient));
    End(*weights_, event,
        client::MakeAdamWScalars({.learning_rate = 0.01}, event));
  }

  void End(Trainer& trainer, int64_t event,
           const client::CommitDecision& decision) {
    EXPECT_THAT(rank_ == 0 ? trainer.SealAndCommit(event, decision)
                           : trainer.Seal(event),
                IsOk());
  }

  const Model& model_;
  const int32_t rank_;
  Random random_;
  std::unique_ptr<Trainer> rows_;
  std::unique_ptr<Trainer> weights_;
  std::unique_ptr<client::LmHead> head_;
  Seen seen_;
};

struct Trained {
  Seen seen[kRanks];
  client::TableDigest rows;
  client::TableDigest head;
};

class WholeModelTest : public ::testing::TestWithParam<Model> {
 protected:
  void SetUp() override {
    if (GetParam().backend != "cuda") return;
    const absl::Status found = kernels::TwoGpus();
    if (kernels::MayLackGpu(found)) GTEST_SKIP() << found;
    ASSERT_THAT(found, IsOk());
  }

  void Serve() {
    for (int32_t index = 0; index < kRanks; ++index) {
      servers_.push_back(StartChild("Server",
                                    {GetParam().backend, std::to_string(index)},
                                    "WholeModelChild"));
    }
    for (const auto& server : servers_) {
      addresses_.push_back(AwaitTold(*server, "serving "));
    }
  }

  // Of a trainer that is on GPU `rank`.
  std::unique_ptr<client::Cluster> Connect(int32_t rank, Transport transport) {
    client::ClusterOptions options;
    options.addresses = addresses_;
    options.one_sided.allow = transport == Transport::kOneSided;
    if (GetParam().backend == "cuda") options.device_index = rank;
    options.nccl.allow = transport == Transport::kLinks;
    options.nccl.patience = absl::Seconds(60);
    auto cluster = client::Cluster::Connect(options);
    EXPECT_THAT(cluster, IsOk());
    return cluster.ok() ? *std::move(cluster) : nullptr;
  }

  // How many pulls and head calls went another way than gRPC.
  static int64_t CountOf(const client::Cluster& cluster, int32_t server,
                         Transport transport) {
    client::internal::ShardChannel& channel = cluster.core()->channel(server);
    if (transport == Transport::kLinks) {
      const auto& links = dynamic_cast<client::internal::LinkChannel&>(channel);
      return links.pull_count() + links.head_count();
    }
    const auto& mapped =
        dynamic_cast<client::internal::OneSidedChannel&>(channel);
    return mapped.pull_count() + mapped.head_count();
  }

  Trained Train(Transport transport) {
    const Model& model = GetParam();
    std::unique_ptr<client::Cluster> clusters[kRanks];
    for (int32_t rank = 0; rank < kRanks; ++rank) {
      clusters[rank] = Connect(rank, transport);
    }
    client::Cluster& first = *clusters[0];
    EXPECT_THAT(first.CreateTable("rows", RowsSpec(model),
                                  {.timeout = absl::Minutes(2)}),
                IsOk());
    EXPECT_THAT(first.CreateTable("head", HeadSpec(model)), IsOk());
    std::unique_ptr<RankOfModel> ranks[kRanks];
    for (int32_t rank = 0; rank < kRanks; ++rank) {
      ranks[rank] = std::make_unique<RankOfModel>(*clusters[rank], model, rank);
    }
    const absl::Time start = absl::Now();
    for (int64_t event = 1; event <= kEvents && !HasFailure(); ++event) {
      std::vector<std::jthread> steps;
      for (const auto& rank : ranks) {
        steps.emplace_back([&] { rank->Step(event); });
      }
    }
    std::cout << absl::FormatDuration((absl::Now() - start) / kEvents)
              << " an event\n";
    // A GPU's server has no link to a trainer on the same one.
    for (int32_t rank = 0; transport != Transport::kGrpc && rank < kRanks;
         ++rank) {
      EXPECT_GT(CountOf(*clusters[rank], 1 - rank, transport), kEvents);
    }
    Trained trained;
    for (int32_t rank = 0; rank < kRanks; ++rank) {
      trained.seen[rank] = ranks[rank]->seen();
      ranks[rank].reset();
    }
    const auto rows = first.Digest("rows", kEvents);
    const auto head = first.Digest("head", kEvents);
    EXPECT_THAT(rows, IsOk());
    EXPECT_THAT(head, IsOk());
    if (rows.ok()) trained.rows = *rows;
    if (head.ok()) trained.head = *head;
    EXPECT_THAT(first.DeleteTable("rows"), IsOk());
    EXPECT_THAT(first.DeleteTable("head"), IsOk());
    return trained;
  }

  std::vector<std::unique_ptr<Process>> servers_;
  std::vector<std::string> addresses_;
};

TEST_P(WholeModelTest, TrainingGivesTheSameBitsOverEveryTransport) {
  Serve();
  const Trained wanted = Train(Transport::kGrpc);
  for (const Transport transport : {Transport::kOneSided, Transport::kLinks}) {
    if (HasFailure()) return;
    const Trained found = Train(transport);
    EXPECT_EQ(found.rows, wanted.rows);
    EXPECT_EQ(found.head, wanted.head);
    for (int32_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_TRUE(found.seen[rank].rows == wanted.seen[rank].rows);
      EXPECT_EQ(found.seen[rank].losses, wanted.seen[rank].losses);
      EXPECT_TRUE(found.seen[rank].hidden_gradients ==
                  wanted.seen[rank].hidden_gradients);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, WholeModelTest,
                         ::testing::Values(Model{"cpu", 20'000, 64, 512, 64,
                                                 2000, 300},
                                           Model{"cuda", 84'602'880, 768,
                                                 128'256, 4096, 20'000, 2048}),
                         [](const auto& model) { return model.param.backend; });

}  // namespace
}  // namespace rowhouse::testing
