// Checkpoints as a client in any language has them written and restored.

#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "rowhouse/v1/checkpoint_service.grpc.pb.h"
#include "tests/server/service/test_server.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Stub = v1::CheckpointService::Stub;

constexpr int64_t kRows = 37;
constexpr char kTable[] = "tables/t";

MATCHER_P2(FailsWith, code, reason, "") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "which is " << status.ToString();
  return status.code() == code && wire::ReasonOf(status) == reason;
}

std::string Spec(int32_t shard_count, int64_t rows = kRows) {
  return absl::StrCat("row_count: ", rows,
                      " dim: 3 row_dtype: DATA_TYPE_BF16 "
                      "gradient_dtype: DATA_TYPE_FP32 shard_count: ",
                      shard_count,
                      " initializer { uniform { seed: 7 bound: 0.5 } } "
                      "trainer_count: 1 gradient_reduction: "
                      "GRADIENT_REDUCTION_SUM max_contribution_row_count: 64 "
                      "max_part_count: 1 sparse {}");
}

/// Servers that share a directory, and table t on all of them.
class TestCluster {
 public:
  TestCluster(const std::string& directory, int32_t count,
              int32_t keep_count = 0)
      : count_(count) {
    for (int32_t i = 0; i < count; ++i) {
      config::v1::ServerConfig config = TestServer::Config(i, count);
      config.mutable_checkpoint()->set_directory(directory);
      config.mutable_checkpoint()->set_keep_count(keep_count);
      servers_.push_back(std::make_unique<TestServer>(config));
      stubs_.push_back(
          v1::CheckpointService::NewStub(servers_.back()->channel()));
      EXPECT_THAT(servers_.back()->CreateTable(kTable, Spec(count)), IsOk());
    }
  }

  int32_t count() const { return count_; }
  TestServer& server(int32_t i) { return *servers_[static_cast<size_t>(i)]; }
  Stub& stub(int32_t i = 0) { return *stubs_[static_cast<size_t>(i)]; }

  void OpenSessions(int64_t session = 1) {
    for (const auto& server : servers_) {
      ASSERT_THAT(server->OpenSession(kTable, 0, session), IsOk());
    }
  }

  /// Event `event` on every shard: its gradients depend on it alone.
  void Train(int64_t event, int64_t session = 1) {
    Random random(static_cast<uint64_t>(event));
    std::vector<int64_t> ids;
    std::vector<float> rows;
    for (int i = 0; i < 9; ++i) {
      ids.push_back(random.Integer(0, kRows - 1));
      for (int d = 0; d < 3; ++d) rows.push_back(random.Normal());
    }
    for (int32_t s = 0; s < count_; ++s) {
      const int64_t first = s * kRows / count_;
      const int64_t end = (s + 1) * kRows / count_;
      std::vector<float> here;
      v1::PushGradientsRequest part;
      for (size_t i = 0; i < ids.size(); ++i) {
        if (ids[i] < first || ids[i] >= end) continue;
        part.add_row_ids(ids[i]);
        here.insert(here.end(), rows.begin() + static_cast<int64_t>(3 * i),
                    rows.begin() + static_cast<int64_t>(3 * i + 3));
      }
      ParseHeader(event, session, part);
      part.set_rows(Fp32(here));
      ASSERT_THAT(server(s).Push({part}), IsOk());
      ASSERT_THAT(server(s).Seal(kTable, 0, session, event, 1), IsOk());
      ASSERT_THAT(
          server(s).Commit(absl::StrCat(
              "table: 'tables/t' trainer { session: ", session,
              " } event: ", event, " commit { sessions: [", session,
              "] row_adam { step_size: 0.1 decay: 0.01 beta2: 0.9 eps: 1e-6 "
              "gradient_scale: 1 } }")),
          IsOk());
    }
  }

  uint64_t Digest(int64_t event) {
    uint64_t sum = 0;
    for (const auto& server : servers_) {
      const auto digest = server->Digest(kTable, event);
      EXPECT_THAT(digest, IsOk());
      if (!digest.ok()) return 0;
      sum += static_cast<uint64_t>(digest->row_sum());
      if (&server == &servers_.front()) {
        sum += static_cast<uint64_t>(digest->history_sum());
      }
    }
    return sum;
  }

