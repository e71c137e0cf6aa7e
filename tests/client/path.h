#ifndef ROWHOUSE_TESTS_CLIENT_PATH_H_
#define ROWHOUSE_TESTS_CLIENT_PATH_H_

#include <unistd.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace rowhouse::testing {

/// The way between a client and servers of its host.
enum class Path : uint8_t { kPort, kSocket, kOneSided };

/// What server `index` of a test listens on: a free port of the loopback, or a
/// socket of its own.
inline std::string ListenAddress(Path path, int32_t index) {
  if (path != Path::kSocket) return "127.0.0.1:0";
  return absl::StrCat("unix:", ::testing::TempDir(), "/rowhouse_path_",
                      getpid(), "_", index);
}

/// All of them; names of tests by them.
inline auto Paths() {
  return ::testing::Values(Path::kPort, Path::kSocket, Path::kOneSided);
}
inline std::string PathName(const ::testing::TestParamInfo<Path>& path) {
  switch (path.param) {
    case Path::kPort:
      return "Port";
    case Path::kSocket:
      return "Socket";
    case Path::kOneSided:
      return "OneSided";
  }
  return "";
}

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_CLIENT_PATH_H_
