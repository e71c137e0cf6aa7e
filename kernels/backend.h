#ifndef ROWHOUSE_KERNELS_BACKEND_H_
#define ROWHOUSE_KERNELS_BACKEND_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/buffer.h"
#include "kernels/cpu_isa.h"
#include "kernels/dense_table.h"
#include "kernels/dtype.h"
#include "kernels/hash.h"
#include "kernels/host_pieces.h"
#include "kernels/linear_cross_entropy.h"
#include "kernels/ngram.h"
#include "kernels/row_table.h"
#include "kernels/shared_memory.h"

namespace rowhouse::kernels {

/// How a new table's rows begin.
struct Initializer {
  enum class Kind : uint8_t { kZeros = 1, kUniform = 2 };
  Kind kind = Kind::kZeros;
  uint64_t seed = 0;   ///< kUniform.
  float bound = 0.0F;  ///< kUniform: values in (-bound, bound); see hash.h.

  friend bool operator==(const Initializer&, const Initializer&) = default;
};

/// Memory of the device that a backend runs on.
struct MemoryState {
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;  ///< Of any program.
};

/// The largest calls that a table will ask for, by what they take of scratch
/// memory.
struct ScratchNeeds {
  int64_t dim = 0;
  int64_t entry_count = 0;  ///< Of all parts of an event, or of one embedding.
  int64_t slot_count = 0;   ///< Of rows gathered or brought current.
  int64_t host_bytes = 0;   ///< Of rows gathered to host memory.
  /// A dense table's head: its rows, by their count, dtype and bias.
  std::optional<HeadSlice> head = std::nullopt;
  int64_t token_count = 0;  ///< Of one call of the head.
  HeadBlocks blocks = {};
};

/// Runs the numeric work of shards and of clients on one device.
///
/// Every operation gives bits that depend on its arguments alone: not on the
/// backend, the number of threads, or what ran before (the orders of all sums
/// are in arithmetic.h); only the head's GEMMs sum in an order of the backend's
/// own, which repeats on one device with one library. Sizes of zero are valid
/// everywhere.
///
/// All pointers, those of slots too, are memory of this backend, unless said
/// otherwise. Arguments are checked by the caller (the service or the client
/// library); operations state what they require.
///
/// A thread's calls run in call order and may return before their work is done
/// and their results are written; `Synchronize` waits for those of its thread.
/// Data passed to a call must stay valid, and with its thread, until then.
///
/// Thread-safe: different threads may call at once on different data.
class Backend {
 public:
  virtual ~Backend() = default;

  /// What it is and runs on, for people: "cpu, avx512 code, OpenBLAS ...".
  /// Equal texts stand for equal bits of the head's GEMMs.
  virtual std::string Description() const = 0;

  /// Allocates zeroed memory, aligned to 256 bytes. Pages are not touched:
  /// where the system gives memory lazily, unused pages cost nothing.
  ///
  /// Errors:
  ///   kResourceExhausted  there is too little memory; names the bytes.
  virtual absl::StatusOr<Buffer> Allocate(int64_t size_bytes) = 0;

  /// The same, but not zeroed: for what is overwritten anyway.
  virtual absl::StatusOr<Buffer> AllocateUninitialized(int64_t size_bytes) = 0;

  /// Allocates host memory, aligned to 256 bytes and not initialized, that the
  /// device copies to and from by itself: for rows on their way to the wire.
  ///
  /// Errors:
  ///   kResourceExhausted  there is too little memory; names the bytes.
  virtual absl::StatusOr<Buffer> AllocateHost(int64_t size_bytes) = 0;

  /// Memory of the device, as it is now. Errors: kInternal.
  virtual absl::StatusOr<MemoryState> Memory() = 0;

  /// Takes `size_bytes` more from the device, so that `Allocate` finds them
  /// whatever others take: buffers of so many bytes in all, each rounded up to
  /// 256, unless freed ones lie between them so that none has room. Where the
  /// system gives memory lazily, nothing is taken.
  ///
  /// Errors:
  ///   kResourceExhausted  there is too little memory; names the bytes.
  virtual absl::Status SetAside(int64_t size_bytes) = 0;

  /// Gives back what was set aside, once no buffer lies there.
  virtual void GiveBack(int64_t size_bytes) = 0;

  /// Takes the scratch memory of such calls of this thread; without it they
  /// take it when they come.
  ///
  /// Errors:
  ///   kResourceExhausted  there is too little memory; names the bytes. The
  ///                       thread keeps what it had.
  virtual absl::Status ReserveScratch(const ScratchNeeds& needs) = 0;

