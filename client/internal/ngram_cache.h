#ifndef ROWHOUSE_CLIENT_INTERNAL_NGRAM_CACHE_H_
#define ROWHOUSE_CLIENT_INTERNAL_NGRAM_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/internal/backend_array.h"
#include "kernels/backend.h"
#include "rowhouse/ngram_embedding.h"
#include "rowhouse/types.h"

namespace rowhouse::client::internal {

/// Of rows and gradients: not kFp16.
inline kernels::DType ToKernel(DType dtype) {
  return dtype == DType::kFp32 ? kernels::DType::kFp32 : kernels::DType::kBf16;
}

/// The sorted distinct row ids of some tokens, for the host and in the memory
/// of the cache's backend. Slots of the cache are places in it.
struct NgramWant {
  std::vector<int64_t> row_ids;
  BackendArray<int64_t> copy;
};

/// Tokens of a step and where their rows lie, in the memory of the backend.
struct NgramPlaces {
  BackendArray<int32_t> tokens;   ///< [T]
  BackendArray<int64_t> row_ids;  ///< [2T]
  BackendArray<int64_t> slots;    ///< [2T]
};

/// The arithmetic of an n-gram table on a backend, and the cache's memory. What
/// callers pass may be the host's memory or the backend's.
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
      std::shared_ptr<kernels::Backend> backend);

  absl::StatusOr<std::vector<int64_t>> RowIds(Tokens tokens) const;

  /// The tokens of `steps`, in the host's memory.
  absl::StatusOr<std::vector<std::vector<int32_t>>> HostTokens(
      std::span<const Tokens> steps) const;

  /// Errors:
  ///   kInvalidArgument  more rows than the cache has.
  absl::StatusOr<NgramWant> WantList(std::span<const Tokens> steps) const;

  /// Finds the slots of `tokens` in `want`. Done when it returns.
  ///
  /// Errors:
  ///   kNotFound  ROW_NOT_CACHED: names the first id that is not in the list.
  absl::Status Locate(const NgramWant& want, Tokens tokens,
                      NgramPlaces& places) const;

  /// Room for `row_count` rows, in the backend's memory.
  ///
  /// REQUIRES: no more than the cache has.
  std::span<std::byte> Rows(int64_t row_count) const;

  absl::Status Embed(const NgramPlaces& places, std::span<std::byte> out);

  /// Copies a gradient to `to`. Done when it returns.
  absl::Status Hold(std::span<const std::byte> gradient,
                    BackendArray<std::byte>& to) const;

  /// Sums `steps`, of the backend's memory, per slot and rounds to the table's
  /// gradient type: [slot_count, dim], there until the next call.
  absl::StatusOr<std::span<const std::byte>> SumGradients(
      std::span<const kernels::NgramStep> steps, int64_t slot_count);

  int64_t dim() const { return spec_.dim; }
  int64_t row_bytes() const { return spec_.dim * SizeOf(spec_.row_dtype); }
  /// Of a gradient that steps hand in.
  int64_t gradient_row_bytes() const {
    return spec_.dim * SizeOf(gradient_dtype_);
  }

 private:
  NgramCache() = default;

  absl::Status HashTokens(Tokens tokens, NgramPlaces& places) const;

  std::shared_ptr<kernels::Backend> backend_;
  TableSpec spec_;
  DType gradient_dtype_ = DType::kBf16;
  int64_t cache_row_count_ = 0;
  kernels::SignPool pool_;
  // After their backend.
  BackendArray<uint64_t> sign_words_;
  kernels::Buffer cache_;
  BackendArray<std::byte> embedded_;  // On its way to the host.
  BackendArray<std::byte> sums_;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_NGRAM_CACHE_H_
