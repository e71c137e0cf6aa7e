#include "tests/server/same_bits/scenario.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

namespace rowhouse::testing {
namespace {

using kernels::DType;
using kernels::NonFinitePolicy;
using reference::EagerTable;

template <typename T>
T OneOf(Random& random, const std::vector<T>& values) {
  return values[random.Integer(0, static_cast<int64_t>(values.size()) - 1)];
}

// A value that the wire type holds.
float OnTheWire(float x, DType dtype) {
  if (dtype == DType::kFp32) return x;
  return kernels::Bf16ToFloat(kernels::FloatToBf16(x));
}

float RandomValue(Random& random, const server::ShardSpec& spec, bool wild) {
  float x = random.Normal();
  if (wild) {
    x = OneOf<float>(random,
                     {0.0F, -0.0F, 1e-42F, -3e-39F, 1e30F, -2e38F, 1e-20F, x});
    if (spec.policy != NonFinitePolicy::kReject && random.Chance(0.1)) {
      x = OneOf<float>(random, {std::numeric_limits<float>::infinity(),
                                -std::numeric_limits<float>::infinity(),
                                std::numeric_limits<float>::quiet_NaN()});
    }
  }
  return OnTheWire(x, spec.gradient_dtype);
}

std::vector<EagerTable::Entry> RandomPart(Random& random,
                                          const Scenario& scenario,
                                          const ScenarioSize& size) {
  std::vector<EagerTable::Entry> part;
  if (scenario.row_count == 0) return part;
  // Few distinct rows now and then: runs of 9, 10, 11, 20, 21 and more.
  const int64_t distinct =
      OneOf<int64_t>(random, {1, 3, scenario.row_count, scenario.row_count});
  const int64_t first =
      random.Integer(0, std::max<int64_t>(0, scenario.row_count - distinct));
  const int64_t last = std::min(scenario.row_count, first + distinct) - 1;
  const bool wild = random.Chance(0.2);
  const int64_t count =
      random.Chance(0.1) ? 0 : random.Integer(0, size.most_entries);
  for (int64_t i = 0; i < count; ++i) {
    EagerTable::Entry entry{random.Integer(first, last), {}};
    for (int64_t j = 0; j < scenario.spec.dim; ++j) {
      entry.values.push_back(RandomValue(random, scenario.spec, wild));
    }
    part.push_back(std::move(entry));
  }
  if (random.Chance(0.5)) {  // Want lists are sorted.
    std::stable_sort(
        part.begin(), part.end(),
        [](const auto& a, const auto& b) { return a.row_id < b.row_id; });
  }
  return part;
}

// The trainer count of the scenario's next event. That of events 1 and 2 cannot
// change: parts of these may have been accepted before any change.
int32_t NextTrainerCount(Random& random, const Scenario& scenario,
                         const ScenarioSize& size) {
  if (scenario.events.size() < 2) return scenario.spec.trainer_count;
  if (random.Chance(0.5)) return scenario.events.back().trainer_count;
  return static_cast<int32_t>(random.Integer(1, size.most_trainers));
}

ScenarioEvent RandomEvent(Random& random, const Scenario& scenario,
                          const ScenarioSize& size) {
  ScenarioEvent event;
  event.trainer_count = NextTrainerCount(random, scenario, size);
  event.skip = random.Chance(0.15);
  event.scalars.step_size = random.Uniform(0.0F, 0.3F);
  event.scalars.decay = random.Uniform(0.0F, 0.02F);
  event.scalars.beta2 = OneOf<double>(random, {0.0, 0.9025, 0.95, 0.95, 0.999});
  event.scalars.eps = OneOf<double>(random, {0.0, 1e-10, 1e-10, 1e-3});
  event.scalars.gradient_scale = OneOf<double>(random, {1.0, 1.0, 0.37, 4.0});
  for (int32_t rank = 0; rank < event.trainer_count; ++rank) {
    const auto parts = static_cast<int32_t>(random.Integer(0, size.most_parts));
    for (int32_t part = 0; part < parts; ++part) {
      event.contributions[{rank, part}] = RandomPart(random, scenario, size);
    }
  }
  return event;
}

void DrawSpec(Random& random, const ScenarioSize& size,
              server::ShardSpec& spec) {
  spec.dim = OneOf<int64_t>(random, {1, 3, 8, 31, 33, 96, 257, 600});
  spec.row_dtype = OneOf<DType>(random, {DType::kBf16, DType::kFp32});
  spec.gradient_dtype = OneOf<DType>(random, {DType::kBf16, DType::kFp32});
  spec.policy = OneOf<NonFinitePolicy>(
      random, {NonFinitePolicy::kReject, NonFinitePolicy::kSkipRow,
               NonFinitePolicy::kPropagate});
  spec.reduction = random.Chance(0.5) ? server::GradientReduction::kSum
                                      : server::GradientReduction::kMean;
  spec.trainer_count =
      static_cast<int32_t>(random.Integer(1, size.most_trainers));
  spec.max_part_count = std::max(1, size.most_parts);
  spec.max_contribution_row_count =
      std::max<int64_t>(1, size.most_parts * size.most_entries);
  if (random.Chance(0.7)) {
    spec.initializer = {kernels::Initializer::Kind::kUniform, random.Bits(),
                        0.5F};
  }
}

void RunOracle(Scenario& scenario) {
  EagerTable oracle = MakeOracle(scenario);
  for (const ScenarioEvent& event : scenario.events) {
    ApplyToOracle(scenario, event, oracle);
    scenario.digests.push_back(oracle.Digest());
  }
  for (int64_t row = 0; row < scenario.row_count; ++row) {
    scenario.rows.push_back(ToBytes(oracle.row(row), scenario.spec.row_dtype));
  }
  scenario.kept_row_count = oracle.kept_row_count();
}

}  // namespace

int32_t ScenarioEvent::PartCount(int32_t rank) const {
  int32_t count = 0;
  for (const auto& [name, entries] : contributions) {
    if (name.first == rank) count = std::max(count, name.second + 1);
  }
  return count;
}

EagerTable MakeOracle(const Scenario& scenario) {
  const server::ShardSpec& spec = scenario.spec;
  return EagerTable({
      .row_count = scenario.row_count,
      .dim = spec.dim,
      .row_type = spec.row_dtype == DType::kBf16 ? EagerTable::Type::kBf16
                                                 : EagerTable::Type::kFp32,
      .uniform = spec.initializer.kind == kernels::Initializer::Kind::kUniform,
      .seed = spec.initializer.seed,
      .bound = spec.initializer.bound,
      .keep_non_finite_rows = spec.policy != NonFinitePolicy::kPropagate,
  });
}

void ApplyToOracle(const Scenario& scenario, const ScenarioEvent& event,
                   EagerTable& oracle) {
  if (event.skip) return oracle.Skip();
  const kernels::RowAdamScalars& s = event.scalars;
  const bool mean = scenario.spec.reduction == server::GradientReduction::kMean;
  oracle.Apply(event.contributions,
               {s.step_size, s.decay, s.beta2, s.eps, s.gradient_scale},
               mean ? event.trainer_count : 1);
}

Scenario RandomScenario(Random& random, const ScenarioSize& size) {
  Scenario scenario;
  DrawSpec(random, size, scenario.spec);
  scenario.row_count = random.Integer(0, size.most_rows);
  const int64_t events = random.Integer(1, size.most_events);
  for (int64_t i = 0; i < events; ++i) {
    scenario.events.push_back(RandomEvent(random, scenario, size));
  }
  RunOracle(scenario);
  return scenario;
}

std::string ToBytes(const std::vector<float>& values, DType dtype) {
  std::string bytes;
  for (const float x : values) {
    const auto bits = std::bit_cast<uint32_t>(x);
    char raw[4];
    std::memcpy(raw, &bits, 4);
    bytes.append(dtype == DType::kFp32 ? raw : raw + 2,
                 static_cast<size_t>(kernels::SizeOf(dtype)));
  }
  return bytes;
}

}  // namespace rowhouse::testing
