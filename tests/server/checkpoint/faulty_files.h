#ifndef ROWHOUSE_TESTS_SERVER_CHECKPOINT_FAULTY_FILES_H_
#define ROWHOUSE_TESTS_SERVER_CHECKPOINT_FAULTY_FILES_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/checkpoint/files.h"

namespace rowhouse::server {

/// What of all that was not synced a crash leaves: writes, each whole or torn,
/// and changes of names, each by itself.
enum class Survival : uint8_t { kNothing, kAll, kSome };

/// A disk in memory that crashes, fills up and fails as it is told.
/// Thread-compatible.
class FaultyFiles : public Files {
 public:
  /// An empty disk with one directory.
  explicit FaultyFiles(std::string root);

  // Calls that change something are counted: `Create`, `WriteAt`, `Sync`,
  // `Rename`, `Remove`, `MakeDirectory` and `SyncDirectory`.
  int64_t call_count() const { return call_count_; }

  /// The call that comes after so many more crashes the machine: it and all
  /// later ones fail. What it would have changed is not synced.
  void CrashAfter(int64_t more_calls) { crash_at_ = call_count_ + more_calls; }
  bool crashed() const { return call_count_ > crash_at_; }

  /// The call that comes after so many more fails; a write writes half.
  void FailAfter(int64_t more_calls) { fail_at_ = call_count_ + more_calls; }

  /// The disk has room for so many bytes in all. Where `said_free_bytes` is
  /// set, it says that so many are free.
  void SetCapacity(int64_t bytes, std::optional<int64_t> said_free_bytes = {}) {
    capacity_bytes_ = bytes;
    said_free_bytes_ = said_free_bytes;
  }

  /// Opening this file fails, as it does for a while on a disk that is shared.
  void SetUnreadable(std::string path) { unreadable_ = std::move(path); }

  /// Change times of files from now on.
  void SetTime(absl::Time now) { now_ = now; }

  /// The disk as the machine finds it when it starts again.
  std::unique_ptr<FaultyFiles> AfterCrash(Survival survival,
                                          uint64_t seed) const;
  /// A copy, all of it synced.
  std::unique_ptr<FaultyFiles> Copy() const;

  std::vector<std::string> AllFiles() const;
  /// Of a file that is there.
  std::string& ContentOf(const std::string& path);
  int64_t used_bytes() const;

  absl::StatusOr<std::unique_ptr<File>> Create(
      const std::string& path) override;
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::StatusOr<std::vector<DirectoryEntry>> List(
      const std::string& path) override;
  absl::Status MakeDirectory(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;
  absl::StatusOr<bool> Exists(const std::string& path) override;
  absl::StatusOr<int64_t> FreeBytes(const std::string& path) override;

 private:
  friend class MemoryFile;

  struct Write {
    int64_t offset = 0;
    std::string bytes;
  };
  struct Data {
    std::string content;
    std::string synced;
    std::vector<Write> unsynced;
    absl::Time change_time;
  };
  // Files and directories by path; a directory has no data.
  using Names = std::map<std::string, std::shared_ptr<Data>>;
  struct NameChange {
    std::string removed;  // Or empty.
    std::string added;    // Or empty.
    std::shared_ptr<Data> data;
  };

  static void Apply(const NameChange& change, Names& names);
  static void Apply(const Write& write, std::string& content);
  // Counts a call; an error if it fails or the machine has crashed before.
  absl::Status Begin();
  absl::Status End() const;  // An error if this call crashed the machine.
  void Change(NameChange change);

  std::string root_;
  absl::Time now_ = absl::UnixEpoch();
  int64_t call_count_ = 0;
  int64_t crash_at_ = std::numeric_limits<int64_t>::max();
  int64_t fail_at_ = std::numeric_limits<int64_t>::max();
  int64_t capacity_bytes_ = std::numeric_limits<int64_t>::max();
  std::optional<int64_t> said_free_bytes_;
  std::string unreadable_;
  Names names_;
  Names synced_names_;
  std::vector<NameChange> unsynced_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_TESTS_SERVER_CHECKPOINT_FAULTY_FILES_H_
