#include "bench/support/role.h"

#include <unistd.h>

#include <cstdlib>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace rowhouse::bench {
namespace {

constexpr char kVariable[] = "ROWHOUSE_BENCH_ROLE";

std::map<std::string, Role::Run>& Roles() {
  static std::map<std::string, Role::Run> roles;
  return roles;
}

}  // namespace

Role::Role(std::string name, Run run) { Roles()[std::move(name)] = run; }

std::vector<std::string> CommandOf(const std::string& name,
                                   const std::vector<std::string>& arguments) {
  // By way of env(1): this process has threads, which may read the environment.
  return {
      "/usr/bin/env",
      absl::StrCat(kVariable, "=", name, "|", absl::StrJoin(arguments, "|")),
      absl::StrCat("/proc/", getpid(), "/exe")};
}

bool PlayRole() {
  const char* const set = std::getenv(kVariable);
  if (set == nullptr) return false;
  std::vector<std::string> words = absl::StrSplit(set, '|');
  const auto role = Roles().find(words.front());
  if (role == Roles().end()) return false;
  words.erase(words.begin());
  role->second(words);
  return true;
}

}  // namespace rowhouse::bench
