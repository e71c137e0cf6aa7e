#include <cmath>

#include "tests/kernels/golden_file.h"
#include "tests/kernels/head_problem.h"
#include "tests/kernels/host_table.h"

namespace rowhouse::kernels {
namespace {

DType DTypeOf(const nlohmann::json& name) {
  return name == "bf16" ? DType::kBf16 : DType::kFp32;
}

// A tensor as its bytes, whatever its type.
std::vector<uint8_t> BytesOf(const GoldenFile& file, const std::string& name) {
  return file.Values<uint8_t>(name);
}

TEST_P(BackendTest, EmbeddingGradientMatchesTheGoldenDataBitForBit) {
  const GoldenFile file("embedding_wgrad.safetensors");
  for (int i = 1; i <= 6; ++i) {
    const std::string name = "case" + std::to_string(i);
    const nlohmann::json metadata = file.Metadata(name);
    const auto dim = metadata.at("H").get<int64_t>();
    const auto slots = Array(file.Values<int64_t>(name + ".ids"));
    const auto rows = Array(BytesOf(file, name + ".grad"));
    const auto main_grad = Array(BytesOf(file, name + ".main_grad_before"));
    ASSERT_THAT(
        backend_->AccumulateEmbeddingGradient(
            {main_grad.data(), DTypeOf(metadata.at("main")),
             metadata.at("V").get<int64_t>(), dim, dim},
            {slots.span(), rows.data(), DTypeOf(metadata.at("grad")), dim}),
        IsOk());
    EXPECT_EQ(main_grad.Download(), BytesOf(file, name + ".main_grad_after"))
        << name;
  }
}

void ExpectNear(const std::vector<float>& got, const std::vector<float>& want,
                const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], 1e-6F + 1e-5F * std::abs(want[i]))
        << what << " element " << i;
  }
}

// Ignored tokens have the target -100 there.
HeadProblem ProblemOf(const GoldenFile& file, const std::string& name) {
  HeadProblem problem;
  problem.hidden = file.Values<float>(name + "hidden");
  problem.weights = file.Values<float>(name + "weight");
  if (file.Has(name + "bias")) problem.bias = file.Values<float>(name + "bias");
  problem.bounds = {0};
  for (const auto& rows : file.Metadata(name + "shards")) {
    problem.bounds.push_back(problem.bounds.back() + rows.get<int64_t>());
  }
  problem.row_count = problem.bounds.back();
  problem.dim =
      static_cast<int64_t>(problem.weights.size()) / problem.row_count;
  problem.token_count =
      static_cast<int64_t>(problem.hidden.size()) / problem.dim;
  problem.targets = file.Values<int64_t>(name + "target");
  float valid = 0;
  for (int64_t& target : problem.targets) {
    if (target < 0) target = -1;
    valid += target < 0 ? 0.0F : 1.0F;
  }
  const std::vector<float> upstream = file.Values<float>(name + "upstream");
  const std::string reduction = file.Text(name + "reduction");
  for (size_t t = 0; t < problem.targets.size(); ++t) {
    const float g = reduction == "none" ? upstream[t] : upstream[0];
    const float divisor = reduction == "mean" ? std::max(valid, 1.0F) : 1.0F;
    problem.upstream.push_back(problem.targets[t] < 0 ? 0.0F : g / divisor);
  }
  return problem;
}

std::vector<float> Reduced(const std::vector<float>& loss,
                           const std::string& reduction,
                           const std::vector<int64_t>& targets) {
  if (reduction == "none") return loss;
  float sum = 0;
  float valid = 0;
  for (size_t t = 0; t < loss.size(); ++t) {
    sum += loss[t];
    valid += targets[t] < 0 ? 0.0F : 1.0F;
  }
  return {reduction == "mean" ? sum / std::max(valid, 1.0F) : sum};
}

TEST_P(BackendTest, LinearCrossEntropyMatchesTheGoldenData) {
  const GoldenFile file("linear_cross_entropy.safetensors");
  for (int i = 31; i <= 35; ++i) {
    const std::string name = "case" + std::to_string(i) + ".";
    HeadProblem problem = ProblemOf(file, name);
    // The bias gradient is that of a bias of 0.
    problem.bias.resize(static_cast<size_t>(problem.row_count));
    for (const int64_t block : {1, 3, 1000}) {
      problem.blocks = {block, block};
      const HeadResult result = RunHead(*backend_, problem);
      ExpectNear(
          Reduced(result.loss, file.Text(name + "reduction"), problem.targets),
          file.Values<float>(name + "loss"), name + "loss");
      ExpectNear(result.hidden_gradient, file.Values<float>(name + "dhidden"),
                 name + "dhidden");
      ExpectNear(result.main_grad, file.Values<float>(name + "dweight"),
                 name + "dweight");
      ExpectNear(result.bias_grad, file.Values<float>(name + "dbias"),
                 name + "dbias");
    }
  }
}

}  // namespace
}  // namespace rowhouse::kernels
