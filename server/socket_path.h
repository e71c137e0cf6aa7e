#ifndef ROWHOUSE_SERVER_SOCKET_PATH_H_
#define ROWHOUSE_SERVER_SOCKET_PATH_H_

#include <sys/types.h>

#include <cstddef>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace rowhouse::server {

/// The path at which a server's Unix domain socket is to be found.
///
/// gRPC removes whatever socket is at the path that it bound when it stops
/// listening: a successor's, too. So it binds a name beside the path, and the
/// socket is then moved to the path, in place of a socket that is there.
///
/// Thread-compatible.
class SocketPath {
 public:
  /// Of the longest path; a name beside it must be one, too.
  static constexpr size_t kMostBytes = 98;

  explicit SocketPath(std::string path);
  SocketPath(SocketPath&& other) noexcept;
  SocketPath& operator=(SocketPath&&) = delete;

  /// Removes the path, if it is still this server's socket.
  ///
  /// REQUIRES: the server listens still; else another file may have its number.
  ~SocketPath();

  /// The name to bind.
  const std::string& bound() const { return bound_; }

  /// Moves the bound socket to the path.
  ///
  /// Errors:
  ///   kUnavailable  something is there that is no socket, or there is no right
  ///                 to write there; the bound name is removed.
  absl::Status Publish();

 private:
  struct FileId {
    dev_t device = 0;
    ino_t inode = 0;
    friend bool operator==(const FileId&, const FileId&) = default;
  };
  // Nothing where there is no socket.
  static std::optional<FileId> Find(const std::string& path);

  std::string path_;
  std::string bound_;
  std::optional<FileId> published_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SOCKET_PATH_H_
