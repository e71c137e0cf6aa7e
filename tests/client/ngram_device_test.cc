// An n-gram embedding whose cache and arithmetic are on a device.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tests/client/device_buffer.h"
#include "tests/client/fake_device.h"
#include "tests/client/ngram_fixture.h"
#include "tests/testing/random.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::DeviceBuffer;
using rowhouse::testing::FakeDevice;
using rowhouse::testing::IsOk;
using rowhouse::testing::Random;
using rowhouse::testing::StatusIs;

constexpr int64_t kDim = NgramOracle::kDim;

// Where the test has tokens, embeddings and gradients.
enum class Place : uint8_t { kHost, kDevice };

class NgramDeviceTest : public NgramTest {
 protected:
  NgramDeviceTest() { cluster_ = servers_.Connect(nullptr, device_); }
  void TearDown() override { EXPECT_EQ(device_->waiting_count(), 0); }

  static std::unique_ptr<NgramEmbedding> MakeOn(
      const std::shared_ptr<kernels::Backend>& backend, Trainer& trainer) {
    auto made = internal::MakeNgramEmbedding(trainer, {}, backend);
    EXPECT_THAT(made, IsOk());
    return made.ok() ? *std::move(made) : nullptr;
  }

  std::vector<float> EmbedAt(NgramEmbedding& embedding, const TokenList& tokens,
                             Place place) {
    std::vector<float> out(tokens.size() * kDim, -99);
    if (place == Place::kHost) {
      EXPECT_THAT(
          embedding.Embed(tokens, std::as_writable_bytes(std::span(out))),
          IsOk());
      return out;
    }
    const DeviceBuffer<float> on_device(*device_, out);
    const DeviceBuffer<int32_t> device_tokens(*device_, tokens);
    EXPECT_THAT(embedding.Embed(device_tokens.span(), on_device.bytes()),
                IsOk());
    return on_device.Read();
  }

  void AccumulateAt(NgramEmbedding& embedding, const TokenList& tokens,
                    const std::vector<float>& gradient, Place place) {
    if (place == Place::kHost) {
      EXPECT_THAT(embedding.AccumulateGradient(
                      tokens, std::as_bytes(std::span(gradient))),
                  IsOk());
      return;
    }
    // It is copied: the buffers go.
    const DeviceBuffer<float> on_device(*device_, gradient);
    const DeviceBuffer<int32_t> device_tokens(*device_, tokens);
    EXPECT_THAT(
        embedding.AccumulateGradient(device_tokens.span(), on_device.bytes()),
        IsOk());
  }

  // All that was embedded, and the digest after each event.
  struct Outcome {
    std::vector<std::vector<float>> embedded;
    std::vector<TableDigest> digests;
    friend bool operator==(const Outcome&, const Outcome&) = default;
  };

  // Makes table `t`, trains it and deletes it.
  Outcome Train(const TableSpec& spec,
                const std::shared_ptr<kernels::Backend>& backend, Place place) {
    EXPECT_THAT(cluster_->CreateTable("t", spec), IsOk());
    Outcome outcome = TrainTable(backend, place);
    EXPECT_THAT(cluster_->DeleteTable("t"), IsOk());
    return outcome;
  }

  // In cycles of two steps, with evaluations in between.
  Outcome TrainTable(const std::shared_ptr<kernels::Backend>& backend,
                     Place place) {
    Random random(31);
    SCOPED_TRACE(random.Trace());
    Outcome outcome;
    const auto trainer = Join();
    const auto embedding = MakeOn(backend, *trainer);
    if (embedding == nullptr) return outcome;
    constexpr int64_t kCycles = 4;
    std::vector<std::vector<TokenList>> cycles(kCycles + 1);
    for (auto& steps : cycles) {
      for (int i = 0; i < 2; ++i) {
        steps.emplace_back(random.Integer(0, 30));
        for (int32_t& token : steps.back()) {
          token = static_cast<int32_t>(random.Integer(0, 40));
        }
      }
    }
    for (int64_t cycle = 0; cycle < kCycles; ++cycle) {
      EXPECT_THAT(embedding->StartCycle(2 * cycle, Views(cycles[cycle])),
                  IsOk());
      EXPECT_THAT(embedding->PrefetchNextCycle(Views(cycles[cycle + 1])),
                  IsOk());
      if (random.Chance(0.5)) {
        const std::vector<Tokens> batches = Views(cycles[kCycles]);
        EXPECT_THAT(embedding->PullForEvaluation(batches), IsOk());
        outcome.embedded.push_back(
            EmbedAt(*embedding, cycles[kCycles][1], place));
        EXPECT_THAT(embedding->RestoreAfterEvaluation(), IsOk());
      }
      for (const TokenList& tokens : cycles[cycle]) {
        const std::vector<float> out = EmbedAt(*embedding, tokens, place);
        std::vector<float> gradient = out;
        for (float& g : gradient) g = g * 0.5F + random.Normal();
        AccumulateAt(*embedding, tokens, gradient, place);
        outcome.embedded.push_back(out);
      }
      const auto event = embedding->FinishCycle(Scalars());
      EXPECT_THAT(event, IsOk());
      if (!event.ok()) return outcome;
      EXPECT_THAT(trainer->WaitForEvent(*event), IsOk());
      const auto digest = cluster_->Digest("t", *event);
      EXPECT_THAT(digest, IsOk());
      if (digest.ok()) outcome.digests.push_back(*digest);
    }
    return outcome;
  }

