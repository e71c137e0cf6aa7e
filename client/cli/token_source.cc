#include "client/cli/token_source.h"

#include <algorithm>

namespace rowhouse::cli {

TokenSource::TokenSource(TokenLaw law, uint64_t seed)
    : random_(seed), bounds_(kVocabulary) {
  double sum = 0;
  for (int32_t token = 0; token < kVocabulary; ++token) {
    sum += law == TokenLaw::kZipf ? 1.0 / (token + 1) : 1.0;
    bounds_[token] = sum;
  }
  for (double& bound : bounds_) bound /= sum;
}

std::vector<int32_t> TokenSource::Next(int64_t count) {
  std::uniform_real_distribution<double> place(0, 1);
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) {
    const auto found =
        std::upper_bound(bounds_.begin(), bounds_.end(), place(random_));
    token = static_cast<int32_t>(std::min(found, bounds_.end() - 1) -
                                 bounds_.begin());
  }
  return tokens;
}

}  // namespace rowhouse::cli