 private:
  static void ParseHeader(int64_t event, int64_t session,
                          v1::PushGradientsRequest& part) {
    v1::PushGradientsRequest header;
    ParseText(
        absl::StrCat("header { table: 'tables/t' trainer { session: ", session,
                     " } event: ", event, " dtype: DATA_TYPE_FP32 row_count: ",
                     part.row_ids_size(), " }"),
        header);
    *part.mutable_header() = header.header();
  }

  const int32_t count_;
  std::vector<std::unique_ptr<TestServer>> servers_;
  std::vector<std::unique_ptr<Stub>> stubs_;
};

/// One stream of progress.
template <typename Response>
class Progress {
 public:
  Progress() { SetDeadline(context_); }

  grpc::ClientContext& context() { return context_; }
  std::unique_ptr<grpc::ClientReader<Response>>& reader() { return reader_; }

  bool ReadOne() { return reader_->Read(&last_); }
  absl::Status Finish() {
    while (ReadOne()) {
    }
    return wire::FromGrpc(reader_->Finish());
  }
  const Response& last() const { return last_; }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReader<Response>> reader_;
  Response last_;
};

using Writing = Progress<v1::WriteCheckpointResponse>;

class CheckpointServiceTest : public ::testing::Test {
 protected:
  CheckpointServiceTest() {
    std::string name =
        (std::filesystem::temp_directory_path() / "rowhouse_checkpoints_XXXXXX")
            .string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~CheckpointServiceTest() override { std::filesystem::remove_all(directory_); }

  static std::vector<std::unique_ptr<Writing>> StartWriting(
      TestCluster& cluster, const std::string& name, int64_t event,
      const std::string& base = "") {
    v1::WriteCheckpointRequest request;
    request.set_name(name);
    request.set_base(base);
    v1::CheckpointTable& table = *request.add_tables();
    table.set_name(kTable);
    table.set_event(event);
    std::vector<std::unique_ptr<Writing>> streams;
    for (int32_t s = 0; s < cluster.count(); ++s) {
      auto writing = std::make_unique<Writing>();
      writing->reader() =
          cluster.stub(s).WriteCheckpoint(&writing->context(), request);
      streams.push_back(std::move(writing));
    }
    return streams;
  }

  static absl::StatusOr<v1::PublishCheckpointResponse> Publish(
      TestCluster& cluster, const std::string& name, int64_t event,
      const std::string& base = "", int32_t states = 0) {
    v1::PublishCheckpointRequest request;
    request.set_name(name);
    request.set_base(base);
    request.set_trainer_state_count(states);
    v1::CheckpointTable& table = *request.add_tables();
    table.set_name(kTable);
    table.set_event(event);
    return Invoke(cluster.stub(), &Stub::PublishCheckpoint, request);
  }

  static absl::Status Save(TestCluster& cluster, const std::string& name,
                           int64_t event, const std::string& base = "") {
    for (const auto& writing : StartWriting(cluster, name, event, base)) {
      absl::Status written = writing->Finish();
      if (!written.ok()) return written;
    }
    return Publish(cluster, name, event, base).status();
  }

  static absl::Status Restore(TestCluster& cluster, int32_t s,
                              const std::string& name) {
    v1::RestoreTableRequest request;
    request.set_name(name);
    request.set_table(kTable);
    Progress<v1::RestoreTableResponse> stream;
    stream.reader() = cluster.stub(s).RestoreTable(&stream.context(), request);
    return stream.Finish();
  }

  static absl::Status RestoreAll(TestCluster& cluster,
                                 const std::string& name) {
    for (int32_t s = 0; s < cluster.count(); ++s) {
      absl::Status restored = Restore(cluster, s, name);
      if (!restored.ok()) return restored;
    }
    return absl::OkStatus();
  }

  static absl::Status Verify(TestCluster& cluster, const std::string& name) {
    v1::VerifyCheckpointRequest request;
    request.set_name(name);
    Progress<v1::VerifyCheckpointResponse> stream;
    stream.reader() =
        cluster.stub().VerifyCheckpoint(&stream.context(), request);
    return stream.Finish();
  }

  static absl::Status PutState(TestCluster& cluster, const std::string& name,
                               int32_t rank, const std::string& state) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::PutTrainerStateResponse response;
    const auto writer = cluster.stub().PutTrainerState(&context, &response);
    v1::PutTrainerStateRequest message;
    message.set_name(name);
    message.set_trainer_rank(rank);
    message.set_size_bytes(std::ssize(state));
    message.set_state(state);
    EXPECT_TRUE(writer->Write(message));
    writer->WritesDone();
    return wire::FromGrpc(writer->Finish());
  }

