#include "tests/reference/eager_table.h"

#include <cmath>
#include <cstring>

namespace rowhouse::reference {
namespace {

constexpr uint64_t kG = 0x9e3779b97f4a7c15ULL;
constexpr uint64_t kSecret = 0xc2b2ae3d27d4eb4fULL;

uint64_t Mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return x;
}

uint64_t HashOf(uint64_t seed, uint64_t i, uint64_t j) {
  const uint64_t inner = Mix(seed + (i + 1) * kG);
  return Mix(inner + (j + 1) * kG);
}

uint32_t BitsOf(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

float OfBits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

// Nearest bf16 value, by comparing the two neighbours.
float NearestBf16(float x) {
  if (std::isnan(x)) return OfBits(0x7fc00000U);
  if (std::isinf(x)) return x;
  const uint32_t down = BitsOf(x) & 0xffff0000U;
  const uint32_t rest = BitsOf(x) & 0xffffU;
  if (rest < 0x8000U) return OfBits(down);
  if (rest > 0x8000U) return OfBits(down + 0x10000U);
  const bool odd = (down & 0x10000U) != 0;
  return OfBits(odd ? down + 0x10000U : down);
}

float RunSumOf(const std::vector<const std::vector<float>*>& run, int64_t j) {
  float total = 0.0F;
  for (size_t first = 0; first < run.size(); first += 10) {
    float chunk = 0.0F;
    for (size_t i = first; i < run.size() && i < first + 10; ++i) {
      chunk += (*run[i])[j];
    }
    total += chunk;
  }
  return total;
}

float SumOfSquares(const std::vector<float>& g) {
  std::vector<float> partial(256, 0.0F);
  for (size_t j = 0; j < g.size(); ++j) {
    const float square = g[j] * g[j];
    partial[j % 256] += square;
  }
  for (size_t half = 128; half >= 1; half /= 2) {
    for (size_t i = 0; i < half; ++i) partial[i] += partial[i + half];
  }
  return partial[0];
}

}  // namespace

EagerTable::EagerTable(const Options& options)
    : options_(options),
      rows_(options.row_count, std::vector<float>(options.dim, 0.0F)),
      v_(options.row_count, 0.0F) {
  if (!options.uniform) return;
  for (int64_t i = 0; i < options.row_count; ++i) {
    for (int64_t j = 0; j < options.dim; ++j) {
      const auto k = static_cast<int64_t>(HashOf(options.seed, i, j) >> 40);
      const auto odd = static_cast<double>(2 * k + 1 - (1 << 24));
      const float value =
          options.bound * static_cast<float>(std::ldexp(odd, -24));
      rows_[i][j] =
          options.row_type == Type::kBf16 ? NearestBf16(value) : value;
    }
  }
}

void EagerTable::Apply(const Contributions& contributions,
                       const Scalars& scalars, int divisor) {
  std::map<int64_t, std::vector<const std::vector<float>*>> runs;
  for (const auto& [name, entries] : contributions) {
    for (const Entry& entry : entries) {
      runs[entry.row_id].push_back(&entry.values);
    }
  }
  const std::vector<float> before = v_;
  const auto beta2 = static_cast<float>(scalars.beta2);
  for (float& v : v_) {
    v = v * beta2;
    if (std::isnan(v)) v = OfBits(0x7fc00000U);
  }
  for (const auto& [row_id, run] : runs) {
    std::vector<float> merged(options_.dim);
    for (int64_t j = 0; j < options_.dim; ++j) merged[j] = RunSumOf(run, j);
    UpdateRow(row_id, merged, scalars, divisor, before[row_id]);
  }
  history_.push_back(beta2);
}

void EagerTable::UpdateRow(int64_t row_id, const std::vector<float>& merged,
                           const Scalars& scalars, int divisor,
                           float v_before) {
  const double scale = scalars.gradient_scale / divisor;
  const auto grad_mul = static_cast<float>(scale);
  const auto sq_mul =
      static_cast<float>((1.0 - scalars.beta2) * (scale * scale));
  const auto eps = static_cast<float>(scalars.eps);
  const auto step_size = static_cast<float>(scalars.step_size);
  const auto decay = static_cast<float>(scalars.decay);

  const float mean = SumOfSquares(merged) / static_cast<float>(options_.dim);
  const float decayed = v_before * static_cast<float>(scalars.beta2);
  const float added = mean * sq_mul;
  const float v = decayed + added;
  const float root = std::sqrt(v);
  const float denominator = root + eps;
  bool finite = std::isfinite(mean) && std::isfinite(v);
  std::vector<float> row(options_.dim);
  for (int64_t j = 0; j < options_.dim; ++j) {
    const float p = rows_[row_id][j];
    const float mean_gradient = merged[j] * grad_mul;
    const float ratio = mean_gradient / denominator;
    float u = ratio * step_size;
    const float agreement = u * p;
    if (agreement > 0) {
      const float shrink = p * decay;
      u = u + shrink;
    }
    const float moved = p - u;
    row[j] = options_.row_type == Type::kBf16 ? NearestBf16(moved) : moved;
    if (std::isnan(row[j])) row[j] = OfBits(0x7fc00000U);
    finite = finite && std::isfinite(merged[j]) && std::isfinite(row[j]);
  }
  if (options_.keep_non_finite_rows && !finite) {
    ++kept_row_count_;
    return;
  }
  rows_[row_id] = row;
  v_[row_id] = std::isnan(v) ? OfBits(0x7fc00000U) : v;
}

void EagerTable::Skip() { history_.push_back(1.0F); }

uint64_t EagerTable::RowDigest(int64_t row_id) const {
  std::vector<uint8_t> bytes;
  for (const float x : rows_[row_id]) {
    const uint32_t bits = BitsOf(x);
    if (options_.row_type == Type::kFp32) {
      bytes.push_back(bits & 0xff);
      bytes.push_back((bits >> 8) & 0xff);
    }
    bytes.push_back((bits >> 16) & 0xff);
    bytes.push_back(bits >> 24);
  }
  while (bytes.size() % 8 != 0) bytes.push_back(0);
  uint64_t low = 0;
  uint64_t high = 0;
  for (size_t w = 0; w < bytes.size() / 8; ++w) {
    uint64_t x = 0;
    for (int b = 7; b >= 0; --b) x = (x << 8) | bytes[8 * w + b];
    const uint64_t key = (w + 1) * kG;
    const uint64_t a = x ^ Mix(key);
    const uint64_t c = x ^ Mix(key ^ kSecret);
    low += (a % (1ULL << 32)) * (a >> 32) + ((x << 32) | (x >> 32));
    high += (c % (1ULL << 32)) * (c >> 32) + x;
  }
  const uint64_t first = Mix(low + (static_cast<uint64_t>(row_id) + 1) * kG);
  const uint64_t second = Mix(high ^ BitsOf(v_[row_id]));
  return Mix(first + second);
}

uint64_t EagerTable::Digest() const {
  uint64_t sum = 0;
  for (int64_t i = 0; i < options_.row_count; ++i) sum += RowDigest(i);
  uint64_t history = 0;
  for (size_t e = 1; e <= history_.size(); ++e) {
    history += HashOf(kSecret, e, BitsOf(history_[e - 1]));
  }
  return sum + Mix(history + history_.size());
}

}  // namespace rowhouse::reference
