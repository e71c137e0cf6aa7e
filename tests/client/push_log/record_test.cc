// How recordings begin and end.

#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "client/internal/cluster_core.h"
#include "client/push_log/file_fault.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "tests/client/push_log/push_log_fixture.h"
#include "tests/server/shard/pending.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::client::push_log {
namespace {

using rowhouse::testing::Fault;
using rowhouse::testing::IsOk;
using rowhouse::testing::Pending;
using rowhouse::testing::StatusIs;
using ::testing::HasSubstr;

/// No file of this process grows beyond it meanwhile.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(int64_t size_bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = static_cast<rlim_t>(size_bytes);
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_ = {};
  void (*handler_)(int) = nullptr;
};

class RecordTest : public PushLogTest {
 protected:
  RecordTest() { MakeTable(Spec()); }

  // What the file says, against what the report does.
  void CheckFile(const RecordReport& report) {
    const auto info = Inspect(Path("log"));
    ASSERT_THAT(info, IsOk());
    EXPECT_TRUE(info->complete);
    EXPECT_EQ(info->table, "t");
    EXPECT_EQ(info->spec, cluster_->GetTable("t")->spec);
    EXPECT_EQ(info->shard_bounds, (std::vector<int64_t>{0, 12, 24, 37}));
    EXPECT_EQ(info->start_event, report.start_event);
    EXPECT_EQ(info->last_event, report.last_event);
    EXPECT_EQ(info->counts.part_count, report.counts.part_count);
    EXPECT_EQ(info->counts.row_count, report.counts.row_count);
    EXPECT_EQ(info->start_digest, report.start_digest);
    EXPECT_EQ(info->end_digest, report.end_digest);
    EXPECT_EQ(info->size_bytes, report.size_bytes);
    EXPECT_EQ(info->whole_bytes, report.size_bytes);
    EXPECT_EQ(std::ssize(ReadFile(Path("log"))), report.size_bytes);
  }

  Random random_{21};
};

TEST_F(RecordTest, AStopEndsItInOrder) {
  RunningRecord record(*cluster_, Path("log"));
  Train(1, 4, random_);
  record.WaitForEvent(4);
  record.Stop();
  ASSERT_THAT(record.Wait(), IsOk());
  EXPECT_THAT(record.Wait()->fault, IsOk());
  EXPECT_EQ(record.Wait()->last_event, 4);
  EXPECT_EQ(record.Wait()->end_digest, digests_[4]);
  CheckFile(*record.Wait());
}

TEST_F(RecordTest, AStopTakesNoDigestWhereAServerIsSilent) {
  std::atomic<int> digest_count = 0;
  std::atomic<bool> silent = false;
  const std::unique_ptr<Cluster> cluster =
      servers_.Connect([&](int32_t server, std::string_view method) {
        if (method == "DigestTable") ++digest_count;
        return silent && server == 2 ? Fault::kLoseRequest : Fault::kNone;
      });
  RunningRecord record(*cluster, Path("log"));
  Train(1, 2, random_);
  record.WaitForEvent(2);
  silent = true;
  record.Stop();
  ASSERT_THAT(record.Wait(), IsOk());
  EXPECT_THAT(record.Wait()->fault, IsOk());
  EXPECT_EQ(record.Wait()->last_event, 2);
  EXPECT_EQ(record.Wait()->end_digest, std::nullopt);
  EXPECT_THAT(record.Wait()->digest_fault,
              StatusIs(absl::StatusCode::kUnavailable, "silent"));
  EXPECT_EQ(digest_count, 0);
  CheckFile(*record.Wait());
}

TEST_F(RecordTest, AStopWhileTrainingGoesOnTellsWhyThereIsNoDigest) {
  std::once_flag once;
  const std::unique_ptr<Cluster> cluster =
      servers_.Connect([&](int32_t, std::string_view method) {
        // An event comes between the log's last one and the digest.
        if (method == "DigestTable") {
          std::call_once(once, [&] { Train(3, 3, random_); });
        }
        return Fault::kNone;
      });
  RunningRecord record(*cluster, Path("log"));
  Train(1, 2, random_);
  record.WaitForEvent(2);
  record.Stop();
  ASSERT_THAT(record.Wait(), IsOk());
  EXPECT_THAT(record.Wait()->fault, IsOk());
  EXPECT_EQ(record.Wait()->last_event, 2);
  EXPECT_EQ(record.Wait()->end_digest, std::nullopt);
  EXPECT_EQ(wire::ReasonOf(record.Wait()->digest_fault), "EVENT_PAST");
  CheckFile(*record.Wait());
}

