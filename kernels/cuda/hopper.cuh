#ifndef ROWHOUSE_KERNELS_CUDA_HOPPER_CUH_
#define ROWHOUSE_KERNELS_CUDA_HOPPER_CUH_

/// Instructions of sm_90a that CUDA C++ has no names for: asynchronous copies
/// of tiles (TMA), barriers in shared memory that count their bytes, and
/// products by a warp group. Shared memory is named by its 32-bit address.

#include <cuda.h>

#include <cstdint>

namespace rowhouse::kernels::cuda::hopper {

__device__ inline uint32_t SharedAddress(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}

/// `value`, kept in a register rather than found again.
__device__ inline uint32_t Opaque(uint32_t value) {
  asm volatile("mov.b32 %0, %0;" : "+r"(value));
  return value;
}

// Barriers: 8 bytes, which complete a phase when `arrivals` threads have
// arrived and the expected bytes are there. Phases are waited for by parity, 0
// first.

__device__ inline void InitBarrier(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier),
               "r"(arrivals));
}

/// Makes initialized barriers known to the cluster's copies.
__device__ inline void FenceBarriers() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

/// Arrives, and expects so many bytes by copies.
__device__ inline void ExpectBytes(uint32_t barrier, int bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
      "r"(bytes)
      : "memory");
}

/// Arrives at the same barrier of block `block` of the cluster. What was
/// waited for by `WaitForProducts` has been read; no other memory is ordered:
/// a fence of the cluster's here costs a third of the product's speed.
__device__ inline void ArriveAt(uint32_t barrier, uint32_t block) {
  asm volatile(
      "{\n"
      ".reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n"
      "}" ::"r"(barrier),
      "r"(block)
      : "memory");
}

__device__ inline void WaitFor(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "Wait:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra Wait;\n"
      "}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

/// Of all threads of the cluster.
__device__ inline void SyncCluster() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\n"
      "barrier.cluster.wait.acquire.aligned;" ::
          : "memory");
}

__device__ inline uint32_t BlockInCluster() {
  uint32_t block = 0;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(block));
  return block;
}

/// Named barrier `id` of `threads` threads of the block.
__device__ inline void SyncThreads(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void ArriveThreads(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/// Copies the box at column `column` and row `row` of `map` to `to`; it counts
/// at `barrier`.
__device__ inline void CopyTile(uint32_t to, const CUtensorMap& map, int column,
                                int row, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_"
      "tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(&map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}

/// The same, to the blocks of the cluster whose bits `blocks` has, at the same
/// address and barrier of each.
__device__ inline void CopyTileTo(uint16_t blocks, uint32_t to,
                                  const CUtensorMap& map, int column, int row,
                                  uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_"
      "tx::bytes.multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(&map), "r"(column), "r"(row), "r"(barrier), "h"(blocks)
      : "memory");
}

/// Makes what the block has written to shared memory known to copies.
__device__ inline void FenceShared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/// Copies `bytes` of shared memory, both at multiples of 16.
__device__ inline void CopyOut(void* to, uint32_t shared, int bytes) {
  asm volatile(
      "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to),
      "r"(shared), "r"(bytes)
      : "memory");
}
__device__ inline void CommitCopies() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}
/// Until this thread's committed copies have read their shared memory.
__device__ inline void WaitForReads() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

/// Stores four matrices of 8 rows and 8 columns of 16 bits: lane `8 * m + r`
/// has the address of row `r` of matrix `m`, each lane columns `2 * (lane % 4)`
/// of row `lane / 4`.
__device__ inline void StorePairs(uint32_t shared, uint32_t a, uint32_t b,
                                  uint32_t c, uint32_t d) {
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(
          shared),
      "r"(a), "r"(b), "r"(c), "r"(d)
      : "memory");
}

__device__ inline void StoreShort(uint32_t shared, uint32_t value) {
  asm volatile("st.shared.b16 [%0], %1;" ::"r"(shared),
               "h"(static_cast<uint16_t>(value))
               : "memory");
}

// Products of a warp group: operands in shared memory, rows of 64 bf16 swizzled
// over 128 bytes, 8 rows 1024 bytes apart.

__device__ inline uint64_t OperandAt(uint32_t shared) {
  constexpr uint64_t kLeading = uint64_t{1} << 16;
  constexpr uint64_t kEightRows = uint64_t{1024 >> 4} << 32;
  constexpr uint64_t kSwizzle128 = uint64_t{1} << 62;
  return uint64_t{(shared & 0x3ffffU) >> 4} | kLeading | kEightRows |
         kSwizzle128;
}

/// What the operand `bytes` further on has more.
__device__ constexpr uint64_t OperandStep(int bytes) {
  return static_cast<uint64_t>(bytes) >> 4;
}

__device__ inline void FenceProducts() {
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ inline void CommitProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}
/// Until at most `kPending` committed groups are under way.
template <int kPending>
__device__ void WaitForProducts() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

/// Registers of each thread of a warp group from now on.
template <int kCount>
__device__ void LowerRegistersTo() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kCount));
}
template <int kCount>
__device__ void RaiseRegistersTo() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kCount));
}

/// `sum (+)= a x b^T` of bf16 [64, 16] and [160, 16]; `add` 0 writes.
__device__ inline void Multiply64x160(float (&sum)[80], uint64_t a, uint64_t b,
                                      int add) {
#define ROWHOUSE_FOUR(i) \
  "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3])
#define ROWHOUSE_TWENTY(i)                                      \
  ROWHOUSE_FOUR(i), ROWHOUSE_FOUR(i + 4), ROWHOUSE_FOUR(i + 8), \
      ROWHOUSE_FOUR(i + 12), ROWHOUSE_FOUR(i + 16)
  asm volatile(
      "{\n"
      ".reg .pred adds;\n"
      "setp.ne.b32 adds, %82, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n160k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, "
      "%10, %11, %12, %13, %14, %15, %16, %17, %18, %19, "
      "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, "
      "%30, %31, %32, %33, %34, %35, %36, %37, %38, %39, "
      "%40, %41, %42, %43, %44, %45, %46, %47, %48, %49, "
      "%50, %51, %52, %53, %54, %55, %56, %57, %58, %59, "
      "%60, %61, %62, %63, %64, %65, %66, %67, %68, %69, "
      "%70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
      "}, %80, %81, adds, 1, 1, 0, 0;\n"
      "}"
      : ROWHOUSE_TWENTY(0), ROWHOUSE_TWENTY(20), ROWHOUSE_TWENTY(40),
        ROWHOUSE_TWENTY(60)
      : "l"(a), "l"(b), "r"(add));
#undef ROWHOUSE_TWENTY
#undef ROWHOUSE_FOUR
}

}  // namespace rowhouse::kernels::cuda::hopper

#endif  // ROWHOUSE_KERNELS_CUDA_HOPPER_CUH_
