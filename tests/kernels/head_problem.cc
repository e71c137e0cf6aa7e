#include "tests/kernels/head_problem.h"

#include <memory>
#include <utility>

#include "tests/kernels/backend_conformance.h"
#include "tests/kernels/host_table.h"

namespace rowhouse::kernels {
namespace {

constexpr float kPoison = 12345.0F;

std::vector<float> Rows(const std::vector<float>& values, int64_t columns,
                        int64_t first, int64_t last) {
  return {values.begin() + first * columns, values.begin() + last * columns};
}

// Row of the slice [first, last), or -1.
std::vector<int64_t> LocalTargets(const HeadProblem& problem, int64_t first,
                                  int64_t last) {
  std::vector<int64_t> local;
  for (const int64_t target : problem.targets) {
    local.push_back(target >= first && target < last ? target - first : -1);
  }
  return local;
}

// One slice with its gradients in the backend's memory.
class Slice {
 public:
  Slice(Backend& backend, const HeadProblem& problem, int64_t first,
        int64_t last)
      : backend_(backend),
        problem_(problem),
        row_count_(last - first),
        weights_(backend,
                 Encode(problem.weight_dtype,
                        Rows(problem.weights, problem.dim, first, last))),
        bias_(backend, problem.bias.empty()
                           ? std::vector<float>()
                           : Rows(problem.bias, 1, first, last)),
        targets_(backend, LocalTargets(problem, first, last)),
        hidden_(backend, Encode(problem.hidden_dtype, problem.hidden)),
        main_grad_(backend,
                   Encode(problem.main_grad_dtype,
                          Before(problem.main_grad, problem.dim, first, last))),
        bias_grad_(backend, problem.bias.empty()
                                ? std::vector<float>()
                                : Before(problem.bias_grad, 1, first, last)),
        kept_(backend,
              std::vector<uint8_t>(
                  problem.keep ? static_cast<size_t>(KeptBytes()) : 0, 0xff)) {}

  // max, sum, target logit, one after another.
  std::vector<float> Statistics() {
    const auto tokens = static_cast<size_t>(problem_.token_count);
    const BackendArray<float> out(backend_,
                                  std::vector<float>(3 * tokens, kPoison));
    EXPECT_THAT(backend_.HeadTokenStatistics(
                    slice(), inputs(), problem_.blocks,
                    {out.data(), out.data() + tokens, out.data() + 2 * tokens}),
                IsOk());
    return out.Download();
  }

  std::vector<float> HiddenGradient(const HeadMerged& merged) {
    const BackendArray<float> out(
        backend_, std::vector<float>(problem_.hidden.size(), kPoison));
    EXPECT_THAT(
        backend_.HeadHiddenGradient(
            slice(), inputs(), merged, problem_.blocks,
            {reinterpret_cast<std::byte*>(kept_.data()), kept_.span().size()},
            out.data()),
        IsOk());
    return out.Download();
  }

  void WeightGradient(const HeadMerged& merged) {
    const MainGrad main_grad = {main_grad_.data(), problem_.main_grad_dtype,
                                row_count_, problem_.dim, problem_.dim};
    EXPECT_THAT(
        backend_.HeadWeightGradient(
            slice(), inputs(), merged, problem_.blocks,
            {reinterpret_cast<std::byte*>(kept_.data()), kept_.span().size()},
            main_grad, problem_.bias.empty() ? nullptr : bias_grad_.data()),
        IsOk());
  }

  std::vector<float> main_grad() const {
    return Decode(problem_.main_grad_dtype, main_grad_.Download());
  }
  std::vector<float> bias_grad() const { return bias_grad_.Download(); }