TEST_F(RecordTest, AStopEndsTheLookForTheTable) {
  std::stop_source stop;
  const std::unique_ptr<Cluster> cluster =
      servers_.Connect([&](int32_t, std::string_view method) {
        if (method == "GetTable") stop.request_stop();
        return Fault::kLoseRequest;
      });
  EXPECT_THAT(Record(*cluster, "t", Path("log"),
                     {.stop = stop.get_token(), .timeout = absl::Hours(1)}),
              StatusIs(absl::StatusCode::kCancelled, ""));
  EXPECT_EQ(wire::ReasonOf(Inspect(Path("log")).status()), kNoFile);
}

TEST_F(RecordTest, CancelledCallsEndItWithAFault) {
  RunningRecord record(*cluster_, Path("log"));
  Train(1, 2, random_);
  record.WaitForEvent(2);
  cluster_->CancelCalls();
  ASSERT_THAT(record.Wait(), IsOk());
  EXPECT_THAT(record.Wait()->fault, StatusIs(absl::StatusCode::kCancelled, ""));
  EXPECT_EQ(record.Wait()->last_event, 2);
  cluster_ = servers_.Connect();
  CheckFile(*record.Wait());
}

TEST_F(RecordTest, ALogMayHaveNoEvent) {
  RunningRecord record(*cluster_, Path("log"));
  record.Stop();
  ASSERT_THAT(record.Wait(), IsOk());
  EXPECT_EQ(record.Wait()->end_digest, digests_[0]);
  CheckFile(*record.Wait());
  const auto replayed = Replay(*cluster_, "u", Path("log"));
  ASSERT_THAT(replayed, IsOk());
  EXPECT_EQ(replayed->digests_equal(), true);
}

TEST_F(RecordTest, ItEndsAfterItsLastEventWhileTrainingGoesOn) {
  RunningRecord record(*cluster_, Path("log"), {.last_event = 2});
  Train(1, 5, random_);
  ASSERT_THAT(record.Wait(), IsOk());
  EXPECT_EQ(record.Wait()->last_event, 2);
  EXPECT_EQ(record.Wait()->end_digest, digests_[2]);
  CheckFile(*record.Wait());
}

TEST_F(RecordTest, WithoutDigestsNoneAreTaken) {
  RunningRecord record(*cluster_, Path("log"),
                       {.last_event = 2, .digest = false});
  Train(1, 2, random_);
  ASSERT_THAT(record.Wait(), IsOk());
  EXPECT_EQ(record.Wait()->start_digest, std::nullopt);
  EXPECT_EQ(record.Wait()->end_digest, std::nullopt);
  CheckFile(*record.Wait());
}

TEST_F(RecordTest, AnExistingFileStaysUnlessToldOtherwise) {
  WriteFile(Path("log"), "precious");
  EXPECT_THAT(Record(*cluster_, "t", Path("log")),
              StatusIs(absl::StatusCode::kAlreadyExists, "overwritten"));
  EXPECT_EQ(ReadFile(Path("log")), "precious");
  EXPECT_THAT(Record(*cluster_, "none", Path("log"), {.overwrite = true}),
              StatusIs(absl::StatusCode::kNotFound, ""));
  EXPECT_EQ(ReadFile(Path("log")), "precious");
  RunningRecord record(*cluster_, Path("log"), {.overwrite = true});
  record.Stop();
  ASSERT_THAT(record.Wait(), IsOk());
  CheckFile(*record.Wait());
}

TEST_F(RecordTest, AResetEndsIt) {
  RunningRecord record(*cluster_, Path("log"));
  Train(1, 3, random_);
  record.WaitForEvent(3);
  ASSERT_THAT(cluster_->ResetTable("t"), IsOk());
  ASSERT_THAT(record.Wait(), IsOk());
  EXPECT_EQ(wire::ReasonOf(record.Wait()->fault), "TABLE_REWRITTEN");
  EXPECT_EQ(record.Wait()->last_event, 3);
  EXPECT_EQ(record.Wait()->end_digest, std::nullopt);
  CheckFile(*record.Wait());
  const auto replayed = Replay(*cluster_, "u", Path("log"));
  ASSERT_THAT(replayed, IsOk());
  EXPECT_EQ(replayed->digest, digests_[3]);
  EXPECT_THAT(replayed->warning, HasSubstr("ended early, after event 3"));
}

