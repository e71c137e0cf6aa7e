#include "kernels/cuda/scratch_bytes.h"

#include <algorithm>

#include "kernels/cuda/bf16_head.h"
#include "kernels/cuda/entries.h"
#include "kernels/cuda/head_run.h"
#include "kernels/cuda/row_adam.h"
#include "kernels/cuda/runs.h"
#include "kernels/cuda/scratch.h"

namespace rowhouse::kernels::cuda {
namespace {

// Of an event, whose parts are merged; an embedding's entries are fewer arrays.
int64_t MergeBytes(const ScratchNeeds& needs) {
  if (needs.entry_count == 0) return 0;
  ScratchCutter cutter(nullptr);
  (void)EntryScratch::Cut(cutter, needs.entry_count);
  if (needs.head.has_value()) return cutter.size_bytes();
  (void)LongRuns::Cut(cutter, needs.entry_count, needs.dim);
  (void)cutter.Take<float>(RowAdamScratchFloats(needs.dim));
  return cutter.size_bytes();
}

int64_t GatherBytes(const ScratchNeeds& needs) {
  ScratchCutter cutter(nullptr);
  (void)cutter.Take<int64_t>(needs.slot_count);
  (void)cutter.Take<char>(needs.host_bytes);
  return cutter.size_bytes();
}

// With hidden states in the dtype that takes the most.
int64_t HeadBytes(const ScratchNeeds& needs) {
  if (!needs.head.has_value() || needs.token_count == 0) return 0;
  HeadInputs inputs;
  inputs.hidden_dtype = DType::kFp32;
  inputs.token_count = needs.token_count;
  const HeadCall call =
      HeadCall::Of(*needs.head, inputs, needs.token_count, needs.blocks);
  ScratchCutter cutter(nullptr);
  (void)HeadScratch::Cut(
      cutter, call, std::max(call.hidden_elements(), call.weight_elements()));
  return std::max(
      cutter.size_bytes(),
      Bf16Head::ScratchBytes(*needs.head, needs.token_count, needs.blocks));
}

}  // namespace

int64_t ScratchBytes(const ScratchNeeds& needs) {
  return std::max({MergeBytes(needs), GatherBytes(needs), HeadBytes(needs)});
}

}  // namespace rowhouse::kernels::cuda
