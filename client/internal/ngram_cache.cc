#include "client/internal/ngram_cache.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

absl::Status CheckTable(const TableInfo& table, const NgramOptions& options) {
  constexpr int64_t kMinRows = 4;
  constexpr int64_t kMaxRows = std::numeric_limits<int32_t>::max();
  const int64_t row_count = table.spec.row_count;
  if (row_count < kMinRows || row_count > kMaxRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("a table of ", row_count, " rows, wanted ", kMinRows,
                     " to ", kMaxRows, " for n-grams"));
  }
  if (!options.sign_pool.has_value() && !table.spec.ngram.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table ", table.name,
        " without n-gram metadata, wanted that or a sign pool in the options"));
  }
  if (options.cache_row_count < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cache_row_count ", options.cache_row_count, ", wanted 1 or more"));
  }
  if (options.gradient_dtype == DType::kFp16) {
    return absl::InvalidArgumentError(
        "gradient_dtype kFp16, wanted kBf16 or kFp32");
  }
  if (options.is_update == nullptr) {
    return absl::InvalidArgumentError("no is_update, wanted a function");
  }
  return absl::OkStatus();
}

absl::Status CheckPool(const NgramMetadata& pool, int64_t dim) {
  const int64_t rows = pool.sign_row_count;
  if (rows < 1 || !std::has_single_bit(static_cast<uint64_t>(rows))) {
    return absl::InvalidArgumentError(
        absl::StrCat("a sign pool of ", rows, " rows, wanted a power of two"));
  }
  const int64_t words = rows * ((dim + 63) / 64);
  const auto found = static_cast<int64_t>(pool.sign_words.size());
  if (found != 0 && found != words) {
    return absl::InvalidArgumentError(
        absl::StrCat("a sign pool of ", found, " words, wanted ", words));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int64_t>> FindSlots(
    std::span<const int64_t> want, std::span<const int64_t> row_ids) {
  std::vector<int64_t> slots(row_ids.size());
  for (size_t i = 0; i < row_ids.size(); ++i) {
    const auto found = std::lower_bound(want.begin(), want.end(), row_ids[i]);
    if (found == want.end() || *found != row_ids[i]) {
      return wire::Error(
          absl::StatusCode::kNotFound, wire::reasons::kRowNotCached,
          absl::StrCat("row id ", row_ids[i], " at position ", i,
                       ", wanted one of the ", want.size(), " rows pulled"),
          {{"row_id", std::to_string(row_ids[i])},
           {"position", std::to_string(i)}});
    }
    slots[i] = found - want.begin();
  }
  return slots;
}

absl::StatusOr<std::unique_ptr<NgramCache>> NgramCache::Make(
    const TableInfo& table, const NgramOptions& options,
    std::unique_ptr<kernels::Backend> backend) {
  ROWHOUSE_RETURN_IF_ERROR(CheckTable(table, options));
  const NgramMetadata& pool =
      options.sign_pool.has_value() ? *options.sign_pool : *table.spec.ngram;
  ROWHOUSE_RETURN_IF_ERROR(CheckPool(pool, table.spec.dim));
  std::unique_ptr<NgramCache> cache(new NgramCache());
  cache->spec_ = table.spec;
  cache->gradient_dtype_ =
      options.gradient_dtype.value_or(table.spec.row_dtype);
  cache->cache_row_count_ = options.cache_row_count;
  cache->sign_words_ = pool.sign_words;
  cache->pool_.seed = pool.sign_seed;
  cache->pool_.row_count = pool.sign_row_count;
  if (!cache->sign_words_.empty()) {
    cache->pool_.words = cache->sign_words_.data();
  }
  cache->backend_ = std::move(backend);
  ROWHOUSE_ASSIGN_OR_RETURN(
      cache->cache_,
      cache->backend_->Allocate(options.cache_row_count * table.row_bytes()));
  return cache;
}

absl::StatusOr<std::vector<int64_t>> NgramCache::RowIds(Tokens tokens) const {
  std::vector<int64_t> row_ids(2 * tokens.size());
  ROWHOUSE_RETURN_IF_ERROR(
      backend_->NgramRowIds(tokens, spec_.row_count, row_ids));
  ROWHOUSE_RETURN_IF_ERROR(backend_->Synchronize());
  return row_ids;
}

absl::StatusOr<std::vector<int64_t>> NgramCache::WantList(
    std::span<const Tokens> steps) const {
  std::vector<int64_t> want;
  for (const Tokens& tokens : steps) {
    ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<int64_t> row_ids,
                              RowIds(tokens));
    want.insert(want.end(), row_ids.begin(), row_ids.end());
  }
  std::sort(want.begin(), want.end());
  want.erase(std::unique(want.begin(), want.end()), want.end());
  if (static_cast<int64_t>(want.size()) > cache_row_count_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a want list of ", want.size(), " rows, wanted at most ",
                     cache_row_count_, ", the cache"));
  }
  return want;
}

std::span<std::byte> NgramCache::Rows(int64_t row_count) const {
  return {cache_.as<std::byte>(), static_cast<size_t>(row_count * row_bytes())};
}

absl::Status NgramCache::Embed(Tokens tokens, std::span<const int64_t> slots,
                               std::span<std::byte> out) const {
  ROWHOUSE_RETURN_IF_ERROR(
      backend_->NgramEmbedForward(cache_.data(), ToKernel(spec_.row_dtype),
                                  spec_.dim, tokens, slots, pool_, out.data()));
  return backend_->Synchronize();
}

absl::StatusOr<std::vector<std::byte>> NgramCache::SumGradients(
    std::span<const kernels::NgramStep> steps, int64_t slot_count) const {
  std::vector<std::byte> out(slot_count * spec_.dim *
                             SizeOf(spec_.gradient_dtype));
  ROWHOUSE_RETURN_IF_ERROR(backend_->SumNgramGradients(
      steps, ToKernel(gradient_dtype_), spec_.dim, pool_, slot_count,
      ToKernel(spec_.gradient_dtype), out.data()));
  ROWHOUSE_RETURN_IF_ERROR(backend_->Synchronize());
  return out;
}

}  // namespace rowhouse::client::internal
