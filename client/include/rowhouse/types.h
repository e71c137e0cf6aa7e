#ifndef ROWHOUSE_TYPES_H_
#define ROWHOUSE_TYPES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/time/time.h"

namespace rowhouse::client {

/// Element types of rows and gradients; little-endian in memory.
enum class DType : uint8_t {
  kBf16 = 1,  ///< bfloat16: the upper half of an IEEE binary32.
  kFp32 = 2,  ///< IEEE binary32.
  /// IEEE binary16. Hidden states of a language-model head only: servers refuse
  /// it for rows and gradients.
  kFp16 = 3,
};

/// Bytes of one element.
constexpr int64_t SizeOf(DType dtype) { return dtype == DType::kFp32 ? 4 : 2; }

/// What becomes of gradients that are not finite.
enum class NonFinitePolicy : uint8_t {
  kReject = 1,     ///< A push that holds one is refused as a whole.
  kSkipRow = 2,    ///< It lands; a row whose update is not finite stays as is.
  kPropagate = 3,  ///< It is applied like any other value.
};

/// How the gradients of several trainers combine.
enum class GradientReduction : uint8_t {
  kSum = 1,   ///< The sum over trainers.
  kMean = 2,  ///< The sum divided by the trainer count of the event.
};

/// How the rows of a new table begin.
struct Initializer {
  enum class Kind : uint8_t { kZeros = 1, kUniform = 2 };
  Kind kind = Kind::kZeros;
  uint64_t seed = 0;   ///< kUniform: of the hash that gives the values.
  float bound = 0.0F;  ///< kUniform: values lie in (-bound, bound); above 0.

  friend bool operator==(const Initializer&, const Initializer&) = default;
};

/// Metadata of an n-gram table; it changes nothing on the server.
struct NgramMetadata {
  uint64_t sign_seed = 0;
  int32_t sign_row_count = 8192;  ///< A power of two in [1, 2^20].
  /// A pool of its own in place of the seed's, or empty: [sign_row_count,
  /// ceil(dim / 64)] words; bit `j % 64` of word `j / 64` is set for -1.
  std::vector<uint64_t> sign_words;

  friend bool operator==(const NgramMetadata&, const NgramMetadata&) = default;
};

/// What a dense table has beyond a sparse one: it is updated whole at each
/// event by AdamW. It serves a token embedding, a language-model head, or both
/// tied.
struct DenseTableSpec {
  DType main_grad_dtype = DType::kFp32;  ///< Of the gradient buffer.
  bool has_master = false;  ///< Keeps an fp32 master of the weights.
  bool has_bias = false;    ///< Each row has an fp32 bias, updated with it.
  /// Most tokens of head calls of one trainer in one event, and so of one call;
  /// 0 for a table without a head. Each shard reserves memory for them.
  int64_t max_head_token_count = 0;

  friend bool operator==(const DenseTableSpec&,
                         const DenseTableSpec&) = default;
};

/// What a table is: sparse, with rows that row Adam updates when they have
/// gradients, or dense. Equal specs describe the same table. Servers check the
/// values.
struct TableSpec {
  int64_t row_count = 0;  ///< Of the whole table.
  int64_t dim = 0;        ///< Elements of a row.
  DType row_dtype = DType::kBf16;
  DType gradient_dtype = DType::kBf16;  ///< Of pushed rows.
  int32_t shard_count = 1;              ///< On servers 0 .. shard_count - 1.
  /// Explicit row ranges: `shard_count + 1` ascending values from 0 to
  /// `row_count`. Empty: as even as whole rows allow.
  std::vector<int64_t> shard_bounds;
  Initializer initializer;
  int32_t trainer_count = 1;  ///< For event 1; `Cluster::UpdateTrainerCount`.
  /// Required: averaging is never silent.
  std::optional<GradientReduction> gradient_reduction = std::nullopt;
  NonFinitePolicy non_finite_policy = NonFinitePolicy::kReject;
  /// Most gradient rows of one trainer in one event on one shard; each shard
  /// reserves memory for them. Too few: pushes end kResourceExhausted.
  int64_t max_contribution_row_count = 0;
  int32_t max_part_count = 1;  ///< Most parts of one trainer in one event.
  /// Most bytes of rows of one pull call; 0: 64 MiB. Bigger pulls are split;
  /// each shard reserves twice as much a trainer.
  int64_t max_pull_bytes = 0;
  std::optional<NgramMetadata> ngram = std::nullopt;
  std::optional<DenseTableSpec> dense = std::nullopt;  ///< Not set: sparse.