 private:
  static std::vector<float> Before(const std::vector<float>& values,
                                   int64_t columns, int64_t first,
                                   int64_t last) {
    return values.empty() ? std::vector<float>(
                                static_cast<size_t>((last - first) * columns))
                          : Rows(values, columns, first, last);
  }
  HeadSlice slice() const {
    return {weights_.data(), problem_.weight_dtype,
            problem_.bias.empty() ? nullptr : bias_.data(), row_count_,
            problem_.dim};
  }
  HeadInputs inputs() const {
    return {hidden_.data(), problem_.hidden_dtype, problem_.token_count,
            targets_.data()};
  }
  int64_t KeptBytes() const {
    return HeadKept::Of(slice(), problem_.token_count, problem_.hidden_dtype,
                        problem_.blocks)
        .size_bytes;
  }

  Backend& backend_;
  const HeadProblem& problem_;
  const int64_t row_count_;
  BackendArray<uint8_t> weights_;
  BackendArray<float> bias_;
  BackendArray<int64_t> targets_;
  BackendArray<uint8_t> hidden_;
  BackendArray<uint8_t> main_grad_;
  BackendArray<float> bias_grad_;
  BackendArray<uint8_t> kept_;
};

void Append(std::vector<float>& to, const std::vector<float>& values) {
  to.insert(to.end(), values.begin(), values.end());
}

void MergeSlices(const HeadProblem& problem,
                 std::vector<std::vector<float>> statistics,
                 HeadResult& result) {
  const auto tokens = static_cast<size_t>(problem.token_count);
  std::vector<HeadStatistics> views;
  for (std::vector<float>& slice : statistics) {
    views.push_back(
        {slice.data(), slice.data() + tokens, slice.data() + 2 * tokens});
  }
  result.max_logits.resize(tokens);
  result.exp_sums.resize(tokens);
  result.loss.resize(tokens);
  std::vector<float> targets(tokens);
  MergeHeadStatistics(
      views, problem.token_count,
      {result.max_logits.data(), result.exp_sums.data(), targets.data()});
  for (size_t t = 0; t < tokens; ++t) {
    if (problem.targets[t] < 0) continue;
    result.loss[t] =
        HeadLoss(result.max_logits[t], result.exp_sums[t], targets[t]);
  }
}

}  // namespace

HeadResult RunHead(Backend& backend, const HeadProblem& problem) {
  HeadResult result;
  std::vector<std::unique_ptr<Slice>> slices;
  std::vector<std::vector<float>> statistics;
  for (size_t s = 0; s + 1 < problem.bounds.size(); ++s) {
    slices.push_back(std::make_unique<Slice>(
        backend, problem, problem.bounds[s], problem.bounds[s + 1]));
    statistics.push_back(slices.back()->Statistics());
  }
  MergeSlices(problem, std::move(statistics), result);

  const BackendArray<float> max_logits(backend, result.max_logits);
  const BackendArray<float> exp_sums(backend, result.exp_sums);
  const BackendArray<float> upstream(backend, problem.upstream);
  const HeadMerged merged = {max_logits.data(), exp_sums.data(),
                             upstream.data()};
  result.hidden_gradient.resize(problem.hidden.size());
  for (const std::unique_ptr<Slice>& slice : slices) {
    const std::vector<float> share = slice->HiddenGradient(merged);
    for (size_t i = 0; i < share.size(); ++i) {
      result.hidden_gradient[i] += share[i];
    }
  }
  for (const std::unique_ptr<Slice>& slice : slices) {
    slice->WeightGradient(merged);
    Append(result.main_grad, slice->main_grad());
    if (!problem.bias.empty()) Append(result.bias_grad, slice->bias_grad());
  }
  return result;
}

void ExpectSameBits(const HeadResult& got, const HeadResult& want) {
  EXPECT_EQ(BitsOf(got.max_logits), BitsOf(want.max_logits));
  EXPECT_EQ(BitsOf(got.exp_sums), BitsOf(want.exp_sums));
  EXPECT_EQ(BitsOf(got.loss), BitsOf(want.loss));
  EXPECT_EQ(BitsOf(got.hidden_gradient), BitsOf(want.hidden_gradient));
  EXPECT_EQ(BitsOf(got.main_grad), BitsOf(want.main_grad));
  EXPECT_EQ(BitsOf(got.bias_grad), BitsOf(want.bias_grad));
}

}  // namespace rowhouse::kernels
