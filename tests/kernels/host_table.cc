#include "tests/kernels/host_table.h"

#include <array>

namespace rowhouse::kernels {
namespace {

float Stored(DType dtype, float x) {
  return dtype == DType::kBf16 ? Bf16ToFloat(FloatToBf16(x)) : Canonical(x);
}

bool AllFinite(const std::vector<float>& values) {
  return std::all_of(values.begin(), values.end(), IsFinite);
}

}  // namespace

float ReferenceSumOfSquares(const std::vector<float>& row) {
  std::array<float, kSquarePartials> partial{};
  for (size_t j = 0; j < row.size(); ++j) {
    float& sum = partial[j % partial.size()];
    sum = sum + row[j] * row[j];
  }
  for (size_t offset = partial.size() / 2; offset > 0; offset /= 2) {
    for (size_t i = 0; i < offset; ++i) {
      partial[i] = partial[i] + partial[i + offset];
    }
  }
  return partial[0];
}

std::map<int64_t, std::vector<float>> ReferenceMerge(
    const std::vector<HostPart>& parts, int64_t dim) {
  std::map<int64_t, std::vector<RunSum>> sums;
  for (const HostPart& part : parts) {
    for (size_t i = 0; i < part.slots.size(); ++i) {
      std::vector<RunSum>& row = sums[part.slots[i]];
      row.resize(static_cast<size_t>(dim));
      for (size_t j = 0; j < row.size(); ++j) {
        row[j].Add(part.rows[i * row.size() + j]);
      }
    }
  }
  std::map<int64_t, std::vector<float>> merged;
  for (const auto& [slot, row] : sums) {
    for (const RunSum& sum : row) merged[slot].push_back(sum.Result());
  }
  return merged;
}

void ReferenceApply(HostTable& table, const HostEvent& event,
                    const HostHistory& history) {
  const RowAdamFactors& f = event.factors;
  const auto dim = static_cast<size_t>(table.dim);
  for (const auto& [slot, g] : ReferenceMerge(event.parts, table.dim)) {
    const auto row = static_cast<size_t>(slot);
    const float mean_square =
        ReferenceSumOfSquares(g) / static_cast<float>(table.dim);
    float v = table.second_moment[row];
    // Every multiply, none left out.
    for (int64_t e = table.last_event[row] + 1; e <= history.event_count();
         ++e) {
      v = v * history.beta2[static_cast<size_t>(e)];
    }
    v = Canonical(UpdateSecondMoment(v, mean_square, f));
    std::vector<float> updated(dim);
    for (size_t j = 0; j < dim; ++j) {
      updated[j] =
          Stored(table.dtype, UpdateWeight(table.weights[row * dim + j], g[j],
                                           RowAdamDenominator(v, f), f));
    }
    const bool finite = AllFinite(g) && IsFinite(mean_square) && IsFinite(v) &&
                        AllFinite(updated);
    if (!finite && event.policy != NonFinitePolicy::kPropagate) continue;
    std::copy(updated.begin(), updated.end(),
              table.weights.begin() + static_cast<int64_t>(row * dim));
    table.second_moment[row] = v;
    table.last_event[row] = static_cast<int32_t>(history.event_count() + 1);
  }
}

}  // namespace rowhouse::kernels
