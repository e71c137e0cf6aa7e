#ifndef ROWHOUSE_TESTS_KERNELS_HOST_TABLE_H_
#define ROWHOUSE_TESTS_KERNELS_HOST_TABLE_H_

/// Tables and events on the host, a plain scalar reference for them, and the
/// way to a backend and back.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/arithmetic.h"
#include "kernels/backend.h"
#include "tests/kernels/backend_conformance.h"

namespace rowhouse::kernels {

/// Elements as the bytes of `dtype`, rounded where needed.
inline std::vector<uint8_t> Encode(DType dtype,
                                   const std::vector<float>& values) {
  const auto size = static_cast<size_t>(SizeOf(dtype));
  std::vector<uint8_t> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint16_t half =
        dtype == DType::kBf16 ? FloatToBf16(values[i]) : FloatToFp16(values[i]);
    const void* from = dtype == DType::kFp32
                           ? static_cast<const void*>(&values[i])
                           : static_cast<const void*>(&half);
    std::memcpy(bytes.data() + i * size, from, size);
  }
  return bytes;
}

inline std::vector<float> Decode(DType dtype,
                                 const std::vector<uint8_t>& bytes) {
  const auto size = static_cast<size_t>(SizeOf(dtype));
  std::vector<float> values(bytes.size() / size);
  for (size_t i = 0; i < values.size(); ++i) {
    if (dtype == DType::kFp32) {
      std::memcpy(&values[i], bytes.data() + i * size, size);
      continue;
    }
    uint16_t half = 0;
    std::memcpy(&half, bytes.data() + i * size, size);
    values[i] = dtype == DType::kBf16 ? Bf16ToFloat(half) : Fp16ToFloat(half);
  }
  return values;
}

/// What is left of `values` in `dtype`.
inline std::vector<float> Representable(DType dtype,
                                        const std::vector<float>& values) {
  return Decode(dtype, Encode(dtype, values));
}

inline std::vector<uint32_t> BitsOf(const std::vector<float>& values) {
  std::vector<uint32_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(),
                 [](float x) { return std::bit_cast<uint32_t>(x); });
  return bits;
}

struct HostTable {
  HostTable(int64_t rows, int64_t columns, DType type)
      : row_count(rows),
        dim(columns),
        dtype(type),
        weights(static_cast<size_t>(rows * columns)),
        second_moment(static_cast<size_t>(rows)),
        last_event(static_cast<size_t>(rows)) {}

  std::vector<RowState> states() const {
    std::vector<RowState> both;
    for (size_t row = 0; row < second_moment.size(); ++row) {
      both.push_back({second_moment[row], last_event[row]});
    }
    return both;
  }

  int64_t row_count;
  int64_t dim;
  DType dtype;
  int64_t first_row_id = 0;
  std::vector<float> weights;  // Each one representable in `dtype`.
  std::vector<float> second_moment;
  std::vector<int32_t> last_event;
};

struct HostPart {
  std::vector<int64_t> slots;
  std::vector<float> rows;  // Each one representable in the gradient dtype.
};

struct HostEvent {
  std::vector<HostPart> parts;
  DType gradient_dtype = DType::kBf16;
  RowAdamFactors factors{};
  NonFinitePolicy policy = NonFinitePolicy::kReject;
};

/// beta2 by event, index 0 unused, and its suffix minima.
struct HostHistory {
  std::vector<float> beta2 = {0.0F};

  std::vector<float> SuffixMin() const {
    std::vector<float> least = beta2;
    for (size_t e = least.size() - 1; e-- > 1;) {
      least[e] = std::min(least[e], least[e + 1]);
    }
    return least;
  }
  int64_t event_count() const { return static_cast<int64_t>(beta2.size()) - 1; }
};

/// A table in a backend's memory.
class BackendTable {
 public:
  BackendTable(Backend& backend, const HostTable& table)
      : weights_(backend, Encode(table.dtype, table.weights)),
        states_(backend, table.states()),
        host_(table) {}

  RowTable view() const {
    return {weights_.data(), states_.data(), host_.row_count,
            host_.dim,       host_.dtype,    host_.first_row_id};
  }
  std::vector<uint8_t> weight_bytes() const { return weights_.Download(); }
  std::vector<uint32_t> second_moment_bits() const {
    std::vector<uint32_t> bits;
    for (const RowState& state : states_.Download()) {
      bits.push_back(std::bit_cast<uint32_t>(state.second_moment));
    }
    return bits;
  }
  std::vector<int32_t> last_event() const {
    std::vector<int32_t> events;
    for (const RowState& state : states_.Download()) {
      events.push_back(state.last_event);
    }
    return events;
  }

  /// Checks all bits of the table.
  void ExpectIs(const HostTable& table) const {
    EXPECT_EQ(weight_bytes(), Encode(table.dtype, table.weights));
    EXPECT_EQ(second_moment_bits(), BitsOf(table.second_moment));
    EXPECT_EQ(last_event(), table.last_event);
  }

 private:
  BackendArray<uint8_t> weights_;
  BackendArray<RowState> states_;
  HostTable host_;
};

/// Parts in a backend's memory.
class BackendParts {
 public:
  BackendParts(Backend& backend, const std::vector<HostPart>& parts,
               DType dtype) {
    for (const HostPart& part : parts) {
      slots_.push_back(
          std::make_unique<BackendArray<int64_t>>(backend, part.slots));
      rows_.push_back(std::make_unique<BackendArray<uint8_t>>(
          backend, Encode(dtype, part.rows)));
      views_.push_back({slots_.back()->data(), rows_.back()->data(),
                        static_cast<int64_t>(part.slots.size())});
    }
  }
  std::span<const GradientPart> span() const { return views_; }

 private:
  std::vector<std::unique_ptr<BackendArray<int64_t>>> slots_;
  std::vector<std::unique_ptr<BackendArray<uint8_t>>> rows_;
  std::vector<GradientPart> views_;
};

class BackendHistory {
 public:
  BackendHistory(Backend& backend, const HostHistory& history)
      : beta2_(backend, history.beta2),
        suffix_min_(backend, history.SuffixMin()),
        event_count_(history.event_count()) {}
  Beta2History view() const {
    return {beta2_.data(), suffix_min_.data(), event_count_};
  }

 private:
  BackendArray<float> beta2_;
  BackendArray<float> suffix_min_;
  int64_t event_count_;
};

/// Applies `event` on `backend` and waits.
inline EventReport Apply(Backend& backend, const BackendTable& table,
                         const HostEvent& event, const HostHistory& history) {
  const BackendParts parts(backend, event.parts, event.gradient_dtype);
  const BackendHistory past(backend, history);
  EventReport report;
  EXPECT_THAT(
      backend.ApplyRowAdamEvent(table.view(),
                                {parts.span(), event.gradient_dtype,
                                 event.factors, event.policy, past.view()},
                                report),
      IsOk());
  EXPECT_THAT(backend.Synchronize(), IsOk());
  return report;
}

/// Sum of squares by the words of arithmetic.h.
float ReferenceSumOfSquares(const std::vector<float>& row);

/// The merged gradient of every slot that `parts` name, by slot.
std::map<int64_t, std::vector<float>> ReferenceMerge(
    const std::vector<HostPart>& parts, int64_t dim);

/// Applies `event` to `table`.
void ReferenceApply(HostTable& table, const HostEvent& event,
                    const HostHistory& history);

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_TESTS_KERNELS_HOST_TABLE_H_
