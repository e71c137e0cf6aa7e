#ifndef ROWHOUSE_SERVER_SHARD_LANDING_H_
#define ROWHOUSE_SERVER_SHARD_LANDING_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "kernels/host_pieces.h"
#include "server/shard/handles.h"
#include "server/shard/landings.h"
#include "server/shard/ledger.h"
#include "server/shard/row_range.h"
#include "server/shard/shard.h"
#include "server/shard/staged_part.h"

namespace rowhouse::server {

/// What all landings of a shard share; outlives them.
struct LandingShard {
  const ShardSpec& spec;
  const RowRange& range;
  kernels::Backend& backend;
};

/// What becomes of a part that is received.
struct LandingPlan {
  enum class Mode : uint8_t {
    kStage,    ///< Kept for its event.
    kCompare,  ///< The name is known: only the content is taken.
    kIgnore,   ///< Of an event long applied: only the shape is checked.
  };
  Mode mode = Mode::kStage;
  PartHeader header;
  /// Its place among the landing parts.
  std::shared_ptr<LandingTicket> ticket;
  /// Rows of `header.handles`; empty for handles that equal the known part's.
  std::vector<SharedSlots> handle_slots;
};

/// A part that is being received, on its caller's thread.
class Landing final : public PartLanding {
 public:
  /// `abandon` is called when it is destroyed before `Release`.
  ///
  /// Errors: the backend's, for want of memory.
  static absl::StatusOr<std::unique_ptr<Landing>> Create(
      const LandingShard& shard, LandingPlan plan);
  ~Landing() override;

  absl::Status Append(int64_t first_row, std::span<const int64_t> row_ids,
                      const kernels::HostPieces& rows) override;

  void set_on_revoked(
      absl::AnyInvocable<void(absl::Status)> on_revoked) override {
    plan_.ticket->set_on_revoked(std::move(on_revoked));
  }

  void set_abandon(absl::AnyInvocable<void()> abandon) {
    abandon_ = std::move(abandon);
  }

  // The lane's side, once the caller has handed the landing over.
  const LandingPlan& plan() const { return plan_; }
  PartName name() const;
  /// The first fault of `Append`, or BAD_COUNT when rows are missing.
  absl::Status Complete() const;
  PartContent content() const;
  /// Takes what was staged; REQUIRES mode kStage and that nothing failed.
  StagedPart TakeStaged() { return std::move(staged_); }
  /// The part's place is given back by other means.
  void Release() { abandon_ = nullptr; }

 private:
  Landing(const LandingShard& shard, LandingPlan plan);

  absl::Status Land(int64_t first_row, std::span<const int64_t> row_ids,
                    const kernels::HostPieces& rows);
  absl::Status CheckShape(int64_t first_row, std::span<const int64_t> row_ids,
                          int64_t size_bytes) const;
  absl::Status FindSlots(std::span<const int64_t> row_ids, int64_t row_count);
  absl::Status LandRows(const kernels::HostPieces& rows, int64_t row_count);
  absl::Status NotFinite(int64_t position, int64_t column) const;
  bool ids_known() const;

  const LandingShard shard_;
  LandingPlan plan_;
  const int64_t row_bytes_;
  StagedPart staged_;
  kernels::Buffer scratch_;  // kCompare: where rows go.
  absl::AnyInvocable<void()> abandon_;
  absl::Status fault_;  // Of the first `Append` that failed.
  int64_t received_ = 0;
  kernels::ContentSum ids_;
  kernels::ContentSum rows_;
  std::vector<int64_t> slots_;  // Of the rows in `Append`.
  size_t handle_ = 0;           // The next row by handle: the list,
  size_t handle_position_ = 0;  // and the place in it.
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_LANDING_H_