  std::vector<std::string> Names(TestCluster& cluster) {
    std::vector<std::string> names;
    const auto list = Invoke(cluster.stub(), &Stub::ListCheckpoints,
                             v1::ListCheckpointsRequest());
    EXPECT_THAT(list, IsOk());
    for (const v1::Checkpoint& one : list->checkpoints()) {
      names.push_back(one.name());
    }
    return names;
  }

  std::string directory_;
};

TEST_F(CheckpointServiceTest, ACheckpointIsRestoredOntoAnyShards) {
  uint64_t digest = 0;
  uint64_t later = 0;
  {
    TestCluster cluster(directory_, 2);
    cluster.OpenSessions();
    for (const int64_t event : {1, 2, 3}) cluster.Train(event);
    digest = cluster.Digest(3);
    ASSERT_THAT(Save(cluster, "checkpoints/c", 3), IsOk());
    for (const int64_t event : {4, 5}) cluster.Train(event);
    later = cluster.Digest(5);
    // The file says what it is without its manifest.
    std::ifstream file(directory_ + "/c/t/1-of-2.safetensors",
                       std::ios::binary);
    std::string header(4096, '\0');
    ASSERT_TRUE(file.read(header.data(), 4096));
    EXPECT_THAT(header, HasSubstr("\"first_row_id\":\"18\""));
    EXPECT_THAT(header, HasSubstr("\"event\":\"3\""));
  }
  for (const int32_t count : {1, 2, 3}) {
    SCOPED_TRACE(count);
    TestCluster cluster(directory_, count);
    cluster.OpenSessions();
    cluster.Train(1);
    ASSERT_THAT(RestoreAll(cluster, "checkpoints/c"), IsOk());
    EXPECT_EQ(cluster.Digest(3), digest);
    cluster.OpenSessions(2);
    for (const int64_t event : {4, 5}) cluster.Train(event, 2);
    EXPECT_EQ(cluster.Digest(5), later);
  }
}

TEST_F(CheckpointServiceTest, AnArmedCheckpointIsOfItsEventWhileOthersFollow) {
  TestCluster cluster(directory_, 2);
  cluster.OpenSessions();
  cluster.Train(1);
  auto streams = StartWriting(cluster, "checkpoints/c", 2);
  for (const auto& writing : streams) ASSERT_TRUE(writing->ReadOne());
  EXPECT_EQ(streams[0]->last().progress().done_bytes(), 0);
  cluster.Train(2);
  const uint64_t digest = cluster.Digest(2);
  for (int64_t event = 3; event < 9; ++event) cluster.Train(event);
  for (const auto& writing : streams) {
    ASSERT_THAT(writing->Finish(), IsOk());
    const v1::CheckpointProgress& progress = writing->last().progress();
    EXPECT_EQ(progress.done_bytes(), progress.total_bytes());
    EXPECT_GT(progress.total_bytes(), 0);
  }
  ASSERT_THAT(Publish(cluster, "checkpoints/c", 2), IsOk());
  ASSERT_THAT(RestoreAll(cluster, "checkpoints/c"), IsOk());
  EXPECT_EQ(cluster.Digest(2), digest);
}

