#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/checkpoint/file_errors.h"
#include "server/checkpoint/files.h"

namespace rowhouse::server {
namespace {

// Writes of at least this much are sent to the disk at once, so that `Sync`
// finds little left to do, and that memory does not fill with them.
constexpr size_t kSendBytes = size_t{1} << 20;

std::string TextOf(int error) {
  return std::error_code(error, std::generic_category()).message();
}

bool MayPass(int error) {
  return error == EAGAIN || error == ESTALE || error == ETIMEDOUT ||
         error == ENFILE || error == EMFILE || error == ENOMEM;
}

absl::Status WriteError(const std::string& path, int error) {
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  return NotWritableError(full ? absl::StatusCode::kResourceExhausted
                          : MayPass(error) ? absl::StatusCode::kUnavailable
                                           : absl::StatusCode::kInternal,
                          path, TextOf(error));
}

absl::Status ReadError(const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR) {
    return absl::NotFoundError(absl::StrCat("there is no ", path));
  }
  return NotReadableError(MayPass(error) ? absl::StatusCode::kUnavailable
                                         : absl::StatusCode::kInternal,
                          path, TextOf(error));
}

// Calls `call` again as long as a signal ends it.
template <typename Call>
auto Uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

class SystemFile : public File {
 public:
  SystemFile(std::string path, int descriptor)
      : path_(std::move(path)), descriptor_(descriptor) {}
  ~SystemFile() override { close(descriptor_); }
  SystemFile(const SystemFile&) = delete;
  SystemFile& operator=(const SystemFile&) = delete;

  absl::Status WriteAt(int64_t offset,
                       std::span<const std::byte> bytes) override {
    const int64_t first = offset;
    const size_t byte_count = bytes.size();
    while (!bytes.empty()) {
      const ssize_t written = Uninterrupted([&] {
        return pwrite(descriptor_, bytes.data(), bytes.size(), offset);
      });
      if (written < 0) return WriteError(path_, errno);
      if (written == 0) return WriteError(path_, ENOSPC);
      bytes = bytes.subspan(static_cast<size_t>(written));
      offset += written;
    }
    if (byte_count >= kSendBytes) {
      // A hint: what fails here fails in `Sync` too.
      sync_file_range(descriptor_, first, static_cast<off_t>(byte_count),
                      SYNC_FILE_RANGE_WRITE);
    }
    return absl::OkStatus();
  }

  absl::Status ReadAt(int64_t offset, std::span<std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t got = Uninterrupted([&] {
        return pread(descriptor_, bytes.data(), bytes.size(), offset);
      });
      if (got < 0 && errno == EIO) {
        return DamagedError(path_, offset, "the disk cannot read this");
      }
      if (got < 0) return ReadError(path_, errno);
      if (got == 0) {
        return DamagedError(path_, offset,
                            absl::StrCat("the file ends here; wanted are ",
                                         bytes.size(), " bytes more"));
      }
      bytes = bytes.subspan(static_cast<size_t>(got));
      offset += got;
    }
    return absl::OkStatus();
  }

  absl::Status Sync() override {
    // After EINTR it is not known what was written; fsync may be called again.
    if (Uninterrupted([&] { return fsync(descriptor_); }) != 0) {
      return WriteError(path_, errno);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int64_t> SizeBytes() override {
    struct stat status = {};
    if (fstat(descriptor_, &status) != 0) return ReadError(path_, errno);
    return static_cast<int64_t>(status.st_size);
  }

 private:
  const std::string path_;
  const int descriptor_;
};

class PosixFiles : public Files {
 public:
  absl::StatusOr<std::unique_ptr<File>> Create(
      const std::string& path) override {
    constexpr mode_t kMode = 0666;
    const int descriptor = Uninterrupted([&] {
      return open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kMode);
    });
    if (descriptor < 0 && errno == EEXIST) {
      return absl::AlreadyExistsError(absl::StrCat(path, " is there already"));
    }
    if (descriptor < 0) return WriteError(path, errno);
    return std::make_unique<SystemFile>(path, descriptor);
  }

  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path) override {
    const int descriptor =
        Uninterrupted([&] { return open(path.c_str(), O_RDONLY | O_CLOEXEC); });
    if (descriptor < 0) return ReadError(path, errno);
    return std::make_unique<SystemFile>(path, descriptor);
  }

  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (std::rename(from.c_str(), to.c_str()) != 0) {
      return WriteError(to, errno);
    }
    return absl::OkStatus();
  }

  absl::Status Remove(const std::string& path) override {
    if (std::remove(path.c_str()) != 0 && errno != ENOENT) {
      return WriteError(path, errno);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<DirectoryEntry>> List(
      const std::string& path) override {
    std::error_code error;
    std::vector<DirectoryEntry> entries;
    for (std::filesystem::directory_iterator at(path, error), end;
         !error && at != end; at.increment(error)) {
      struct stat status = {};
      // One that has just gone is not there.
      if (lstat(at->path().c_str(), &status) != 0) continue;
      entries.push_back({at->path().filename().string(),
                         S_ISDIR(status.st_mode),
                         absl::TimeFromTimespec(status.st_mtim)});
    }
    if (error) return ReadError(path, error.value());
    std::sort(entries.begin(), entries.end(),
              [](const DirectoryEntry& a, const DirectoryEntry& b) {
                return a.name < b.name;
              });
    return entries;
  }

  absl::Status MakeDirectory(const std::string& path) override {
    constexpr mode_t kMode = 0777;
    if (mkdir(path.c_str(), kMode) != 0 && errno != EEXIST) {
      return WriteError(path, errno);
    }
    return absl::OkStatus();
  }

  absl::Status SyncDirectory(const std::string& path) override {
    const int descriptor = Uninterrupted(
        [&] { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (descriptor < 0) return WriteError(path, errno);
    const int result = Uninterrupted([&] { return fsync(descriptor); });
    const int error = errno;
    close(descriptor);
    if (result != 0) return WriteError(path, error);
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Exists(const std::string& path) override {
    struct stat status = {};
    if (lstat(path.c_str(), &status) == 0) return true;
    if (errno == ENOENT || errno == ENOTDIR) return false;
    return ReadError(path, errno);
  }

  absl::StatusOr<int64_t> FreeBytes(const std::string& path) override {
    struct statvfs status = {};
    if (statvfs(path.c_str(), &status) != 0) return ReadError(path, errno);
    return static_cast<int64_t>(status.f_bavail * status.f_frsize);
  }
};

}  // namespace

Files& SystemFiles() {
  static PosixFiles files;
  return files;
}

}  // namespace rowhouse::server