TEST_F(RecordTest, TheFirstStreamThatFailsEndsItWhileOthersAreSilent) {
  std::atomic<int> digest_count = 0;
  const std::unique_ptr<Cluster> cluster =
      servers_.Connect([&](int32_t, std::string_view method) {
        if (method == "DigestTable") ++digest_count;
        return Fault::kNone;
      });
  RunningRecord record(*cluster, Path("log"));
  Train(1, 3, random_);
  record.WaitForEvent(3);
  // One server's alone: the others have nothing more to say.
  Pending<absl::StatusOr<server::ShardInfo>> reset;
  (*servers_.Find(1, "t"))
      ->shard->Reset(std::make_shared<server::Call>(), reset.Callback());
  ASSERT_THAT(reset.Wait(), IsOk());
  ASSERT_THAT(record.Wait(), IsOk());
  const absl::Status& fault = record.Wait()->fault;
  EXPECT_EQ(wire::ReasonOf(fault), "TABLE_REWRITTEN");
  EXPECT_THAT(std::string(fault.message()),
              HasSubstr(cluster->core()->channel(1).address()));
  EXPECT_EQ(record.Wait()->last_event, 3);
  EXPECT_EQ(record.Wait()->end_digest, std::nullopt);
  EXPECT_EQ(digest_count, 0);
  const auto info = Inspect(Path("log"));
  ASSERT_THAT(info, IsOk());
  EXPECT_TRUE(info->complete);
  EXPECT_EQ(info->last_event, 3);
  EXPECT_EQ(info->fault, "ABORTED: " + std::string(fault.message()));
}

TEST_F(RecordTest, AFileThatCannotGrowIsGoodUpToItsLastWholeEvent) {
  RunningRecord record(*cluster_, Path("log"));
  Train(1, 2, random_);
  record.WaitForEvent(2);
  const int64_t size_bytes = std::ssize(ReadFile(Path("log")));
  {
    const FileSizeLimit limit(size_bytes + 1);
    Train(3, 3, random_);
    record.Wait().IgnoreError();
  }
  EXPECT_THAT(record.Wait().status(),
              StatusIs(absl::StatusCode::kOutOfRange,  // EFBIG
                       "the last event that is whole in it is 2"));
  EXPECT_EQ(wire::ReasonOf(record.Wait().status()), kNotWritable);
  const auto info = Inspect(Path("log"));
  ASSERT_THAT(info, IsOk());
  EXPECT_FALSE(info->complete);
  EXPECT_EQ(info->last_event, 2);
  EXPECT_EQ(info->size_bytes, size_bytes);
}

TEST_F(RecordTest, AFileThatCannotBeMadeIsTheFilesFault) {
  const absl::Status made =
      Record(*cluster_, "t", Path("nowhere/log")).status();
  EXPECT_EQ(wire::ReasonOf(made), kNotWritable);
  EXPECT_THAT(made, StatusIs(absl::StatusCode::kNotFound, "nowhere/log"));
}

TEST_F(RecordTest, AnEventThatDoesNotFitEndsIt) {
  auto trainer = Trainer::Join(*cluster_, "t", 0);
  auto other = Trainer::Join(*cluster_, "t", 1);
  // A row has 8 + 12 bytes; row 2 is on shard 0. Two events of 5 rows fit, also
  // when the recorder has not let go of the first.
  RunningRecord record(*cluster_, Path("log"), {.buffer_bytes = 200});
  for (int64_t event = 1; event <= 3; ++event) {
    const std::vector<int64_t> row_ids(event == 3 ? 11 : 5, 2);
    const std::vector<float> rows(row_ids.size() * 3, 1.0F);
    ASSERT_THAT(
        (*trainer)->Push(event, row_ids, std::as_bytes(std::span(rows))),
        IsOk());
    ASSERT_THAT((*other)->Seal(event), IsOk());
    ASSERT_THAT((*trainer)->SealAndCommit(
                    event, RowAdamScalars{.step_size = 0.1, .eps = 1}),
                IsOk());
    ASSERT_THAT((*trainer)->WaitForEvent(event), IsOk());
    record.WaitForEvent(event);  // So it is not behind, or has ended.
  }
  ASSERT_THAT(record.Wait(), IsOk());
  EXPECT_EQ(wire::ReasonOf(record.Wait()->fault), "RECORDER_BEHIND");
  EXPECT_THAT(std::string(record.Wait()->fault.message()),
              HasSubstr("event 3 has 220 bytes"));
  EXPECT_EQ(record.Wait()->last_event, 2);
  CheckFile(*record.Wait());
}

TEST_F(RecordTest, RecordingsAreIndependent) {
  RunningRecord first(*cluster_, Path("first"), {.last_event = 3});
  Train(1, 1, random_);
  RunningRecord second(*cluster_, Path("log"), {.last_event = 3});
  Train(2, 3, random_);
  ASSERT_THAT(first.Wait(), IsOk());
  ASSERT_THAT(second.Wait(), IsOk());
  EXPECT_EQ(first.Wait()->end_digest, digests_[3]);
  EXPECT_EQ(second.Wait()->start_event, 1);
  EXPECT_EQ(second.Wait()->start_digest, digests_[1]);
  EXPECT_EQ(second.Wait()->end_digest, digests_[3]);
  CheckFile(*second.Wait());
}

}  // namespace
}  // namespace rowhouse::client::push_log
