#include "server/checkpoints.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "server/checkpoint/files.h"

namespace rowhouse::server {

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