  /// Copies; either side may be host memory or this backend's.
  virtual absl::Status Copy(const void* from, void* to, int64_t size_bytes) = 0;

  /// Whether memory is the device's, which only this backend's operations may
  /// touch; else it is the host's, as all of a CPU's is.
  ///
  /// Errors:
  ///   kInvalidArgument  it is another device's, or this one's only in part.
  virtual absl::StatusOr<bool> IsDeviceMemory(const void* data,
                                              int64_t size_bytes) = 0;

  /// Waits for the thread's earlier calls and reports an error among them.
  virtual absl::Status Synchronize() = 0;

  // --------------------------------------------------------- shared memory --
  //
  // Memory of the server's process that other processes of the same host and
  // the same user map into their own, and read or write there without asking
  // it.

  /// `Allocate` of memory that can be shared. It keeps to what was set aside.
  virtual absl::StatusOr<Buffer> AllocateShared(int64_t size_bytes) = 0;

  /// Names a buffer of `AllocateShared` to other processes. They must have
  /// unmapped it before it is freed.
  ///
  /// Errors: kInternal.
  virtual absl::StatusOr<SharedMemory> Share(const Buffer& buffer) = 0;

  /// Maps memory that a backend of this kind named in another process of the
  /// host; freeing the buffer unmaps it. What is named may have gone, and the
  /// name may be anything.
  ///
  /// Errors:
  ///   kInvalidArgument    the name is none of this kind of backend.
  ///   kNotFound           it names no memory that this process can reach.
  virtual absl::StatusOr<Buffer> Map(const SharedMemory& memory,
                                     MapAccess access) = 0;

  /// Sets a word of shared memory: other processes see the new value before
  /// anything that later calls of this thread write.
  virtual absl::Status StoreEpoch(int64_t* epoch, int64_t value) = 0;

  /// Reads a word of shared memory, after all that earlier calls of this thread
  /// read: where they saw something that was written after `StoreEpoch`,
  /// `value` is what that stored, or newer.
  virtual absl::Status LoadEpoch(const int64_t* epoch, int64_t& value) = 0;

  // ------------------------------------------------------------ sparse rows --

  /// Sets every weight, second moment and last event of `table` to its start.
  /// The memory must be fresh from `Allocate` or be fully overwritten anyway:
  /// kZeros on memory fresh from `Allocate` touches no page.
  virtual absl::Status InitializeRows(const RowTable& table,
                                      const Initializer& initializer,
                                      bool fresh) = 0;

  /// `out[i, :] = table[slots[i], :]`, [slots.size(), dim] of the table's
  /// dtype; `slots` and `out` may be the host's. Moves 2 * slots.size() *
  /// row_bytes.
  virtual absl::Status GatherRows(const RowTable& table,
                                  std::span<const int64_t> slots,
                                  void* out) = 0;

  /// `out[positions[i], :] = table[slots[i], :]`; `slots` and `positions` may
  /// be the host's. Moves as much as `GatherRows`, and the positions.
  ///
  /// REQUIRES: there is a position for each slot, and they are distinct.
  virtual absl::Status GatherRowsTo(const RowTable& table,
                                    std::span<const int64_t> slots,
                                    std::span<const int64_t> positions,
                                    void* out) = 0;

  /// `out[positions[i], :] = rows[i, :]`, or `out[i, :]` where there are no
  /// positions: whole rows of `row_bytes` in host memory cut anywhere, which
  /// may go as soon as the call returns. `positions` may be the host's, and go
  /// likewise. `out`, and so `row_bytes`, is aligned to 2 bytes.
  ///
  /// REQUIRES: `positions` is empty or has a distinct one for each row.
  virtual absl::Status PlaceRows(const HostPieces& rows, int64_t row_bytes,
                                 std::span<const int64_t> positions,
                                 void* out) = 0;

  /// `table[first_slot + i, :] = rows[i, :]` for `i < row_count`; `rows` may be
  /// the host's. Touches weights only.
  virtual absl::Status WriteRows(const RowTable& table, int64_t first_slot,
                                 int64_t row_count, const void* rows) = 0;

  /// Merges the parts of `event` and applies it: per row, the run-sum of its
  /// entries over (part order, position), then row Adam, in one pass.
  ///
  /// Under kReject and kSkipRow a row keeps all its bits (weights, second
  /// moment, last event) when its merged sum, mean square, new second moment
  /// or any new weight is not finite; `report` counts it.
  ///
  /// Costs follow the entries: 2D an entry + (4D + 16) bytes a row at bf16.
  virtual absl::Status ApplyRowAdamEvent(const RowTable& table,
                                         const RowAdamEvent& event,
                                         EventReport& report) = 0;

