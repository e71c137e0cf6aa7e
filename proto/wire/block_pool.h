#ifndef ROWHOUSE_PROTO_WIRE_BLOCK_POOL_H_
#define ROWHOUSE_PROTO_WIRE_BLOCK_POOL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "grpcpp/support/slice.h"

namespace rowhouse::wire {

/// Memory from which rows are sent: blocks of one size, used again as soon as
/// gRPC has let go of them, and kept.
///
/// Thread-safe. Blocks may outlive it; the last one frees the memory.
class BlockPool {
 public:
  using Memory = std::shared_ptr<std::byte>;
  /// Gives memory for one block, on the thread that asks for the block.
  using Source = std::function<absl::StatusOr<Memory>()>;

  /// One block: not initialized, and free again when it is destroyed.
  class Block {
   public:
    Block() = default;  ///< None.

    std::byte* data() const;

    /// The first `size_bytes` as a slice; the block is free again when gRPC is
    /// done with that.
    grpc::Slice ToSlice(int64_t size_bytes) &&;

   private:
    friend class BlockPool;
    struct Used;
    struct PutBack {
      void operator()(Used* used) const;
    };

    explicit Block(std::unique_ptr<Used> used) : used_(used.release()) {}

    std::unique_ptr<Used, PutBack> used_;
  };

  explicit BlockPool(Source source);

  /// A block, the one that was free last if there is one. `held` is let go when
  /// the block is free again, on a thread of gRPC's: that must be quick.
  ///
  /// Errors: the source's.
  absl::StatusOr<Block> Take(std::shared_ptr<void> held = nullptr);

  /// Blocks there are, in use or not, and those in use.
  int64_t block_count() const;
  int64_t used_count() const;

 private:
  struct State;

  const std::shared_ptr<State> state_;
};

}  // namespace rowhouse::wire

#endif  // ROWHOUSE_PROTO_WIRE_BLOCK_POOL_H_