TEST_F(CheckpointServiceTest, DeltasAreRestoredComparedAndCompacted) {
  TestCluster cluster(directory_, 2);
  cluster.OpenSessions();
  cluster.Train(1);
  ASSERT_THAT(Save(cluster, "checkpoints/full", 1), IsOk());
  cluster.Train(2);
  ASSERT_THAT(Save(cluster, "checkpoints/d2", 2, "checkpoints/full"), IsOk());
  cluster.Train(3);
  ASSERT_THAT(Save(cluster, "checkpoints/d3", 3, "checkpoints/d2"), IsOk());
  const uint64_t digest = cluster.Digest(3);
  ASSERT_THAT(Verify(cluster, "checkpoints/d3"), IsOk());

  v1::GetCheckpointRequest get;
  get.set_name("checkpoints/d3");
  const auto delta = Invoke(cluster.stub(), &Stub::GetCheckpoint, get);
  ASSERT_THAT(delta, IsOk());
  EXPECT_EQ(delta->checkpoint().base(), "checkpoints/d2");
  EXPECT_LE(delta->checkpoint().tables(0).saved_row_count(), 9);
  EXPECT_EQ(delta->checkpoint().tables(0).spec().row_count(), kRows);

  v1::CompactCheckpointRequest compact;
  compact.set_name("checkpoints/d3");
  compact.set_compact_name("checkpoints/c3");
  Progress<v1::CompactCheckpointResponse> compacting;
  compacting.reader() =
      cluster.stub().CompactCheckpoint(&compacting.context(), compact);
  ASSERT_THAT(compacting.Finish(), IsOk());

  v1::DiffCheckpointsRequest diff;
  diff.set_name("checkpoints/c3");
  diff.set_other_name("checkpoints/d3");
  Progress<v1::DiffCheckpointsResponse> same;
  same.reader() = cluster.stub().DiffCheckpoints(&same.context(), diff);
  ASSERT_THAT(same.Finish(), IsOk());
  ASSERT_EQ(same.last().tables_size(), 1);
  EXPECT_EQ(same.last().tables(0).differing_row_count(), 0);
  EXPECT_EQ(same.last().tables(0).event(), 3);
  diff.set_other_name("checkpoints/d2");
  Progress<v1::DiffCheckpointsResponse> other;
  other.reader() = cluster.stub().DiffCheckpoints(&other.context(), diff);
  ASSERT_THAT(other.Finish(), IsOk());
  EXPECT_EQ(other.last().tables(0).differing_row_count(),
            delta->checkpoint().tables(0).saved_row_count());

  for (const char* name : {"checkpoints/d3", "checkpoints/c3"}) {
    TestCluster restored(directory_, 3);
    ASSERT_THAT(RestoreAll(restored, name), IsOk());
    EXPECT_EQ(restored.Digest(3), digest);
  }
  v1::DeleteCheckpointRequest erase;
  erase.set_name("checkpoints/c3");
  erase.set_unfinished_only(true);
  EXPECT_THAT(Invoke(cluster.stub(), &Stub::DeleteCheckpoint, erase),
              FailsWith(absl::StatusCode::kAlreadyExists, "CHECKPOINT_EXISTS"));
  erase.clear_unfinished_only();
  erase.set_name("checkpoints/d2");
  EXPECT_THAT(
      Invoke(cluster.stub(), &Stub::DeleteCheckpoint, erase),
      FailsWith(absl::StatusCode::kFailedPrecondition, "CHECKPOINT_IN_USE"));
}

TEST_F(CheckpointServiceTest, ADeltaNeedsABaseOfTheSameLife) {
  TestCluster cluster(directory_, 1);
  cluster.OpenSessions();
  cluster.Train(1);
  ASSERT_THAT(Save(cluster, "checkpoints/full", 1), IsOk());
  TestCluster other(directory_, 1);
  other.OpenSessions();
  other.Train(1);
  EXPECT_THAT(Save(other, "checkpoints/d", 1, "checkpoints/full"),
              FailsWith(absl::StatusCode::kFailedPrecondition, "NO_BASE"));
  EXPECT_THAT(Save(other, "checkpoints/d", 1, "checkpoints/none"),
              FailsWith(absl::StatusCode::kNotFound, "NO_SUCH_CHECKPOINT"));
  ASSERT_THAT(RestoreAll(other, "checkpoints/full"), IsOk());
  EXPECT_THAT(Save(other, "checkpoints/d", 1, "checkpoints/full"), IsOk());
}

TEST_F(CheckpointServiceTest, ANewOneOfABasesNameIsNotThatBase) {
  TestCluster cluster(directory_, 1);
  cluster.OpenSessions();
  cluster.Train(1);
  ASSERT_THAT(Save(cluster, "checkpoints/full", 1), IsOk());
  cluster.Train(2);
  ASSERT_THAT(Save(cluster, "checkpoints/b", 2), IsOk());
  v1::DeleteCheckpointRequest erase;
  erase.set_name("checkpoints/b");
  ASSERT_THAT(Invoke(cluster.stub(), &Stub::DeleteCheckpoint, erase), IsOk());
  v1::CompactCheckpointRequest compact;
  compact.set_name("checkpoints/full");
  compact.set_compact_name("checkpoints/b");
  Progress<v1::CompactCheckpointResponse> stream;
  stream.reader() =
      cluster.stub().CompactCheckpoint(&stream.context(), compact);
  ASSERT_THAT(stream.Finish(), IsOk());
  cluster.Train(3);
  EXPECT_THAT(Save(cluster, "checkpoints/d", 3, "checkpoints/b"),
              FailsWith(absl::StatusCode::kFailedPrecondition, "NO_BASE"));
}

