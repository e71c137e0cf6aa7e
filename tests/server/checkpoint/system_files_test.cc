#include <sys/resource.h>

#include <csignal>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/wire/error.h"
#include "server/checkpoint/files.h"
#include "server/checkpoint/pending_file.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::IsOk;
using testing::StatusIs;

std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text));
}

class SystemFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "rowhouse_files_XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override {
    for (const std::string& name : Names()) {
      EXPECT_THAT(files_.Remove(Path(name)), IsOk());
    }
    EXPECT_THAT(files_.Remove(directory_), IsOk());
  }
  std::string Path(std::string_view name) const {
    return directory_ + "/" + std::string(name);
  }
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    const auto entries = files_.List(directory_);
    EXPECT_THAT(entries, IsOk());
    for (const DirectoryEntry& entry : *entries) names.push_back(entry.name);
    return names;
  }

  Files& files_ = SystemFiles();
  std::string directory_;
};

TEST_F(SystemFilesTest, WritesAtOffsetsAndReadsThem) {
  const auto file = files_.Create(Path("a"));
  ASSERT_THAT(file, IsOk());
  ASSERT_THAT((*file)->WriteAt(4, BytesOf("later")), IsOk());
  ASSERT_THAT((*file)->WriteAt(0, BytesOf("soon")), IsOk());
  EXPECT_THAT((*file)->Sync(), IsOk());
  EXPECT_EQ(*(*file)->SizeBytes(), 9);
  EXPECT_EQ(*ReadWholeFile(files_, Path("a")), "soonlater");
  EXPECT_THAT(files_.Create(Path("a")),
              StatusIs(absl::StatusCode::kAlreadyExists, "/a is there"));
}

TEST_F(SystemFilesTest, NamesTheEndThatCameTooSoon) {
  ASSERT_THAT(WriteWholeFile(files_, Path("a"), "abc"), IsOk());
  const auto file = files_.Open(Path("a"));
  ASSERT_THAT(file, IsOk());
  std::vector<std::byte> bytes(4);
  EXPECT_THAT((*file)->ReadAt(1, bytes),
              StatusIs(absl::StatusCode::kDataLoss,
                       "/a, at byte 3: the file ends here; wanted are 2 "));
}

// The system writes what still fits and refuses the rest.
TEST_F(SystemFilesTest, AShortWriteIsAFullDisk) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 10;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status =
      WriteWholeFile(files_, Path("a"), "more than ten bytes");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted,
                               "cannot be written: File too large"));
  EXPECT_EQ(wire::ReasonOf(status), "NOT_WRITABLE");
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(SystemFilesTest, SaysWhyAFileCannotBeWritten) {
  ASSERT_THAT(WriteWholeFile(files_, Path("a"), "x"), IsOk());
  const auto file = files_.Open(Path("a"));  // To read.
  ASSERT_THAT(file, IsOk());
  EXPECT_THAT((*file)->WriteAt(0, BytesOf("y")),
              StatusIs(absl::StatusCode::kInternal,
                       "/a cannot be written: Bad file descriptor"));
}

TEST_F(SystemFilesTest, SaysWhatIsFree) {
  EXPECT_GT(*files_.FreeBytes(directory_), 0);
}

TEST_F(SystemFilesTest, APendingFileTakesTheOldOnesPlace) {
  ASSERT_THAT(WriteWholeFile(files_, Path("a"), "old"), IsOk());
  auto pending = PendingFile::Create(files_, Path("a"));
  ASSERT_THAT(pending, IsOk());
  ASSERT_THAT((*pending)->file().WriteAt(0, BytesOf("new")), IsOk());
  EXPECT_EQ(Names().size(), 2U);
  EXPECT_EQ(*ReadWholeFile(files_, Path("a")), "old");
  ASSERT_THAT((*pending)->Finish(), IsOk());
  EXPECT_EQ(*ReadWholeFile(files_, Path("a")), "new");
  EXPECT_THAT(Names(), ElementsAre("a"));
}

TEST_F(SystemFilesTest, APendingFileThatIsLetGoLeavesNothing) {
  ASSERT_THAT(PendingFile::Create(files_, Path("a")), IsOk());
  EXPECT_THAT(Names(), IsEmpty());
}

TEST_F(SystemFilesTest, ListsDirectoriesAndFilesByName) {
  ASSERT_THAT(MakeLastingDirectory(files_, Path("b")), IsOk());
  ASSERT_THAT(MakeLastingDirectory(files_, Path("b")), IsOk());
  ASSERT_THAT(WriteWholeFile(files_, Path("a"), "x"), IsOk());
  const auto entries = files_.List(directory_);
  ASSERT_THAT(entries, IsOk());
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ((*entries)[0].name, "a");
  EXPECT_FALSE((*entries)[0].is_directory);
  EXPECT_EQ((*entries)[1].name, "b");
  EXPECT_TRUE((*entries)[1].is_directory);
}

TEST_F(SystemFilesTest, WhatIsNotThereIsNotFound) {
  EXPECT_THAT(files_.Open(Path("a")),
              StatusIs(absl::StatusCode::kNotFound, "there is no "));
  EXPECT_THAT(files_.List(Path("a")),
              StatusIs(absl::StatusCode::kNotFound, "there is no "));
  EXPECT_FALSE(*files_.Exists(Path("a")));
  EXPECT_THAT(files_.Remove(Path("a")), IsOk());
  EXPECT_THAT(files_.Create(Path("a/b")),
              StatusIs(absl::StatusCode::kInternal, "/a/b cannot be written"));
}

}  // namespace
}  // namespace rowhouse::server
