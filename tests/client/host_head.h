#ifndef ROWHOUSE_TESTS_CLIENT_HOST_HEAD_H_
#define ROWHOUSE_TESTS_CLIENT_HOST_HEAD_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "rowhouse/adamw.h"
#include "rowhouse/types.h"
#include "tests/kernels/head_problem.h"
#include "tests/reference/dense_table.h"
#include "tests/reference/linear_cross_entropy.h"

namespace rowhouse::testing {

inline constexpr int64_t kIgnored = -100;

/// Tokens of a head call.
struct HostBatch {
  kernels::DType hidden_dtype = kernels::DType::kFp32;
  std::vector<float> hidden;  ///< [T, dim], representable.
  std::vector<int64_t> targets;

  int64_t token_count() const { return std::ssize(targets); }
};

/// Terms of a loss, as `HeadProblem` has them.
struct HostTerms {
  std::vector<float> class_weights;
  float softcap = 0;
  double label_smoothing = 0;
  double z_loss = 0;
  std::vector<float> z_upstream;
  bool predict = false;
};

/// Elements as the bytes of `dtype`, rounded where needed, and back.
std::vector<std::byte> EncodeBytes(kernels::DType dtype,
                                   const std::vector<float>& values);
std::vector<float> DecodeBytes(kernels::DType dtype,
                               std::span<const std::byte> bytes);

/// A dense table with its head on the host, the oracle of client tests: the
/// gradient of a head call comes from the backend's kernels, run slice by
/// slice; the optimizer and the digest are written apart from the code they
/// judge.
class HostHead {
 public:
  /// All weights zero. `bounds` are those of the slices.
  HostHead(const client::TableSpec& spec, std::vector<int64_t> bounds);

  void SetWeights(const std::vector<float>& weights) {
    table_.weights = weights;
    if (table_.has_master) table_.master = weights;
  }

  /// Adds a head call's weight gradient; `upstream` is [T].
  kernels::HeadResult AddHead(const HostBatch& batch,
                              const std::vector<float>& upstream,
                              const HostTerms& terms = {});

  /// The same of the whole vocabulary in fp64; adds nothing.
  reference::CrossEntropyResult Exact(const HostBatch& batch,
                                      const std::vector<float>& upstream,
                                      const HostTerms& terms = {}) const;

  /// Adds an embedding's gradient rows.
  void AddEmbedding(const std::vector<int64_t>& row_ids,
                    const std::vector<float>& rows);

  /// The next event, the `applied_count`-th that is applied.
  void Apply(const client::AdamWOptions& options, int applied_count,
             int divisor = 1);

  uint64_t Digest() const;  ///< Of the whole table.
  const reference::EagerDense& table() const { return table_; }

 private:
  std::vector<int64_t> bounds_;
  client::TableSpec spec_;
  std::shared_ptr<kernels::Backend> backend_;  // Copies share it.
  reference::EagerDense table_;
  std::vector<float> history_ = {0};  // beta2 by event; none of event 0.
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_CLIENT_HOST_HEAD_H_
