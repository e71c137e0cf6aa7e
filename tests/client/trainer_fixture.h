#ifndef ROWHOUSE_TESTS_CLIENT_TRAINER_FIXTURE_H_
#define ROWHOUSE_TESTS_CLIENT_TRAINER_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "proto/wire/status_macros.h"
#include "rowhouse/cluster.h"
#include "rowhouse/trainer.h"
#include "tests/client/in_memory_cluster.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::client {

/// Matches a status or result of this code and reason.
MATCHER_P2(Fails, code, reason,
           std::string(negation ? "is not " : "is ") +
               absl::StatusCodeToString(code) + " " + std::string(reason)) {
  const absl::Status& status = rowhouse::testing::StatusOf(arg);
  *result_listener << "which is " << status.ToString();
  return status.code() == code && wire::ReasonOf(status) == reason;
}

/// Opens once; others wait until then.
class Gate {
 public:
  void Open() {
    MutexLock lock(mutex_);
    open_ = true;
    changed_.SignalAll();
  }
  void Wait() {
    MutexLock lock(mutex_);
    while (!open_) changed_.Wait(mutex_);
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  bool open_ ABSL_GUARDED_BY(mutex_) = false;
};

/// With these a row's weights move by -sign(gradient) if all its gradients have
/// one magnitude.
inline RowAdamScalars SignStep() {
  return {.step_size = 1, .decay = 0, .beta2 = 0, .eps = 0};
}

/// Table `t`: 12 rows of 2 fp32, zeros, on servers 0, 1 and 2, which own
/// [0, 4), [4, 8) and [8, 12).
class TrainerTest : public ::testing::Test {
 protected:
  static TableSpec Spec(int32_t trainer_count = 1) {
    TableSpec spec;
    spec.row_count = 12;
    spec.dim = 2;
    spec.row_dtype = DType::kFp32;
    spec.gradient_dtype = DType::kFp32;
    spec.shard_count = 3;
    spec.trainer_count = trainer_count;
    spec.gradient_reduction = GradientReduction::kSum;
    spec.max_contribution_row_count = 100;
    spec.max_part_count = 8;
    return spec;
  }

  void MakeTable(const TableSpec& spec) {
    ASSERT_THAT(cluster_->CreateTable("t", spec), rowhouse::testing::IsOk());
  }

  std::unique_ptr<Trainer> Join(int32_t rank = 0) {
    return JoinBy(*cluster_, rank);
  }
  std::unique_ptr<Trainer> JoinBy(const Cluster& cluster, int32_t rank) {
    absl::StatusOr<std::unique_ptr<Trainer>> trainer =
        Trainer::Join(cluster, "t", rank);
    EXPECT_THAT(trainer, rowhouse::testing::IsOk());
    return trainer.ok() ? *std::move(trainer) : nullptr;
  }

  static absl::StatusOr<std::vector<float>> PullFloats(
      Trainer& trainer, const std::vector<int64_t>& row_ids,
      const PullOptions& options = {}, RowSet* rows = nullptr) {
    std::vector<float> out(row_ids.size() * trainer.table().spec.dim, -99);
    ROWHOUSE_ASSIGN_OR_RETURN(
        RowSet pulled,
        trainer.Pull(row_ids, std::as_writable_bytes(std::span(out)), options));
    if (rows != nullptr) *rows = std::move(pulled);
    return out;
  }

  /// Pushes (g, g) for each row; `gradients` has g.
  static absl::StatusOr<PushResult> PushFloats(
      Trainer& trainer, int64_t event, const std::vector<int64_t>& row_ids,
      const std::vector<float>& gradients, const PushOptions& options = {}) {
    std::vector<float> rows;
    for (const float g : gradients) rows.insert(rows.end(), {g, g});
    return trainer.Push(event, row_ids, std::as_bytes(std::span(rows)),
                        options);
  }

  rowhouse::testing::InMemoryCluster servers_{3};
  std::unique_ptr<Cluster> cluster_ = servers_.Connect();
};

}  // namespace rowhouse::client

#endif  // ROWHOUSE_TESTS_CLIENT_TRAINER_FIXTURE_H_
