#ifndef ROWHOUSE_CLIENT_INTERNAL_NGRAM_CACHE_H_
#define ROWHOUSE_CLIENT_INTERNAL_NGRAM_CACHE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "rowhouse/ngram_embedding.h"
#include "rowhouse/types.h"

namespace rowhouse::client::internal {

/// Of rows and gradients: not kFp16.
inline kernels::DType ToKernel(DType dtype) {
  return dtype == DType::kFp32 ? kernels::DType::kFp32 : kernels::DType::kBf16;
}

/// Slots of `row_ids` in the sorted distinct list `want`, by binary search.
///
/// Errors:
///   kNotFound  ROW_NOT_CACHED: names the first id that is not in the list.
absl::StatusOr<std::vector<int64_t>> FindSlots(
    std::span<const int64_t> want, std::span<const int64_t> row_ids);

/// The arithmetic of an n-gram table on a backend, and the cache's memory.
///
/// Thread-compatible.
class NgramCache {
 public:
  /// Errors:
  ///   kInvalidArgument    no sign pool, or a table or pool of a size that
  ///                       cannot be hashed into.
  ///   kResourceExhausted  no memory for the cache.
  static absl::StatusOr<std::unique_ptr<NgramCache>> Make(
      const TableInfo& table, const NgramOptions& options,
      std::unique_ptr<kernels::Backend> backend);

  absl::StatusOr<std::vector<int64_t>> RowIds(Tokens tokens) const;

  /// Errors:
  ///   kInvalidArgument  more rows than the cache has.
  absl::StatusOr<std::vector<int64_t>> WantList(
      std::span<const Tokens> steps) const;

  /// Room for `row_count` rows.
  ///
  /// REQUIRES: no more than the cache has.
  std::span<std::byte> Rows(int64_t row_count) const;

  absl::Status Embed(Tokens tokens, std::span<const int64_t> slots,
                     std::span<std::byte> out) const;

  /// Sums `steps` per slot and rounds to the table's gradient type.
  absl::StatusOr<std::vector<std::byte>> SumGradients(
      std::span<const kernels::NgramStep> steps, int64_t slot_count) const;

  int64_t dim() const { return spec_.dim; }
  int64_t row_bytes() const { return spec_.dim * SizeOf(spec_.row_dtype); }
  /// Of a gradient that steps hand in.
  int64_t gradient_row_bytes() const {
    return spec_.dim * SizeOf(gradient_dtype_);
  }

 private:
  NgramCache() = default;

  std::unique_ptr<kernels::Backend> backend_;
  TableSpec spec_;
  DType gradient_dtype_ = DType::kBf16;
  int64_t cache_row_count_ = 0;
  std::vector<uint64_t> sign_words_;
  kernels::SignPool pool_;
  kernels::Buffer cache_;  // After its backend.
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_NGRAM_CACHE_H_
