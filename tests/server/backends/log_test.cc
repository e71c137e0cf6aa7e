// A push log that was recorded on one backend, replayed on another.

#include <stdlib.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include "client/push_log/push_log.h"
#include "gmock/gmock.h"
#include "tests/server/backends/backend_cluster.h"
#include "tests/server/backends/training.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using client::push_log::Record;
using client::push_log::RecordReport;
using client::push_log::Replay;

constexpr int64_t kEvents = 4;

class BackendLogTest : public OnBackendTest {
 protected:
  BackendLogTest() {
    std::string pattern = ::testing::TempDir() + "backend_log_XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~BackendLogTest() override { std::filesystem::remove_all(folder_); }

  // Trains a table on `from`, and what was recorded on `to`.
  void Check(const std::string& from, const std::string& to,
             client::TableSpec (*spec)(int32_t shard_count)) {
    SCOPED_TRACE(from + " to " + to);
    const std::string path = folder_ + "/" + from;
    const BackendCluster trained = Servers(from, 2);
    ASSERT_THAT(trained->CreateTable("t", spec(2)), IsOk());
    std::atomic<bool> begun = false;
    absl::StatusOr<RecordReport> recorded = absl::UnknownError("under way");
    std::thread recorder([&] {
      recorded = Record(*trained, "t", path,
                        {.last_event = kEvents,
                         .overwrite = true,
                         .progress = [&begun](const auto&) { begun = true; }});
      begun = true;
    });
    while (!begun) std::this_thread::yield();
    const Outcome outcome = Train(*trained, spec(2), kEvents, 4);
    recorder.join();
    ASSERT_THAT(recorded, IsOk());
    EXPECT_EQ(recorded->end_digest, outcome.digests.back());

    const BackendCluster fresh = Servers(to, 3);
    const auto replayed = Replay(*fresh, "again", path, {.shard_count = 3});
    ASSERT_THAT(replayed, IsOk());
    EXPECT_EQ(replayed->digest, outcome.digests.back());
    EXPECT_EQ(replayed->digests_equal(), true);
  }

 private:
  std::string folder_;
};

TEST_P(BackendLogTest, ASparseLogReplaysToTheSameDigestBothWays) {
  Check("cpu", GetParam(), &SparseSpec);
  Check(GetParam(), "cpu", &SparseSpec);
}

TEST_P(BackendLogTest, ADenseLogReplaysToTheSameDigestBothWays) {
  Check("cpu", GetParam(), &DenseSpec);
  Check(GetParam(), "cpu", &DenseSpec);
}

INSTANTIATE_TEST_SUITE_P(Backends, BackendLogTest,
                         ::testing::Values("cpu", "cuda"), NameOfBackend);

}  // namespace
}  // namespace rowhouse::testing
