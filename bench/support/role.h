#ifndef ROWHOUSE_BENCH_SUPPORT_ROLE_H_
#define ROWHOUSE_BENCH_SUPPORT_ROLE_H_

#include <string>
#include <vector>

namespace rowhouse::bench {

/// What a child of a benchmark does, in this program, in place of benchmarks:
/// the other end of something. Define one at namespace scope.
struct Role {
  using Run = void (*)(const std::vector<std::string>& arguments);

  Role(std::string name, Run run);
};

/// The command of a child that plays a role; for `Process::Start`.
std::vector<std::string> CommandOf(const std::string& name,
                                   const std::vector<std::string>& arguments);

/// Plays the role that this process was started for, if any, and returns
/// whether there was one.
bool PlayRole();

}  // namespace rowhouse::bench

#endif  // ROWHOUSE_BENCH_SUPPORT_ROLE_H_
