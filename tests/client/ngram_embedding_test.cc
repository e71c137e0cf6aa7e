// An n-gram table trained in cycles, against the stated arithmetic.

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "client/internal/ngram_cache.h"
#include "tests/client/ngram_fixture.h"
#include "tests/testing/random.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::Random;
using rowhouse::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(NgramTest, RowIdsOfTheFullTableAreTheGoldenOnes) {
  TableInfo table;
  table.name = "t";
  table.spec = NgramSpec();
  table.spec.row_count = 84602880;
  NgramOptions options;
  options.cache_row_count = 1;
  const auto cache = internal::NgramCache::Make(table, options, TestBackend());
  ASSERT_THAT(cache, IsOk());
  const TokenList tokens = {50256, 464, 2068, 7586, 21831, 50256, 50256};
  EXPECT_THAT(*(*cache)->RowIds(tokens),
              ElementsAre(42301439, 30057605, 36955973, 25891877, 38010350,
                          25053104, 20052728, 84602879, 84602879, 79010554,
                          60889994, 59548946, 67212682, 60420883));
  EXPECT_THAT(*(*cache)->RowIds(TokenList{}), IsEmpty());
  EXPECT_THAT(*(*cache)->RowIds(TokenList{7}), ElementsAre(42301439, 84602879));
}

TEST_F(NgramTest, AMissingRowIsNamedAndNoNeighbourTaken) {
  TableInfo table;
  table.spec = NgramSpec();
  const auto made = internal::NgramCache::Make(table, {}, TestBackend());
  ASSERT_THAT(made, IsOk());
  internal::NgramCache& cache = **made;
  const TokenList tokens = {1, 2, 3, 4};
  const std::vector<Tokens> steps = {tokens};
  const auto want = cache.WantList(steps);
  ASSERT_THAT(want, IsOk());
  internal::NgramPlaces places;
  ASSERT_THAT(cache.Locate(*want, tokens, places), IsOk());
  const std::vector<int64_t> row_ids = *cache.RowIds(tokens);
  for (size_t i = 0; i < row_ids.size(); ++i) {
    EXPECT_EQ(want->row_ids[places.slots.span()[i]], row_ids[i]);
  }
  const TokenList others = {1, 2, 9, 4};
  const std::vector<int64_t> other_ids = *cache.RowIds(others);
  size_t first = 0;
  while (std::ranges::binary_search(want->row_ids, other_ids[first])) ++first;
  const absl::Status missing = cache.Locate(*want, others, places);
  EXPECT_THAT(missing, Fails(absl::StatusCode::kNotFound, "ROW_NOT_CACHED"));
  EXPECT_THAT(
      missing,
      StatusIs(absl::StatusCode::kNotFound,
               "row id " + std::to_string(other_ids[first]) + " at position " +
                   std::to_string(first) + ", wanted one of the " +
                   std::to_string(want->row_ids.size()) + " rows"));
}

// Tokens by [cycle][rank][step], steps of 0 and 1 token too; few distinct
// tokens, so that rows repeat often.
std::vector<std::vector<std::vector<TokenList>>> RandomTokens(
    Random& random, int64_t cycle_count, int32_t trainer_count) {
  std::vector<std::vector<std::vector<TokenList>>> cycles(
      cycle_count, std::vector<std::vector<TokenList>>(
                       trainer_count, std::vector<TokenList>(2)));
  for (auto& ranks : cycles) {
    for (auto& steps : ranks) {
      for (TokenList& tokens : steps) {
        tokens.resize(random.Integer(0, 30));
        for (int32_t& token : tokens) {
          token = static_cast<int32_t>(random.Integer(0, 6) * 9157);
        }
      }
    }
  }
  return cycles;
}

// A trainer's cycle; what it embeds is what `oracle` says. Returns its
// gradient by `oracle`.
class TrainingTest : public NgramTest {
 protected:
  static void TrainCycle(NgramEmbedding& embedding, const NgramOracle& oracle,
                         int64_t first_step,
                         const std::vector<TokenList>& steps,
                         std::map<int64_t, NgramOracle::Row>& gradient) {
    ASSERT_THAT(embedding.StartCycle(first_step, Views(steps)), IsOk());
    std::vector<NgramOracle::Rows> handed;
    for (const TokenList& tokens : steps) {
      const auto embedded = Embed(embedding, tokens);
      ASSERT_THAT(embedded, IsOk());
      EXPECT_EQ(*embedded, oracle.Embed(tokens));
      handed.push_back(Gradient(*embedded, 0.7F));
      ASSERT_THAT(Accumulate(embedding, tokens, handed.back()), IsOk());
    }
    gradient = oracle.CycleGradient(steps, handed);
  }
};

