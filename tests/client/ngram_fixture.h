#ifndef ROWHOUSE_TESTS_CLIENT_NGRAM_FIXTURE_H_
#define ROWHOUSE_TESTS_CLIENT_NGRAM_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "client/internal/ngram_core.h"
#include "kernels/cpu/cpu_backend.h"
#include "rowhouse/ngram_embedding.h"
#include "tests/client/ngram_oracle.h"
#include "tests/client/trainer_fixture.h"

namespace rowhouse::client {

using TokenList = std::vector<int32_t>;
using rowhouse::testing::NgramOracle;

inline std::unique_ptr<kernels::Backend> TestBackend() {
  return kernels::cpu::MakeCpuBackend(
      kernels::cpu::MakeThreadExecutor(/*thread_count=*/2));
}

inline std::vector<Tokens> Views(const std::vector<TokenList>& steps) {
  return {steps.begin(), steps.end()};
}

/// Table `t`: 64 rows of 4 fp32 on 3 servers; an event follows odd steps.
class NgramTest : public TrainerTest {
 protected:
  static constexpr int64_t kRowCount = 64;
  static constexpr uint64_t kSignSeed = 5;
  static constexpr int32_t kSignRowCount = 16;

  static TableSpec NgramSpec(int32_t trainer_count = 1) {
    TableSpec spec = Spec(trainer_count);
    spec.row_count = kRowCount;
    spec.dim = NgramOracle::kDim;
    spec.ngram = NgramMetadata{kSignSeed, kSignRowCount, {}};
    return spec;
  }

  static RowAdamScalars Scalars() {
    return {.step_size = 0.1, .decay = 0.01, .beta2 = 0.95, .eps = 1e-10};
  }

  static std::unique_ptr<NgramEmbedding> MakeEmbedding(
      Trainer& trainer, const NgramOptions& options = {}) {
    auto embedding =
        internal::MakeNgramEmbedding(trainer, options, TestBackend());
    EXPECT_THAT(embedding, rowhouse::testing::IsOk());
    return embedding.ok() ? *std::move(embedding) : nullptr;
  }

  /// [T][4].
  static absl::StatusOr<NgramOracle::Rows> Embed(NgramEmbedding& embedding,
                                                 const TokenList& tokens) {
    std::vector<float> out(tokens.size() * NgramOracle::kDim, -99);
    ROWHOUSE_RETURN_IF_ERROR(
        embedding.Embed(tokens, std::as_writable_bytes(std::span(out))));
    NgramOracle::Rows rows;
    for (size_t t = 0; t < tokens.size(); ++t) {
      rows.emplace_back(out.begin() + t * NgramOracle::kDim,
                        out.begin() + (t + 1) * NgramOracle::kDim);
    }
    return rows;
  }

  static absl::Status Accumulate(NgramEmbedding& embedding,
                                 const TokenList& tokens,
                                 const NgramOracle::Rows& gradient) {
    std::vector<float> flat;
    for (const auto& row : gradient) {
      flat.insert(flat.end(), row.begin(), row.end());
    }
    return embedding.AccumulateGradient(tokens, std::as_bytes(std::span(flat)));
  }

  /// A loss's gradient: depends on what was embedded.
  static NgramOracle::Rows Gradient(const NgramOracle::Rows& embedded,
                                    float bias) {
    NgramOracle::Rows gradient = embedded;
    for (size_t t = 0; t < gradient.size(); ++t) {
      for (size_t j = 0; j < gradient[t].size(); ++j) {
        gradient[t][j] = gradient[t][j] * 0.5F + bias +
                         static_cast<float>(t) * 0.125F -
                         static_cast<float>(j) * 0.3F;
      }
    }
    return gradient;
  }

  /// Embeds a step and hands in its gradient.
  static absl::Status Step(NgramEmbedding& embedding, const TokenList& tokens,
                           float bias) {
    ROWHOUSE_ASSIGN_OR_RETURN(const NgramOracle::Rows embedded,
                              Embed(embedding, tokens));
    return Accumulate(embedding, tokens, Gradient(embedded, bias));
  }
};

}  // namespace rowhouse::client

#endif  // ROWHOUSE_TESTS_CLIENT_NGRAM_FIXTURE_H_