  friend bool operator==(const TableSpec&, const TableSpec&) = default;
};

/// A trainer count from an event on.
struct TrainerCountChange {
  int64_t from_event = 0;
  int32_t trainer_count = 0;

  friend bool operator==(const TrainerCountChange&,
                         const TrainerCountChange&) = default;
};

/// One shard of a table: rows [first_row, end_row).
struct TableShard {
  std::string address;
  int64_t first_row = 0;
  int64_t end_row = 0;
  int64_t event = 0;  ///< The last event applied on it.
  int64_t reserved_bytes = 0;
};

/// A table as its shards see it.
struct TableInfo {
  std::string name;
  TableSpec spec;
  std::vector<TableShard> shards;
  int64_t event = 0;  ///< Applied on every shard.
  /// By event, ascending; the first is from event 1.
  std::vector<TrainerCountChange> trainer_counts;

  int64_t row_bytes() const { return spec.dim * SizeOf(spec.row_dtype); }
  int64_t gradient_row_bytes() const {
    return spec.dim * SizeOf(spec.gradient_dtype);
  }
};

/// Equal digests mean equal weights, optimizer state, event count and history.
struct TableDigest {
  uint64_t digest = 0;
  int64_t event = 0;  ///< The event it reflects.

  friend bool operator==(const TableDigest&, const TableDigest&) = default;
};

/// Scalars of one row-Adam event, of a sparse table. `RowAdamSchedule` computes
/// them.
struct RowAdamScalars {
  double step_size = 0;  ///< lr * sqrt(1 - beta2^n), n counts applied events.
  double decay = 0;      ///< Factor of the cautious weight decay.
  double beta2 = 0;      ///< In [0, 1).
  double eps = 0;        ///< At least 0.
  double gradient_scale = 1;  ///< Factor on every gradient: clipping, 1 / loss
                              ///< scale.

  friend bool operator==(const RowAdamScalars&,
                         const RowAdamScalars&) = default;
};

/// Scalars of one AdamW event, of a dense table. `MakeAdamWScalars` computes
/// the bias corrections.
struct AdamWScalars {
  double learning_rate = 0;
  double weight_decay = 0;      ///< Decoupled: a row loses lr * wd of itself.
  double beta1 = 0;             ///< In [0, 1).
  double beta2 = 0;             ///< In [0, 1).
  double eps = 0;               ///< At least 0.
  double bias_correction1 = 1;  ///< 1 - beta1^n, n counts applied events.
  double bias_correction2 = 1;  ///< 1 - beta2^n.
  double gradient_scale = 1;  ///< Factor on every gradient: clipping, 1 / loss
                              ///< scale.

  friend bool operator==(const AdamWScalars&, const AdamWScalars&) = default;
};

/// The event advances and changes nothing else; it is not an applied event.
struct SkipEvent {
  friend bool operator==(const SkipEvent&, const SkipEvent&) = default;
};

/// What an event is to do: a skip, or the scalars of the table's kind.
using EventUpdate = std::variant<SkipEvent, RowAdamScalars, AdamWScalars>;

/// Statistics of an event's merged gradient (the sum over all trainers), the
/// same bits for any number of shards.
struct GradientStatistics {
  /// Of all elements of finite rows: the exact sum of the rows' fp32 sums of
  /// squares, rounded once, ties to even.
  double sum_of_squares = 0;
  /// Distinct rows with gradients; of a dense table all rows, and each bias as
  /// a row of its own.
  int64_t row_count = 0;
  int64_t non_finite_row_count = 0;  ///< Of these, in no sum.
};

/// What a server's tables lie on.
struct Device {
  std::string description;   ///< What it is and runs, for people.
  int32_t index = 0;         ///< Of a GPU, among those that the server sees.
  int64_t memory_bytes = 0;  ///< 0: it does not tell.
  int64_t free_memory_bytes = 0;
};

/// What a server says of itself.
struct ServerInfo {
  std::string address;
  std::string cluster_id;
  int32_t server_index = 0;  ///< In [0, server_count).
  int32_t server_count = 0;
  int64_t incarnation = 0;  ///< Random, new at every start of the process.
  bool draining = false;
  int64_t max_pull_row_count = 0;
  int64_t max_message_payload_bytes = 0;
  absl::Duration max_wait;  ///< Longest wait for an event in one call.
  int64_t memory_limit_bytes = 0;
  int64_t reserved_bytes = 0;
  std::string backend;
  std::string version;
  Device device = {};
};

/// For every call: how long it may take in all, with its retries.
struct CallOptions {
  absl::Duration timeout = absl::Seconds(60);
};

}  // namespace rowhouse::client

#endif  // ROWHOUSE_TYPES_H_
