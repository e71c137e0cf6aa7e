#include "tests/kernels/differential_case.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include "gmock/gmock.h"
#include "kernels/arithmetic.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::kernels {
namespace {

using ::rowhouse::testing::IsOk;
using ::rowhouse::testing::Random;

// Random elements, made once: a case copies pieces of them.
const std::vector<float>& Pool() {
  static const auto* const pool = [] {
    auto* values = new std::vector<float>(size_t{1} << 22);
    Random random(20261130);
    for (float& x : *values) x = random.Normal();
    return values;
  }();
  return *pool;
}

const std::vector<uint16_t>& NarrowPool() {
  static const auto* const pool = [] {
    auto* values = new std::vector<uint16_t>(Pool().size());
    std::transform(Pool().begin(), Pool().end(), values->begin(), FloatToBf16);
    return values;
  }();
  return *pool;
}

template <typename T>
void FillFrom(const std::vector<T>& pool, Random& random, Bytes& bytes) {
  const size_t pool_bytes = pool.size() * sizeof(T);
  const auto* const from = reinterpret_cast<const uint8_t*>(pool.data());
  size_t at = static_cast<size_t>(random.Bits()) % pool.size() * sizeof(T);
  for (size_t done = 0; done < bytes.size();) {
    const size_t size = std::min(bytes.size() - done, pool_bytes - at);
    std::memcpy(bytes.data() + done, from + at, size);
    done += size;
    at = 0;
  }
}

float Special(Random& random, bool finite) {
  constexpr float kMost = std::numeric_limits<float>::max();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  switch (random.Integer(0, finite ? 7 : 9)) {
    case 0:
      return 0.0F;
    case 1:
      return -0.0F;
    case 2:
      return 0x1p-149F;
    case 3:
      return -0x1.8p-130F;
    case 4:
      return std::ldexp(random.Normal(),
                        static_cast<int>(random.Integer(-140, -50)));
    case 5:
      return std::ldexp(random.Normal(),
                        static_cast<int>(random.Integer(10, 110)));
    case 6:
      return 1.0F;
    case 7:
      return -kMost / 4;
    case 8:
      return random.Chance(0.5) ? kInfinity : -kInfinity;
  }
  return std::bit_cast<float>(0xffc12345U);
}

struct Specials {
  double chance = 0;  // Of an element.
  bool finite = true;
};

Bytes RandomRows(Random& random, int64_t count, DType dtype,
                 const Specials& specials) {
  Bytes bytes(static_cast<size_t>(count * SizeOf(dtype)));
  if (count == 0) return bytes;
  if (dtype == DType::kFp32) {
    FillFrom(Pool(), random, bytes);
  } else {
    FillFrom(NarrowPool(), random, bytes);
  }
  const auto wanted =
      static_cast<int64_t>(specials.chance * static_cast<double>(count)) +
      (random.Chance(specials.chance) ? 1 : 0);
  for (int64_t i = 0; i < wanted; ++i) {
    const auto at = static_cast<size_t>(random.Integer(0, count - 1));
    const float x = Special(random, specials.finite);
    if (dtype == DType::kFp32) {
      std::memcpy(bytes.data() + at * 4, &x, 4);
    } else {
      const uint16_t bits = FloatToBf16(x);
      std::memcpy(bytes.data() + at * 2, &bits, 2);
    }
  }
  return bytes;
}

std::vector<int64_t> RandomSlots(Random& random, const CaseSize& size,
                                 SlotPattern pattern) {
  std::vector<int64_t> slots(static_cast<size_t>(size.entry_count));
  const int64_t last_row = size.row_count - 1;
  switch (pattern) {
    case SlotPattern::kUniform:
    case SlotPattern::kSortedParts:
      for (int64_t& slot : slots) slot = random.Integer(0, last_row);
      break;
    case SlotPattern::kZipf:
      for (int64_t& slot : slots) {
        const double u = random.Uniform(0, 1);
        slot = std::min(last_row, static_cast<int64_t>(std::pow(
                                      static_cast<double>(size.row_count), u)) -
                                      1);
        slot = slot * 7919 % size.row_count;
      }
      break;
    case SlotPattern::kIncreasing:
      for (size_t i = 0; i < slots.size(); ++i) {
        slots[i] = static_cast<int64_t>(i) * size.row_count / size.entry_count;
      }
      break;
    case SlotPattern::kOneSlot:
      std::fill(slots.begin(), slots.end(), last_row);
      break;
    case SlotPattern::kRuns: {
      constexpr int64_t kLengths[] = {1,  2,  9,  10, 11, 19,  20,  21,
                                      30, 31, 32, 33, 63, 160, 161, 5000};
      size_t i = 0;
      while (i < slots.size()) {
        const int64_t slot = random.Integer(0, last_row);
        int64_t length = kLengths[random.Integer(0, std::size(kLengths) - 1)];
        for (; length > 0 && i < slots.size(); --length) slots[i++] = slot;
      }
      if (random.Chance(0.5)) {
        std::shuffle(slots.begin(), slots.end(), random.engine());
      }
      break;
    }
  }
  return slots;
}

void CutIntoParts(Random& random, std::vector<int64_t> slots,
                  SlotPattern pattern, DifferentialCase& work,
                  const Specials& specials) {
  const int64_t most = pattern == SlotPattern::kIncreasing ? 0 : 5;
  int64_t left = random.Integer(0, most);
  size_t first = 0;
  for (; left >= 0; --left) {
    const auto rest = static_cast<int64_t>(slots.size() - first);
    const auto count =
        static_cast<size_t>(left == 0 ? rest : random.Integer(0, rest));
    DifferentialPart& part = work.parts.emplace_back();
    part.slots.assign(slots.begin() + static_cast<int64_t>(first),
                      slots.begin() + static_cast<int64_t>(first + count));
    if (pattern == SlotPattern::kSortedParts) {
      std::sort(part.slots.begin(), part.slots.end());
    }
    part.rows = RandomRows(random, static_cast<int64_t>(count) * work.dim,
                           work.gradient_dtype, specials);
    first += count;
  }
}

RowAdamFactors RandomFactors(Random& random) {
  RowAdamScalars scalars;
  scalars.step_size = random.Uniform(0, 1);
  scalars.decay = random.Chance(0.3) ? 0 : random.Uniform(0, 0.1F);
  scalars.beta2 = random.Uniform(0, 1);
  scalars.eps = random.Chance(0.2) ? 0 : 1e-10;
  scalars.gradient_scale =
      random.Chance(0.1) ? std::ldexp(random.Normal(),
                                      static_cast<int>(random.Integer(-70, 70)))
                         : random.Uniform(0.5F, 2.0F);
  return NarrowScalars(scalars, random.Integer(1, 8));
}

void RandomHistory(Random& random, DifferentialCase& work) {
  work.beta2 = {0.0F};
  for (int64_t e = random.Integer(0, 12); e > 0; --e) {
    work.beta2.push_back(random.Chance(0.2)    ? 1.0F
                         : random.Chance(0.05) ? 0.0F
                                               : random.Uniform(0.8F, 1.0F));
  }
  work.suffix_min = work.beta2;
  for (size_t e = work.suffix_min.size() - 1; e-- > 1;) {
    work.suffix_min[e] = std::min(work.suffix_min[e], work.suffix_min[e + 1]);
  }
}

}  // namespace

