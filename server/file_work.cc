#include "server/file_work.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>

namespace rowhouse::server {
namespace {

class FileWork final : public CheckpointWork {
 public:
  FileWork(absl::AnyInvocable<absl::Status(FileProgress)> work,
           absl::AnyInvocable<void(absl::Status)> done)
      : work_(std::move(work)), done_(std::move(done)), thread_([this] {
          done_(work_([this](int64_t done_bytes, int64_t total_bytes) {
            done_bytes_ = done_bytes;
            total_bytes_ = total_bytes;
            return !cancelled_;
          }));
        }) {}

  ~FileWork() override {
    Cancel();
    thread_.join();
  }

  void Cancel() override { cancelled_ = true; }

  CheckpointProgress progress() const override {
    return {done_bytes_, total_bytes_, 0, absl::ZeroDuration()};
  }

 private:
  absl::AnyInvocable<absl::Status(FileProgress)> work_;
  absl::AnyInvocable<void(absl::Status)> done_;
  std::atomic<bool> cancelled_ = false;
  std::atomic<int64_t> done_bytes_ = 0;
  std::atomic<int64_t> total_bytes_ = 0;
  std::thread thread_;  // Last: runs on the members above.
};

}  // namespace

std::unique_ptr<CheckpointWork> RunFileWork(
    absl::AnyInvocable<absl::Status(FileProgress)> work,
    absl::AnyInvocable<void(absl::Status)> done) {
  return std::make_unique<FileWork>(std::move(work), std::move(done));
}

}  // namespace rowhouse::server
