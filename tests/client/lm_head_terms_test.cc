// Losses with terms beside plain cross entropy.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/client/head_fixture.h"
#include "tests/client/near_oracle.h"

namespace rowhouse::client {
namespace {

using rowhouse::testing::HostTerms;
using rowhouse::testing::IsOk;
using rowhouse::testing::StatusIs;
using rowhouse::testing::ToKernel;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kStatedWeight = 17.5;

// As a share of the oracle's largest value. Each term of a gradient is rounded
// to the compute type, and so is the result; with weights up to 3 the terms'
// absolute values add up to less than 16 times the largest sum for the sizes
// here. fp32 takes in what the roundings of the logits, of the softcap and its
// slope, and of the coefficients do: some hundred each.
double Tolerance(kernels::DType dtype) {
  return (dtype == kernels::DType::kFp32 ? 512 : 16) * HalfLastPlace(dtype);
}

struct Types {
  DType hidden;
  DType weight;
};

class LmHeadTermsTest : public HeadTest {
 protected:
  LmHeadTermsTest() { cluster_ = many_servers_.Connect(); }
  ~LmHeadTermsTest() override { cluster_ = nullptr; }

  // One to eight slices of any sizes.
  static TableSpec RandomSpec(Random& random, DType dtype) {
    TableSpec spec = Spec();
    spec.row_count = random.Integer(2, 40);
    spec.row_dtype = dtype;
    spec.dense->has_bias = random.Chance(0.5);
    spec.shard_bounds = {0, spec.row_count};
    for (int64_t cuts = random.Integer(0, 7); cuts > 0; --cuts) {
      spec.shard_bounds.push_back(random.Integer(0, spec.row_count));
    }
    std::sort(spec.shard_bounds.begin(), spec.shard_bounds.end());
    spec.shard_count = static_cast<int32_t>(spec.shard_bounds.size()) - 1;
    return spec;
  }

  // Those whose bits are set; predictions always.
  static HostTerms RandomTerms(Random& random, int chosen, int64_t row_count) {
    HostTerms terms;
    terms.predict = true;
    if ((chosen & 1) != 0) terms.label_smoothing = random.Uniform(0.01F, 0.9F);
    if ((chosen & 2) != 0) terms.z_loss = random.Uniform(1e-4F, 0.1F);
    if ((chosen & 4) != 0) terms.softcap = random.Uniform(2.0F, 40.0F);
    if ((chosen & 8) == 0) return terms;
    for (int64_t v = 0; v < row_count; ++v) {
      terms.class_weights.push_back(
          random.Chance(0.2) ? 0.0F : random.Uniform(0.0F, 3.0F));
    }
    return terms;
  }

  static LossTerms TermsOf(const HostTerms& host) {
    LossTerms terms;
    terms.label_smoothing = host.label_smoothing;
    terms.z_loss = host.z_loss;
    if (host.softcap > 0) terms.softcap = host.softcap;
    terms.class_weights = host.class_weights;
    terms.predict = host.predict;
    return terms;
  }

  static HeadOptions OptionsOf(Way way, const HostTerms& terms) {
    HeadOptions options{.event = 1};
    options.terms = TermsOf(terms);
    options.reduction = way == Way::kNone  ? LossReduction::kNone
                        : way == Way::kSum ? LossReduction::kSum
                                           : LossReduction::kMean;
    if (way != Way::kMeanOfStated) return options;
    options.mean_token_count = kStatedCount;
    if (!terms.class_weights.empty()) options.mean_weight_sum = kStatedWeight;
    return options;
  }

  struct Divisors {
    double weight = 1;
    double token = 1;
  };
  static Divisors DivisorsOf(Way way, const HostTerms& terms,
                             const HostBatch& batch) {
    if (way == Way::kNone || way == Way::kSum) return {};
    if (way == Way::kMeanOfStated) {
      return {terms.class_weights.empty() ? kStatedCount : kStatedWeight,
              kStatedCount};
    }
    Divisors divisors = {0, 0};
    for (const int64_t target : batch.targets) {
      if (target == kIgnored) continue;
      divisors.token += 1;
      divisors.weight +=
          terms.class_weights.empty() ? 1 : terms.class_weights[target];
    }
    if (divisors.token == 0) divisors.token = 1;
    if (divisors.weight == 0) divisors.weight = 1;
    return divisors;
  }

