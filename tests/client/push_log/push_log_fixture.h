#ifndef ROWHOUSE_TESTS_CLIENT_PUSH_LOG_PUSH_LOG_FIXTURE_H_
#define ROWHOUSE_TESTS_CLIENT_PUSH_LOG_PUSH_LOG_FIXTURE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "client/push_log/push_log.h"
#include "gtest/gtest.h"
#include "rowhouse/cluster.h"
#include "rowhouse/trainer.h"
#include "tests/client/in_memory_cluster.h"
#include "tests/testing/random.h"

namespace rowhouse::client::push_log {

/// A recording on a thread of its own.
class RunningRecord {
 public:
  /// Returns once it has begun, or failed.
  RunningRecord(Cluster& cluster, const std::string& path,
                RecordOptions options = {});
  ~RunningRecord() { Wait(); }

  void Stop() { stop_.request_stop(); }
  /// Waits until this event is in the file.
  void WaitForEvent(int64_t event);
  /// Its result, once it has ended by itself or by `Stop`.
  const absl::StatusOr<RecordReport>& Wait();

 private:
  Mutex mutex_;
  CondVar changed_;
  int64_t event_ ABSL_GUARDED_BY(mutex_) = -1;  // -1 before the beginning.
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::stop_source stop_;
  absl::StatusOr<RecordReport> report_ = absl::UnknownError("under way");
  std::thread thread_;
};

/// Table `t` on three servers, trained at random and recorded.
class PushLogTest : public ::testing::Test {
 protected:
  using Random = rowhouse::testing::Random;

  PushLogTest();
  ~PushLogTest() override;

  /// 37 rows of 3, on 3 shards; 2 trainers.
  static TableSpec Spec();
  static TableSpec MeanOfBf16();
  static TableSpec Dense();

  std::string Path(const std::string& name) const { return folder_ + name; }

  /// Makes the table: 2 trainers, 3 from event 4 on, 1 from event 7 on.
  void MakeTable(const TableSpec& spec);

  /// Applies events `first` .. `last`: uneven, empty and discarded parts of all
  /// trainers, and skipped events. Notes the digest after each.
  void Train(int64_t first, int64_t last, Random& random);

  /// Records `t` from event 0 while it is trained to `last`.
  RecordReport RecordTraining(const TableSpec& spec, int64_t last,
                              const std::string& path, Random& random);

  std::map<int64_t, TableDigest> digests_;  // By event.
  rowhouse::testing::InMemoryCluster servers_{3};
  std::unique_ptr<Cluster> cluster_ = servers_.Connect();

 private:
  void Contribute(Trainer& trainer, int64_t event, Random& random);

  std::string folder_;
  bool changes_trainers_ = false;
};

std::string ReadFile(const std::string& path);
void WriteFile(const std::string& path, const std::string& bytes);

}  // namespace rowhouse::client::push_log

#endif  // ROWHOUSE_TESTS_CLIENT_PUSH_LOG_PUSH_LOG_FIXTURE_H_
