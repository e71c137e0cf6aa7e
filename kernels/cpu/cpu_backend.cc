#include "kernels/cpu/cpu_backend.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/adamw.h"
#include "kernels/cpu/content.h"
#include "kernels/cpu/dense.h"
#include "kernels/cpu/embed.h"
#include "kernels/cpu/embedding_gradient.h"
#include "kernels/cpu/floats.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/head.h"
#include "kernels/cpu/memory.h"
#include "kernels/cpu/ngram_want.h"
#include "kernels/cpu/recycled_memory.h"
#include "kernels/cpu/row_adam.h"
#include "kernels/cpu/rows.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/shared_memory.h"

namespace rowhouse::kernels::cpu {
namespace {

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(std::unique_ptr<Executor> executor)
      : executor_(std::move(executor)) {}

  std::string Description() const override {
    return absl::StrCat("cpu, ", NameOf(executor_->isa()), " code, ",
                        DescribeGemm(executor_->isa()));
  }

  absl::StatusOr<Buffer> Allocate(int64_t size_bytes) override {
    return AllocateMemory(size_bytes);
  }

  absl::StatusOr<Buffer> AllocateUninitialized(int64_t size_bytes) override {
    return recycled_.Allocate(size_bytes);
  }

  absl::StatusOr<Buffer> AllocateHost(int64_t size_bytes) override {
    return AllocateMemory(size_bytes);
  }

  absl::StatusOr<MemoryState> Memory() override { return MachineMemory(); }

  // Pages come as they are touched, and a thread's scratch with its work.
  absl::Status SetAside(int64_t) override { return absl::OkStatus(); }
  void GiveBack(int64_t) override { recycled_.Drop(); }
  absl::Status ReserveScratch(const ScratchNeeds&) override {
    return absl::OkStatus();
  }

  absl::Status Copy(const void* from, void* to, int64_t size_bytes) override {
    CopyBytes(*executor_, from, to, size_bytes);
    return absl::OkStatus();
  }

  absl::StatusOr<bool> IsDeviceMemory(const void*, int64_t) override {
    return false;
  }

  absl::Status Synchronize() override { return absl::OkStatus(); }

  absl::StatusOr<Buffer> AllocateShared(int64_t size_bytes) override {
    return shared_.Allocate(size_bytes);
  }

  absl::StatusOr<SharedMemory> Share(const Buffer& buffer) override {
    return shared_.Name(buffer);
  }

  absl::StatusOr<Buffer> Map(const SharedMemory& memory,
                             MapAccess access) override {
    return MapSharedMemory(memory, access);
  }

  absl::Status StoreEpoch(int64_t* epoch, int64_t value) override {
    cpu::StoreEpoch(epoch, value);
    return absl::OkStatus();
  }

  absl::Status LoadEpoch(const int64_t* epoch, int64_t& value) override {
    value = cpu::LoadEpoch(epoch);
    return absl::OkStatus();
  }

  absl::Status InitializeRows(const RowTable& table,
                              const Initializer& initializer,
                              bool fresh) override {
    cpu::InitializeRows(*executor_, table, initializer, fresh);
    return absl::OkStatus();
  }

  absl::Status GatherRows(const RowTable& table, std::span<const int64_t> slots,
                          void* out) override {
    cpu::GatherRows(*executor_, table, slots, out);
    return absl::OkStatus();
  }

  absl::Status GatherRowsTo(const RowTable& table,
                            std::span<const int64_t> slots,
                            std::span<const int64_t> positions,
                            void* out) override {
    cpu::GatherRowsTo(*executor_, table, slots, positions, out);
    return absl::OkStatus();
  }

  absl::Status PlaceRows(const HostPieces& rows, int64_t row_bytes,
                         std::span<const int64_t> positions,
                         void* out) override {
    cpu::PlaceRows(rows, row_bytes, positions, out);
    return absl::OkStatus();
  }

  absl::Status WriteRows(const RowTable& table, int64_t first_slot,
                         int64_t row_count, const void* rows) override {
    cpu::WriteRows(*executor_, table, first_slot, row_count, rows);
    return absl::OkStatus();
  }

  absl::Status ApplyRowAdamEvent(const RowTable& table,
                                 const RowAdamEvent& event,
                                 EventReport& report) override {
    cpu::ApplyRowAdamEvent(*executor_, table, event, report);
    return absl::OkStatus();
  }

  absl::Status BringCurrent(const RowTable& table, const Beta2History& history,
                            std::span<const int64_t> slots) override {
    cpu::BringCurrent(*executor_, table, history, slots);
    return absl::OkStatus();
  }

  absl::Status MergedStatistics(std::span<const GradientPart> parts,
                                int64_t dim, DType gradient_dtype,
                                GradientStatistics& statistics) override {
    cpu::MergedStatistics(*executor_, parts, dim, gradient_dtype, statistics);
    return absl::OkStatus();
  }

  absl::Status Digest(const RowTable& table, const Beta2History& history,
                      uint64_t& sum) override {
    sum = cpu::Digest(*executor_, table, history);
    return absl::OkStatus();
  }

  absl::Status InitializeDense(const DenseTable& table,
                               const Initializer& initializer,
                               bool fresh) override {
    cpu::InitializeDense(*executor_, table, initializer, fresh);
    return absl::OkStatus();
  }

  absl::Status WriteDenseRows(const DenseTable& table, int64_t first_slot,
                              int64_t row_count, const void* rows) override {
    cpu::WriteDenseRows(*executor_, table, first_slot, row_count, rows);
    return absl::OkStatus();
  }

