#include "tests/reference/dense_table.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace rowhouse::reference {
namespace {

using Type = EagerDense::Type;

constexpr uint64_t kG = 0x9e3779b97f4a7c15ULL;
constexpr uint64_t kSecret = 0xc2b2ae3d27d4eb4fULL;

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

float CanonicalNan() { return OfBits(0x7fc00000U); }

// To a type of `digits` significant bits, least exponent `least` and largest
// finite value `largest`; exact steps in fp64.
float NearestIn(float x, int digits, int least, double largest) {
  if (std::isinf(x) || x == 0.0F) return x;
  int exponent = 0;
  std::frexp(static_cast<double>(x), &exponent);
  const int last_place = std::max(exponent - digits, least);
  const double steps = std::ldexp(static_cast<double>(x), -last_place);
  const double rounded = std::ldexp(std::nearbyint(steps), last_place);
  if (std::abs(rounded) > largest) {
    return std::copysign(std::numeric_limits<float>::infinity(), x);
  }
  return std::copysign(static_cast<float>(rounded), x);
}

// One element's new values.
struct Element {
  float p, m, v;
  bool finite;
};

struct Factors {
  float grad_mul, decay_mul, beta1, rest1, beta2, rest2, step, root2, eps;
};

Element Step(float p, float m, float v, float gradient, const Factors& f) {
  const float g = gradient * f.grad_mul;
  const float shrunk = p * f.decay_mul;
  const float old_m = f.beta1 * m;
  const float add_m = f.rest1 * g;
  const float new_m = old_m + add_m;
  const float old_v = f.beta2 * v;
  const float scaled_g = f.rest2 * g;
  const float add_v = scaled_g * g;
  const float new_v = old_v + add_v;
  const float root = std::sqrt(new_v);
  const float corrected = root / f.root2;
  const float denominator = corrected + f.eps;
  const float numerator = f.step * new_m;
  const float change = numerator / denominator;
  const float new_p = shrunk - change;
  return {new_p, new_m, new_v,
          std::isfinite(gradient) && std::isfinite(new_p) &&
              std::isfinite(new_m) && std::isfinite(new_v)};
}

float NoNan(float x) { return std::isnan(x) ? CanonicalNan() : x; }

uint64_t Mix(uint64_t x) {
  x ^= x >> 30;
  x *= 0xbf58476d1ce4e5b9ULL;
  x ^= x >> 27;
  x *= 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return x;
}

// Bits of a value that fp16 holds.
uint16_t BitsOfFp16(float x) {
  const int sign = std::signbit(x) ? 0x8000 : 0;
  if (std::isnan(x)) return 0x7e00;
  if (std::isinf(x)) return static_cast<uint16_t>(sign | 0x7c00);
  const double size = std::abs(static_cast<double>(x));
  if (size < 0x1p-14) {
    return static_cast<uint16_t>(sign | static_cast<int>(size * 0x1p24));
  }
  int exponent = 0;
  const double fraction = std::frexp(size, &exponent);  // In [0.5, 1).
  const int significand = static_cast<int>(fraction * 2048) - 1024;
  return static_cast<uint16_t>(sign | ((exponent + 14) * 1024 + significand));
}

void PutBytes(Type type, float x, std::vector<uint8_t>& bytes) {
  if (type == Type::kFp16) {
    const uint16_t half = BitsOfFp16(x);
    bytes.push_back(half & 0xff);
    bytes.push_back(half >> 8);
    return;
  }
  const uint32_t bits = BitsOf(x);
  if (type == Type::kFp32) {
    bytes.push_back(bits & 0xff);
    bytes.push_back((bits >> 8) & 0xff);
  }
  bytes.push_back((bits >> 16) & 0xff);
  bytes.push_back(bits >> 24);
}

struct Sum {
  uint64_t low = 0;
  uint64_t high = 0;
};

// Adds the hash of array number `array`, columns [first, last) of `values`.
void AddArray(uint64_t array, Type type, const std::vector<float>& values,
              int64_t first, int64_t last, Sum& sum) {
  std::vector<uint8_t> bytes;
  for (int64_t i = first; i < last; ++i) PutBytes(type, values[i], bytes);
  while (bytes.size() % 8 != 0) bytes.push_back(0);
  Sum words;
  for (size_t w = 0; w < bytes.size() / 8; ++w) {
    uint64_t x = 0;
    for (int b = 7; b >= 0; --b) x = (x << 8) | bytes[8 * w + b];
    const uint64_t key = (w + 1) * kG;
    const uint64_t a = x ^ Mix(key);
    const uint64_t c = x ^ Mix(key ^ kSecret);
    words.low += (a % (1ULL << 32)) * (a >> 32) + ((x << 32) | (x >> 32));
    words.high += (c % (1ULL << 32)) * (c >> 32) + x;
  }
  const uint64_t place = (array + 1) * kG;
  sum.low += Mix(words.low + place);
  sum.high += Mix(words.high ^ Mix(place));
}

float RunSum(const std::vector<int64_t>& positions,
             const std::vector<float>& rows, int64_t dim, int64_t column) {
  float total = 0.0F;
  for (size_t first = 0; first < positions.size(); first += 10) {
    float chunk = 0.0F;
    for (size_t i = first; i < positions.size() && i < first + 10; ++i) {
      chunk += rows[positions[i] * dim + column];
    }
    total += chunk;
  }
  return total;
}

}  // namespace

