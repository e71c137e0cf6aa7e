#include "server/socket_path.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace rowhouse::server {

SocketPath::SocketPath(std::string path)
    : path_(std::move(path)),
      bound_(absl::StrCat(
          path_, ".", absl::Hex(std::random_device()(), absl::kZeroPad8))) {}

SocketPath::SocketPath(SocketPath&& other) noexcept
    : path_(std::move(other.path_)),
      bound_(std::move(other.bound_)),
      published_(std::exchange(other.published_, std::nullopt)) {}

SocketPath::~SocketPath() {
  if (published_.has_value() && Find(path_) == published_) {
    unlink(path_.c_str());
  }
}

absl::Status SocketPath::Publish() {
  const std::optional<FileId> bound = Find(bound_);
  struct stat there = {};
  const bool free =
      lstat(path_.c_str(), &there) != 0 || S_ISSOCK(there.st_mode);
  if (!free) errno = EEXIST;
  if (!free || std::rename(bound_.c_str(), path_.c_str()) != 0) {
    const int error = errno;
    unlink(bound_.c_str());
    return absl::UnavailableError(absl::StrCat(
        "unix:", path_, " cannot be bound: ", std::strerror(error)));
  }
  published_ = bound;
  return absl::OkStatus();
}

std::optional<SocketPath::FileId> SocketPath::Find(const std::string& path) {
  struct stat found = {};
  if (lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) {
    return std::nullopt;
  }
  return FileId{found.st_dev, found.st_ino};
}

}  // namespace rowhouse::server
