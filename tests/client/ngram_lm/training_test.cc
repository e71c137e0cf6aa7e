// The whole training of the n-gram language model, two trainers on servers in
// this process: it learns, its bits depend on nothing but its inputs (P1), and
// no order of calls stops it.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "client/examples/ngram_lm/batches.h"
#include "client/examples/ngram_lm/lm_trainer.h"
#include "client/examples/ngram_lm/recipe.h"
#include "client/examples/ngram_lm/tables.h"
#include "client/internal/trainer_core.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/in_memory_cluster.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::ngram_lm {
namespace {

using rowhouse::testing::Fault;
using rowhouse::testing::FaultHook;
using rowhouse::testing::InMemoryCluster;
using rowhouse::testing::IsOk;
using rowhouse::testing::Random;

constexpr int32_t kVocabulary = 24;
constexpr int32_t kTrainers = 2;

/// How a training is run; nothing of it may show in its bits.
struct Conditions {
  int32_t ngram_shards = 2;
  int threads = 1;
  FaultHook hooks[kTrainers];       ///< Of each trainer's calls.
  int64_t message_bytes = 1 << 20;  ///< Of trainer 1's pushes.
};

struct Sizes {
  int64_t step_count = 12;
  int64_t token_count = 8;
  int32_t dim = 4;
};

struct Outcome {
  absl::Status status;
  uint64_t words = 0;
  uint64_t ngrams = 0;
  double first_loss = 0;  ///< Trainer 0's of the first step, and of the last.
  double last_loss = 0;
  double held_out_loss = 0;
};

// Words of a small grammar: each is followed by one of two.
std::vector<int32_t> MakeText(int64_t count) {
  std::mt19937_64 random(7);
  std::vector<int32_t> text = {1};
  while (static_cast<int64_t>(text.size()) < count) {
    const auto last = static_cast<uint64_t>(text.back());
    text.push_back(
        static_cast<int32_t>((last * 5 + 1 + random() % 2) % kVocabulary));
  }
  return text;
}

class Training {
 public:
  Training(const Sizes& sizes, const Conditions& conditions)
      : sizes_(sizes),
        conditions_(conditions),
        servers_(std::max(conditions.ngram_shards, 2), conditions.threads),
        text_(MakeText(sizes.step_count * sizes.token_count * kTrainers + 1)),
        batches_(
            *Batches::Make(text_, {.trainer_count = kTrainers,
                                   .token_count = sizes.token_count,
                                   .piece_token_count = sizes.token_count})) {
    recipe_.period4_start = 0.34;  // Cycles of 2 steps, then of 4.
    recipe_.warmup_step_count = 2;
  }

  Outcome Run() {
    std::vector<absl::Status> statuses(kTrainers);
    std::thread second([&] { statuses[1] = RunTrainer(1); });
    statuses[0] = RunTrainer(0);
    second.join();
    for (const absl::Status& status : statuses) outcome_.status.Update(status);
    if (!outcome_.status.ok()) return outcome_;
    const auto cluster = servers_.Connect();
    const auto words = cluster->Digest(kWordTable);
    const auto ngrams = cluster->Digest(kNgramTable);
    outcome_.status.Update(words.status());
    outcome_.status.Update(ngrams.status());
    if (!outcome_.status.ok()) return outcome_;
    EXPECT_EQ(words->event, batches_.step_count());
    outcome_.words = words->digest;
    outcome_.ngrams = ngrams->digest;
    return outcome_;
  }

 private:
  absl::Status RunTrainer(int32_t rank) {
    const auto cluster = servers_.Connect(conditions_.hooks[rank]);
    const TableSizes table_sizes{.vocabulary_size = kVocabulary,
                                 .dim = sizes_.dim,
                                 .ngram_row_count = 600,
                                 .ngram_shard_count = conditions_.ngram_shards,
                                 .word_shard_count = 2,
                                 .trainer_count = kTrainers,
                                 .step_token_count = sizes_.token_count,
                                 .call_token_count = 2 * sizes_.token_count};
    absl::Status created = CreateTables(*cluster, table_sizes, recipe_);
    if (!created.ok()) return created;
    auto trainer =
        LmTrainer::Join(*cluster, batches_, rank, kTrainers, recipe_);
    if (!trainer.ok()) return trainer.status();
    if (rank == 1) {
      for (client::Trainer* part :
           {&(*trainer)->words(), &(*trainer)->ngrams()}) {
        part->core()->router().set_message_bytes(conditions_.message_bytes);
      }
    }
    return RunSteps(**trainer, rank);
  }

  absl::Status RunSteps(LmTrainer& trainer, int32_t rank) {
    for (int64_t step = 0; step < batches_.step_count(); ++step) {
      const auto loss = trainer.Step(step);
      if (!loss.ok()) return loss.status();
      if (rank != 0) continue;
      if (step == 0) outcome_.first_loss = *loss;
      outcome_.last_loss = *loss;
      // In the middle of a cycle and between two.
      if (step != 2 && step != 7) continue;
      const auto evaluated = Evaluate(trainer);
      if (!evaluated.ok()) return evaluated.status();
    }
    absl::Status finished = trainer.Finish();
    if (!finished.ok() || rank != 0) return finished;
    const auto loss = Evaluate(trainer);
    if (loss.ok()) outcome_.held_out_loss = *loss;
    return loss.status();
  }

