#include "tests/kernels/head_problem.h"

#include <algorithm>
#include <memory>
#include <numeric>
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

// Of one slice; without those that are not asked for.
struct SliceStatistics {
  std::vector<float> max_logits, exp_sums, target_logits, weighted_logit_sums;
  std::vector<int64_t> predicted;

  static SliceStatistics Of(const HeadProblem& problem) {
    const auto tokens = static_cast<size_t>(problem.token_count);
    const std::vector<float> floats(tokens, kPoison);
    SliceStatistics statistics = {floats, floats, floats, {}, {}};
    if (problem.label_smoothing > 0) statistics.weighted_logit_sums = floats;
    if (problem.predict) statistics.predicted.assign(tokens, 12345);
    return statistics;
  }
  HeadStatistics view() {
    const auto data = [](auto& values) {
      return values.empty() ? nullptr : values.data();
    };
    return {max_logits.data(), exp_sums.data(), target_logits.data(),
            data(weighted_logit_sums), data(predicted)};
  }
};

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
        class_weights_(backend,
                       problem.class_weights.empty()
                           ? std::vector<float>()
                           : Rows(problem.class_weights, 1, first, last)),
        kept_(backend,
              std::vector<uint8_t>(problem.keep || problem.keep_logits
                                       ? static_cast<size_t>(KeptBytes())
                                       : 0,
                                   0xff)) {}

  SliceStatistics Statistics() {
    const SliceStatistics poison = SliceStatistics::Of(problem_);
    const BackendArray<float> max_logits(backend_, poison.max_logits);
    const BackendArray<float> exp_sums(backend_, poison.exp_sums);
    const BackendArray<float> target_logits(backend_, poison.target_logits);
    const BackendArray<float> sums(backend_, poison.weighted_logit_sums);
    const BackendArray<int64_t> predicted(backend_, poison.predicted);
    const HeadStatistics to = {
        max_logits.data(), exp_sums.data(), target_logits.data(),
        poison.weighted_logit_sums.empty() ? nullptr : sums.data(),
        poison.predicted.empty() ? nullptr : predicted.data()};
    EXPECT_THAT(problem_.keep_logits
                    ? backend_.KeepHeadTokenStatistics(
                          slice(), inputs(), problem_.blocks, kept(), to)
                    : backend_.HeadTokenStatistics(slice(), inputs(),
                                                   problem_.blocks, to),
                IsOk());
    return {max_logits.Download(), exp_sums.Download(),
            target_logits.Download(), sums.Download(), predicted.Download()};
  }

  // With `at_once` the weight gradient too.
  std::vector<float> HiddenGradient(const HeadMerged& merged) {
    const BackendArray<float> out(
        backend_, std::vector<float>(problem_.hidden.size(), kPoison));
    const HeadBlocks& blocks = problem_.blocks;
    if (problem_.at_once) {
      EXPECT_THAT(backend_.HeadGradients(slice(), inputs(), merged, blocks,
                                         kept(), out.data(), main(), bias()),
                  IsOk());
    } else if (problem_.keep_logits) {
      EXPECT_THAT(backend_.KeptHeadHiddenGradient(slice(), inputs(), merged,
                                                  blocks, kept(), out.data()),
                  IsOk());
    } else {
      EXPECT_THAT(backend_.HeadHiddenGradient(slice(), inputs(), merged, blocks,
                                              kept(), out.data()),
                  IsOk());
    }
    return out.Download();
  }

  void WeightGradient(const HeadMerged& merged) {
    if (problem_.at_once) return;
    EXPECT_THAT(
        backend_.HeadWeightGradient(slice(), inputs(), merged, problem_.blocks,
                                    kept(), main(), bias()),
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
    return {weights_.data(),
            problem_.weight_dtype,
            problem_.bias.empty() ? nullptr : bias_.data(),
            row_count_,
            problem_.dim,
            problem_.class_weights.empty() ? nullptr : class_weights_.data(),
            problem_.softcap};
  }
  HeadInputs inputs() const {
    return {hidden_.data(), problem_.hidden_dtype, problem_.token_count,
            targets_.data()};
  }
  std::span<std::byte> kept() {
    return {reinterpret_cast<std::byte*>(kept_.data()), kept_.span().size()};
  }
  MainGrad main() {
    return {main_grad_.data(), problem_.main_grad_dtype, row_count_,
            problem_.dim, problem_.dim};
  }
  float* bias() { return problem_.bias.empty() ? nullptr : bias_grad_.data(); }
  int64_t KeptBytes() const {
    const HeadKept kept = HeadKept::Of(slice(), problem_.token_count,
                                       problem_.hidden_dtype, problem_.blocks);
    const auto gradient_bytes =
        static_cast<double>(kept.size_bytes - kept.gradient_offset);
    return kept.gradient_offset +
           static_cast<int64_t>(gradient_bytes * problem_.kept_share);
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
  BackendArray<float> class_weights_;
  BackendArray<uint8_t> kept_;
};

void Append(std::vector<float>& to, const std::vector<float>& values) {
  to.insert(to.end(), values.begin(), values.end());
}

// Merged statistics, and what the client makes of them.
class MergedLoss {
 public:
  MergedLoss(const HeadProblem& problem,
             std::vector<SliceStatistics> statistics)
      : problem_(problem), merged_(SliceStatistics::Of(problem)) {
    std::vector<HeadStatistics> views;
    for (size_t s = 0; s < statistics.size(); ++s) {
      for (int64_t& row : statistics[s].predicted) {
        if (row >= 0) row += problem.bounds[s];
      }
      views.push_back(statistics[s].view());
    }
    MergeHeadStatistics(views, problem.token_count, merged_.view());
  }

  const SliceStatistics& statistics() const { return merged_; }

  float LossOf(size_t t) const {
    if (problem_.targets[t] < 0) return 0.0F;
    const HeadTokenLoss loss = kernels::LossOf(problem_.terms(), Token(t));
    return static_cast<float>(loss.cross_entropy + loss.z_loss);
  }

  HeadCoefficients CoefficientsOf(size_t t) const {
    if (problem_.targets[t] < 0) return {};
    const std::vector<float>& z_upstream =
        problem_.z_upstream.empty() ? problem_.upstream : problem_.z_upstream;
    return kernels::CoefficientsOf(problem_.terms(), Token(t),
                                   problem_.upstream[t], z_upstream[t]);
  }

 private:
  HeadToken Token(size_t t) const {
    const auto target = static_cast<size_t>(problem_.targets[t]);
    return {
        merged_.max_logits[t], merged_.exp_sums[t], merged_.target_logits[t],
        merged_.weighted_logit_sums.empty() ? 0.0F
                                            : merged_.weighted_logit_sums[t],
        problem_.class_weights.empty()
            ? 1.0
            : static_cast<double>(problem_.class_weights[target])};
  }

  const HeadProblem& problem_;
  SliceStatistics merged_;
};

}  // namespace

