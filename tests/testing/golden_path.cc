#include "tests/testing/golden_path.h"

#include <cstdlib>
#include <filesystem>
#include <system_error>

namespace rowhouse::testing {
namespace {

namespace fs = std::filesystem;

fs::path GoldenFolder() {
  if (const char* const named = std::getenv("ROWHOUSE_GOLDEN_DIR")) {
    return named;
  }
  std::error_code fault;
  fs::path above = fs::read_symlink("/proc/self/exe", fault).parent_path();
  while (above.has_relative_path()) {
    if (fs::is_directory(above / "tests/golden", fault)) break;
    above = above.parent_path();
  }
  return above / "tests/golden";
}

}  // namespace

std::string GoldenPath(const std::string& name) {
  return GoldenFolder() / name;
}

}  // namespace rowhouse::testing
