#ifndef ROWHOUSE_SERVER_SHARD_KEPT_GRADIENTS_H_
#define ROWHOUSE_SERVER_SHARD_KEPT_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "server/shard/head_operands.h"

namespace rowhouse::server {

/// What head calls keep from their statistics on for the hidden gradient, and
/// from there for the weight gradient, as far as the room for it goes: without
/// it logits and their gradient are formed again, the same bits.
///
/// Thread-compatible. Must not outlive its backend.
class KeptGradients {
 public:
  KeptGradients(kernels::Backend& backend, int64_t most_bytes)
      : backend_(backend), most_bytes_(most_bytes) {}

  /// Room for what a call keeps, 256-byte aligned: `size_bytes` or what is left
  /// of them, not initialized; empty where less than `least_bytes` are. What
  /// calls that have gone had kept makes room.
  std::span<std::byte> Keep(const std::shared_ptr<const HeadOperands>& call,
                            int64_t least_bytes, int64_t size_bytes);

  /// What `Keep` gave for that call, or nothing. Good until the next `Keep`
  /// after `Drop`.
  std::span<std::byte> Find(const HeadOperands* call) const;

  /// The call's is not needed any more; its memory stays for others.
  void Drop(const HeadOperands* call);
  void DropAll();

  /// Gives all memory back.
  void Free() { places_.clear(); }

 private:
  struct Place {
    kernels::Buffer memory;
    std::weak_ptr<const HeadOperands> call;  // Expired: free.
    int64_t size_bytes = 0;                  // That the call uses.
  };

  int64_t TakenBytes() const;

  kernels::Backend& backend_;
  const int64_t most_bytes_;
  std::vector<Place> places_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SHARD_KEPT_GRADIENTS_H_