DifferentialCase MakeCase(Random& random, const CaseSize& size,
                          SlotPattern pattern, double specials) {
  DifferentialCase work;
  work.row_count = size.row_count;
  work.dim = size.dim;
  work.dtype = random.Chance(0.3) ? DType::kFp32 : DType::kBf16;
  work.gradient_dtype = random.Chance(0.3) ? DType::kFp32 : DType::kBf16;
  work.policy = static_cast<NonFinitePolicy>(random.Integer(1, 3));
  work.factors = RandomFactors(random);
  work.misalignment = random.Chance(0.2) ? 4 * random.Integer(1, 8) : 0;
  Specials of_rows;
  if (random.Chance(specials)) {
    of_rows.chance = random.Chance(0.5) ? 0.1 : 0.002;
    of_rows.finite = random.Chance(0.5);
  }
  work.weights =
      RandomRows(random, size.row_count * size.dim, work.dtype, of_rows);
  RandomHistory(random, work);
  const auto events = static_cast<int64_t>(work.beta2.size()) - 1;
  for (int64_t i = 0; i < size.row_count; ++i) {
    const bool special = of_rows.chance > 0 && random.Chance(0.05);
    const float second_moment = special
                                    ? std::fabs(Special(random, of_rows.finite))
                                    : random.Uniform(0, 2);
    work.states.push_back(
        {second_moment, static_cast<int32_t>(random.Integer(0, events))});
  }
  CutIntoParts(random, RandomSlots(random, size, pattern), pattern, work,
               of_rows);
  work.pulled.resize(static_cast<size_t>(size.row_count));
  std::iota(work.pulled.begin(), work.pulled.end(), 0);
  std::shuffle(work.pulled.begin(), work.pulled.end(), random.engine());
  work.pulled.resize(static_cast<size_t>(random.Integer(0, size.row_count)));
  return work;
}

namespace {

// Arrays of a case, one behind another in a backend's memory.
class CaseMemory {
 public:
  CaseMemory(Backend& backend, int64_t size_bytes) : backend_(backend) {
    absl::StatusOr<Buffer> buffer = backend.Allocate(size_bytes);
    EXPECT_THAT(buffer, IsOk());
    if (buffer.ok()) buffer_ = *std::move(buffer);
  }

  void* Take(int64_t size_bytes, int64_t misalignment = 0) {
    std::byte* const taken = buffer_.as<std::byte>() + used_ + misalignment;
    used_ += (size_bytes + misalignment + 255) / 256 * 256;
    EXPECT_LE(used_, buffer_.size_bytes());
    return taken;
  }

