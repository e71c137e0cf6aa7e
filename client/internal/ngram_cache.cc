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

absl::Status NotCached(int64_t row_id, int64_t position, size_t row_count) {
  return wire::Error(
      absl::StatusCode::kNotFound, wire::reasons::kRowNotCached,
      absl::StrCat("row id ", row_id, " at position ", position,
                   ", wanted one of the ", row_count, " rows pulled"),
      {{"row_id", std::to_string(row_id)},
       {"position", std::to_string(position)}});
}

}  // namespace

absl::StatusOr<std::unique_ptr<NgramCache>> NgramCache::Make(
    const TableInfo& table, const NgramOptions& options,
    std::shared_ptr<kernels::Backend> backend) {
  ROWHOUSE_RETURN_IF_ERROR(CheckTable(table, options));
  const NgramMetadata& pool =
      options.sign_pool.has_value() ? *options.sign_pool : *table.spec.ngram;
  ROWHOUSE_RETURN_IF_ERROR(CheckPool(pool, table.spec.dim));
  std::unique_ptr<NgramCache> cache(new NgramCache());
  cache->spec_ = table.spec;
  cache->gradient_dtype_ =
      options.gradient_dtype.value_or(table.spec.row_dtype);
  cache->cache_row_count_ = options.cache_row_count;
  cache->pool_.seed = pool.sign_seed;
  cache->pool_.row_count = pool.sign_row_count;
  cache->backend_ = std::move(backend);
  if (!pool.sign_words.empty()) {
    ROWHOUSE_RETURN_IF_ERROR(
        cache->sign_words_.Assign(*cache->backend_, pool.sign_words));
    ROWHOUSE_RETURN_IF_ERROR(cache->backend_->Synchronize());
    cache->pool_.words = cache->sign_words_.data();
  }
  ROWHOUSE_ASSIGN_OR_RETURN(
      cache->cache_,
      cache->backend_->Allocate(options.cache_row_count * table.row_bytes()));
  return cache;
}

// Enqueues the row ids of `tokens`.
absl::Status NgramCache::HashTokens(Tokens tokens, NgramPlaces& places) const {
  ROWHOUSE_RETURN_IF_ERROR(places.tokens.Assign(*backend_, tokens));
  ROWHOUSE_RETURN_IF_ERROR(
      places.row_ids.Resize(*backend_, 2 * std::ssize(tokens)));
  return backend_->NgramRowIds(places.tokens.span(), spec_.row_count,
                               places.row_ids.span());
}

absl::StatusOr<std::vector<int64_t>> NgramCache::RowIds(Tokens tokens) const {
  NgramPlaces places;
  std::vector<int64_t> row_ids(2 * tokens.size());
  absl::Status hashed = HashTokens(tokens, places);
  hashed.Update(
      backend_->Copy(places.row_ids.data(), row_ids.data(),
                     static_cast<int64_t>(places.row_ids.span().size_bytes())));
  // Also after a fault: memory goes that is at work.
  hashed.Update(backend_->Synchronize());
  ROWHOUSE_RETURN_IF_ERROR(hashed);
  return row_ids;
}

absl::StatusOr<std::vector<std::vector<int32_t>>> NgramCache::HostTokens(
    std::span<const Tokens> steps) const {
  std::vector<std::vector<int32_t>> all;
  absl::Status copied;
  for (const Tokens& tokens : steps) {
    std::vector<int32_t>& step = all.emplace_back(tokens.size());
    copied.Update(backend_->Copy(tokens.data(), step.data(),
                                 static_cast<int64_t>(tokens.size_bytes())));
  }
  copied.Update(backend_->Synchronize());
  ROWHOUSE_RETURN_IF_ERROR(copied);
  return all;
}

