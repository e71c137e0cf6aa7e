// The demo trains on two real servers and is recorded; the log is replayed on
// five others.

#include <stdlib.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/examples/ngram_lm/corpus.h"
#include "client/examples/ngram_lm/recipe.h"
#include "client/examples/ngram_lm/tables.h"
#include "client/push_log/push_log.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "rowhouse/cluster.h"
#include "tests/integration/process.h"
#include "tests/testing/random.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

using client::Cluster;
using client::TableDigest;
using client::push_log::Record;
using client::push_log::RecordProgress;
using client::push_log::RecordReport;
using client::push_log::Replay;
using ::testing::StartsWith;

constexpr char kListening[] = "rowhouse-server listening on ";
constexpr int64_t kTokens = 256;  // Of a trainer in a step.
constexpr int32_t kVocabulary = 64;
constexpr int32_t kDim = 8;
constexpr int64_t kNgramRows = 4096;
constexpr int32_t kTrainers = 2;

// Servers of one cluster, each a process.
class Servers {
 public:
  Servers(int32_t count, const std::string& folder) {
    const std::string config = absl::StrCat(folder, "/servers", count);
    std::ofstream(config) << "cluster_id: 'test' thread_count: 1 server_count: "
                          << count;
    for (int32_t index = 0; index < count; ++index) {
      processes_.push_back(std::make_unique<Process>(std::vector<std::string>{
          ROWHOUSE_SERVER_BINARY, "--config=" + config,
          absl::StrCat("--server_index=", index), "--listen=127.0.0.1:0"}));
      const std::string line = processes_.back()->ReadOut();
      EXPECT_THAT(line, StartsWith(kListening));
      addresses_.push_back(line.substr(sizeof(kListening) - 1));
    }
  }

  const std::vector<std::string>& addresses() const { return addresses_; }

  std::unique_ptr<Cluster> Connect() const {
    client::ClusterOptions options;
    options.addresses = addresses_;
    auto cluster = Cluster::Connect(options);
    EXPECT_THAT(cluster, IsOk());
    return *std::move(cluster);
  }

 private:
  std::vector<std::unique_ptr<Process>> processes_;
  std::vector<std::string> addresses_;
};

class DemoLogTest : public ::testing::Test {
 protected:
  DemoLogTest() {
    std::string pattern = ::testing::TempDir() + "demo_log_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    Random random(51);
    // 20 blocks: one is held out; over 30 steps of the others.
    for (int i = 0; i < 20 * 1024; ++i) {
      absl::StrAppend(&text_, "w", random.Integer(1, 50), i % 16 ? " " : "\n");
    }
    std::ofstream(folder_ + "/text") << text_;
  }
  ~DemoLogTest() override { std::filesystem::remove_all(folder_); }

  // As each trainer of the demo would create them.
  void CreateTables(Cluster& cluster) const {
    const auto corpus =
        ngram_lm::MakeCorpus(text_, {.max_vocabulary_size = kVocabulary});
    ASSERT_THAT(corpus, IsOk());
    ASSERT_THAT(ngram_lm::CreateTables(
                    cluster,
                    {.vocabulary_size = corpus->vocabulary.size(),
                     .dim = kDim,
                     .ngram_row_count = kNgramRows,
                     .ngram_shard_count = 2,
                     .word_shard_count = 2,
                     .trainer_count = kTrainers,
                     .step_token_count = kTokens,
                     .call_token_count = std::ssize(corpus->held_out.front())},
                    ngram_lm::Recipe()),
                IsOk());
  }