  /// Replays the second moment of rows `slots`, which may be the host's, up to
  /// the newest event. Changes no bit that `Digest` or a later event can see.
  ///
  /// REQUIRES: `slots` are distinct.
  virtual absl::Status BringCurrent(const RowTable& table,
                                    const Beta2History& history,
                                    std::span<const int64_t> slots) = 0;

  /// Statistics of the merged gradient of `parts`, as an event would merge
  /// them. Reads no row of the table. Adds to `statistics`.
  virtual absl::Status MergedStatistics(std::span<const GradientPart> parts,
                                        int64_t dim, DType gradient_dtype,
                                        GradientStatistics& statistics) = 0;

  /// Sum of `RowDigest` over the table's rows, second moments as if current.
  virtual absl::Status Digest(const RowTable& table,
                              const Beta2History& history, uint64_t& sum) = 0;

  // ------------------------------------------------------------ dense tables
  // --

  /// Sets a dense table to its start: the master, where there is one, to the
  /// initial values and the weights to their rounding; moments, bias and
  /// gradients to zero. `fresh` as for `InitializeRows`.
  virtual absl::Status InitializeDense(const DenseTable& table,
                                       const Initializer& initializer,
                                       bool fresh) = 0;

  /// `weights[first_slot + i, :] = rows[i, :]` for `i < row_count`; `rows` are
  /// of the table's dtype and may be the host's. A master takes the same
  /// values.
  virtual absl::Status WriteDenseRows(const DenseTable& table,
                                      int64_t first_slot, int64_t row_count,
                                      const void* rows) = 0;

  /// Sets main_grad and the bias gradient to +0.
  virtual absl::Status ClearMainGrad(const DenseTable& table) = 0;

  /// Adds one part to `main_grad`: per row, the run-sum of its entries in
  /// order, rounded once to the gradient dtype, then one fp32 add and one
  /// rounding: `main = RNE(fl32(main + r))`. Other rows are neither read nor
  /// written.
  ///
  /// Moves 2H or 4H bytes an entry and twice a main_grad row a distinct slot.
  virtual absl::Status AccumulateEmbeddingGradient(
      const MainGrad& main_grad, const EmbeddingGradient& gradient) = 0;

  /// Applies one AdamW event (`UpdateAdamW`) to every row and its bias, and
  /// clears main_grad and the bias gradient in the same pass. Without a master
  /// weights are widened, updated and rounded once; with one it is updated and
  /// the weights are its rounding.
  ///
  /// Under kReject and kSkipRow a row (weights, master, moments and bias) keeps
  /// all its bits when any gradient or new value of it is not finite; `report`
  /// counts it, and its gradients are cleared all the same.
  virtual absl::Status ApplyAdamW(const DenseTable& table,
                                  const AdamWFactors& factors,
                                  NonFinitePolicy policy,
                                  EventReport& report) = 0;

  /// Statistics of main_grad as it stands, row by row; a bias gradient enters
  /// as a row of one column. Adds to `statistics`.
  virtual absl::Status DenseStatistics(const DenseTable& table,
                                       GradientStatistics& statistics) = 0;

  /// Sum of `DenseRowDigest` over the table's rows.
  virtual absl::Status DenseDigest(const DenseTable& table, uint64_t& sum) = 0;

  // ----------------------------------------------------------------- LM head
  // --
  //
  // Products are formed in the compute type (`ComputeType`) and summed in fp32;
  // those of fp32 may leave out 2^-21 of themselves, infinite operands may give
  // NaN, and subnormals 0.
  // Scratch follows `blocks` and dim, never tokens x rows or rows x dim. Rows
  // of the result do not depend on the number of threads.

  /// Per token, over the slice's fp32 logits `hidden x W^T + bias`, capped
  /// where it has a softcap: the maximum, the sum of exponentials and the
  /// target's logit; and what else `statistics` has room for. A NaN logit makes
  /// the sum NaN.
  ///
  /// 2 * tokens * rows * dim FLOPs.
  virtual absl::Status HeadTokenStatistics(
      const HeadSlice& slice, const HeadInputs& inputs,
      const HeadBlocks& blocks, const HeadStatistics& statistics) = 0;

  /// The same; and leaves in `kept` what may spare `KeptHeadHiddenGradient` and
  /// `HeadGradients` the logits, of as many blocks of rows as it has room for
  /// (`HeadKept`: aligned to 256, and of `least_bytes` or more unless it is
  /// empty). A backend may leave nothing.
  virtual absl::Status KeepHeadTokenStatistics(
      const HeadSlice& slice, const HeadInputs& inputs,
      const HeadBlocks& blocks, std::span<std::byte> kept,
      const HeadStatistics& statistics) {
    (void)kept;
    return HeadTokenStatistics(slice, inputs, blocks, statistics);
  }

