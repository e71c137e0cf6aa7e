#ifndef ROWHOUSE_SERVER_CHECKPOINT_FILES_H_
#define ROWHOUSE_SERVER_CHECKPOINT_FILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace rowhouse::server {

/// An open file; closed when destroyed, which syncs nothing.
///
/// Reads and writes of different bytes may be made at once, from any threads.
class File {
 public:
  virtual ~File() = default;

  /// Writes all of `bytes`. After an error some of them may be written.
  ///
  /// Errors:
  ///   kResourceExhausted       NOT_WRITABLE: the disk is full.
  ///   kInternal, kUnavailable  NOT_WRITABLE: other faults.
  virtual absl::Status WriteAt(int64_t offset,
                               std::span<const std::byte> bytes) = 0;

  /// Fills all of `bytes`.
  ///
  /// Errors:
  ///   kDataLoss     DAMAGED: the file ends before that, or the disk cannot
  ///                 read it; names the offset.
  ///   kUnavailable  NOT_READABLE.
  virtual absl::Status ReadAt(int64_t offset, std::span<std::byte> bytes) = 0;

  /// Returns when all that was written outlives a crash of the machine; the
  /// file's name may not (`Files::SyncDirectory`).
  virtual absl::Status Sync() = 0;

  virtual absl::StatusOr<int64_t> SizeBytes() = 0;
};

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
  absl::Time change_time;  ///< Of its content.

  friend bool operator==(const DirectoryEntry&,
                         const DirectoryEntry&) = default;
};

/// What checkpoints need of a file system. Paths are absolute or relative to
/// the process's directory; `/` parts names.
///
/// Errors of all, beside those named:
///   kResourceExhausted, kInternal, kUnavailable  NOT_WRITABLE, NOT_READABLE.
///
/// Thread-safe.
class Files {
 public:
  virtual ~Files() = default;

  /// Makes a file, to write and to read.
  ///
  /// Errors:
  ///   kAlreadyExists  something of this name is there.
  virtual absl::StatusOr<std::unique_ptr<File>> Create(
      const std::string& path) = 0;

  /// Opens a file, to read.
  ///
  /// Errors:
  ///   kNotFound  there is no such file.
  virtual absl::StatusOr<std::unique_ptr<File>> Open(
      const std::string& path) = 0;

  /// Gives a file another name, in place of a file that has it. Both are in
  /// one directory.
  virtual absl::Status Rename(const std::string& from,
                              const std::string& to) = 0;

  /// Removes a file, or a directory that is empty. OK if there is none.
  virtual absl::Status Remove(const std::string& path) = 0;

  /// What is in a directory, by name.
  ///
  /// Errors:
  ///   kNotFound  there is no such directory.
  virtual absl::StatusOr<std::vector<DirectoryEntry>> List(
      const std::string& path) = 0;

  /// Makes a directory in one that is there. OK if it is there too.
  virtual absl::Status MakeDirectory(const std::string& path) = 0;

  /// Returns when the names in a directory outlive a crash of the machine.
  virtual absl::Status SyncDirectory(const std::string& path) = 0;

  virtual absl::StatusOr<bool> Exists(const std::string& path) = 0;

  /// Bytes that can still be written to the file system of `path`.
  virtual absl::StatusOr<int64_t> FreeBytes(const std::string& path) = 0;
};

/// The operating system's files, over POSIX.
Files& SystemFiles();

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_FILES_H_
