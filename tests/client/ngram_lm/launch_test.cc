// The program: its flags, and what becomes of its processes.

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/examples/ngram_lm/process.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rowhouse::ngram_lm {
namespace {

using ::testing::HasSubstr;

struct Result {
  int exit_code = 0;
  std::string text;  // Both streams.
};

Result RunProgram(const std::string& arguments) {
  const auto process =
      Process::Start({"/bin/sh", "-c",
                      std::string("exec ") + ROWHOUSE_NGRAM_LM_BINARY + " " +
                          arguments + " 2>&1"})
          .value();
  Result result;
  std::string line;
  while (process->ReadLine(line, absl::InfiniteDuration()) ==
         Process::ReadResult::kLine) {
    result.text += line + "\n";
  }
  result.exit_code = process->Wait();
  return result;
}

void ExpectRefusal(const std::string& arguments, int exit_code,
                   const std::string& message) {
  const Result result = RunProgram(arguments);
  EXPECT_EQ(result.exit_code, exit_code) << arguments;
  EXPECT_THAT(result.text, HasSubstr(message));
}

TEST(LaunchTest, BadFlagsAreRefused) {
  ExpectRefusal("", 2, "--text is not set");
  ExpectRefusal("--text=a --lm-slices=0", 2,
                "--lm_slices is 0; it must be in [1, 64]");
  ExpectRefusal("--text=a --epochs=-1", 2, "--epochs is -1");
  ExpectRefusal("--text=a more", 2, "'more' is not a flag");
  ExpectRefusal("--nothing=1", 1, "nothing");
}

TEST(LaunchTest, HelpNamesEveryFlag) {
  const Result result = RunProgram("--help");
  for (const char* flag : {"--text", "--shards", "--lm_slices", "--trainers",
                           "--output", "--backend", "--epochs"}) {
    EXPECT_THAT(result.text, HasSubstr(flag));
  }
}

TEST(LaunchTest, AServerThatDoesNotStartIsNamed) {
  const std::string output =
      ::testing::TempDir() + "/ngram_lm_launch_" + std::to_string(getpid());
  ExpectRefusal("--text=a --output=" + output + " --server=/nowhere", 1,
                "cannot run /nowhere");
  ExpectRefusal("--text=a --output=" + output + " --server=/bin/true", 1,
                "server 0 did not say where it listens");
  ExpectRefusal("--text=a --output=" + output + " --backend=abacus", 1,
                "backend is 'abacus'; it must be 'cpu' or 'cuda'");
  ExpectRefusal("--text=a --output=/dev/null/run", 1,
                "cannot make the folder /dev/null/run");
  std::filesystem::remove_all(output);
}

}  // namespace
}  // namespace rowhouse::ngram_lm