  /// This slice's share of the hidden gradient, [token_count, dim] in fp32,
  /// written, not added: `p x W`, where
  /// `p = e^(logit - max) * (probability / exp_sum)`, less `smoothing * class
  /// weight`, then less `target` at the target, then times the softcap's
  /// derivative `1 - tanh^2`, all in fp32, then rounded once to the compute
  /// type. Vocabulary blocks are summed in order. Where the compute type is
  /// bf16 and the slice has neither bias nor softcap, `e^(logit - max)` of
  /// others than the target may be off by 2^-10 * ln 2 of itself.
  ///
  /// A token whose coefficients are all 0 is left out: its row is +0 whatever
  /// its hidden holds.
  ///
  /// Where `kept` is not empty `p` stays there for `HeadWeightGradient`, of as
  /// many blocks of rows as it has room for.
  ///
  /// 4 * tokens * rows * dim FLOPs.
  virtual absl::Status HeadHiddenGradient(const HeadSlice& slice,
                                          const HeadInputs& inputs,
                                          const HeadMerged& merged,
                                          const HeadBlocks& blocks,
                                          std::span<std::byte> kept,
                                          float* hidden_gradient) = 0;

  /// The same bits from `kept` as `KeepHeadTokenStatistics` left it with the
  /// same arguments; `p` takes its place.
  ///
  /// 2 * tokens * rows * dim FLOPs where the logits were kept.
  virtual absl::Status KeptHeadHiddenGradient(const HeadSlice& slice,
                                              const HeadInputs& inputs,
                                              const HeadMerged& merged,
                                              const HeadBlocks& blocks,
                                              std::span<std::byte> kept,
                                              float* hidden_gradient) {
    return HeadHiddenGradient(slice, inputs, merged, blocks, kept,
                              hidden_gradient);
  }

  /// Adds the slice's weight gradient to `main_grad`: `p^T x hidden`, token
  /// blocks in order, by GEMMs that accumulate: straight into an fp32
  /// main_grad; for other types through an fp32 copy of some rows, rounded once
  /// a call. Adds the column sums of `p` before its rounding to `bias_grad`,
  /// which is null where the slice has no bias.
  ///
  /// `p` comes from `kept`, filled by `HeadHiddenGradient` with the same
  /// arguments, or where that has no room is formed again: the same bits. Tokens
  /// whose coefficients are 0 are left out; without any other, no bit changes.
  ///
  /// 4 * tokens * rows * dim FLOPs; 2 * ... with `kept`.
  virtual absl::Status HeadWeightGradient(const HeadSlice& slice,
                                          const HeadInputs& inputs,
                                          const HeadMerged& merged,
                                          const HeadBlocks& blocks,
                                          std::span<const std::byte> kept,
                                          const MainGrad& main_grad,
                                          float* bias_grad) = 0;

  /// Hidden and weight gradient at once, the same bits as one after the other.
  /// `kept` is empty, or as `KeepHeadTokenStatistics` left it.
  ///
  /// 6 * tokens * rows * dim FLOPs; 4 * ... where the logits were kept.
  virtual absl::Status HeadGradients(
      const HeadSlice& slice, const HeadInputs& inputs,
      const HeadMerged& merged, const HeadBlocks& blocks,
      std::span<std::byte> kept, float* hidden_gradient,
      const MainGrad& main_grad, float* bias_grad) {
    absl::Status formed = KeptHeadHiddenGradient(slice, inputs, merged, blocks,
                                                 kept, hidden_gradient);
    if (!formed.ok()) return formed;
    return HeadWeightGradient(slice, inputs, merged, blocks, kept, main_grad,
                              bias_grad);
  }

  // ---------------------------------------------------------------- landing --

  /// Copies `row_count` rows of `dim` elements from `from`, host memory
  /// cut anywhere or one piece of the device's, to `to`, adds their content to
  /// `content` (`RowContent`, the first row being at `first_position` of its
  /// part) and looks for the first element that is not finite: one pass.
  /// `scan.non_finite_row` is relative to `from`.
  virtual absl::Status LandRows(const HostPieces& from, void* to,
                                int64_t row_count, int64_t dim, DType dtype,
                                int64_t first_position, ContentSum& content,
                                RowScan& scan) = 0;