absl::StatusOr<NgramWant> NgramCache::WantList(
    std::span<const Tokens> steps) const {
  int64_t token_count = 0;
  for (const Tokens& tokens : steps) token_count += std::ssize(tokens);
  BackendArray<int32_t> all;
  ROWHOUSE_RETURN_IF_ERROR(all.Resize(*backend_, token_count));
  NgramWant want;
  ROWHOUSE_RETURN_IF_ERROR(
      want.copy.Resize(*backend_, std::min(2 * token_count, cache_row_count_)));
  std::vector<Tokens> there;
  absl::Status listed;
  int32_t* to = all.data();
  for (const Tokens& tokens : steps) {
    listed.Update(backend_->Copy(tokens.data(), to,
                                 static_cast<int64_t>(tokens.size_bytes())));
    there.emplace_back(to, tokens.size());
    to += tokens.size();
  }
  int64_t row_count = 0;
  listed.Update(backend_->NgramWantList(there, spec_.row_count,
                                        want.copy.span(), row_count));
  // Also after a fault: memory goes that is at work.
  listed.Update(backend_->Synchronize());
  ROWHOUSE_RETURN_IF_ERROR(listed);
  if (row_count > cache_row_count_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a want list of ", row_count, " rows, wanted at most ",
                     cache_row_count_, ", the cache"));
  }
  ROWHOUSE_RETURN_IF_ERROR(want.copy.Resize(*backend_, row_count));
  want.row_ids.resize(static_cast<size_t>(row_count));
  listed = backend_->Copy(want.copy.data(), want.row_ids.data(),
                          row_count * int64_t{sizeof(int64_t)});
  listed.Update(backend_->Synchronize());
  ROWHOUSE_RETURN_IF_ERROR(listed);
  return want;
}

absl::Status NgramCache::Locate(const NgramWant& want, Tokens tokens,
                                NgramPlaces& places) const {
  int64_t missing = -1;
  absl::Status located = HashTokens(tokens, places);
  located.Update(places.slots.Resize(*backend_, 2 * std::ssize(tokens)));
  if (located.ok()) {
    located = backend_->FindSlots(want.copy.span(), places.row_ids.span(),
                                  places.slots.span(), missing);
  }
  located.Update(backend_->Synchronize());
  ROWHOUSE_RETURN_IF_ERROR(located);
  if (missing < 0) return absl::OkStatus();
  int64_t row_id = 0;
  ROWHOUSE_RETURN_IF_ERROR(
      backend_->Copy(places.row_ids.data() + missing, &row_id, sizeof(row_id)));
  ROWHOUSE_RETURN_IF_ERROR(backend_->Synchronize());
  return NotCached(row_id, missing, want.row_ids.size());
}

std::span<std::byte> NgramCache::Rows(int64_t row_count) const {
  return {cache_.as<std::byte>(), static_cast<size_t>(row_count * row_bytes())};
}

absl::Status NgramCache::Embed(const NgramPlaces& places,
                               std::span<std::byte> out) {
  const int64_t size_bytes = std::ssize(out);
  // Where the backend's memory is the host's, so is all other.
  ROWHOUSE_ASSIGN_OR_RETURN(
      const bool on_device,
      backend_->IsDeviceMemory(cache_.data(), cache_.size_bytes()));
  ROWHOUSE_ASSIGN_OR_RETURN(const bool out_on_device,
                            backend_->IsDeviceMemory(out.data(), size_bytes));
  std::byte* to = out.data();
  if (on_device != out_on_device) {
    ROWHOUSE_RETURN_IF_ERROR(embedded_.Resize(*backend_, size_bytes));
    to = embedded_.data();
  }
  absl::Status embedded = backend_->NgramEmbedForward(
      cache_.data(), ToKernel(spec_.row_dtype), spec_.dim, places.tokens.span(),
      places.slots.span(), pool_, to);
  if (to != out.data()) {
    embedded.Update(backend_->Copy(to, out.data(), size_bytes));
  }
  embedded.Update(backend_->Synchronize());
  return embedded;
}

absl::Status NgramCache::Hold(std::span<const std::byte> gradient,
                              BackendArray<std::byte>& to) const {
  ROWHOUSE_RETURN_IF_ERROR(to.Assign(*backend_, gradient));
  return backend_->Synchronize();
}

absl::StatusOr<std::span<const std::byte>> NgramCache::SumGradients(
    std::span<const kernels::NgramStep> steps, int64_t slot_count) {
  ROWHOUSE_RETURN_IF_ERROR(sums_.Resize(
      *backend_, slot_count * spec_.dim * SizeOf(spec_.gradient_dtype)));
  ROWHOUSE_RETURN_IF_ERROR(backend_->SumNgramGradients(
      steps, ToKernel(gradient_dtype_), spec_.dim, pool_, slot_count,
      ToKernel(spec_.gradient_dtype), sums_.data()));
  ROWHOUSE_RETURN_IF_ERROR(backend_->Synchronize());
  return sums_.span();
}

}  // namespace rowhouse::client::internal
