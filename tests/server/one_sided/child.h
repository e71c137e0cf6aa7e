#ifndef ROWHOUSE_TESTS_SERVER_ONE_SIDED_CHILD_H_
#define ROWHOUSE_TESTS_SERVER_ONE_SIDED_CHILD_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/integration/process.h"

namespace rowhouse::testing {

/// This program again, as another process that runs one disabled test, a role
/// of `suite`, with `arguments` (`ChildArguments`). It ends when this goes.
std::unique_ptr<Process> StartChild(const std::string& role,
                                    const std::vector<std::string>& arguments,
                                    const std::string& suite = "OneSidedChild");

/// In a child: what it was started with.
std::vector<std::string> ChildArguments();

/// In a child: says `line` to its parent.
void Tell(const std::string& line);

/// Waits until a child says a line that begins with `what`, and returns the
/// rest of that line; the child's errors when it ends without.
std::string AwaitTold(Process& child, const std::string& what);

/// Kills `server` once `client` has said `at_work`, and expects that the client
/// then says that it ended with an error that names `address`, and ends well.
void ExpectClientOutlives(Process& server, Process& client,
                          const std::string& at_work,
                          const std::string& address);

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_SERVER_ONE_SIDED_CHILD_H_