  void Run(Way way, int chosen, const Types& types, Random& random) {
    const TableSpec spec = RandomSpec(random, types.weight);
    HostTerms terms = RandomTerms(random, chosen, spec.row_count);
    HostHead host = MakeHead(spec, random);
    const auto trainer = Join();
    const HostBatch batch =
        RandomBatch(random, spec, random.Integer(1, 20), types.hidden);
    const Call call(batch);
    const auto loss =
        HeadOf(*trainer)->Forward(call.get(), OptionsOf(way, terms));
    ASSERT_THAT(loss, IsOk());

    const float upstream = random.Uniform(0.5F, 2.0F);
    const Divisors divisors = DivisorsOf(way, terms, batch);
    const std::vector<float> each =
        Upstreams(batch, static_cast<float>(upstream / divisors.weight));
    terms.z_upstream =
        Upstreams(batch, static_cast<float>(upstream / divisors.token));
    const auto exact = host.Exact(batch, each, terms);
    ExpectLosses(**loss, way, divisors, batch, exact);
    const auto gradient =
        way == Way::kNone
            ? BackwardOf(**loss, batch, std::span(each))
            : BackwardOf(**loss, batch, static_cast<double>(upstream));
    ASSERT_THAT(gradient, IsOk());
    const auto compute =
        kernels::ComputeType(batch.hidden_dtype, ToKernel(spec.row_dtype));
    ExpectNear(*gradient, exact.hidden_gradient,
               std::max(Tolerance(compute), Tolerance(batch.hidden_dtype)),
               "hidden gradient");
    const kernels::HeadResult bits = host.AddHead(batch, each, terms);
    ExpectNear(host.table().main_grad, exact.weight_gradient,
               Tolerance(compute), "weight gradient");
    EXPECT_EQ(
        std::vector((*loss)->predicted().begin(), (*loss)->predicted().end()),
        bits.predicted);
    ExpectAccuracy(**loss, batch);
    // The oracle's upstream of a mean has one rounding more.
    if (way == Way::kMeanOfOwn || way == Way::kMeanOfStated) return;
    EXPECT_EQ(kernels::BitsOf(*gradient),
              kernels::BitsOf(kernels::Representable(batch.hidden_dtype,
                                                     bits.hidden_gradient)));
    ASSERT_THAT(trainer->SealAndCommit(1, Scalars(1)), IsOk());
    host.Apply(Step(), 1);
    EXPECT_EQ(DigestAt(1), host.Digest());
  }

  static void ExpectLosses(const HeadLoss& loss, Way way,
                           const Divisors& divisors, const HostBatch& batch,
                           const reference::CrossEntropyResult& exact) {
    ExpectNear(loss.token_losses(), exact.loss,
               Tolerance(kernels::DType::kFp32), "loss");
    if (way == Way::kNone) {
      EXPECT_TRUE(std::isnan(loss.loss()));
      EXPECT_TRUE(std::isnan(loss.z_loss()));
      return;
    }
    double cross_entropy = 0;
    double z_loss = 0;
    for (size_t t = 0; t < batch.targets.size(); ++t) {
      cross_entropy += exact.loss[t] - exact.z_loss[t];
      z_loss += exact.z_loss[t];
    }
    const double want =
        cross_entropy / divisors.weight + z_loss / divisors.token;
    EXPECT_NEAR(loss.loss(), want, 1e-5 * (1 + std::abs(want)));
    EXPECT_NEAR(loss.z_loss(), z_loss / divisors.token,
                1e-5 * (1 + std::abs(z_loss)));
  }

  static void ExpectAccuracy(const HeadLoss& loss, const HostBatch& batch) {
    int64_t correct = 0;
    for (size_t t = 0; t < batch.targets.size(); ++t) {
      correct += batch.targets[t] == loss.predicted()[t] ? 1 : 0;
    }
    EXPECT_EQ(loss.correct_token_count(), correct);
  }

  HostTerms AllTerms(Random& random, int64_t row_count) {
    return RandomTerms(random, 15, row_count);
  }