  template <typename T>
  T* Put(const std::vector<T>& values, int64_t misalignment = 0) {
    const auto size = static_cast<int64_t>(values.size() * sizeof(T));
    void* const to = Take(size, misalignment);
    EXPECT_THAT(backend_.Copy(values.data(), to, size), IsOk());
    return static_cast<T*>(to);
  }

  template <typename T>
  std::vector<T> Get(const void* from, int64_t count) const {
    std::vector<T> values(static_cast<size_t>(count));
    EXPECT_THAT(backend_.Copy(from, values.data(),
                              count * static_cast<int64_t>(sizeof(T))),
                IsOk());
    return values;
  }

 private:
  Backend& backend_;
  Buffer buffer_;
  int64_t used_ = 0;
};

int64_t MemoryOf(const DifferentialCase& work) {
  const auto bytes = [](const auto& values) {
    return static_cast<int64_t>(values.size() * sizeof(values[0])) + 512;
  };
  int64_t sum = 2 * bytes(work.weights) + bytes(work.states) +
                2 * bytes(work.beta2) + bytes(work.pulled);
  for (const DifferentialPart& part : work.parts) {
    sum += bytes(part.slots) + bytes(part.rows);
  }
  return sum;
}

}  // namespace

DifferentialResult RunCase(Backend& backend, const DifferentialCase& work) {
  DifferentialResult result;
  CaseMemory memory(backend, MemoryOf(work));
  RowTable table;
  table.weights = memory.Put(work.weights, work.misalignment);
  table.states = memory.Put(work.states);
  table.row_count = work.row_count;
  table.dim = work.dim;
  table.dtype = work.dtype;
  table.first_row_id = 1000;
  Beta2History history = {memory.Put(work.beta2), memory.Put(work.suffix_min),
                          static_cast<int64_t>(work.beta2.size()) - 1};
  std::vector<GradientPart> parts;
  result.scans.resize(work.parts.size());
  for (size_t p = 0; p < work.parts.size(); ++p) {
    const DifferentialPart& part = work.parts[p];
    const auto count = static_cast<int64_t>(part.slots.size());
    void* const rows =
        memory.Take(static_cast<int64_t>(part.rows.size()), work.misalignment);
    EXPECT_THAT(backend.LandRows(part.rows.data(), rows, count, work.dim,
                                 work.gradient_dtype, count, result.content,
                                 result.scans[p]),
                IsOk());
    parts.push_back({memory.Put(part.slots), rows, count});
  }
  EXPECT_THAT(backend.MergedStatistics(parts, work.dim, work.gradient_dtype,
                                       result.statistics),
              IsOk());
  EXPECT_THAT(backend.ApplyRowAdamEvent(table,
                                        {parts, work.gradient_dtype,
                                         work.factors, work.policy, history},
                                        result.report),
              IsOk());
  const auto pulled = static_cast<int64_t>(work.pulled.size());
  const int64_t* const slots = memory.Put(work.pulled);
  const std::span<const int64_t> slot_span(slots, work.pulled.size());
  void* const gathered =
      memory.Take(pulled * table.row_bytes(), work.misalignment);
  EXPECT_THAT(backend.GatherRows(table, slot_span, gathered), IsOk());
  result.gathered = memory.Get<uint8_t>(gathered, pulled * table.row_bytes());
  EXPECT_THAT(backend.Digest(table, history, result.digest_before_current),
              IsOk());
  EXPECT_THAT(backend.BringCurrent(table, history, slot_span), IsOk());
  EXPECT_THAT(backend.Digest(table, history, result.digest), IsOk());
  result.weights =
      memory.Get<uint8_t>(table.weights, work.row_count * table.row_bytes());
  result.states = memory.Get<uint8_t>(
      table.states, work.row_count * int64_t{sizeof(RowState)});
  EXPECT_THAT(backend.Synchronize(), IsOk());
  return result;
}

void ExpectSameBits(const DifferentialResult& got,
                    const DifferentialResult& want) {
  EXPECT_TRUE(got.weights == want.weights);
  EXPECT_TRUE(got.states == want.states);
  EXPECT_TRUE(got.gathered == want.gathered);
  EXPECT_EQ(got.report.entry_count, want.report.entry_count);
  EXPECT_EQ(got.report.row_visits, want.report.row_visits);
  EXPECT_EQ(got.report.untouched_row_count, want.report.untouched_row_count);
  EXPECT_EQ(got.report.bytes_moved, want.report.bytes_moved);
  EXPECT_EQ(std::memcmp(&got.statistics, &want.statistics,
                        sizeof(GradientStatistics)),
            0);
  EXPECT_EQ(got.digest_before_current, want.digest_before_current);
  EXPECT_EQ(got.digest, want.digest);
  EXPECT_EQ(got.content, want.content);
  ASSERT_EQ(got.scans.size(), want.scans.size());
  for (size_t p = 0; p < got.scans.size(); ++p) {
    EXPECT_EQ(got.scans[p].non_finite_row, want.scans[p].non_finite_row) << p;
    EXPECT_EQ(got.scans[p].non_finite_column, want.scans[p].non_finite_column)
        << p;
  }
}

}  // namespace rowhouse::kernels
