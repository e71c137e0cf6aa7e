#include "tests/server/one_sided/child.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/kernels/require_gpu.h"

namespace rowhouse::testing {
namespace {

constexpr char kArguments[] = "ROWHOUSE_TEST_CHILD";
constexpr std::string_view kTold = "told: ";

}  // namespace

std::unique_ptr<Process> StartChild(const std::string& role,
                                    const std::vector<std::string>& arguments,
                                    const std::string& suite) {
  // By way of env(1): the parent has threads, which may read the environment.
  static std::atomic<int> count = 0;
  return std::make_unique<Process>(std::vector<std::string>{
      "/usr/bin/env",
      std::string(kArguments) + "=" + absl::StrJoin(arguments, "|"),
      (kernels::OneGpuAsTwo() ? "NCCL_HOSTID=child" : "ROWHOUSE_CHILD=") +
          std::to_string(++count),
      "/proc/" + std::to_string(getpid()) + "/exe",
      "--gtest_filter=" + suite + ".DISABLED_" + role,
      "--gtest_also_run_disabled_tests", "--gtest_brief=1"});
}

std::vector<std::string> ChildArguments() {
  const char* const arguments = std::getenv(kArguments);
  if (arguments == nullptr) return {};
  return absl::StrSplit(arguments, '|');
}

void Tell(const std::string& line) { std::cout << kTold << line << std::endl; }

std::string AwaitTold(Process& child, const std::string& what) {
  const std::string begin = std::string(kTold) + what;
  while (true) {
    const std::string line = child.ReadOut();
    if (line.starts_with(begin)) return line.substr(begin.size());
    if (line.empty()) break;
  }
  ADD_FAILURE() << "the child did not say " << what << ": "
                << child.RestOfErr();
  return "";
}

void ExpectClientOutlives(Process& server, Process& client,
                          const std::string& at_work,
                          const std::string& address) {
  AwaitTold(client, at_work);
  server.Signal(SIGKILL);
  EXPECT_EQ(server.Wait(), -SIGKILL);
  EXPECT_THAT(AwaitTold(client, "ended with "), ::testing::HasSubstr(address));
  EXPECT_EQ(client.Wait(), 0);
}

}  // namespace rowhouse::testing