  std::shared_ptr<FakeDevice> device_ = std::make_shared<FakeDevice>();
};

TEST_F(NgramDeviceTest, TrainingGivesTheBitsOfTheHost) {
  TableSpec imported = NgramSpec();
  Random random(33);
  imported.ngram->sign_words.resize(kSignRowCount);
  for (uint64_t& word : imported.ngram->sign_words) word = random.Bits();
  for (TableSpec spec : {NgramSpec(), imported}) {
    spec.initializer = {Initializer::Kind::kUniform, 7, 1.0F};
    const Outcome wanted = Train(spec, TestBackend(), Place::kHost);
    EXPECT_EQ(wanted.digests.size(), 4U);
    EXPECT_TRUE(Train(spec, device_, Place::kDevice) == wanted);
    EXPECT_TRUE(Train(spec, device_, Place::kHost) == wanted);
  }
  EXPECT_EQ(device_->held_bytes(), 0);
}

// Tokens of the device are known again, too.
TEST_F(NgramDeviceTest, APrefetchedCyclesWantListIsMadeOnce) {
  MakeTable(NgramSpec());
  const auto trainer = Join();
  int64_t want_lists = 0;
  NgramOptions options;
  options.observer = [&](const Span& span) {
    if (span.stage == Stage::kWantList) ++want_lists;
  };
  const auto embedding =
      internal::MakeNgramEmbedding(*trainer, options, device_);
  ASSERT_THAT(embedding, IsOk());
  const DeviceBuffer<int32_t> tokens(*device_, {1, 2, 3});
  const DeviceBuffer<int32_t> next(*device_, {4, 5});
  const DeviceBuffer<float> gradient(*device_, std::vector<float>(3 * kDim, 1));
  ASSERT_THAT(
      (*embedding)->StartCycle(0, std::vector<Tokens>(2, tokens.span())),
      IsOk());
  ASSERT_THAT(
      (*embedding)->PrefetchNextCycle(std::vector<Tokens>(2, next.span())),
      IsOk());
  ASSERT_THAT((*embedding)->AccumulateGradient(tokens.span(), gradient.bytes()),
              IsOk());
  ASSERT_THAT((*embedding)->FinishCycle(Scalars()), IsOk());
  EXPECT_EQ(want_lists, 2);
  EXPECT_THAT(
      (*embedding)->StartCycle(2, std::vector<Tokens>(2, tokens.span())),
      StatusIs(absl::StatusCode::kFailedPrecondition,
               "other steps than were prefetched"));
  EXPECT_EQ(want_lists, 3);
  EXPECT_THAT((*embedding)->StartCycle(2, std::vector<Tokens>(2, next.span())),
              IsOk());
  EXPECT_EQ(want_lists, 3);
}

TEST_F(NgramDeviceTest, BadInputIsRefusedAndChangesNothing) {
  MakeTable(NgramSpec());
  const auto trainer = Join();
  const auto embedding = MakeOn(device_, *trainer);
  const std::vector<TokenList> steps = {{1, 2, 3}, {2}};
  ASSERT_THAT(embedding->StartCycle(0, Views(steps)), IsOk());
  const DeviceBuffer<int32_t> others(*device_, {7, 8, 9});
  const DeviceBuffer<float> rows(*device_, std::vector<float>(3 * kDim, 1));
  EXPECT_THAT(embedding->Embed(others.span(), rows.bytes()),
              Fails(absl::StatusCode::kNotFound, "ROW_NOT_CACHED"));
  EXPECT_THAT(embedding->AccumulateGradient(others.span(), rows.bytes()),
              Fails(absl::StatusCode::kNotFound, "ROW_NOT_CACHED"));
  EXPECT_THAT(embedding->Embed(steps[1], rows.bytes()),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_SHAPE"));
  EXPECT_EQ(rows.Read(), std::vector<float>(3 * kDim, 1));
  // After a fault the same call is made again.
  device_->fail_work = true;
  EXPECT_THAT(embedding->AccumulateGradient(steps[0], rows.bytes()),
              StatusIs(absl::StatusCode::kInternal, "fell off the bus"));
  device_->fail_work = false;
  EXPECT_THAT(embedding->AccumulateGradient(steps[0], rows.bytes()), IsOk());
  device_->fail_work = true;
  EXPECT_THAT(embedding->FinishCycle(Scalars()),
              StatusIs(absl::StatusCode::kInternal, "fell off the bus"));
  device_->fail_work = false;
  EXPECT_THAT(embedding->FinishCycle(Scalars()), IsOk());
  EXPECT_THAT(trainer->WaitForEvent(1), IsOk());
}

TEST_F(NgramDeviceTest, WithoutMemoryThereIsNoCache) {
  MakeTable(NgramSpec());
  const auto trainer = Join();
  device_->fail_allocations = true;
  EXPECT_THAT(internal::MakeNgramEmbedding(*trainer, {}, device_),
              StatusIs(absl::StatusCode::kResourceExhausted, "no memory"));
}

}  // namespace
}  // namespace rowhouse::client
