#include "client/cli/cycle_summary.h"

#include <string>

#include "client/cli/cycle_report.h"
#include "client/cli/cycle_timeline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rowhouse::cli {
namespace {

using client::Path;
using client::Span;
using client::Stage;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

absl::Time At(int64_t milliseconds) {
  return absl::FromUnixMillis(milliseconds);
}

Span Of(Stage stage, int64_t event, int64_t begin, int64_t end,
        int32_t shard = -1, int64_t rows = 0, Path path = Path::kGrpc) {
  return {stage, shard, event, At(begin), At(end), rows, path};
}

// One trainer, two measured cycles, of events 3 and 4; two shards.
CycleTrace TwoCycles() {
  CycleTrace trace{.first_event = 3, .trainers = {}};
  TrainerTrace& trainer = trace.trainers.emplace_back();
  trainer.starts = {At(1000), At(1100), At(1300)};
  trainer.spans = {
      // Sent and begun before the cycle that it is for.
      Of(Stage::kSendIds, 2, 950, 960, 0, 6),
      Of(Stage::kAwaitRows, 2, 960, 1000, 0, 6),
      Of(Stage::kTakeRows, 2, 1000, 1010, 0, 6),
      Of(Stage::kTakeRows, 2, 1005, 1020, 1, 4),
      Of(Stage::kPullWait, 3, 1000, 1020),
      Of(Stage::kWantList, 4, 1020, 1030),
      Of(Stage::kSendIds, 3, 1030, 1040, 0, 5),
      Of(Stage::kEmbed, 3, 1030, 1060, -1, 8),
      Of(Stage::kSum, 3, 1060, 1070, -1, 10),
      Of(Stage::kPush, 3, 1070, 1080, 0, 6),
      Of(Stage::kPush, 3, 1070, 1085, 1, 4),
      Of(Stage::kCommit, 3, 1085, 1090, 0),
      Of(Stage::kCommit, 3, 1085, 1092, 1),
      Of(Stage::kAwaitEvent, 3, 980, 1105, 0),
      Of(Stage::kAwaitEvent, 3, 980, 1095, 1),
      Of(Stage::kAwaitRows, 3, 1040, 1110, 0, 5),
      Of(Stage::kTakeRows, 3, 1110, 1130, 0, 5, Path::kOneSided),
      Of(Stage::kPullWait, 4, 1100, 1130),
      Of(Stage::kEmbed, 4, 1130, 1180, -1, 8),
      Of(Stage::kPush, 4, 1200, 1220, 0, 5, Path::kOneSided),
  };
  return trace;
}

const StageSummary& Find(const CycleSummary& summary, const std::string& name) {
  for (const StageSummary& stage : summary.stages) {
    if (stage.name == name) return stage;
  }
  ADD_FAILURE() << "no stage " << name;
  return summary.stages[0];
}

std::vector<std::string> Names(const CycleSummary& summary) {
  std::vector<std::string> names;
  for (const StageSummary& stage : summary.stages) names.push_back(stage.name);
  return names;
}

TEST(CycleSummaryTest, CyclesLastUntilTheNext) {
  const CycleSummary summary = Summarize(TwoCycles(), 100, 10);
  EXPECT_EQ(summary.cycles.count(), 2);
  EXPECT_EQ(summary.total, absl::Milliseconds(300));
  EXPECT_EQ(summary.cycles.Quantile(0.5), absl::Milliseconds(100));
  // 1020 to 1070, and 1130 to 1180.
  EXPECT_EQ(summary.work, absl::Milliseconds(100));
}

TEST(CycleSummaryTest, StagesThatTookTimeStandInTheirOrder) {
  EXPECT_THAT(Names(Summarize(TwoCycles(), 100, 10)),
              ElementsAre("want list", "ids sent", "rows awaited", "rows taken",
                          "pull wait", "embed", "sum per row", "push", "commit",
                          "event", "rest"));
}

TEST(CycleSummaryTest, ShardsThatWorkAtOnceCountOnce) {
  const CycleSummary summary = Summarize(TwoCycles(), 100, 10);
  const StageSummary& taken = Find(summary, "rows taken");
  EXPECT_EQ(taken.total, absl::Milliseconds(20 + 20));
  EXPECT_EQ(taken.size_bytes(), (10 + 5) * 100);
  const StageSummary& push = Find(summary, "push");
  EXPECT_EQ(push.total, absl::Milliseconds(15 + 20));
  EXPECT_EQ(push.size_bytes(), (10 + 5) * 10);
}

TEST(CycleSummaryTest, APullBelongsToTheCycleThatItIsFor) {
  const CycleSummary summary = Summarize(TwoCycles(), 100, 10);
  EXPECT_EQ(Find(summary, "ids sent").size_bytes(), (6 + 5) * 8);
  // 950 to 960 and 1000 to 1020; 1030 to 1040 and 1110 to 1130.
  EXPECT_EQ(summary.pull.total, absl::Milliseconds(60));
  // The trainer worked from 1020 to 1070, and from 1130 on.
  EXPECT_EQ(summary.pull.hidden, absl::Milliseconds(10));
  EXPECT_EQ(Find(summary, "rows awaited").hidden, absl::Milliseconds(30));
  EXPECT_EQ(summary.row_count, 15);
}

TEST(CycleSummaryTest, AnEventLastsFromItsCommitToItsLastShard) {
  const StageSummary event = Find(Summarize(TwoCycles(), 100, 10), "event");
  EXPECT_EQ(event.total, absl::Milliseconds(20));
  EXPECT_TRUE(event.in_flight);
}

TEST(CycleSummaryTest, TheRestIsNeitherWorkNorWait) {
  // 1085 to 1100, and 1180 to 1200 and 1220 to 1300.
  EXPECT_EQ(Find(Summarize(TwoCycles(), 100, 10), "rest").total,
            absl::Milliseconds(15 + 100));
}

TEST(CycleSummaryTest, TheModelIsWork) {
  CycleTrace trace = TwoCycles();
  trace.trainers[0].model = {{At(1180), At(1190)}, {At(900), At(910)}};
  const CycleSummary summary = Summarize(trace, 100, 10);
  EXPECT_EQ(Find(summary, "model").total, absl::Milliseconds(10));
  EXPECT_EQ(summary.work, absl::Milliseconds(110));
}

TEST(CycleSummaryTest, TheTransportIsThatWhichRowsTook) {
  CycleBench bench;
  bench.addresses = {"unix:/a", "unix:/b"};
  CycleTrace trace = TwoCycles();
  EXPECT_EQ(TransportOf(bench, Summarize(trace, 100, 10)),
            "Unix socket; one-sided 1 of 3 pulls, 1 of 3 pushes");
  for (Span& span : trace.trainers[0].spans) span.path = Path::kOneSided;
  EXPECT_EQ(TransportOf(bench, Summarize(trace, 100, 10)), "one-sided");
  for (Span& span : trace.trainers[0].spans) span.path = Path::kGrpc;
  EXPECT_EQ(TransportOf(bench, Summarize(trace, 100, 10)), "Unix socket");
  bench.addresses = {"127.0.0.1:1"};
  EXPECT_EQ(TransportOf(bench, Summarize(trace, 100, 10)), "TCP");
}

TEST(CycleTimelineTest, WhatMayOverlapHasLanesOfItsOwn) {
  const Timeline timeline = TimelineOf(TwoCycles(), absl::ZeroDuration());
  std::vector<std::string> names;
  for (const Timeline::Lane& lane : timeline.lanes) names.push_back(lane.name);
  EXPECT_THAT(names, ElementsAre("trainer", "pulls, shard 0", "pulls, shard 1",
                                 "pushes, shard 0", "pushes, shard 1",
                                 "event, shard 0", "event, shard 1"));
  EXPECT_EQ(timeline.length, absl::Milliseconds(300));
  ASSERT_EQ(timeline.marks.size(), 3);
  EXPECT_EQ(timeline.marks[1].at, absl::Milliseconds(100));
  EXPECT_EQ(timeline.marks[1].name, "cycle of event 4");
  // The commit, and what then passed until shard 0 had applied the event.
  const auto& event = timeline.lanes[5].bars;
  ASSERT_EQ(event.size(), 2);
  EXPECT_EQ(event[1].begin, absl::Milliseconds(90));
  EXPECT_EQ(event[1].end, absl::Milliseconds(105));
}

TEST(CycleTimelineTest, AScaleMayBeGiven) {
  const Timeline timeline = TimelineOf(TwoCycles(), absl::Milliseconds(50));
  EXPECT_EQ(timeline.length, absl::Milliseconds(50));
  EXPECT_THAT(timeline.lanes[3].bars, IsEmpty());  // Later.
}

TEST(CycleTimelineTest, TrainersAreTold) {
  CycleTrace trace = TwoCycles();
  trace.trainers.push_back(trace.trainers[0]);
  const Timeline timeline = TimelineOf(trace, absl::ZeroDuration());
  EXPECT_EQ(timeline.lanes[0].name, "trainer 0");
  EXPECT_EQ(timeline.lanes[5].name, "trainer 1");
  EXPECT_EQ(timeline.lanes[6].name, "pulls 1, shard 0");
  EXPECT_EQ(timeline.lanes.back().name, "event, shard 1");
}

}  // namespace
}  // namespace rowhouse::cli