  void RunDemo(const Servers& servers) const {
    std::vector<std::unique_ptr<Process>> trainers;
    for (int32_t rank = 0; rank < kTrainers; ++rank) {
      trainers.push_back(std::make_unique<Process>(std::vector<std::string>{
          ROWHOUSE_NGRAM_LM_BINARY, "--text=" + folder_ + "/text",
          "--output=" + folder_, absl::StrCat("--vocabulary=", kVocabulary),
          absl::StrCat("--dim=", kDim),
          absl::StrCat("--ngram_rows=", kNgramRows),
          absl::StrCat("--tokens=", kTokens),
          absl::StrCat("--trainers=", kTrainers),
          absl::StrCat("--trainer_rank=", rank),
          "--addresses=" + absl::StrJoin(servers.addresses(), ",")}));
    }
    for (const auto& trainer : trainers) {
      trainer->RestOfOut();
      EXPECT_EQ(trainer->Wait(), 0) << trainer->RestOfErr();
    }
  }

  std::string Path(const std::string& name) const {
    return folder_ + "/" + name;
  }

  std::string folder_;
  std::string text_;
};

// A recording of a table until it is told to end.
class Recording {
 public:
  // Returns once it has begun.
  Recording(Cluster& cluster, const std::string& table, const std::string& path)
      : thread_([this, &cluster, table, path] {
          report_ = Record(cluster, table, path,
                           {.stop = stop_.get_token(),
                            .progress = [this](const RecordProgress& progress) {
                              event_ = progress.event;
                              begun_ = true;
                            }});
          begun_ = true;
          ended_ = true;
        }) {
    while (!begun_) std::this_thread::yield();
  }
  ~Recording() {
    stop_.request_stop();
    if (thread_.joinable()) thread_.join();
  }

  // Ends it once it has this event.
  RecordReport StopAfter(int64_t event) {
    while (event_ < event && !ended_) std::this_thread::yield();
    stop_.request_stop();
    thread_.join();
    EXPECT_THAT(report_, IsOk());
    return report_.value_or(RecordReport());
  }

 private:
  std::stop_source stop_;
  std::atomic<bool> begun_ = false;
  std::atomic<bool> ended_ = false;
  std::atomic<int64_t> event_ = -1;
  absl::StatusOr<RecordReport> report_ = absl::UnknownError("under way");
  std::thread thread_;
};

TEST_F(DemoLogTest, ReplaysWithTheSameDigests) {
  const Servers trained(2, folder_);
  const std::unique_ptr<Cluster> cluster = trained.Connect();
  CreateTables(*cluster);
  TableDigest ngrams;
  TableDigest words;
  {
    Recording of_ngrams(*cluster, ngram_lm::kNgramTable, Path("ngrams"));
    Recording of_words(*cluster, ngram_lm::kWordTable, Path("words"));
    RunDemo(trained);
    ngrams = *cluster->Digest(ngram_lm::kNgramTable);
    words = *cluster->Digest(ngram_lm::kWordTable);
    EXPECT_GT(words.event, 30);
    EXPECT_GT(ngrams.event, 9);
    const RecordReport recorded = of_ngrams.StopAfter(ngrams.event);
    EXPECT_THAT(recorded.fault, IsOk());
    EXPECT_EQ(recorded.start_event, 0);
    EXPECT_EQ(recorded.end_digest, ngrams);
    EXPECT_EQ(of_words.StopAfter(words.event).end_digest, words);
  }

  const Servers fresh(5, folder_);
  const std::unique_ptr<Cluster> other = fresh.Connect();
  for (const int32_t shard_count : {1, 3, 5}) {
    SCOPED_TRACE(shard_count);
    const auto replayed = Replay(*other, absl::StrCat("ngrams", shard_count),
                                 Path("ngrams"), {.shard_count = shard_count});
    ASSERT_THAT(replayed, IsOk());
    EXPECT_EQ(replayed->digest, ngrams);
    EXPECT_EQ(replayed->digests_equal(), true);
    EXPECT_EQ(replayed->warning, "");
  }
  // The words' parts are of head calls: on the same slices.
  const auto replayed = Replay(*other, "words", Path("words"));
  ASSERT_THAT(replayed, IsOk());
  EXPECT_EQ(replayed->digest, words);
  EXPECT_TRUE(replayed->has_head_parts);
  EXPECT_EQ(replayed->differing_head_part_count, 0);
}

}  // namespace
}  // namespace rowhouse::testing
