#include "server/shard/kept_gradients.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"

namespace rowhouse::server {

int64_t KeptGradients::TakenBytes() const {
  int64_t taken = 0;
  for (const Place& place : places_) {
    if (!place.call.expired()) taken += place.memory.size_bytes();
  }
  return taken;
}

std::span<std::byte> KeptGradients::Keep(
    const std::shared_ptr<const HeadOperands>& call, int64_t least_bytes,
    int64_t size_bytes) {
  Drop(call.get());
  size_bytes = std::min(size_bytes, most_bytes_ - TakenBytes());
  if (size_bytes <= 0 || size_bytes < least_bytes) return {};
  for (Place& place : places_) {
    if (!place.call.expired() || place.memory.size_bytes() < size_bytes) {
      continue;
    }
    place.call = call;
    place.size_bytes = size_bytes;
    return {place.memory.as<std::byte>(), static_cast<size_t>(size_bytes)};
  }
  // Those that are free are too small.
  std::erase_if(places_,
                [](const Place& place) { return place.call.expired(); });
  absl::StatusOr<kernels::Buffer> memory =
      backend_.AllocateUninitialized(size_bytes);
  if (!memory.ok()) return {};
  places_.push_back({*std::move(memory), call, size_bytes});
  return {places_.back().memory.as<std::byte>(),
          static_cast<size_t>(size_bytes)};
}

std::span<std::byte> KeptGradients::Find(const HeadOperands* call) const {
  for (const Place& place : places_) {
    if (!place.call.expired() && place.call.lock().get() == call) {
      return {place.memory.as<std::byte>(),
              static_cast<size_t>(place.size_bytes)};
    }
  }
  return {};
}

void KeptGradients::Drop(const HeadOperands* call) {
  for (Place& place : places_) {
    if (place.call.lock().get() == call) place.call.reset();
  }
}

void KeptGradients::DropAll() {
  for (Place& place : places_) place.call.reset();
}

}  // namespace rowhouse::server
