#ifndef ROWHOUSE_CLIENT_INTERNAL_HEAD_STATISTICS_ARRAYS_H_
#define ROWHOUSE_CLIENT_INTERNAL_HEAD_STATISTICS_ARRAYS_H_

#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "client/internal/head_stream.h"
#include "kernels/head_loss.h"
#include "kernels/linear_cross_entropy.h"

namespace rowhouse::client::internal {

/// Statistics of a head call's tokens, of one slice or merged, without those
/// that were not asked for.
class HeadStatisticsArrays {
 public:
  HeadStatisticsArrays() = default;
  explicit HeadStatisticsArrays(const HeadHeader& header)
      : token_count_(header.token_count),
        floats_((header.weighted_logit_sums ? 4 : 3) * header.token_count),
        predicted_(header.predicted ? header.token_count : 0) {}

  HeadStatisticsOut out() {
    const std::span<float> all(floats_);
    const auto array = [&](int64_t i) {
      return all.subspan(i * token_count_, token_count_);
    };
    return {array(0), array(1), array(2), all.subspan(3 * token_count_),
            predicted_};
  }
  kernels::HeadStatistics view() {
    const HeadStatisticsOut arrays = out();
    const auto data = [](auto values) {
      return values.empty() ? nullptr : values.data();
    };
    return {arrays.max_logits.data(), arrays.exp_sums.data(),
            arrays.target_logits.data(), data(arrays.weighted_logit_sums),
            data(arrays.predicted)};
  }

  /// REQUIRES: they are of the same header.
  bool SameBits(const HeadStatisticsArrays& other) const {
    return predicted_ == other.predicted_ &&
           (floats_.empty() ||
            std::memcmp(floats_.data(), other.floats_.data(),
                        floats_.size() * sizeof(float)) == 0);
  }

  std::span<const float> max_logits() const { return Floats(0); }
  std::span<const float> exp_sums() const { return Floats(1); }
  std::span<const int64_t> predicted() const { return predicted_; }

  /// A token's merged statistics, for its loss.
  kernels::HeadToken Token(int64_t t, double target_weight) const {
    return {Floats(0)[t], Floats(1)[t], Floats(2)[t],
            std::ssize(floats_) > 3 * token_count_ ? Floats(3)[t] : 0.0F,
            target_weight};
  }

 private:
  std::span<const float> Floats(int64_t array) const {
    return std::span(floats_).subspan(array * token_count_, token_count_);
  }

  int64_t token_count_ = 0;
  std::vector<float> floats_;
  std::vector<int64_t> predicted_;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_HEAD_STATISTICS_ARRAYS_H_
