#ifndef ROWHOUSE_TESTS_SERVER_SHARD_SHARD_FIXTURE_H_
#define ROWHOUSE_TESTS_SERVER_SHARD_SHARD_FIXTURE_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "proto/wire/error.h"
#include "server/shard/shard.h"
#include "tests/server/shard/blocking_shard.h"
#include "tests/server/shard/manual_timer_queue.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {

static_assert(std::endian::native == std::endian::little);

/// The bytes of fp32 values.
inline std::string Floats(std::initializer_list<float> values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  if (!bytes.empty()) std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

inline std::vector<float> ToFloats(std::string_view bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

/// Matches a status or result of this code and reason.
MATCHER_P2(Fails, code, reason,
           std::string(negation ? "is not " : "is ") +
               absl::StatusCodeToString(code) + " " + std::string(reason)) {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "which is " << status.ToString();
  return status.code() == code && wire::ReasonOf(status) == reason;
}

/// The detail `key` of a fault, or nothing.
template <typename Result>
std::string Detail(const Result& result, const std::string& key) {
  const auto details = wire::DetailsOf(StatusOf(result));
  if (!details.has_value() || !details->metadata.contains(key)) return "";
  return details->metadata.at(key);
}

/// Shard 0 of one: 10 rows of 2 fp32, zeros; 2 trainers. Tests change `spec_`
/// and `limits_` before `Start`.
class ShardTest : public ::testing::Test {
 protected:
  static constexpr server::TrainerSession kRank0{0, 1};
  static constexpr server::TrainerSession kRank1{1, 1};

  ShardTest() {
    spec_.dim = 2;
    spec_.row_dtype = kernels::DType::kFp32;
    spec_.gradient_dtype = kernels::DType::kFp32;
    spec_.trainer_count = 2;
    spec_.max_contribution_row_count = 100;
    spec_.max_part_count = 8;
  }

  void Start() {
    absl::StatusOr<std::unique_ptr<server::Shard>> shard =
        server::Shard::Create(spec_, limits_, *backend_, timers_);
    ASSERT_THAT(shard, IsOk());
    owned_ = *std::move(shard);
    shard_ = std::make_unique<BlockingShard>(*owned_);
  }

  /// Starts, and opens session 1 of every rank.
  void StartWithSessions() {
    Start();
    for (int32_t rank = 0; rank < spec_.trainer_count; ++rank) {
      ASSERT_THAT(shard_->OpenSession({rank, 1}), IsOk());
    }
  }

  /// A part of one row whose gradient is (1, 0).
  static PartToPush OneRow(server::TrainerSession trainer, int64_t event,
                           int32_t part, int64_t row_id) {
    PartToPush push;
    push.trainer = trainer;
    push.event = event;
    push.part = part;
    push.row_ids = {row_id};
    push.rows = Floats({1, 0});
    return push;
  }

  /// With these a row of zeros whose merged gradient is g becomes about
  /// -sign(g) * sqrt(2) / |g| * g: eps and decay are 0.
  static server::EventCommit Commit(std::vector<int64_t> sessions = {1, 1}) {
    server::EventCommit commit;
    commit.sessions = std::move(sessions);
    commit.scalars = {1.0, 0.0, 0.0, 0.0, 1.0};
    return commit;
  }

  /// Seals an event for both ranks without parts, and commits it.
  void ApplyEmptyEvent(int64_t event) {
    ASSERT_THAT(shard_->Seal(kRank0, event, 0), IsOk());
    ASSERT_THAT(shard_->Seal(kRank1, event, 0), IsOk());
    ASSERT_THAT(shard_->Commit(kRank0, event, Commit()), IsOk());
  }

  int64_t AppliedEvent() { return shard_->GetInfo()->event; }

  std::vector<float> Row(int64_t row_id) {
    absl::StatusOr<PulledRows> pulled = shard_->Pull({row_id});
    EXPECT_THAT(pulled, IsOk());
    return pulled.ok() ? ToFloats(pulled->rows) : std::vector<float>();
  }

  server::ShardSpec spec_{.table = "tables/t",
                          .placement = wire::Placement::Even(10, 1),
                          .initializer = {}};
  server::ShardLimits limits_;
  std::unique_ptr<kernels::Backend> backend_ =
      kernels::cpu::MakeCpuBackend(kernels::cpu::MakeThreadExecutor(1));
  ManualTimerQueue timers_;
  std::unique_ptr<server::Shard> owned_;
  std::unique_ptr<BlockingShard> shard_;
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_SHARD_SHARD_FIXTURE_H_