TEST_F(TrainingTest, MatchesTheStatedArithmeticBitForBit) {
  constexpr int32_t kTrainers = 2;
  constexpr int64_t kCycles = 5;
  Random random(20240601);
  SCOPED_TRACE(random.Trace());
  MakeTable(NgramSpec(kTrainers));
  NgramOracle oracle(kRowCount, kSignSeed, kSignRowCount);
  std::vector<std::unique_ptr<Trainer>> trainers;
  std::vector<std::unique_ptr<NgramEmbedding>> embeddings;
  for (int32_t rank = 0; rank < kTrainers; ++rank) {
    trainers.push_back(Join(rank));
    embeddings.push_back(MakeEmbedding(*trainers[rank]));
  }
  const auto tokens = RandomTokens(random, kCycles + 1, kTrainers);
  for (int64_t cycle = 0; cycle < kCycles; ++cycle) {
    std::vector<std::map<int64_t, NgramOracle::Row>> gradients(kTrainers);
    for (int32_t rank = 0; rank < kTrainers; ++rank) {
      TrainCycle(*embeddings[rank], oracle, 2 * cycle, tokens[cycle][rank],
                 gradients[rank]);
    }
    // Rank 0 sends its ids ahead, rank 1 does not.
    ASSERT_THAT(embeddings[0]->PrefetchNextCycle(Views(tokens[cycle + 1][0])),
                IsOk());
    EXPECT_EQ(*embeddings[1]->FinishCycle(), cycle + 1);
    EXPECT_EQ(*embeddings[0]->FinishCycle(Scalars()), cycle + 1);
    oracle.Apply(gradients, Scalars());
  }
}

TEST_F(NgramTest, AnEvaluationInACycleChangesNoBit) {
  const std::vector<TokenList> steps = {{1, 2, 3, 4}, {4, 3, 2, 1, 0}};
  const std::vector<TokenList> batches = {{9, 8, 7, 6, 5, 4, 3, 2, 1}};
  std::vector<uint64_t> digests;
  for (const bool evaluate : {false, true}) {
    MakeTable(NgramSpec());
    {
      const auto trainer = Join();
      const auto embedding = MakeEmbedding(*trainer);
      for (int64_t cycle = 0; cycle < 2; ++cycle) {
        ASSERT_THAT(embedding->StartCycle(2 * cycle, Views(steps)), IsOk());
        ASSERT_THAT(embedding->PrefetchNextCycle(Views(steps)), IsOk());
        ASSERT_THAT(Step(*embedding, steps[0], 1), IsOk());
        if (evaluate) {
          ASSERT_THAT(embedding->PullForEvaluation(Views(batches)), IsOk());
          ASSERT_THAT(Embed(*embedding, batches[0]), IsOk());
          ASSERT_THAT(embedding->RestoreAfterEvaluation(), IsOk());
        }
        ASSERT_THAT(Step(*embedding, steps[1], 2), IsOk());
        ASSERT_THAT(embedding->FinishCycle(Scalars()), IsOk());
        if (evaluate) {
          ASSERT_THAT(embedding->PullForEvaluation(Views(batches)), IsOk());
          ASSERT_THAT(Embed(*embedding, batches[0]), IsOk());
          ASSERT_THAT(embedding->RestoreAfterEvaluation(), IsOk());
        }
      }
      ASSERT_THAT(trainer->WaitForEvent(2), IsOk());
    }
    digests.push_back(cluster_->Digest("t")->digest);
    ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
  }
  EXPECT_EQ(digests[1], digests[0]);
}

TEST_F(NgramTest, AnEvaluationReadsTheLastEvent) {
  MakeTable(NgramSpec());
  const auto trainer = Join();
  const auto embedding = MakeEmbedding(*trainer);
  const std::vector<TokenList> steps = {{1, 2, 3}};
  NgramOracle oracle(kRowCount, kSignSeed, kSignRowCount);
  ASSERT_THAT(embedding->StartCycle(1, Views(steps)), IsOk());
  const NgramOracle::Rows gradient = Gradient(oracle.Embed(steps[0]), 1);
  ASSERT_THAT(Accumulate(*embedding, steps[0], gradient), IsOk());
  ASSERT_THAT(embedding->FinishCycle(Scalars()), IsOk());
  oracle.Apply({oracle.CycleGradient(steps, {gradient})}, Scalars());
  const std::vector<TokenList> batches = {{3, 2, 1, 2, 3}, {1, 2, 3}};
  ASSERT_THAT(embedding->PullForEvaluation(Views(batches)), IsOk());
  EXPECT_EQ(*Embed(*embedding, batches[0]), oracle.Embed(batches[0]));
  EXPECT_EQ(*Embed(*embedding, batches[1]), oracle.Embed(batches[1]));
}

