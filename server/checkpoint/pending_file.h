#ifndef ROWHOUSE_SERVER_CHECKPOINT_PENDING_FILE_H_
#define ROWHOUSE_SERVER_CHECKPOINT_PENDING_FILE_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/checkpoint/files.h"

namespace rowhouse::server {

/// The end of the names of files that are not finished.
inline constexpr std::string_view kTemporarySuffix = ".tmp";

/// A file that is written under a name of its own, `PATH.NUMBER.tmp`, and gets
/// its own name when it is finished: whoever opens `path` finds all of it or,
/// after a crash too, what was there before.
///
/// Thread-compatible; `file` as it says.
class PendingFile {
 public:
  /// `files` must outlive it.
  static absl::StatusOr<std::unique_ptr<PendingFile>> Create(
      Files& files, const std::string& path);

  /// Removes the file unless `Finish` was OK.
  ~PendingFile();
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  File& file() { return *file_; }
  const std::string& path() const { return path_; }

  /// Returns when the file and its name outlive a crash. Not called twice.
  absl::Status Finish();

 private:
  PendingFile(Files& files, std::string path, std::string temporary_path,
              std::unique_ptr<File> file);

  Files& files_;
  const std::string path_;
  const std::string temporary_path_;
  std::unique_ptr<File> file_;  // Null once finished.
};

/// Writes a file as a `PendingFile`.
absl::Status WriteWholeFile(Files& files, const std::string& path,
                            std::string_view content);

/// Errors:
///   kNotFound  there is no such file.
absl::StatusOr<std::string> ReadWholeFile(Files& files,
                                          const std::string& path);

/// Makes a directory in one that is there, such that it outlives a crash.
absl::Status MakeLastingDirectory(Files& files, const std::string& path);

/// Removes a file such that a crash does not bring it back.
absl::Status RemoveLasting(Files& files, const std::string& path);

/// The directory that `path` is in.
std::string DirectoryOf(const std::string& path);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_PENDING_FILE_H_
