#ifndef ROWHOUSE_TESTS_SERVER_SHARD_BLOCKING_SHARD_H_
#define ROWHOUSE_TESTS_SERVER_SHARD_BLOCKING_SHARD_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/shard/shard.h"
#include "tests/server/shard/pending.h"

namespace rowhouse::testing {

/// The answer to come of a shard's call.
template <typename T>
using PendingCall = Pending<absl::StatusOr<T>>;

/// Rows that were pulled.
struct PulledRows {
  int64_t event = 0;
  int64_t handle = 0;
  std::string rows;  ///< [row_count, dim] of the table's row type.
};

/// A part to push. Rows are named by `row_ids` or by `handles`.
struct PartToPush {
  server::TrainerSession trainer;
  int64_t event = 0;
  int32_t part = 0;
  std::vector<int64_t> row_ids;
  std::vector<int64_t> handles;
  std::string rows;                  ///< Of the table's gradient type.
  std::optional<int64_t> row_count;  ///< Of the header; else that of `rows`.
  int64_t rows_per_message = 1 << 20;
  std::optional<int32_t> seal_part_count;
  std::optional<server::EventCommit> commit;
};

/// A shard whose calls return when they are through; and, where a test needs
/// a call under way, `Start...`.
///
/// Thread-safe, as the shard is.
class BlockingShard {
 public:
  explicit BlockingShard(server::Shard& shard) : shard_(&shard) {}

  server::Shard& shard() { return *shard_; }
  /// What calls are made with; each test that changes it makes its own.
  static std::shared_ptr<server::Call> NewCall() {
    return std::make_shared<server::Call>();
  }

  // Reads. A pull of `row_ids` or of `request.handle`, read a message of
  // `rows_per_read` rows at a time.
  absl::StatusOr<PulledRows> Pull(const std::vector<int64_t>& row_ids,
                                  server::PullRequest request = {},
                                  int64_t rows_per_read = 1 << 20);
  absl::StatusOr<std::unique_ptr<server::Pull>> OpenPull(
      const std::vector<int64_t>& row_ids, server::PullRequest request = {});
  PendingCall<std::unique_ptr<server::Pull>> StartPull(
      const std::vector<int64_t>& row_ids, server::PullRequest request,
      std::shared_ptr<server::Call> call = NewCall());
  /// Reads the next rows, or all that are left.
  absl::StatusOr<std::string> Read(server::Pull& pull, int64_t row_count);
  absl::StatusOr<server::ShardDigest> Digest(
      std::optional<int64_t> exact_event = std::nullopt);
  absl::StatusOr<server::EventState> GetEventState();
  PendingCall<server::EventState> StartGetEventState(
      std::optional<int64_t> wait_sealed_event,
      std::optional<int64_t> wait_applied_event,
      std::shared_ptr<server::Call> call = NewCall());
  absl::StatusOr<kernels::GradientStatistics> GetEventStatistics(int64_t event);
  absl::StatusOr<server::ShardInfo> GetInfo();

  // Contributions.
  absl::StatusOr<server::PartReceipt> Push(const PartToPush& part);
  absl::StatusOr<std::unique_ptr<server::PartLanding>> Begin(
      const PartToPush& part);
  /// Appends all rows of `part`, message by message.
  absl::Status Land(server::PartLanding& landing, const PartToPush& part);
  absl::StatusOr<server::PartReceipt> Finish(
      std::unique_ptr<server::PartLanding> landing, const PartToPush& part,
      std::shared_ptr<server::Call> call = NewCall());
  absl::StatusOr<int64_t> Seal(server::TrainerSession trainer, int64_t event,
                               int32_t part_count);
  absl::StatusOr<int32_t> Discard(server::TrainerSession trainer,
                                  int64_t event);
  /// Gives whether the commit had been recorded. It returns when it is
  /// recorded; a later call of any kind sees the event applied.
  absl::StatusOr<bool> Commit(server::TrainerSession trainer, int64_t event,
                              const server::EventCommit& commit);

  // Sessions and administration.
  absl::StatusOr<int64_t> OpenSession(server::TrainerSession trainer,
                                      int64_t owner = 1);
  absl::StatusOr<int64_t> KeepAlive(server::TrainerSession trainer);
  absl::StatusOr<int64_t> Import(int64_t first_row_id, int64_t row_count,
                                 std::string rows);
  absl::StatusOr<server::ShardInfo> SetTrainerCount(int32_t trainer_count,
                                                    int64_t from_event);
  absl::StatusOr<server::ShardInfo> Reset();

 private:
  int64_t row_bytes() const {
    return shard_->spec().dim * kernels::SizeOf(shard_->spec().row_dtype);
  }
  int64_t gradient_bytes() const {
    return shard_->spec().dim * kernels::SizeOf(shard_->spec().gradient_dtype);
  }

  server::Shard* shard_;
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_SHARD_BLOCKING_SHARD_H_