TEST_F(NgramTest, ALostAnswerOfTheCyclesEndCountsOnce) {
  const std::vector<TokenList> steps = {{1, 2, 3, 4, 1, 2, 3}};
  std::vector<uint64_t> digests;
  for (const bool lose : {false, true}) {
    MakeTable(NgramSpec());
    const auto cluster = servers_.Connect(
        [lose, count = 0](int32_t server, std::string_view method) mutable {
          const bool hit = lose && server == 1 && method == "Push";
          return hit && count++ < 2 ? rowhouse::testing::Fault::kLoseAnswer
                                    : rowhouse::testing::Fault::kNone;
        });
    {
      const auto trainer = JoinBy(*cluster, 0);
      const auto embedding = MakeEmbedding(*trainer);
      ASSERT_THAT(embedding->StartCycle(1, Views(steps)), IsOk());
      ASSERT_THAT(Step(*embedding, steps[0], 1), IsOk());
      ASSERT_THAT(embedding->FinishCycle(Scalars()), IsOk());
      ASSERT_THAT(trainer->WaitForEvent(1), IsOk());
    }
    digests.push_back(cluster_->Digest("t")->digest);
    ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
  }
  EXPECT_EQ(digests[1], digests[0]);
}

TEST_F(NgramTest, AStepWithoutTokensIsValid) {
  MakeTable(NgramSpec());
  const auto trainer = Join();
  const auto embedding = MakeEmbedding(*trainer);
  const std::vector<TokenList> steps = {{}, {}};
  ASSERT_THAT(embedding->StartCycle(0, Views(steps)), IsOk());
  ASSERT_THAT(Step(*embedding, steps[0], 1), IsOk());
  ASSERT_THAT(Step(*embedding, steps[1], 1), IsOk());
  EXPECT_EQ(*embedding->FinishCycle(Scalars()), 1);
  EXPECT_THAT(trainer->WaitForEvent(1), IsOk());
}

TEST_F(NgramTest, ATrailingCycleIsDroppedWithItsGradient) {
  MakeTable(NgramSpec());
  const TableDigest fresh = *cluster_->Digest("t");
  const auto trainer = Join();
  const auto embedding = MakeEmbedding(*trainer);
  const std::vector<TokenList> steps = {{1, 2, 3}};
  ASSERT_THAT(embedding->StartCycle(0, Views(steps)), IsOk());
  ASSERT_THAT(Step(*embedding, steps[0], 1), IsOk());
  EXPECT_THAT(embedding->FinishCycle(Scalars()),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       "after step 0, which no event follows"));
  ASSERT_THAT(embedding->DropCycle(), IsOk());
  EXPECT_EQ(*cluster_->Digest("t"), fresh);
  EXPECT_THAT(embedding->StartCycle(0, Views(steps)), IsOk());
}

TEST_F(NgramTest, AWantListLargerThanTheCacheIsRefused) {
  MakeTable(NgramSpec());
  const auto trainer = Join();
  NgramOptions options;
  options.cache_row_count = 3;
  const auto embedding = MakeEmbedding(*trainer, options);
  const std::vector<TokenList> steps = {{1, 2, 3}};
  EXPECT_THAT(embedding->StartCycle(1, Views(steps)),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "wanted at most 3, the cache"));
}

TEST_F(NgramTest, ATableWithoutMetadataNeedsASignPool) {
  TableSpec spec = NgramSpec();
  spec.ngram.reset();
  MakeTable(spec);
  const auto trainer = Join();
  EXPECT_THAT(
      internal::MakeNgramEmbedding(*trainer, {}, TestBackend()),
      StatusIs(absl::StatusCode::kInvalidArgument, "without n-gram metadata"));
  NgramOptions options;
  options.sign_pool.emplace().sign_row_count = 16;
  EXPECT_THAT(internal::MakeNgramEmbedding(*trainer, options, TestBackend()),
              IsOk());
}

TEST_F(NgramTest, GradientsOfFp16AreRefused) {
  MakeTable(NgramSpec());
  const auto trainer = Join();
  NgramOptions options;
  options.gradient_dtype = DType::kFp16;
  EXPECT_THAT(internal::MakeNgramEmbedding(*trainer, options, TestBackend()),
              StatusIs(absl::StatusCode::kInvalidArgument, "kFp16"));
}

}  // namespace
}  // namespace rowhouse::client
