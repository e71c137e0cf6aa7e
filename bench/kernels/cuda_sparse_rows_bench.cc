/// Gather and row-Adam events on the CUDA backend, as ratios to the time in
/// which the device copies the bytes that the operation must move (`floor`).
///
/// The copy rate is measured in the same run. An iteration is a batch of calls
/// one behind another, so that a call's launch hides behind the one before.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "bench/kernels/cuda_bench.h"
#include "benchmark/benchmark.h"
#include "kernels/backend.h"

namespace rowhouse::kernels {
namespace {

constexpr int64_t kDim = 768;
constexpr int64_t kEntries = 393216;

// A table, and gradients of normally distributed values.
class Workload {
 public:
  explicit Workload(int64_t row_count) {
    table_.row_count = row_count;
    table_.dim = kDim;
    weights_ = Allocate(row_count * table_.row_bytes());
    states_ = Allocate(row_count * int64_t{sizeof(RowState)});
    table_.weights = weights_.data();
    table_.states = states_.as<RowState>();
    Check(Cuda().InitializeRows(table_, {Initializer::Kind::kUniform, 1, 0.05F},
                                /*fresh=*/true));
    history_ = Allocate(4);
    std::mt19937_64 random(2);
    std::normal_distribution<float> normal;
    std::vector<uint16_t> values(static_cast<size_t>(kEntries * kDim));
    for (size_t i = 0; i < values.size(); ++i) {
      values[i] =
          i < 1000003 ? FloatToBf16(normal(random)) : values[i - 1000003];
    }
    gradients_ = Upload(values);
    out_ = Allocate(kEntries * table_.row_bytes());
  }

  int64_t row_count() const { return table_.row_count; }

  // One row at random from each of equal shares of the table.
  std::vector<int64_t> SpreadSlots() const {
    std::mt19937_64 random(1);
    std::vector<int64_t> slots(static_cast<size_t>(kEntries));
    const int64_t share = table_.row_count / kEntries;
    for (int64_t i = 0; i < kEntries; ++i) {
      slots[static_cast<size_t>(i)] =
          i * share +
          static_cast<int64_t>(random() % static_cast<uint64_t>(share));
    }
    return slots;
  }

  // What `part_count` trainers want, each in order: half of it rows that many
  // want, half any rows.
  std::vector<int64_t> OverlappingSlots(int64_t part_count) const {
    std::mt19937_64 random(3);
    const int64_t part_size = kEntries / part_count;
    std::vector<int64_t> all;
    for (int64_t p = 0; p < part_count; ++p) {
      std::vector<int64_t> part;
      while (static_cast<int64_t>(part.size()) < part_size) {
        const bool shared = random() % 2 == 0;
        const auto row = static_cast<int64_t>(random());
        part.push_back(shared ? (row & 0x7fffffff) % 65536 *
                                    (table_.row_count / 65536)
                              : (row & 0x7fffffffffffLL) % table_.row_count);
        if (static_cast<int64_t>(part.size()) == part_size) {
          std::sort(part.begin(), part.end());
          part.erase(std::unique(part.begin(), part.end()), part.end());
        }
      }
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  void Gather(const Buffer& slots) {
    Check(Cuda().GatherRows(
        table_, {slots.as<int64_t>(), static_cast<size_t>(kEntries)},
        out_.data()));
  }

  void Apply(const Buffer& slots, int64_t part_count, EventReport& report) {
    std::vector<GradientPart> parts;
    const int64_t size = kEntries / part_count;
    for (int64_t p = 0; p < part_count; ++p) {
      parts.push_back({slots.as<int64_t>() + p * size,
                       gradients_.as<uint16_t>() + p * size * kDim, size});
    }
    RowAdamEvent event;
    event.parts = parts;
    event.factors = NarrowScalars(RowAdamScalars{0.01, 0.001, 0.95, 1e-10, 1.0},
                                  part_count);
    event.history = {history_.as<float>(), history_.as<float>(), 0};
    Check(Cuda().ApplyRowAdamEvent(table_, event, report));
  }

 private:
  Buffer weights_;
  Buffer states_;
  Buffer gradients_;
  Buffer out_;
  Buffer history_;
  RowTable table_;
};

// Each table is kept until another is asked for.
Workload& WorkloadOf(const benchmark::State& state) {
  CopyRate();
  static std::unique_ptr<Workload> workload;
  if (workload == nullptr || workload->row_count() != state.range(0)) {
    workload.reset();
    workload = std::make_unique<Workload>(state.range(0));
  }
  return *workload;
}

void Gather(benchmark::State& state) {
  Workload& workload = WorkloadOf(state);
  std::vector<int64_t> slots = workload.SpreadSlots();
  std::shuffle(slots.begin(), slots.end(), std::mt19937_64(5));
  const Buffer on_device = Upload(slots);
  Time(state, kEntries * 4 * kDim, [&] { workload.Gather(on_device); });
}

void TimeEvent(benchmark::State& state, const std::vector<int64_t>& slots,
               int64_t part_count) {
  Workload& workload = WorkloadOf(state);
  const Buffer on_device = Upload(slots);
  EventReport report;
  workload.Apply(on_device, part_count, report);
  Check(Cuda().Synchronize());
  const EventReport once = report;
  Time(state, once.bytes_moved,
       [&] { workload.Apply(on_device, part_count, report); });
  state.counters["rows"] = static_cast<double>(once.row_visits);
}

void SortedEvent(benchmark::State& state) {
  TimeEvent(state, WorkloadOf(state).SpreadSlots(), 1);
}

void EventOfEightParts(benchmark::State& state) {
  TimeEvent(state, WorkloadOf(state).OverlappingSlots(8), 8);
}

void Register(const char* name, void (*function)(benchmark::State&),
              int64_t rows) {
  benchmark::RegisterBenchmark(name, function)
      ->ArgName("rows")
      ->Arg(rows)
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

// Table by table: the largest leaves no room for another.
const bool kRegistered = [] {
  for (const int64_t rows : {1048576, 10575360, 84602880}) {
    Register("CudaGather", Gather, rows);
    Register("CudaSortedEvent", SortedEvent, rows);
    Register("CudaEventOfEightParts", EventOfEightParts, rows);
  }
  return true;
}();

}  // namespace
}  // namespace rowhouse::kernels