  /// The same of rows in one piece.
  absl::Status LandRows(const void* from, void* to, int64_t row_count,
                        int64_t dim, DType dtype, int64_t first_position,
                        ContentSum& content, RowScan& scan) {
    const auto size = static_cast<size_t>(row_count * dim * SizeOf(dtype));
    return LandRows(std::string_view(static_cast<const char*>(from), size), to,
                    row_count, dim, dtype, first_position, content, scan);
  }

  // ----------------------------------------------------------------- floats --

  /// `to[i] += from[i]` for `i < count`, each one fp32 addition.
  virtual absl::Status AddFloats(const float* from, float* to,
                                 int64_t count) = 0;

  /// `to[i]` becomes `from[i]`, rounded once to `dtype`, to nearest even, a NaN
  /// to the canonical one; kFp32 keeps all bits.
  virtual absl::Status NarrowFloats(const float* from, int64_t count,
                                    DType dtype, void* to) = 0;

  // ----------------------------------------------------------------- n-gram --

  /// Row ids of the n-gram table for `tokens`: [2T], T bigram ids, then T
  /// trigram ids. T = 0 gives none; T = 1 the two reserved ids.
  ///
  /// REQUIRES: `4 <= table_row_count < 2^31`.
  virtual absl::Status NgramRowIds(std::span<const int32_t> tokens,
                                   int64_t table_row_count,
                                   std::span<int64_t> row_ids) = 0;

  /// The row ids of all `steps`, each step's as `NgramRowIds` has them, every
  /// id once and in order: `want` takes as many of them as it has room for,
  /// `want_count` says how many there are.
  ///
  /// CUDA: reads 12 bytes a token, writes 8 an id, and clears and reads a bit a
  /// row of the table, which are scratch memory.
  ///
  /// REQUIRES: `4 <= table_row_count < 2^31`.
  virtual absl::Status NgramWantList(
      std::span<const std::span<const int32_t>> steps, int64_t table_row_count,
      std::span<int64_t> want, int64_t& want_count) = 0;

  /// `slots[i]` becomes the place of `row_ids[i]` in the sorted, distinct
  /// `want`; `first_missing` the least `i` whose id is not there, or -1.
  virtual absl::Status FindSlots(std::span<const int64_t> want,
                                 std::span<const int64_t> row_ids,
                                 std::span<int64_t> slots,
                                 int64_t& first_missing) = 0;

  /// `out[t] = bf16or32(cache[slots[t]]*S[b] + cache[slots[T+t]]*S[t])`, one
  /// rounding to `dtype`. `cache` is [_, dim], `out` [T, dim], both `dtype`.
  virtual absl::Status NgramEmbedForward(const void* cache, DType dtype,
                                         int64_t dim,
                                         std::span<const int32_t> tokens,
                                         std::span<const int64_t> slots,
                                         const SignPool& pool, void* out) = 0;

  /// Row gradient of the embedding: `row_gradient[t] = gradient[t]*S[b]`,
  /// `row_gradient[T+t] = gradient[t]*S[t]`; sign flips only, exact.
  virtual absl::Status NgramEmbedBackward(const void* gradient, DType dtype,
                                          int64_t dim,
                                          std::span<const int32_t> tokens,
                                          const SignPool& pool,
                                          void* row_gradient) = 0;

  /// Sums the row gradients of a cycle per slot: the run-sum in fp32 over
  /// (step, position in [0, 2T)), rounded once to `wire_dtype`. `out` is
  /// [slot_count, dim]; slots without an entry become +0. The row gradients are
  /// formed on the fly, exactly as `NgramEmbedBackward` gives them.
  virtual absl::Status SumNgramGradients(std::span<const NgramStep> steps,
                                         DType gradient_dtype, int64_t dim,
                                         const SignPool& pool,
                                         int64_t slot_count, DType wire_dtype,
                                         void* out) = 0;
};

enum class BackendKind : uint8_t { kCpu = 1, kCuda = 2 };

struct BackendOptions {
  BackendKind kind = BackendKind::kCpu;
  int device_index = 0;  ///< kCuda.
  /// kCpu: threads of the backend's pool; 0 takes one per core.
  int thread_count = 0;
  /// kCpu: `ChooseCpuIsa` takes it.
  std::optional<CpuIsa> cpu_isa = std::nullopt;
};

/// Makes a backend.
///
/// Errors:
///   kUnimplemented    this build has no such backend.
///   kNotFound         there is no such device, or the CPU has not `cpu_isa`.
///   kInvalidArgument  an option, or ROWHOUSE_CPU_ISA, is out of range.
absl::StatusOr<std::unique_ptr<Backend>> MakeBackend(
    const BackendOptions& options);

}  // namespace rowhouse::kernels

#endif  // ROWHOUSE_KERNELS_BACKEND_H_