TEST_F(CheckpointServiceTest, AWriteThatIsRefusedRemovesNothing) {
  TestCluster cluster(directory_, 1);
  cluster.OpenSessions();
  auto streams = StartWriting(cluster, "checkpoints/c", 0);
  ASSERT_THAT(streams[0]->Finish(), IsOk());
  cluster.Train(1);
  streams = StartWriting(cluster, "checkpoints/c", 0);
  EXPECT_THAT(streams[0]->Finish(),
              FailsWith(absl::StatusCode::kFailedPrecondition, "EVENT_PAST"));
  EXPECT_THAT(Publish(cluster, "checkpoints/c", 0), IsOk());
}

// The server cannot tell the end of a stream from that of its caller before it
// is told; what has been received until then is no state.
TEST_F(CheckpointServiceTest, ACallerThatGoesHandsInNothing) {
  {
    TestCluster cluster(directory_, 1);
    for (int32_t rank = 0; rank < 200; ++rank) {
      grpc::ClientContext context;
      SetDeadline(context);
      v1::PutTrainerStateResponse response;
      const auto writer = cluster.stub().PutTrainerState(&context, &response);
      v1::PutTrainerStateRequest message;
      message.set_name("checkpoints/c");
      message.set_trainer_rank(rank);
      message.set_size_bytes(200'000);
      message.set_state(std::string(100'000, 's'));
      ASSERT_TRUE(writer->Write(message));
      context.TryCancel();
      EXPECT_EQ(wire::FromGrpc(writer->Finish()).code(),
                absl::StatusCode::kCancelled);
    }
  }
  int64_t state_count = 0;
  for (int32_t rank = 0; rank < 200; ++rank) {
    state_count += std::filesystem::exists(
        absl::StrCat(directory_, "/c/trainers/", rank, ".json"));
  }
  EXPECT_EQ(state_count, 0);
}

TEST_F(CheckpointServiceTest, ItIsWholeOnceAllHaveHandedIn) {
  TestCluster cluster(directory_, 2);
  const auto incomplete =
      FailsWith(absl::StatusCode::kFailedPrecondition, "CHECKPOINT_INCOMPLETE");
  EXPECT_THAT(Publish(cluster, "checkpoints/c", 0), incomplete);
  auto streams = StartWriting(cluster, "checkpoints/c", 0);
  ASSERT_THAT(streams[0]->Finish(), IsOk());
  ASSERT_THAT(streams[1]->Finish(), IsOk());
  EXPECT_THAT(Publish(cluster, "checkpoints/c", 0, "", 2), incomplete);
  EXPECT_THAT(Publish(cluster, "checkpoints/c", 1), incomplete);
  const std::string state(3'000'000, 's');
  for (const int32_t rank : {0, 1}) {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::PutTrainerStateResponse response;
    const auto writer = cluster.stub().PutTrainerState(&context, &response);
    for (size_t at = 0; at < state.size(); at += 1'000'000) {
      v1::PutTrainerStateRequest message;
      if (at == 0) {
        message.set_name("checkpoints/c");
        message.set_trainer_rank(rank);
        message.set_size_bytes(std::ssize(state));
      }
      message.set_state(state.substr(at, 1'000'000));
      ASSERT_TRUE(writer->Write(message));
    }
    writer->WritesDone();
    ASSERT_THAT(wire::FromGrpc(writer->Finish()), IsOk());
    EXPECT_EQ(response.size_bytes(), 3'000'000);
  }
  EXPECT_THAT(Names(cluster), IsEmpty());
  EXPECT_THAT(Restore(cluster, 0, "checkpoints/c"),
              FailsWith(absl::StatusCode::kNotFound, "NO_SUCH_CHECKPOINT"));
  const auto published = Publish(cluster, "checkpoints/c", 0, "", 2);
  ASSERT_THAT(published, IsOk());
  EXPECT_EQ(published->checkpoint().trainer_state_count(), 2);
  EXPECT_THAT(Names(cluster), ElementsAre("checkpoints/c"));
  EXPECT_THAT(Publish(cluster, "checkpoints/c", 0, "", 2), IsOk());

  v1::GetTrainerStateRequest get;
  get.set_name("checkpoints/c");
  get.set_trainer_rank(1);
  grpc::ClientContext context;
  SetDeadline(context);
  const auto reader = cluster.stub(1).GetTrainerState(&context, get);
  std::string read;
  v1::GetTrainerStateResponse piece;
  while (reader->Read(&piece)) read += piece.state();
  EXPECT_THAT(wire::FromGrpc(reader->Finish()), IsOk());
  EXPECT_EQ(read, state);
}

TEST_F(CheckpointServiceTest, ACancelledOneLeavesNothing) {
  TestCluster cluster(directory_, 1);
  cluster.OpenSessions();
  {
    auto streams = StartWriting(cluster, "checkpoints/c", 1);
    ASSERT_TRUE(streams[0]->ReadOne());
    streams[0]->context().TryCancel();
    EXPECT_EQ(streams[0]->Finish().code(), absl::StatusCode::kCancelled);
  }
  // The shard is free for another as soon as it has noticed.
  absl::Status saved;
  do {
    saved = Save(cluster, "checkpoints/d", 0);
  } while (wire::ReasonOf(saved) == "CHECKPOINTS_OPEN");
  ASSERT_THAT(saved, IsOk());
  EXPECT_FALSE(std::filesystem::exists(directory_ + "/c/t"));
}

TEST_F(CheckpointServiceTest, AnAttemptTakesNoStateOfAnEarlierOne) {
  TestCluster cluster(directory_, 2);
  cluster.OpenSessions();
  for (const auto& writing : StartWriting(cluster, "checkpoints/c", 0)) {
    ASSERT_THAT(writing->Finish(), IsOk());
  }
  ASSERT_THAT(PutState(cluster, "checkpoints/c", 0, "old"), IsOk());
  cluster.Train(1);
  for (const auto& writing : StartWriting(cluster, "checkpoints/c", 1)) {
    ASSERT_THAT(writing->Finish(), IsOk());
  }
  EXPECT_THAT(Publish(cluster, "checkpoints/c", 1, "", 1),
              FailsWith(absl::StatusCode::kFailedPrecondition,
                        "CHECKPOINT_INCOMPLETE"));
  ASSERT_THAT(PutState(cluster, "checkpoints/c", 0, "new"), IsOk());
  EXPECT_THAT(Publish(cluster, "checkpoints/c", 1, "", 1), IsOk());
}

TEST_F(CheckpointServiceTest, OneThatWaitsForStatesOutlivesRetention) {
  TestCluster cluster(directory_, 1, /*keep_count=*/1);
  for (const auto& writing : StartWriting(cluster, "checkpoints/w", 0)) {
    ASSERT_THAT(writing->Finish(), IsOk());
  }
  ASSERT_THAT(Save(cluster, "checkpoints/a", 0), IsOk());
  ASSERT_THAT(Save(cluster, "checkpoints/b", 0), IsOk());
  EXPECT_THAT(Names(cluster), ElementsAre("checkpoints/b"));
  ASSERT_THAT(PutState(cluster, "checkpoints/w", 0, "s"), IsOk());
  EXPECT_THAT(Publish(cluster, "checkpoints/w", 0, "", 1), IsOk());
}

TEST_F(CheckpointServiceTest, OnlyTheNewestAreKept) {
  TestCluster cluster(directory_, 1, /*keep_count=*/2);
  cluster.OpenSessions();
  for (int64_t event = 1; event < 4; ++event) {
    cluster.Train(event);
    ASSERT_THAT(Save(cluster, absl::StrCat("checkpoints/e", event), event),
                IsOk());
  }
  EXPECT_THAT(Names(cluster), ElementsAre("checkpoints/e2", "checkpoints/e3"));
}

TEST_F(CheckpointServiceTest, PagesListAll) {
  TestCluster cluster(directory_, 1);
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_THAT(Save(cluster, absl::StrCat("checkpoints/", name), 0), IsOk());
  }
  v1::ListCheckpointsRequest request;
  request.set_page_size(2);
  auto page = Invoke(cluster.stub(), &Stub::ListCheckpoints, request);
  ASSERT_THAT(page, IsOk());
  EXPECT_EQ(page->checkpoints_size(), 2);
  request.set_page_token(page->next_page_token());
  page = Invoke(cluster.stub(), &Stub::ListCheckpoints, request);
  ASSERT_THAT(page, IsOk());
  ASSERT_EQ(page->checkpoints_size(), 1);
  EXPECT_EQ(page->checkpoints(0).name(), "checkpoints/c");
  EXPECT_THAT(page->next_page_token(), IsEmpty());
}

TEST_F(CheckpointServiceTest, ADamagedOneIsNamedAndNothingIsServed) {
  TestCluster cluster(directory_, 1);
  cluster.OpenSessions();
  cluster.Train(1);
  ASSERT_THAT(Save(cluster, "checkpoints/c", 1), IsOk());
  const std::string path = directory_ + "/c/t/0-of-1.safetensors";
  {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-5, std::ios::end);
    const char flipped = static_cast<char>(file.get() ^ 1);
    file.seekp(-5, std::ios::end);
    file.put(flipped);
  }
  const auto damaged = FailsWith(absl::StatusCode::kDataLoss, "DAMAGED");
  const absl::Status verified = Verify(cluster, "checkpoints/c");
  EXPECT_THAT(verified, damaged);
  EXPECT_THAT(std::string(verified.message()), HasSubstr("0-of-1.safetensors"));
  const absl::Status restored = Restore(cluster, 0, "checkpoints/c");
  EXPECT_THAT(restored, damaged);
  EXPECT_THAT(wire::DetailsOf(restored)->metadata.at("file"),
              HasSubstr("0-of-1.safetensors"));
  EXPECT_THAT(cluster.server(0).Digest(kTable, 1),
              FailsWith(absl::StatusCode::kFailedPrecondition, "NOT_RESTORED"));
}

TEST_F(CheckpointServiceTest, WrongRequestsAreRefused) {
  TestCluster cluster(directory_, 1);
  cluster.OpenSessions();
  cluster.Train(1);
  const auto bad_name =
      FailsWith(absl::StatusCode::kInvalidArgument, "BAD_NAME");
  EXPECT_THAT(Save(cluster, "c", 1), bad_name);
  EXPECT_THAT(Save(cluster, "checkpoints/../c", 1), bad_name);
  EXPECT_THAT(Verify(cluster, "checkpoints/C"), bad_name);
  EXPECT_THAT(Save(cluster, "checkpoints/c", 0),
              FailsWith(absl::StatusCode::kFailedPrecondition, "EVENT_PAST"));
  EXPECT_THAT(Save(cluster, "checkpoints/c", -1),
              FailsWith(absl::StatusCode::kInvalidArgument, "BAD_EVENT"));
  ASSERT_THAT(Save(cluster, "checkpoints/c", 1), IsOk());
  EXPECT_THAT(Save(cluster, "checkpoints/c", 1),
              FailsWith(absl::StatusCode::kAlreadyExists, "CHECKPOINT_EXISTS"));

  TestServer plain;
  const auto stub = v1::CheckpointService::NewStub(plain.channel());
  EXPECT_THAT(
      Invoke(*stub, &Stub::ListCheckpoints, v1::ListCheckpointsRequest()),
      FailsWith(absl::StatusCode::kFailedPrecondition,
                "NO_CHECKPOINT_DIRECTORY"));
}

TEST_F(CheckpointServiceTest, ATableOfAnotherShapeIsRefusedUnchanged) {
  {
    TestCluster cluster(directory_, 1);
    ASSERT_THAT(Save(cluster, "checkpoints/c", 0), IsOk());
  }
  config::v1::ServerConfig config = TestServer::Config(0, 1);
  config.mutable_checkpoint()->set_directory(directory_);
  TestServer server(config);
  ASSERT_THAT(server.CreateTable(kTable, Spec(1, kRows + 1)), IsOk());
  const auto stub = v1::CheckpointService::NewStub(server.channel());
  v1::RestoreTableRequest request;
  request.set_name("checkpoints/c");
  request.set_table(kTable);
  Progress<v1::RestoreTableResponse> stream;
  stream.reader() = stub->RestoreTable(&stream.context(), request);
  const absl::Status restored = stream.Finish();
  EXPECT_THAT(restored, FailsWith(absl::StatusCode::kFailedPrecondition,
                                  "TABLE_DIFFERS"));
  EXPECT_THAT(std::string(restored.message()), HasSubstr("38"));
  EXPECT_THAT(server.Digest(kTable, 0), IsOk());
}

}  // namespace
}  // namespace rowhouse::testing
