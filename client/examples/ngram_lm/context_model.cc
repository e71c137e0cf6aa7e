#include "client/examples/ngram_lm/context_model.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

namespace rowhouse::ngram_lm {

ContextModel::ContextModel(int64_t dim, std::vector<Average> averages,
                           uint64_t sign_seed)
    : dim_(static_cast<size_t>(dim)),
      averages_(std::move(averages)),
      signs_(averages_.size() * dim_) {
  std::mt19937_64 random(sign_seed);
  for (float& sign : signs_) sign = (random() >> 63) == 0 ? 1.0F : -1.0F;
}

void ContextModel::Forward(std::span<const float> embeddings,
                           std::span<const float> ngram,
                           std::span<float> hidden) const {
  std::copy(ngram.begin(), ngram.end(), hidden.begin());
  std::vector<float> average(dim_);
  for (size_t k = 0; k < averages_.size(); ++k) {
    const auto [memory, weight] = averages_[k];
    const float* const sign = &signs_[k * dim_];
    std::fill(average.begin(), average.end(), 0.0F);
    for (size_t begin = 0; begin < hidden.size(); begin += dim_) {
      for (size_t j = 0; j < dim_; ++j) {
        average[j] = memory * average[j] + (1 - memory) * embeddings[begin + j];
        hidden[begin + j] += weight * sign[j] * average[j];
      }
    }
  }
}

void ContextModel::Backward(std::span<const float> hidden_gradient,
                            std::span<float> embedding_gradient) const {
  std::fill(embedding_gradient.begin(), embedding_gradient.end(), 0.0F);
  std::vector<float> later(dim_);  // What the average's gradient is from t on.
  for (size_t k = 0; k < averages_.size(); ++k) {
    const auto [memory, weight] = averages_[k];
    const float* const sign = &signs_[k * dim_];
    std::fill(later.begin(), later.end(), 0.0F);
    for (size_t end = hidden_gradient.size(); end > 0; end -= dim_) {
      const size_t begin = end - dim_;
      for (size_t j = 0; j < dim_; ++j) {
        later[j] =
            memory * later[j] + weight * sign[j] * hidden_gradient[begin + j];
        embedding_gradient[begin + j] += (1 - memory) * later[j];
      }
    }
  }
}

}  // namespace rowhouse::ngram_lm
