#ifndef ROWHOUSE_TESTS_KERNELS_DIFFERENTIAL_CASE_H_
#define ROWHOUSE_TESTS_KERNELS_DIFFERENTIAL_CASE_H_

/// Random work on a sparse table, to be done by two backends.

#include <cstdint>
#include <vector>

#include "kernels/backend.h"
#include "tests/testing/random.h"

namespace rowhouse::kernels {

using Bytes = std::vector<uint8_t>;

/// How the slots of a case repeat.
enum class SlotPattern : uint8_t {
  kUniform,
  kZipf,
  kIncreasing,  ///< One part, strictly increasing where the rows allow it.
  kOneSlot,
  kSortedParts,  ///< Any, each part in order: many of them are merged.
  kRuns,  ///< Runs across the lengths where the run-sum changes its path.
};

struct DifferentialPart {
  std::vector<int64_t> slots;
  Bytes rows;
};

struct DifferentialCase {
  int64_t row_count = 0;
  int64_t dim = 0;
  DType dtype = DType::kBf16;
  DType gradient_dtype = DType::kBf16;
  NonFinitePolicy policy = NonFinitePolicy::kReject;
  RowAdamFactors factors{};
  Bytes weights;
  std::vector<RowState> states;
  std::vector<float> beta2;       ///< By event; 0 is unused.
  std::vector<float> suffix_min;  ///< Of `beta2`.
  std::vector<DifferentialPart> parts;
  std::vector<int64_t> pulled;  ///< Distinct slots.
  /// Bytes by which arrays of rows miss an alignment of 256: a multiple of 4.
  int64_t misalignment = 0;
};

struct CaseSize {
  int64_t row_count = 0;
  int64_t dim = 0;
  int64_t entry_count = 0;
};

/// `specials`: the chance that a case holds subnormals, zeros, infinities and
/// NaNs beside its normal numbers.
DifferentialCase MakeCase(testing::Random& random, const CaseSize& size,
                          SlotPattern pattern, double specials);

/// What a backend made of a case.
struct DifferentialResult {
  Bytes weights;
  Bytes states;
  Bytes gathered;  ///< Rows `pulled`, after the event.
  EventReport report;
  GradientStatistics statistics;
  uint64_t digest_before_current = 0;
  uint64_t digest = 0;
  ContentSum content;          ///< Of the parts' rows.
  std::vector<RowScan> scans;  ///< Of each part.
};

/// Lands the parts, takes statistics, applies the event, gathers, digests and
/// brings rows current.
DifferentialResult RunCase(Backend& backend, const DifferentialCase& work);

/// Expects the same bits everywhere.
void ExpectSameBits(const DifferentialResult& got,
                    const DifferentialResult& want);

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_TESTS_KERNELS_DIFFERENTIAL_CASE_H_
