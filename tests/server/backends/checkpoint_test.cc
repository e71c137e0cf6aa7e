// Checkpoints written while a table is trained, and restored onto servers of
// each backend and other counts.

#include "rowhouse/checkpoint.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "tests/server/backends/backend_cluster.h"
#include "tests/server/backends/training.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::testing {
namespace {

constexpr int64_t kEvents = 5;
constexpr int64_t kSaved = 3;

class BackendCheckpointTest : public OnBackendTest {
 protected:
  BackendCheckpointTest() {
    std::string name =
        (std::filesystem::temp_directory_path() / "rowhouse_backends_XXXXXX")
            .string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  ~BackendCheckpointTest() override { std::filesystem::remove_all(directory_); }

  BackendCluster WithCheckpoints(const std::string& backend, int32_t count) {
    return Servers(backend, count, int64_t{1} << 28, directory_);
  }

  // Trains on `from` with a checkpoint armed for event `kSaved`, and expects
  // its digest on servers of `to`.
  void SaveAndRestore(const std::string& from, const std::string& to,
                      client::TableSpec spec) {
    client::TableDigest wanted;
    {
      const BackendCluster servers = WithCheckpoints(from, 2);
      spec.shard_count = 2;
      ASSERT_THAT(servers->CreateTable("t", spec), IsOk());
      const auto job = client::Checkpoints(*servers).Start(
          {.name = "c", .tables = {{.name = "t", .event = kSaved}}});
      ASSERT_THAT(job, IsOk());
      const Outcome outcome = Train(*servers, spec, kEvents, 4);
      wanted = outcome.digests[kSaved];
      ASSERT_THAT((*job)->Await(), IsOk());
    }
    for (const int32_t count : {1, 3}) {
      const BackendCluster servers = WithCheckpoints(to, count);
      ASSERT_THAT(client::Checkpoints(*servers).Restore(
                      {.name = "c", .shard_count = count}),
                  IsOk());
      const auto digest = servers->Digest("t", kSaved);
      ASSERT_THAT(digest, IsOk());
      EXPECT_EQ(digest->event, kSaved);
      EXPECT_EQ(digest->digest, wanted.digest);
    }
  }

  std::string directory_;
};

TEST_P(BackendCheckpointTest, ASparseTableMovesToTheCpu) {
  SaveAndRestore(GetParam(), "cpu", SparseSpec(2));
}

TEST_P(BackendCheckpointTest, ASparseTableMovesFromTheCpu) {
  SaveAndRestore("cpu", GetParam(), SparseSpec(2));
}

TEST_P(BackendCheckpointTest, ADenseTableMovesToTheCpu) {
  SaveAndRestore(GetParam(), "cpu", DenseSpec(2));
}

TEST_P(BackendCheckpointTest, ADenseTableMovesFromTheCpu) {
  SaveAndRestore("cpu", GetParam(), DenseSpec(2));
}

INSTANTIATE_TEST_SUITE_P(Backends, BackendCheckpointTest,
                         ::testing::Values("cpu", "cuda"), NameOfBackend);

}  // namespace
}  // namespace rowhouse::testing
