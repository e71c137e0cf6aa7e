#ifndef ROWHOUSE_KERNELS_ARITHMETIC_H_
#define ROWHOUSE_KERNELS_ARITHMETIC_H_

/// Every rounding point of the update, once, for host and device.
///
/// Both compilers see this file: g++/clang++ with `-ffp-contract=off`, nvcc
/// with `--expt-relaxed-constexpr -fmad=false -ftz=false -prec-div=true
/// -prec-sqrt=true`. With these, each operator below is one correctly rounded
/// IEEE binary32 operation, subnormals included, so both give the same bits.
/// Nothing here may be reordered, fused or widened.

#include <bit>
#include <cstdint>

namespace rowhouse::kernels {

// ---------------------------------------------------------------- rounding --

inline constexpr uint32_t kCanonicalNanFp32 = 0x7fc00000U;
inline constexpr uint16_t kCanonicalNanBf16 = 0x7fc0U;
inline constexpr uint16_t kCanonicalNanFp16 = 0x7e00U;

constexpr bool IsNan(float x) { return x != x; }

/// False for NaN and the infinities.
constexpr bool IsFinite(float x) {
  return (std::bit_cast<uint32_t>(x) & 0x7f800000U) != 0x7f800000U;
}

/// `x`, with any NaN replaced by the canonical one. Every fp32 value that an
/// update stores passes through here.
constexpr float Canonical(float x) {
  return IsNan(x) ? std::bit_cast<float>(kCanonicalNanFp32) : x;
}

/// Widens exactly.
constexpr float Bf16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

/// `FloatToBf16High` of a number. Of the NaNs, only those that a bf16 holds are
/// sure to stay one.
constexpr uint32_t NumberToBf16High(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return bits + 0x7fffU + ((bits >> 16) & 1U);
}

/// `FloatToBf16` in the upper half of a word, whose lower half means nothing.
constexpr uint32_t FloatToBf16High(float x) {
  return IsNan(x) ? uint32_t{kCanonicalNanBf16} << 16 : NumberToBf16High(x);
}

/// Rounds to nearest, ties to even; overflow gives infinity, any NaN the
/// canonical one.
constexpr uint16_t FloatToBf16(float x) {
  return static_cast<uint16_t>(FloatToBf16High(x) >> 16);
}

/// Widens exactly, subnormals and NaN payloads too.
constexpr float Fp16ToFloat(uint16_t bits) {
  const uint32_t magnitude = bits & 0x7fffU;
  const uint32_t sign = (uint32_t{bits} & 0x8000U) << 16;
  // The exponent's bias grows by 112, that of infinity and NaN by twice that.
  const uint32_t bias = magnitude < 0x7c00U ? 0x38000000U : 0x70000000U;
  const uint32_t normal = (magnitude << 13) + bias;
  const uint32_t subnormal = std::bit_cast<uint32_t>(
      static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24F);
  return std::bit_cast<float>(sign |
                              (magnitude < 0x0400U ? subnormal : normal));
}

/// Rounds to nearest, ties to even, subnormals too; 65520 and more give
/// infinity, any NaN the canonical one.
constexpr uint16_t FloatToFp16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const uint32_t magnitude = bits & 0x7fffffffU;
  const uint32_t sign = (bits >> 16) & 0x8000U;
  const uint32_t normal =
      (magnitude - 0x38000000U + 0x0fffU + ((magnitude >> 13) & 1U)) >> 13;
  // Beside 0.5 the last place is 2^-24, that of the subnormals.
  const uint32_t subnormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
      0x3f000000U;
  const uint32_t finite = magnitude < 0x38800000U ? subnormal : normal;
  const uint32_t rounded = magnitude < 0x477ff000U ? finite : 0x7c00U;
  return IsNan(x) ? kCanonicalNanFp16 : static_cast<uint16_t>(sign | rounded);
}

// ----------------------------------------------------------------- run-sum --

/// Entries of one row, in canonical order, are summed in chunks of this many:
/// each chunk left to right from +0, then the chunk sums left to right from +0.
inline constexpr int64_t kRunChunk = 10;

/// The run-sum of one column. Vector code follows the same steps: `chunk` and
/// `total` become rows, and `count` is shared by all columns.
struct RunSum {
  float total = 0.0F;
  float chunk = 0.0F;
  int64_t count = 0;