  absl::Status ClearMainGrad(const DenseTable& table) override {
    cpu::ClearMainGrad(*executor_, table);
    return absl::OkStatus();
  }

  absl::Status AccumulateEmbeddingGradient(
      const MainGrad& main_grad, const EmbeddingGradient& gradient) override {
    cpu::AccumulateEmbeddingGradient(*executor_, main_grad, gradient);
    return absl::OkStatus();
  }

  absl::Status ApplyAdamW(const DenseTable& table, const AdamWFactors& factors,
                          NonFinitePolicy policy,
                          EventReport& report) override {
    cpu::ApplyAdamW(*executor_, table, factors, policy, report);
    return absl::OkStatus();
  }

  absl::Status DenseStatistics(const DenseTable& table,
                               GradientStatistics& statistics) override {
    cpu::DenseStatistics(*executor_, table, statistics);
    return absl::OkStatus();
  }

  absl::Status DenseDigest(const DenseTable& table, uint64_t& sum) override {
    sum = cpu::DenseDigest(*executor_, table);
    return absl::OkStatus();
  }

  absl::Status HeadTokenStatistics(const HeadSlice& slice,
                                   const HeadInputs& inputs,
                                   const HeadBlocks& blocks,
                                   const HeadStatistics& statistics) override {
    return cpu::HeadTokenStatistics(*executor_, scratch_, slice, inputs, blocks,
                                    statistics);
  }

  absl::Status HeadHiddenGradient(const HeadSlice& slice,
                                  const HeadInputs& inputs,
                                  const HeadMerged& merged,
                                  const HeadBlocks& blocks,
                                  std::span<std::byte> kept,
                                  float* hidden_gradient) override {
    return cpu::HeadHiddenGradient(*executor_, scratch_, slice, inputs, merged,
                                   blocks, kept, hidden_gradient);
  }

  absl::Status HeadWeightGradient(const HeadSlice& slice,
                                  const HeadInputs& inputs,
                                  const HeadMerged& merged,
                                  const HeadBlocks& blocks,
                                  std::span<const std::byte> kept,
                                  const MainGrad& main_grad,
                                  float* bias_grad) override {
    return cpu::HeadWeightGradient(*executor_, scratch_, slice, inputs, merged,
                                   blocks, kept, main_grad, bias_grad);
  }

  absl::Status LandRows(const HostPieces& from, void* to, int64_t row_count,
                        int64_t dim, DType dtype, int64_t first_position,
                        ContentSum& content, RowScan& scan) override {
    cpu::LandRows(*executor_, from, to, row_count, dim, dtype, first_position,
                  content, scan);
    return absl::OkStatus();
  }

  absl::Status AddFloats(const float* from, float* to, int64_t count) override {
    cpu::AddFloats(*executor_, from, to, count);
    return absl::OkStatus();
  }

  absl::Status NarrowFloats(const float* from, int64_t count, DType dtype,
                            void* to) override {
    cpu::NarrowFloats(*executor_, from, count, dtype, to);
    return absl::OkStatus();
  }

  absl::Status NgramRowIds(std::span<const int32_t> tokens,
                           int64_t table_row_count,
                           std::span<int64_t> row_ids) override {
    cpu::NgramRowIds(*executor_, tokens, table_row_count, row_ids);
    return absl::OkStatus();
  }

  absl::Status NgramWantList(std::span<const std::span<const int32_t>> steps,
                             int64_t table_row_count, std::span<int64_t> want,
                             int64_t& want_count) override {
    want_count = cpu::NgramWantList(*executor_, steps, table_row_count, want);
    return absl::OkStatus();
  }

  absl::Status FindSlots(std::span<const int64_t> want,
                         std::span<const int64_t> row_ids,
                         std::span<int64_t> slots,
                         int64_t& first_missing) override {
    first_missing = cpu::FindSlots(*executor_, want, row_ids, slots);
    return absl::OkStatus();
  }

  absl::Status NgramEmbedForward(const void* cache, DType dtype, int64_t dim,
                                 std::span<const int32_t> tokens,
                                 std::span<const int64_t> slots,
                                 const SignPool& pool, void* out) override {
    cpu::NgramEmbedForward(*executor_, cache, dtype, dim, tokens, slots, pool,
                           out);
    return absl::OkStatus();
  }

  absl::Status NgramEmbedBackward(const void* gradient, DType dtype,
                                  int64_t dim, std::span<const int32_t> tokens,
                                  const SignPool& pool,
                                  void* row_gradient) override {
    cpu::NgramEmbedBackward(*executor_, gradient, dtype, dim, tokens, pool,
                            row_gradient);
    return absl::OkStatus();
  }

  absl::Status SumNgramGradients(std::span<const NgramStep> steps,
                                 DType gradient_dtype, int64_t dim,
                                 const SignPool& pool, int64_t slot_count,
                                 DType wire_dtype, void* out) override {
    cpu::SumNgramGradients(*executor_, steps, gradient_dtype, dim, pool,
                           slot_count, wire_dtype, out);
    return absl::OkStatus();
  }

 private:
  const std::unique_ptr<Executor> executor_;
  ScratchPool scratch_;
  SharedMemoryFiles shared_;
  RecycledMemory recycled_;
};

}  // namespace

std::unique_ptr<Backend> MakeCpuBackend(std::unique_ptr<Executor> executor) {
  return std::make_unique<CpuBackend>(std::move(executor));
}

}  // namespace rowhouse::kernels::cpu