float Nearest(Type type, float x) {
  if (std::isnan(x)) return CanonicalNan();
  switch (type) {
    case Type::kFp32:
      return x;
    case Type::kBf16:
      return NearestIn(x, 8, -133, 0x1.fep127);
    case Type::kFp16:
      return NearestIn(x, 11, -24, 65504.0);
  }
  return x;
}

int64_t EagerDense::ApplyAdamW(const Scalars& s, int divisor,
                               bool keep_non_finite_rows) {
  const double correction1 = 1.0 - std::pow(s.beta1, s.event);
  const double correction2 = 1.0 - std::pow(s.beta2, s.event);
  const Factors f = {static_cast<float>(s.gradient_scale / divisor),
                     static_cast<float>(1.0 - s.learning_rate * s.weight_decay),
                     static_cast<float>(s.beta1),
                     static_cast<float>(1.0 - s.beta1),
                     static_cast<float>(s.beta2),
                     static_cast<float>(1.0 - s.beta2),
                     static_cast<float>(s.learning_rate / correction1),
                     static_cast<float>(std::sqrt(correction2)),
                     static_cast<float>(s.eps)};
  int64_t kept = 0;
  for (int64_t i = 0; i < row_count; ++i) {
    std::vector<Element> row;
    bool finite = true;
    for (int64_t at = i * dim; at < (i + 1) * dim; ++at) {
      const float p = has_master ? master[at] : weights[at];
      row.push_back(Step(p, m[at], v[at], main_grad[at], f));
      finite = finite && row.back().finite &&
               std::isfinite(Nearest(type, row.back().p));
      main_grad[at] = 0.0F;
    }
    Element new_bias{};
    if (has_bias) {
      new_bias = Step(bias[i], bias_m[i], bias_v[i], bias_grad[i], f);
      finite = finite && new_bias.finite;
      bias_grad[i] = 0.0F;
    }
    if (!finite && keep_non_finite_rows) {
      ++kept;
      continue;
    }
    for (int64_t j = 0; j < dim; ++j) {
      const int64_t at = i * dim + j;
      weights[at] = Nearest(type, row[j].p);
      if (has_master) master[at] = NoNan(row[j].p);
      m[at] = NoNan(row[j].m);
      v[at] = NoNan(row[j].v);
    }
    if (!has_bias) continue;
    bias[i] = NoNan(new_bias.p);
    bias_m[i] = NoNan(new_bias.m);
    bias_v[i] = NoNan(new_bias.v);
  }
  return kept;
}

void EagerDense::AddEmbeddingGradient(const std::vector<int64_t>& slots,
                                      const std::vector<float>& rows,
                                      Type gradient_type) {
  std::map<int64_t, std::vector<int64_t>> positions;
  for (size_t i = 0; i < slots.size(); ++i) {
    positions[slots[i]].push_back(static_cast<int64_t>(i));
  }
  for (const auto& [slot, run] : positions) {
    for (int64_t j = 0; j < dim; ++j) {
      const float r = Nearest(gradient_type, RunSum(run, rows, dim, j));
      float& main = main_grad[slot * dim + j];
      main = Nearest(main_type, main + r);
    }
  }
}

uint64_t EagerDense::Digest() const {
  uint64_t total = 0;
  for (int64_t i = 0; i < row_count; ++i) {
    Sum sum;
    const int64_t first = i * dim;
    const int64_t last = first + dim;
    AddArray(0, type, weights, first, last, sum);
    if (has_master) AddArray(1, Type::kFp32, master, first, last, sum);
    AddArray(2, Type::kFp32, m, first, last, sum);
    AddArray(3, Type::kFp32, v, first, last, sum);
    if (has_bias) {
      AddArray(4, Type::kFp32, bias, i, i + 1, sum);
      AddArray(5, Type::kFp32, bias_m, i, i + 1, sum);
      AddArray(6, Type::kFp32, bias_v, i, i + 1, sum);
    }
    const auto row_id = static_cast<uint64_t>(first_row_id + i);
    total += Mix(Mix(sum.low + (row_id + 1) * kG) + Mix(sum.high));
  }
  return total;
}

}  // namespace rowhouse::reference
