#include "server/checkpoint_writers.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "kernels/mutex.h"
#include "server/checkpoint_format.h"
#include "server/checkpoint_writer.h"

namespace rowhouse::server {
namespace {

class ShardWriters final : public CheckpointWork {
 public:
  ShardWriters(Checkpoints& checkpoints, std::string checkpoint,
               std::vector<ShardToSave> shards,
               absl::AnyInvocable<void()> armed,
               absl::AnyInvocable<void(absl::Status)> done)
      : checkpoints_(checkpoints),
        checkpoint_(std::move(checkpoint)),
        under_way_(checkpoints.NoteUnderWay(checkpoint_)),
        shards_(std::move(shards)),
        armed_(std::move(armed)),
        done_(std::move(done)),
        to_arm_(shards_.size()),
        to_end_(shards_.size()),
        written_(shards_.size()) {}

  // The writers go one after another, and none may reach for one before it.
  ~ShardWriters() override { Cancel(); }

  void Start(const std::string& base) {
    if (shards_.empty()) {
      armed_();
      return done_(absl::OkStatus());
    }
    for (size_t i = 0; i < shards_.size(); ++i) {
      const ShardToSave& shard = shards_[i];
      std::unique_ptr<CheckpointWriter> writer = CheckpointWriter::Start(
          checkpoints_.directory(), shard.table,
          {checkpoint_, shard.event, base, checkpoints_.options().buffer_bytes},
          {[this] { OnArmed(); },
           [this, i](absl::Status status) { OnEnded(i, std::move(status)); }});
      MutexLock lock(mutex_);
      if (cancelled_) writer->Cancel();
      writers_.push_back(std::move(writer));
    }
  }

  void Cancel() override {
    MutexLock lock(mutex_);
    CancelLocked();
  }

  CheckpointProgress progress() const override {
    MutexLock lock(mutex_);
    CheckpointProgress sum;
    for (const auto& writer : writers_) {
      const CheckpointProgress one = writer->progress();
      sum.done_bytes += one.done_bytes;
      sum.total_bytes += one.total_bytes;
      sum.before_image_row_count += one.before_image_row_count;
      sum.event_wait += one.event_wait;
    }
    return sum;
  }

 private:
  void CancelLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (std::exchange(cancelled_, true)) return;
    for (const auto& writer : writers_) writer->Cancel();
  }

  void OnArmed() {
    {
      MutexLock lock(mutex_);
      if (--to_arm_ > 0) return;
    }
    armed_();
  }

  void OnEnded(size_t shard, absl::Status status) {
    std::vector<bool> written;
    {
      MutexLock lock(mutex_);
      written_[shard] = status.ok();
      if (!status.ok()) {
        // What the others say after they were cancelled is no news.
        if (status_.ok()) status_ = std::move(status);
        CancelLocked();
      }
      if (--to_end_ > 0) return;
      status = status_;
      written = written_;
    }
    if (!status.ok()) RemoveFiles(written);
    under_way_.reset();
    done_(std::move(status));
  }

  // Of those that were through before another failed. What one that failed
  // finds there may be an earlier call's.
  void RemoveFiles(const std::vector<bool>& written) {
    for (size_t i = 0; i < shards_.size(); ++i) {
      if (!written[i]) continue;
      const ShardToSave& shard = shards_[i];
      const ShardSpec& spec = shard.table->shard->spec();
      checkpoints_.directory()
          .RemoveShard({checkpoint_, ShortName(shard.table->name),
                        spec.shard_index, spec.placement.shard_count()})
          .IgnoreError();
    }
  }

  Checkpoints& checkpoints_;
  const std::string checkpoint_;
  std::shared_ptr<void> under_way_;
  const std::vector<ShardToSave> shards_;
  absl::AnyInvocable<void()> armed_;
  absl::AnyInvocable<void(absl::Status)> done_;
  mutable Mutex mutex_;
  size_t to_arm_ ABSL_GUARDED_BY(mutex_);
  size_t to_end_ ABSL_GUARDED_BY(mutex_);
  std::vector<bool> written_ ABSL_GUARDED_BY(mutex_);  // By shard.
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  // Last: their threads use the members above.
  std::vector<std::unique_ptr<CheckpointWriter>> writers_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<CheckpointWork> WriteShards(
    Checkpoints& checkpoints, const std::string& checkpoint,
    const std::string& base, std::vector<ShardToSave> shards,
    absl::AnyInvocable<void()> armed,
    absl::AnyInvocable<void(absl::Status)> done) {
  auto writers =
      std::make_unique<ShardWriters>(checkpoints, checkpoint, std::move(shards),
                                     std::move(armed), std::move(done));
  writers->Start(base);
  return writers;
}

}  // namespace rowhouse::server