  absl::StatusOr<double> Evaluate(LmTrainer& trainer) const {
    std::vector<std::vector<int32_t>> blocks(2);
    for (size_t i = 0; i < blocks.size(); ++i) {
      const auto begin = text_.begin() + static_cast<std::ptrdiff_t>(3 + i);
      blocks[i].assign(begin, begin + 2 * sizes_.token_count);
    }
    return trainer.Evaluate(blocks);
  }

  const Sizes sizes_;
  const Conditions conditions_;
  Recipe recipe_;
  InMemoryCluster servers_;
  const std::vector<int32_t> text_;
  const Batches batches_;
  Outcome outcome_;  // Trainer 0's, until both have ended.
};

/// Delays calls by random times and, where asked, loses and repeats some.
/// Thread-safe.
class Disturbance {
 public:
  Disturbance(uint64_t seed, double fault_share)
      : random_(seed), fault_share_(fault_share) {}

  Fault operator()(int32_t, std::string_view) {
    std::chrono::microseconds delay{0};
    Fault fault = Fault::kNone;
    {
      const std::lock_guard lock(mutex_);
      if (std::bernoulli_distribution(0.3)(random_)) {
        delay = std::chrono::microseconds(
            std::uniform_int_distribution<int>(1, 200)(random_));
      }
      if (std::bernoulli_distribution(fault_share_)(random_)) {
        fault = static_cast<Fault>(
            std::uniform_int_distribution<int>(1, 3)(random_));
      }
    }
    const auto end = std::chrono::steady_clock::now() + delay;
    while (std::chrono::steady_clock::now() < end) {
    }
    return fault;
  }

 private:
  std::mutex mutex_;
  std::mt19937_64 random_;
  const double fault_share_;
};

FaultHook Disturbed(uint64_t seed, double fault_share) {
  return [disturbance = std::make_shared<Disturbance>(seed, fault_share)](
             int32_t server, std::string_view method) {
    return (*disturbance)(server, method);
  };
}

// `deploy/test.sh --full` sets ROWHOUSE_ALL_SEEDS.
int Schedules() {
  return std::getenv("ROWHOUSE_ALL_SEEDS") == nullptr ? 100 : 1000;
}

constexpr Sizes kPreset{.step_count = 40, .token_count = 64, .dim = 8};

TEST(NgramLmTraining, TheModelLearns) {
  const Outcome outcome = Training(kPreset, {}).Run();
  ASSERT_THAT(outcome.status, IsOk());
  // Uniform: log(24) = 3.18; the grammar's entropy: log(2) = 0.69.
  EXPECT_NEAR(outcome.first_loss, 3.18, 0.3);
  EXPECT_LT(outcome.last_loss, 2.5);
  EXPECT_LT(outcome.held_out_loss, 2.5);
  EXPECT_GT(outcome.held_out_loss, 0.6);
}

TEST(NgramLmTraining, TheSameTwiceGivesTheSameBits) {
  const Outcome first = Training(kPreset, {}).Run();
  const Outcome second = Training(kPreset, {}).Run();
  ASSERT_THAT(first.status, IsOk());
  ASSERT_THAT(second.status, IsOk());
  EXPECT_EQ(first.words, second.words);
  EXPECT_EQ(first.ngrams, second.ngrams);
  EXPECT_EQ(first.held_out_loss, second.held_out_loss);
}

TEST(NgramLmTraining, ShardsThreadsAndFaultsDoNotShowInTheBits) {
  Random random(20261204);
  SCOPED_TRACE(random.Trace());
  const Outcome want = Training(kPreset, {}).Run();
  ASSERT_THAT(want.status, IsOk());
  for (const int32_t shards : {1, 2, 3, 5}) {
    for (const int threads : {1, 2, 8}) {
      SCOPED_TRACE(::testing::Message()
                   << shards << " shards, " << threads << " threads");
      Conditions conditions;
      conditions.ngram_shards = shards;
      conditions.threads = threads;
      conditions.hooks[0] = Disturbed(random.Bits(), 0);
      conditions.hooks[1] = Disturbed(random.Bits(), 0.1);
      conditions.message_bytes = random.Integer(64, 2000);
      const Outcome outcome = Training(kPreset, conditions).Run();
      ASSERT_THAT(outcome.status, IsOk());
      EXPECT_EQ(outcome.ngrams, want.ngrams);
      EXPECT_EQ(outcome.words, want.words);
    }
  }
}

TEST(NgramLmTraining, NoOrderOfCallsStopsIt) {
  Random random(20261205);
  SCOPED_TRACE(random.Trace());
  const Outcome want = Training({}, {}).Run();
  ASSERT_THAT(want.status, IsOk());
  for (int schedule = 0; schedule < Schedules(); ++schedule) {
    SCOPED_TRACE(::testing::Message() << "schedule " << schedule);
    Conditions conditions;
    for (FaultHook& hook : conditions.hooks) {
      hook = Disturbed(random.Bits(), schedule % 4 == 0 ? 0.02 : 0);
    }
    const Outcome outcome = Training({}, conditions).Run();
    ASSERT_THAT(outcome.status, IsOk());
    ASSERT_EQ(outcome.words, want.words);
    ASSERT_EQ(outcome.ngrams, want.ngrams);
  }
}

}  // namespace
}  // namespace rowhouse::ngram_lm
