#include "kernels/cpu/adamw.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#include "kernels/arithmetic.h"
#include "kernels/cpu/compile_for.h"
#include "kernels/cpu/row_ops.h"
#include "kernels/cpu/statistics.h"

namespace rowhouse::kernels::cpu {
namespace {

constexpr int64_t kFloatBytes = sizeof(float);

int32_t Magnitude(float x) {
  return std::bit_cast<int32_t>(x) & int32_t{0x7fffffff};
}

bool IsFiniteMagnitude(int32_t magnitude) { return magnitude < 0x7f800000; }

// One row's new values.
template <typename Weight>
struct NewRow {
  explicit NewRow(int64_t dim)
      : weights(static_cast<size_t>(dim)),
        master(static_cast<size_t>(dim)),
        first_moment(static_cast<size_t>(dim)),
        second_moment(static_cast<size_t>(dim)) {}

  std::vector<Weight> weights;
  std::vector<float> master;
  std::vector<float> first_moment;
  std::vector<float> second_moment;
};

// Forms the new row from `old` (the master or the weights) and says whether it
// and the gradient are finite. A master that is not finite has a weight that is
// not.
template <typename Weight, typename Main, typename Old>
bool UpdateRow(const Old* __restrict old, const float* __restrict first_moment,
               const float* __restrict second_moment,
               const Main* __restrict main_grad, AdamWFactors factors,
               int64_t dim, NewRow<Weight>& row) {
  Weight* __restrict new_weights = row.weights.data();
  float* __restrict new_master = row.master.data();
  float* __restrict new_first = row.first_moment.data();
  float* __restrict new_second = row.second_moment.data();
  int32_t largest = 0;
  for (int64_t j = 0; j < dim; ++j) {
    const float g = Widen(main_grad[j]);
    const AdamWElement element = UpdateAdamW(
        {Widen(old[j]), first_moment[j], second_moment[j]}, g, factors);
    new_weights[j] = Narrow<Weight>(element.weight);
    new_master[j] = Canonical(element.weight);
    new_first[j] = Canonical(element.first_moment);
    new_second[j] = Canonical(element.second_moment);
    largest = std::max({largest, Magnitude(g), Magnitude(Widen(new_weights[j])),
                        Magnitude(new_first[j]), Magnitude(new_second[j])});
  }
  return IsFiniteMagnitude(largest);
}

// One body's share of an event, with its scratch.
template <typename Weight, typename Main>
class AdamWShare {
 public:
  AdamWShare(const DenseTable& table, const AdamWFactors& factors,
             NonFinitePolicy policy)
      : table_(table), factors_(factors), policy_(policy), row_(table.dim) {}

  void Apply(int64_t slot) {
    const bool finite_row = FormRow(slot);
    const bool finite_bias = FormBias(slot);
    ++report_.row_visits;
    report_.bytes_moved += RowBytes() + table_.dim * int64_t{sizeof(Main)};
    if ((finite_row && finite_bias) || policy_ == NonFinitePolicy::kPropagate) {
      StoreRow(slot);
      report_.bytes_moved += RowBytes();
    } else {
      ++report_.untouched_row_count;
    }
    ClearGradient(slot);
    report_.bytes_moved += table_.dim * int64_t{sizeof(Main)};
  }

  const EventReport& report() const { return report_; }

 private:
  // Weights (or master and weights), moments and bias.
  int64_t RowBytes() const {
    const int64_t element = int64_t{sizeof(Weight)} + 2 * kFloatBytes +
                            (table_.master == nullptr ? 0 : kFloatBytes);
    return table_.dim * element +
           (table_.bias == nullptr ? 0 : 4 * kFloatBytes);
  }

  bool FormRow(int64_t slot) {
    const int64_t at = slot * table_.dim;
    const auto* main_grad = static_cast<const Main*>(table_.main_grad) + at;
    const auto update = [&](const auto* old) {
      return UpdateRow<Weight>(old + at, table_.first_moment + at,
                               table_.second_moment + at, main_grad, factors_,
                               table_.dim, row_);
    };
    return table_.master == nullptr
               ? update(static_cast<const Weight*>(table_.weights))
               : update(static_cast<const float*>(table_.master));
  }

  bool FormBias(int64_t slot) {
    if (table_.bias == nullptr) return true;
    const float g = table_.bias_grad[slot];
    const AdamWElement element =
        UpdateAdamW({table_.bias[slot], table_.bias_first_moment[slot],
                     table_.bias_second_moment[slot]},
                    g, factors_);
    bias_ = {Canonical(element.weight), Canonical(element.first_moment),
             Canonical(element.second_moment)};
    return IsFinite(g) && IsFinite(bias_.weight) &&
           IsFinite(bias_.first_moment) && IsFinite(bias_.second_moment);
  }

  void StoreRow(int64_t slot) {
    const int64_t at = slot * table_.dim;
    const auto store = [&](auto* to, const auto& values) {
      std::copy(values.begin(), values.end(), to + at);
    };
    store(static_cast<Weight*>(table_.weights), row_.weights);
    if (table_.master != nullptr) store(table_.master, row_.master);
    store(table_.first_moment, row_.first_moment);
    store(table_.second_moment, row_.second_moment);
    if (table_.bias == nullptr) return;
    table_.bias[slot] = bias_.weight;
    table_.bias_first_moment[slot] = bias_.first_moment;
    table_.bias_second_moment[slot] = bias_.second_moment;
  }

  void ClearGradient(int64_t slot) {
    std::memset(static_cast<Main*>(table_.main_grad) + slot * table_.dim, 0,
                static_cast<size_t>(table_.dim) * sizeof(Main));
    if (table_.bias_grad != nullptr) table_.bias_grad[slot] = 0.0F;
  }

  const DenseTable table_;
  const AdamWFactors factors_;
  const NonFinitePolicy policy_;
  NewRow<Weight> row_;
  AdamWElement bias_{};
  EventReport report_;
};

}  // namespace

void ApplyAdamW(Executor& executor, const DenseTable& table,
                const AdamWFactors& factors, NonFinitePolicy policy,
                EventReport& report) {
  WithDenseElement(table.dtype, [&]<typename Weight>() {
    WithDenseElement(table.main_grad_dtype, [&]<typename Main>() {
      VectorFor(executor, table.row_count,
                RowGrain(4 * table.dim * kFloatBytes),
                [&](int64_t begin, int64_t end) {
                  AdamWShare<Weight, Main> share(table, factors, policy);
                  for (int64_t i = begin; i < end; ++i) share.Apply(i);
                  AddTo(report, share.report());
                });
    });
  });
}

}  // namespace rowhouse::kernels::cpu
