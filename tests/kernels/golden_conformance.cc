#include <cmath>

#include "tests/kernels/golden_file.h"
#include "tests/kernels/host_table.h"

namespace rowhouse::kernels {
namespace {

std::vector<std::string> CasesOf(const GoldenFile& file) {
  std::vector<std::string> cases;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "case" + std::to_string(i) + ".";
    if (file.Has(name + "tokens")) cases.push_back(name);
  }
  return cases;
}

// The pool's words for the sign rows that a case reads; the others stay +1.
std::vector<uint64_t> PoolOf(const GoldenFile& file, const std::string& name,
                             int64_t dim) {
  const std::vector<int64_t> sign_rows = file.Indices(name + "sign_rows");
  const std::vector<float> signs = file.Widened(name + "pool_rows");
  std::vector<uint64_t> words(8192);
  for (size_t i = 0; i < sign_rows.size(); ++i) {
    uint64_t word = 0;
    for (int64_t j = 0; j < dim; ++j) {
      const float sign =
          signs[i * static_cast<size_t>(dim) + static_cast<size_t>(j)];
      EXPECT_EQ(std::abs(sign), 1.0F);
      if (sign < 0) word |= uint64_t{1} << j;
    }
    words[static_cast<size_t>(sign_rows[i])] = word;
  }
  return words;
}

TEST_P(BackendTest, NgramRowIdsMatchTheGoldenData) {
  const GoldenFile file("ngram_hash_and_embed.safetensors");
  const std::vector<std::string> cases = CasesOf(file);
  ASSERT_GE(cases.size(), 4U);
  for (const std::string& name : cases) {
    const auto tokens = Array(file.Values<int32_t>(name + "tokens"));
    const auto ids = Array(std::vector<int64_t>(2 * tokens.span().size(), -1));
    ASSERT_THAT(backend_->NgramRowIds(tokens.span(), 84602880, ids.span()),
                IsOk());
    ASSERT_THAT(backend_->Synchronize(), IsOk());
    EXPECT_EQ(ids.Download(), file.Indices(name + "row_ids")) << name;
  }
}

TEST_P(BackendTest, NgramEmbeddingMatchesTheGoldenData) {
  const GoldenFile file("ngram_hash_and_embed.safetensors");
  constexpr int64_t kDim = 16;
  int checked = 0;
  for (const std::string& name : CasesOf(file)) {
    if (!file.Has(name + "embed")) continue;
    const auto words = Array(PoolOf(file, name, kDim));
    SignPool pool;
    pool.words = words.data();
    const auto tokens = Array(file.Values<int32_t>(name + "tokens"));
    const auto slots = Array(file.Indices(name + "slots"));
    const auto cache = Array(file.Values<uint16_t>(name + "cache"));
    const auto gradient = Array(file.Values<uint16_t>(name + "grad"));
    const size_t elements = tokens.span().size() * kDim;
    const auto embed = Array(std::vector<uint16_t>(elements, 0xffff));
    const auto rows = Array(std::vector<uint16_t>(2 * elements, 0xffff));
    ASSERT_THAT(backend_->NgramEmbedForward(cache.data(), DType::kBf16, kDim,
                                            tokens.span(), slots.span(), pool,
                                            embed.data()),
                IsOk());
    ASSERT_THAT(
        backend_->NgramEmbedBackward(gradient.data(), DType::kBf16, kDim,
                                     tokens.span(), pool, rows.data()),
        IsOk());
    ASSERT_THAT(backend_->Synchronize(), IsOk());
    EXPECT_EQ(embed.Download(), file.Values<uint16_t>(name + "embed")) << name;
    EXPECT_EQ(rows.Download(), file.Values<uint16_t>(name + "row_grad"))
        << name;
    ++checked;
  }
  EXPECT_EQ(checked, 3);
}

// Steps between two bf16 values of one sign.
int64_t StepsApart(float a, float b) {
  return std::abs(int64_t{FloatToBf16(a)} - int64_t{FloatToBf16(b)});
}

void ExpectWeightsNear(const std::vector<float>& got,
                       const std::vector<float>& want, int event) {
  ASSERT_EQ(got.size(), want.size());
  size_t equal = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    equal += FloatToBf16(got[i]) == FloatToBf16(want[i]) ? 1 : 0;
    if (std::abs(want[i]) > 1e-3F) {
      EXPECT_LE(StepsApart(got[i], want[i]), 1)
          << "event " << event << " element " << i;
    }
  }
  EXPECT_GE(static_cast<double>(equal), 0.999 * static_cast<double>(got.size()))
      << "event " << event;
}

RowAdamFactors FactorsOf(const nlohmann::json& scalars) {
  const auto value = [&](const char* name) {
    return static_cast<float>(scalars.at(name).get<double>());
  };
  return {value("step_size"), value("decay"), value("beta2"), 1e-10F,
          value("grad_mul"),  value("sq_mul")};
}

TEST_P(BackendTest, RowAdamFollowsTheGoldenEvents) {
  const GoldenFile file("ngram_adam.safetensors");
  HostTable host(48, 96, DType::kBf16);
  host.weights = file.Widened("param_before");
  const BackendTable table(*backend_, host);
  std::vector<int64_t> all_slots(48);
  for (size_t i = 0; i < 48; ++i) all_slots[i] = static_cast<int64_t>(i);
  const auto slots = Array(all_slots);
  HostHistory history;
  for (int number = 1; number <= 9; ++number) {
    const std::string name = "event" + std::to_string(number) + ".";
    HostEvent event;
    event.factors = FactorsOf(file.Metadata(name + "scalars"));
    event.parts = {{file.Indices(name + "rows"), file.Widened(name + "grad")}};
    Apply(*backend_, table, event, history);
    history.beta2.push_back(event.factors.beta2);
    ExpectWeightsNear(Decode(DType::kBf16, table.weight_bytes()),
                      file.Widened(name + "param_after"), number);

    const BackendHistory past(*backend_, history);
    ASSERT_THAT(backend_->BringCurrent(table.view(), past.view(), slots.span()),
                IsOk());
    const std::vector<float> want =
        file.Values<float>(name + "exp_avg_sq_current");
    const std::vector<uint32_t> got = table.second_moment_bits();
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_NEAR(std::bit_cast<float>(got[i]), want[i], 1e-6F * want[i])
          << "event " << number << " row " << i;
    }
  }
}

}  // namespace
}  // namespace rowhouse::kernels
