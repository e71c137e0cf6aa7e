#include "client/examples/ngram_lm/process.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::ngram_lm {
namespace {

using rowhouse::testing::StatusIs;
using Result = Process::ReadResult;

constexpr absl::Duration kLong = absl::Seconds(60);

std::unique_ptr<Process> Shell(const std::string& script) {
  return Process::Start({"/bin/sh", "-c", script}).value();
}

// Whether the process is there and no zombie.
bool Runs(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  return name_end != text.npos && text.compare(name_end, 3, ") Z") != 0;
}

bool EndsSoon(pid_t pid) {
  for (int i = 0; i < 6000 && Runs(pid); ++i) poll(nullptr, 0, 10);
  return !Runs(pid);
}

TEST(ProcessTest, ItsOutputIsReadLineByLine) {
  const auto process = Shell("echo one; echo; printf 'no end'");
  std::string line;
  EXPECT_EQ(process->ReadLine(line, kLong), Result::kLine);
  EXPECT_EQ(line, "one");
  EXPECT_EQ(process->ReadLine(line, kLong), Result::kLine);
  EXPECT_EQ(line, "");
  EXPECT_EQ(process->ReadLine(line, kLong), Result::kLine);
  EXPECT_EQ(line, "no end");
  EXPECT_EQ(process->ReadLine(line, kLong), Result::kEnd);
  EXPECT_EQ(process->Wait(), 0);
}

TEST(ProcessTest, AReadEndsAtItsTimeout) {
  const auto process = Shell("exec sleep 600");
  std::string line;
  EXPECT_EQ(process->ReadLine(line, absl::Milliseconds(1)), Result::kTimeout);
}

TEST(ProcessTest, ArgumentsArriveAsTheyAre) {
  const auto process =
      Process::Start({"/bin/echo", "a b", "$HOME", "\"c\""}).value();
  std::string line;
  EXPECT_EQ(process->ReadLine(line, kLong), Result::kLine);
  EXPECT_EQ(line, "a b $HOME \"c\"");
}

TEST(ProcessTest, ItsExitCodeOrSignalIsKnown) {
  EXPECT_EQ(Shell("exit 3")->Wait(), 3);
  const auto process = Shell("exec cat /dev/zero");
  EXPECT_FALSE(process->Poll().has_value());
  process->Signal(SIGTERM);
  EXPECT_EQ(process->Wait(), -SIGTERM);
  EXPECT_EQ(process->Poll(), -SIGTERM);
  process->Signal(SIGTERM);  // To nobody.
}

TEST(ProcessTest, AProgramThatCannotBeRunIsNamed) {
  EXPECT_THAT(Process::Start({"/nowhere/program"}),
              StatusIs(absl::StatusCode::kNotFound,
                       "cannot run /nowhere/program: No such file"));
  EXPECT_THAT(Process::Start({}), StatusIs(absl::StatusCode::kNotFound, ""));
}

TEST(ProcessTest, ItEndsWithItsObject) {
  auto process = Shell("echo $$; exec sleep 600");
  std::string line;
  ASSERT_EQ(process->ReadLine(line, kLong), Result::kLine);
  process.reset();
  EXPECT_TRUE(EndsSoon(std::stoi(line)));
}

// The parent of the process under test is a child of this test.
class OrphanTest : public ::testing::TestWithParam<int> {};

TEST_P(OrphanTest, ItEndsWithAParentThatASignalEnded) {
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t parent = fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    const auto process =
        Process::Start({"/bin/sh", "-c", "echo $$; exec sleep 600"});
    std::string line;
    if (!process.ok()) _exit(1);
    (*process)->ReadLine(line, kLong);
    line += '\n';
    (void)!write(pipe_ends[1], line.data(), line.size());
    while (true) pause();
  }
  char text[32] = {};
  ASSERT_GT(read(pipe_ends[0], text, sizeof(text) - 1), 0);
  kill(parent, GetParam());
  waitpid(parent, nullptr, 0);
  EXPECT_TRUE(EndsSoon(std::stoi(text)));
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

INSTANTIATE_TEST_SUITE_P(Signals, OrphanTest,
                         ::testing::Values(SIGINT, SIGTERM, SIGKILL));

}  // namespace
}  // namespace rowhouse::ngram_lm
