#include "client/cli/suggest.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace rowhouse::cli {
namespace {

const std::vector<std::string>& Commands() {
  static const auto& commands = *new std::vector<std::string>(
      {"status", "list", "describe", "pull", "delete"});
  return commands;
}

TEST(SuggestTest, ASlipFindsTheCommand) {
  EXPECT_EQ(Nearest("stats", Commands()), "status");
  EXPECT_EQ(Nearest("sttaus", Commands()), "status");
  EXPECT_EQ(Nearest("lsit", Commands()), "list");
  EXPECT_EQ(Nearest("descrbe", Commands()), "describe");
  EXPECT_EQ(Nearest("list", Commands()), "list");
}

TEST(SuggestTest, AnotherWordFindsNone) {
  EXPECT_EQ(Nearest("frobnicate", Commands()), "");
  EXPECT_EQ(Nearest("x", Commands()), "");
  EXPECT_EQ(Nearest("pull", {}), "");
}

}  // namespace
}  // namespace rowhouse::cli