HeadLossTerms HeadProblem::terms() const {
  const double sum =
      std::accumulate(class_weights.begin(), class_weights.end(), 0.0);
  return {label_smoothing, z_loss,
          class_weights.empty() ? static_cast<double>(row_count) : sum,
          std::max<int64_t>(row_count, 1)};
}

HeadResult RunHead(Backend& backend, const HeadProblem& problem) {
  HeadResult result;
  std::vector<std::unique_ptr<Slice>> slices;
  std::vector<SliceStatistics> statistics;
  for (size_t s = 0; s + 1 < problem.bounds.size(); ++s) {
    slices.push_back(std::make_unique<Slice>(
        backend, problem, problem.bounds[s], problem.bounds[s + 1]));
    statistics.push_back(slices.back()->Statistics());
  }
  const MergedLoss loss(problem, std::move(statistics));
  result.max_logits = loss.statistics().max_logits;
  result.exp_sums = loss.statistics().exp_sums;
  result.predicted = loss.statistics().predicted;
  std::vector<float> probabilities;
  std::vector<float> targets;
  std::vector<float> smoothings;
  for (size_t t = 0; t < problem.targets.size(); ++t) {
    result.loss.push_back(loss.LossOf(t));
    const HeadCoefficients coefficients = loss.CoefficientsOf(t);
    probabilities.push_back(coefficients.probability);
    targets.push_back(coefficients.target);
    smoothings.push_back(coefficients.smoothing);
  }

  const BackendArray<float> max_logits(backend, result.max_logits);
  const BackendArray<float> exp_sums(backend, result.exp_sums);
  const BackendArray<float> probability(backend, probabilities);
  const BackendArray<float> target(backend, targets);
  const BackendArray<float> smoothing(backend, smoothings);
  const HeadMerged merged = {
      max_logits.data(), exp_sums.data(), probability.data(),
      targets == probabilities ? probability.data() : target.data(),
      problem.label_smoothing > 0 ? smoothing.data() : nullptr};
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
  EXPECT_EQ(got.predicted, want.predicted);
}

}  // namespace rowhouse::kernels