  constexpr void Add(float entry) {
    chunk = chunk + entry;
    if (++count % kRunChunk == 0) {
      total = total + chunk;
      chunk = 0.0F;
    }
  }

  constexpr float Result() const {
    return count % kRunChunk == 0 ? total : total + chunk;
  }
};

// ---------------------------------------------------------- sum of squares --

/// A row's sum of squares: square `j` (one fp32 multiply) is added, in
/// increasing `j`, to partial sum `j % kSquarePartials`, each from +0; then the
/// partial sums are folded by halves: for offset 128, 64, ..., 1,
/// `partial[i] = partial[i] + partial[i + offset]` for `i < offset`. Partial
/// sum 0 is the result.
///
/// A warp follows it with lane `i / 8` holding partials `8*(i/8) .. +7`:
/// offsets 128 to 8 are shuffles, 4 to 1 are local. A SIMD loop follows it with
/// whole vectors. Rows shorter than 256 leave partials at +0, and adding +0 to
/// a sum of squares changes no bit, so those steps may be left out.
inline constexpr int64_t kSquarePartials = 256;

// ------------------------------------------------------------ second moment --

/// Applies the decay that a row missed: `v = fl(v * beta2[e])` for
/// `e = first .. last` in order; returns `v` when `first > last`. A NaN comes
/// out canonical.
///
/// `suffix_min[e]` is the least of `beta2[e ..]` up to the newest event. Once
/// `fl(v * suffix_min[e]) == v`, no later multiply can change `v` (rounding is
/// monotone and every beta2 is in [0, 1]), so the loop stops there: exact, and
/// a gap of any length costs at most some thousands of multiplies.
constexpr float ReplaySecondMoment(float v, const float* beta2,
                                   const float* suffix_min, int64_t first,
                                   int64_t last) {
  for (int64_t event = first; event <= last; ++event) {
    if (v * suffix_min[event] == v) return v;
    if (IsNan(v)) break;
    v = v * beta2[event];
  }
  return Canonical(v);  // Infinity times 0 is a NaN of the machine's choice.
}

/// Scalars of one row-Adam event, narrowed to fp32 (see `NarrowScalars`).
struct RowAdamFactors {
  float step_size;
  float decay;
  float beta2;
  float eps;
  float grad_mul;  ///< gradient_scale / W.
  float sq_mul;    ///< (1 - beta2) * (gradient_scale / W)^2.
};

/// `v = v*beta2 + mean_square*sq_mul`, where `mean_square` is the sum of
/// squares divided by fl32(dim). Three roundings.
constexpr float UpdateSecondMoment(float v, float mean_square,
                                   const RowAdamFactors& f) {
  return v * f.beta2 + mean_square * f.sq_mul;
}

/// The square root, correctly rounded. A template because clang's builtin is no
/// constant expression: the callers are constexpr for the device's sake.
template <typename Float>
constexpr Float SquareRoot(Float x) {
  return __builtin_sqrtf(x);
}

/// `sqrt(v) + eps`, shared by all elements of a row.
constexpr float RowAdamDenominator(float v, const RowAdamFactors& f) {
  return SquareRoot(v) + f.eps;
}

/// The step of a weight before decay, `u = quotient * step_size`, where
/// `quotient` is `(g*grad_mul) / denominator`: a rounding each.
constexpr float WeightStep(float quotient, const RowAdamFactors& f) {
  return quotient * f.step_size;
}

/// Weight `p` less step `u`, before it is rounded to the table's type:
/// `if (u*p > 0) u += p*decay; p - u`.
constexpr float TakeStep(float p, float u, const RowAdamFactors& f) {
  // Both values, then a choice: a branch would keep loops from vectorizing.
  const float decayed = u + p * f.decay;
  return p - (u * p > 0.0F ? decayed : u);
}

/// The new value of weight `p` for the merged gradient `g`, before it is
/// rounded to the table's type.
constexpr float UpdateWeight(float p, float g, float denominator,
                             const RowAdamFactors& f) {
  return TakeStep(p, WeightStep((g * f.grad_mul) / denominator, f), f);
}

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_ARITHMETIC_H_
