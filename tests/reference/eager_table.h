#ifndef ROWHOUSE_TESTS_REFERENCE_EAGER_TABLE_H_
#define ROWHOUSE_TESTS_REFERENCE_EAGER_TABLE_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace rowhouse::reference {

/// A whole sparse table, updated the plain way: every event decays every row.
///
/// The oracle of the property tests. Written from the formulas of
/// proto/README.md with none of the project's own arithmetic, one scalar
/// operation a line; slow on purpose.
class EagerTable {
 public:
  enum class Type { kBf16, kFp32 };

  struct Options {
    int64_t row_count = 0;
    int64_t dim = 0;
    Type row_type = Type::kBf16;
    bool uniform = false;  ///< Else zeros.
    uint64_t seed = 0;
    float bound = 0;
    /// Whether a row whose update is not finite keeps its bits.
    bool keep_non_finite_rows = true;
  };

  struct Scalars {
    double step_size, decay, beta2, eps, gradient_scale;
  };

  /// One gradient row: `values` hold what the wire type can hold.
  struct Entry {
    int64_t row_id;
    std::vector<float> values;
  };

  /// Parts by (trainer_rank, part).
  using Contributions = std::map<std::pair<int, int>, std::vector<Entry>>;

  explicit EagerTable(const Options& options);

  /// Applies the next event; `divisor` is the trainer count or 1.
  void Apply(const Contributions& contributions, const Scalars& scalars,
             int divisor);
  void Skip();

  const std::vector<float>& row(int64_t row_id) const { return rows_[row_id]; }
  float second_moment(int64_t row_id) const { return v_[row_id]; }
  int64_t event() const { return static_cast<int64_t>(history_.size()); }
  int64_t kept_row_count() const { return kept_row_count_; }  ///< So far.

  /// The digest of the whole table.
  uint64_t Digest() const;

 private:
  void UpdateRow(int64_t row_id, const std::vector<float>& merged,
                 const Scalars& scalars, int divisor, float v_before);
  uint64_t RowDigest(int64_t row_id) const;

  Options options_;
  std::vector<std::vector<float>> rows_;
  std::vector<float> v_;
  std::vector<float> history_;
  int64_t kept_row_count_ = 0;
};

}  // namespace rowhouse::reference

#endif  // ROWHOUSE_TESTS_REFERENCE_EAGER_TABLE_H_
