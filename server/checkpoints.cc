#include "server/checkpoints.h"

#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/checkpoint/files.h"

namespace rowhouse::server {

absl::Status CheckDirectory(const std::string& directory) {
  // Servers that share it start at once.
  const std::string probe =
      absl::StrCat(directory, "/probe-", std::random_device()(), ".tmp");
  absl::Status made = SystemFiles().Create(probe).status();
  if (made.ok()) made = SystemFiles().Remove(probe);
  if (made.ok()) return made;
  return absl::InvalidArgumentError(
      absl::StrCat("checkpoint.directory is '", directory,
                   "'; files must be to be made there: ", made.message()));
}

Checkpoints::Checkpoints(CheckpointOptions options)
    : options_(std::move(options)),
      directory_(SystemFiles(), options_.directory) {}

std::shared_ptr<void> Checkpoints::NoteUnderWay(const std::string& checkpoint) {
  MutexLock lock(mutex_);
  const auto place = under_way_.insert(checkpoint);
  return {nullptr, [this, place](void*) {
            MutexLock relock(mutex_);
            under_way_.erase(place);
          }};
}

std::set<std::string> Checkpoints::UnderWay() const {
  MutexLock lock(mutex_);
  return {under_way_.begin(), under_way_.end()};
}

}  // namespace rowhouse::server
