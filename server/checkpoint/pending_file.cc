#include "server/checkpoint/pending_file.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/files.h"

namespace rowhouse::server {
namespace {

// No other's, on whatever machine, nor one that a crash has left.
std::string TemporaryPathOf(const std::string& path) {
  std::random_device random;
  const uint64_t number = (uint64_t{random()} << 32) | random();
  return absl::StrCat(
      path, ".", absl::Hex(number, absl::kZeroPad16),
      absl::string_view(kTemporarySuffix.data(), kTemporarySuffix.size()));
}

}  // namespace

PendingFile::PendingFile(Files& files, std::string path,
                         std::string temporary_path, std::unique_ptr<File> file)
    : files_(files),
      path_(std::move(path)),
      temporary_path_(std::move(temporary_path)),
      file_(std::move(file)) {}

absl::StatusOr<std::unique_ptr<PendingFile>> PendingFile::Create(
    Files& files, const std::string& path) {
  std::string temporary_path = TemporaryPathOf(path);
  ROWHOUSE_ASSIGN_OR_RETURN(std::unique_ptr<File> file,
                            files.Create(temporary_path));
  return std::unique_ptr<PendingFile>(
      new PendingFile(files, path, std::move(temporary_path), std::move(file)));
}

PendingFile::~PendingFile() {
  if (file_ == nullptr) return;
  file_.reset();
  files_.Remove(temporary_path_).IgnoreError();  // Retention finds it.
}

absl::Status PendingFile::Finish() {
  ROWHOUSE_RETURN_IF_ERROR(file_->Sync());
  ROWHOUSE_RETURN_IF_ERROR(files_.Rename(temporary_path_, path_));
  file_.reset();
  return files_.SyncDirectory(DirectoryOf(path_));
}

absl::Status WriteWholeFile(Files& files, const std::string& path,
                            std::string_view content) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<PendingFile> pending,
                            PendingFile::Create(files, path));
  ROWHOUSE_RETURN_IF_ERROR(
      pending->file().WriteAt(0, std::as_bytes(std::span(content))));
  return pending->Finish();
}

absl::StatusOr<std::string> ReadWholeFile(Files& files,
                                          const std::string& path) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<File> file, files.Open(path));
  ROWHOUSE_ASSIGN_OR_RETURN(const int64_t size_bytes, file->SizeBytes());
  std::string content(static_cast<size_t>(size_bytes), '\0');
  ROWHOUSE_RETURN_IF_ERROR(
      file->ReadAt(0, std::as_writable_bytes(std::span(content))));
  return content;
}

absl::Status MakeLastingDirectory(Files& files, const std::string& path) {
  ROWHOUSE_RETURN_IF_ERROR(files.MakeDirectory(path));
  return files.SyncDirectory(DirectoryOf(path));
}

absl::Status RemoveLasting(Files& files, const std::string& path) {
  ROWHOUSE_RETURN_IF_ERROR(files.Remove(path));
  return files.SyncDirectory(DirectoryOf(path));
}

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace rowhouse::server