  rowhouse::testing::InMemoryCluster many_servers_{8};
};

TEST_F(LmHeadTermsTest, EqualTheOracleForAllTermsTypesReductionsAndSlices) {
  Random random(511);
  SCOPED_TRACE(random.Trace());
  const std::vector<Types> all_types = {{DType::kFp32, DType::kFp32},
                                        {DType::kBf16, DType::kBf16},
                                        {DType::kFp16, DType::kFp32}};
  for (int chosen = 0; chosen < 16; ++chosen) {
    for (const Types& types : all_types) {
      for (const Way way :
           {Way::kNone, Way::kSum, Way::kMeanOfOwn, Way::kMeanOfStated}) {
        SCOPED_TRACE(::testing::Message() << "terms " << chosen << ", way "
                                          << static_cast<int>(way));
        ASSERT_NO_FATAL_FAILURE(Run(way, chosen, types, random));
        ASSERT_THAT(cluster_->DeleteTable("t"), IsOk());
      }
    }
  }
}

TEST_F(LmHeadTermsTest, TakeNoTokenEmptySlicesAndIgnoredTokens) {
  Random random(512);
  SCOPED_TRACE(random.Trace());
  TableSpec spec = Spec();
  spec.shard_bounds = {0, 0, 5, 5, 17, 17};
  spec.shard_count = 5;
  HostHead host = MakeHead(spec, random);
  const HostTerms terms = AllTerms(random, spec.row_count);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  int64_t event = 0;
  for (const int64_t token_count : {0, 3, 0}) {
    HostBatch batch = RandomBatch(random, spec, token_count);
    batch.targets.assign(batch.targets.size(), kIgnored);
    const Call call(batch);
    HeadOptions options = OptionsOf(Way::kMeanOfOwn, terms);
    options.event = ++event;
    const auto loss = head->Forward(call.get(), options);
    ASSERT_THAT(loss, IsOk());
    EXPECT_EQ((*loss)->loss(), 0);
    EXPECT_THAT((*loss)->token_losses(), Each(0.0F));
    EXPECT_EQ((*loss)->predicted().size(), token_count);
    EXPECT_EQ((*loss)->correct_token_count(), 0);
    const auto gradient = BackwardOf(**loss, batch, 65536.0);
    ASSERT_THAT(gradient, IsOk());
    EXPECT_THAT(kernels::BitsOf(*gradient), Each(0U));
    ASSERT_THAT(trainer->SealAndCommit(event, Scalars(event)), IsOk());
    host.Apply(Step(), static_cast<int>(event));  // As if there were no call.
    EXPECT_EQ(DigestAt(event), host.Digest());
  }
}

TEST_F(LmHeadTermsTest, EvaluationsHaveThem) {
  Random random(513);
  SCOPED_TRACE(random.Trace());
  HostHead host = MakeHead(Spec(), random);
  const HostTerms terms = AllTerms(random, Spec().row_count);
  const auto trainer = Join();
  const HostBatch batch = RandomBatch(random, Spec(), 12);
  const Call call(batch);
  const auto exact = host.Exact(batch, Upstreams(batch, 1.0F), terms);
  const auto got = HeadOf(*trainer)->Evaluate(
      call.get(), {.event = 1, .token_losses = true, .terms = TermsOf(terms)});
  ASSERT_THAT(got, IsOk());
  ExpectNear(got->token_losses, exact.loss, Tolerance(kernels::DType::kFp32),
             "loss");
  double loss_sum = 0;
  double z_loss_sum = 0;
  double weight_sum = 0;
  int64_t correct = 0;
  for (size_t t = 0; t < batch.targets.size(); ++t) {
    loss_sum += exact.loss[t];
    z_loss_sum += exact.z_loss[t];
    if (batch.targets[t] == kIgnored) continue;
    weight_sum += terms.class_weights[batch.targets[t]];
    correct += batch.targets[t] == got->predicted[t] ? 1 : 0;
  }
  EXPECT_NEAR(got->loss_sum, loss_sum, 1e-5 * loss_sum);
  EXPECT_NEAR(got->z_loss_sum, z_loss_sum, 1e-5 * z_loss_sum);
  EXPECT_DOUBLE_EQ(got->target_weight_sum, weight_sum);
  EXPECT_EQ(got->correct_token_count, correct);
  const auto plain = HeadOf(*trainer)->Evaluate(call.get(), {.event = 1});
  ASSERT_THAT(plain, IsOk());
  EXPECT_THAT(plain->predicted, IsEmpty());
  EXPECT_EQ(plain->z_loss_sum, 0);
}

TEST_F(LmHeadTermsTest, OutOfRangeAreNamedAndRefused) {
  Random random(514);
  SCOPED_TRACE(random.Trace());
  MakeHead(Spec(), random);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  const HostBatch batch = RandomBatch(random, Spec(), 4);
  const Call call(batch);
  const float nan = std::nanf("");
  const float infinity = std::numeric_limits<float>::infinity();
  const auto refuses = [&](const LossTerms& terms, const char* reason,
                           const char* message) {
    const auto loss = head->Forward(call.get(), {.event = 1, .terms = terms});
    EXPECT_THAT(loss, Fails(absl::StatusCode::kInvalidArgument, reason));
    EXPECT_THAT(loss, StatusIs(absl::StatusCode::kInvalidArgument, message));
    EXPECT_THAT(head->Evaluate(call.get(), {.event = 1, .terms = terms}),
                Fails(absl::StatusCode::kInvalidArgument, reason));
  };
  for (const double bad : {-0.1, 1.0, double{nan}}) {
    refuses({.label_smoothing = bad}, "BAD_SCALAR", "label_smoothing");
  }
  for (const double bad : {-1e-9, double{infinity}, double{nan}}) {
    refuses({.z_loss = bad}, "BAD_SCALAR", "z_loss");
  }
  for (const float bad : {0.0F, -2.0F, infinity, nan}) {
    refuses({.softcap = bad}, "BAD_SCALAR", "softcap");
  }
  std::vector<float> weights(17, 1.0F);
  refuses({.class_weights = std::span(weights).subspan(1)}, "BAD_COUNT",
          "16 class weights, wanted one for each of 17 rows");
  for (const float bad : {-1.0F, infinity, nan}) {
    weights[9] = bad;
    refuses({.class_weights = weights}, "BAD_SCALAR", "class weight of row 9");
  }
  weights[9] = 1;
  EXPECT_THAT(head->Forward(call.get(), {.event = 1, .mean_weight_sum = 2.0}),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_SCALAR"));
  EXPECT_THAT(head->Forward(call.get(), {.event = 1,
                                         .mean_weight_sum = -1.0,
                                         .terms = {.class_weights = weights}}),
              Fails(absl::StatusCode::kInvalidArgument, "BAD_SCALAR"));
  const auto loss = head->Forward(call.get(), {.event = 1});
  ASSERT_THAT(loss, IsOk());
  EXPECT_EQ((*loss)->part(), 0);
}

TEST_F(LmHeadTermsTest, ClassWeightsAreHeldOnceForAllMicroBatches) {
  Random random(515);
  SCOPED_TRACE(random.Trace());
  TableSpec spec = Spec();
  spec.max_part_count = 30;
  HostHead host = MakeHead(spec, random);
  HostTerms terms;
  terms.label_smoothing = 0.25;
  terms.class_weights.assign(17, 0.5F);
  const auto trainer = Join();
  const auto head = HeadOf(*trainer);
  const HostBatch batch = RandomBatch(random, spec, 2);
  const Call call(batch);
  const auto step = [&](int64_t event) -> absl::Status {
    HeadOptions options = OptionsOf(Way::kSum, terms);
    options.event = event;
    options.timeout = absl::Milliseconds(200);
    ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<HeadLoss> loss,
                              head->Forward(call.get(), options));
    return BackwardOf(*loss, batch, 1.0).status();
  };
  for (int part = 0; part < 20; ++part) ASSERT_THAT(step(1), IsOk());
  for (int other = 1; other < 8; ++other) {
    terms.class_weights[3] = static_cast<float>(other);
    ASSERT_THAT(step(1), IsOk());
  }
  terms.class_weights[3] = 100.0F;
  EXPECT_THAT(step(1), ::testing::Not(IsOk()));
  ASSERT_THAT(trainer->SealAndCommit(1, Scalars(1)), IsOk());
  ASSERT_THAT(trainer->WaitForEvent(1), IsOk());
  EXPECT_THAT(step(2), IsOk());  // Those of event 1 have gone.
}

}  // namespace
}  // namespace rowhouse::client
