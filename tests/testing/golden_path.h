#ifndef ROWHOUSE_TESTS_TESTING_GOLDEN_PATH_H_
#define ROWHOUSE_TESTS_TESTING_GOLDEN_PATH_H_

#include <string>

namespace rowhouse::testing {

/// Path of the golden file `name`: in the folder ROWHOUSE_GOLDEN_DIR, or where
/// that is not set in the nearest `tests/golden` above this program, in a
/// source tree as in a bundle. Where there is none, a path that cannot be read.
std::string GoldenPath(const std::string& name);

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_TESTING_GOLDEN_PATH_H_
