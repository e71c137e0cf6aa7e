#include "server/shard/kept_gradients.h"

#include <utility>

#include "absl/status/statusor.h"

namespace rowhouse::server {

int64_t KeptGradients::SizeBytes() const {
  int64_t size_bytes = 0;
  for (const Place& place : places_) size_bytes += place.memory.size_bytes();
  return size_bytes;
}

std::span<std::byte> KeptGradients::Keep(
    const std::shared_ptr<const HeadOperands>& call, int64_t size_bytes) {
  Drop(call.get());
  if (size_bytes == 0 || size_bytes > most_bytes_) return {};
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
  if (size_bytes > most_bytes_ - SizeBytes()) return {};
  absl::StatusOr<kernels::Buffer> memory = backend_.Allocate(size_bytes);
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
