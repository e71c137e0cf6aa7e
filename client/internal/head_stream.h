#ifndef ROWHOUSE_CLIENT_INTERNAL_HEAD_STREAM_H_
#define ROWHOUSE_CLIENT_INTERNAL_HEAD_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "client/internal/cancellation.h"
#include "rowhouse/types.h"

namespace rowhouse::kernels {
class Backend;
}  // namespace rowhouse::kernels

namespace rowhouse::client::internal {

/// One life of a trainer on one table.
struct TrainerSession {
  int32_t rank = 0;
  int64_t session = 0;
};

/// What a head call is for.
enum class HeadPurpose : uint8_t {
  kTraining = 1,    ///< Hidden gradient, and a weight gradient as a part.
  kFrozen = 2,      ///< Hidden gradient only.
  kEvaluation = 3,  ///< Statistics only.
};

/// Opens a head call: linear cross entropy of a trainer's tokens over the rows
/// of a shard, its slice of the vocabulary.
struct HeadHeader {
  std::string_view table;
  HeadPurpose purpose = HeadPurpose::kTraining;
  TrainerSession trainer;
  int64_t event = 0;  ///< Runs on the weights of the event before it.
  int32_t part = 0;   ///< kTraining: its number in the contribution.
  int64_t token_count = 0;
  DType hidden_dtype = DType::kBf16;
  int64_t ignore_index = -100;
  int64_t dim = 0;                   ///< The table's.
  float softcap = 0.0F;              ///< 0: none.
  bool class_weights = false;        ///< `HeadTokens` has them.
  bool weighted_logit_sums = false;  ///< Are asked for; so are
  bool predicted = false;            ///< predicted rows.
  bool coefficients =
      false;  ///< `HeadMerged` has those of target and smoothing.

  int64_t hidden_row_bytes() const { return dim * SizeOf(hidden_dtype); }
  int64_t gradient_row_bytes() const { return dim * SizeOf(DType::kFp32); }
};

/// The tokens of a head call, the same on every slice; the caller's memory.
struct HeadTokens {
  std::span<const int64_t> targets;   ///< [token_count]
  std::span<const std::byte> hidden;  ///< [token_count, dim], hidden type.
  /// Of the slice's rows, if the header announces them.
  std::span<const float> class_weights = {};
  /// Whose memory `hidden` is; null: the host's.
  kernels::Backend* device = nullptr;
};

/// Statistics of a slice, by token: arrays of [token_count], the last two empty
/// if they were not asked for.
struct HeadStatisticsOut {
  std::span<float> max_logits;
  std::span<float> exp_sums;
  std::span<float> target_logits;
  std::span<float> weighted_logit_sums = {};
  std::span<int64_t> predicted = {};  ///< Row ids of the table, or -1.
};

/// What all slices together say, and the loss's gradient: arrays of
/// [token_count], the last two with `HeadHeader::coefficients` only.
struct HeadMerged {
  std::span<const float> max_logits;
  std::span<const float> exp_sums;
  std::span<const float> upstream;  ///< With coefficients, the probability's.
  std::span<const float> target = {};
  std::span<const float> smoothing = {};
  /// Whose memory the sink takes rows of too; null: the host's only.
  kernels::Backend* device = nullptr;
};

/// Rows of a hidden gradient, in the host's memory or, if it is not null, in
/// that of `device`.
struct HeadRows {
  HeadRows(std::string_view host)  // NOLINT: as good as the text.
      : bytes(host) {}
  HeadRows(const std::string& host)  // NOLINT: likewise.
      : bytes(host) {}
  HeadRows(std::string_view of_device, kernels::Backend* of)
      : bytes(of_device), device(of) {}

  std::string_view bytes;
  kernels::Backend* device = nullptr;
};

/// Takes rows of a slice's hidden gradient, [_, dim] fp32, the first of them
/// that of token `first_token`; in order, on the calling thread. A fault ends
/// the call with it.
using HeadGradientSink =
    absl::FunctionRef<absl::Status(int64_t first_token, const HeadRows& rows)>;

/// A head call that is open on one server. Its phases come once, in order; each
/// blocks until its answer, its deadline or its cancellation, and a phase that
/// failed ends the call. Destroying it before the end of `Gradient` closes it:
/// the server then stages nothing.
///
/// Thread-compatible.
class HeadStream {
 public:
  virtual ~HeadStream() = default;

  /// Sends `tokens`; fills `out` with the slice's statistics. Ends an
  /// evaluation. Errors are the server's.
  virtual absl::Status Statistics(const HeadTokens& tokens,
                                  const HeadStatisticsOut& out,
                                  const CallContext& context) = 0;

  /// Sends what the slices say together; hands the slice's hidden gradient to
  /// `sink`, and ends the call: it is OK only when the server has staged the
  /// part of a training call.
  virtual absl::Status Gradient(const HeadMerged& merged, HeadGradientSink sink,
                                const CallContext& context) = 0;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_HEAD_STREAM_H_
