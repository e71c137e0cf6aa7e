#include "client/examples/ngram_lm/baselines.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace rowhouse::ngram_lm {
namespace {

// An n-gram in one word, its last token lowest. Each order has maps of its own.
constexpr int kTokenBits = 21;

uint64_t Pack(std::span<const int32_t> tokens) {
  uint64_t packed = 0;
  for (const int32_t token : tokens) {
    packed = packed << kTokenBits | static_cast<uint32_t>(token);
  }
  return packed;
}

uint64_t HistoryOf(uint64_t ngram) { return ngram >> kTokenBits; }

// Without its first word, of `size`.
uint64_t WithoutFirst(uint64_t ngram, int size) {
  return ngram & ((uint64_t{1} << (kTokenBits * (size - 1))) - 1);
}

size_t Class(int64_t count) {
  return static_cast<size_t>(std::min<int64_t>(count, 3) - 1);
}

// `n[k - 1]` counts the n-grams of count k.
std::array<double, 3> Discounts(const std::array<double, 4>& n) {
  double y = n[0] / (n[0] + 2 * n[1]);
  if (!(y < 1)) y = 0.5;  // No n-gram of count 2, or none of 1 either.
  if (n[0] == 0 || n[1] == 0 || n[2] == 0) return {y, y, y};
  return {1 - 2 * y * n[1] / n[0], 2 - 3 * y * n[2] / n[1],
          3 - 4 * y * n[3] / n[2]};
}

}  // namespace

Unigram::Unigram(std::span<const int32_t> tokens, int32_t vocabulary_size)
    : counts_(static_cast<size_t>(vocabulary_size), 1),
      total_(static_cast<double>(tokens.size()) + vocabulary_size) {
  for (const int32_t token : tokens) ++counts_[static_cast<size_t>(token)];
}

double Unigram::Probability(int32_t token) const {
  return static_cast<double>(counts_[static_cast<size_t>(token)]) / total_;
}

KneserNeyTrigram::KneserNeyTrigram(std::span<const int32_t> tokens,
                                   int32_t vocabulary_size)
    : vocabulary_size_(vocabulary_size) {
  for (size_t end = kOrder; end <= tokens.size(); ++end) {
    ++orders_[kOrder - 1].counts[Pack(tokens.subspan(end - kOrder, kOrder))];
  }
  for (int order = kOrder - 1; order >= 1; --order) {
    const size_t index = static_cast<size_t>(order) - 1;
    for (const auto& [ngram, count] : orders_[index + 1].counts) {
      ++orders_[index].counts[WithoutFirst(ngram, order + 1)];
    }
  }
  for (Order& order : orders_) Complete(order);
}

void KneserNeyTrigram::Complete(Order& order) {
  std::array<double, 4> count_of_counts{};
  for (const auto& [ngram, count] : order.counts) {
    if (count <= 4) ++count_of_counts[static_cast<size_t>(count) - 1];
    Followers& followers = order.followers[HistoryOf(ngram)];
    followers.total += count;
    ++followers.distinct[Class(count)];
  }
  order.discounts = Discounts(count_of_counts);
}

double KneserNeyTrigram::Discount(int order, int64_t count) const {
  return orders_[static_cast<size_t>(order) - 1].discounts[Class(count)];
}

double KneserNeyTrigram::Probability(std::span<const int32_t> history,
                                     int32_t token) const {
  double probability = 1.0 / vocabulary_size_;
  const size_t longest = std::min<size_t>(history.size(), kOrder - 1);
  for (size_t length = 0; length <= longest; ++length) {
    const Order& order = orders_[length];
    const uint64_t packed = Pack(history.last(length));
    const auto followers = order.followers.find(packed);
    if (followers == order.followers.end()) break;
    const auto total = static_cast<double>(followers->second.total);
    double kept = 0;
    for (size_t i = 0; i < order.discounts.size(); ++i) {
      kept += order.discounts[i] *
              static_cast<double>(followers->second.distinct[i]);
    }
    probability *= kept / total;
    const auto count =
        order.counts.find(packed << kTokenBits | static_cast<uint32_t>(token));
    if (count == order.counts.end()) continue;
    probability += (static_cast<double>(count->second) -
                    order.discounts[Class(count->second)]) /
                   total;
  }
  return probability;
}

double MeanLoss(std::span<const std::vector<int32_t>> blocks,
                int64_t first_scored, const ProbabilityFunction& probability) {
  double sum = 0;
  int64_t count = 0;
  for (const std::vector<int32_t>& block : blocks) {
    const std::span<const int32_t> tokens(block);
    for (auto t = static_cast<size_t>(first_scored); t < tokens.size(); ++t) {
      sum -= std::log(probability(tokens.first(t), tokens[t]));
      ++count;
    }
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace rowhouse::ngram_lm
