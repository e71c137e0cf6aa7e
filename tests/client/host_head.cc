#include "tests/client/host_head.h"

#include <cstring>
#include <utility>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/hash.h"
#include "tests/client/in_memory_convert.h"
#include "tests/kernels/host_table.h"

namespace rowhouse::testing {
namespace {

using Type = reference::EagerDense::Type;

Type TypeOf(client::DType dtype) {
  switch (dtype) {
    case client::DType::kBf16:
      return Type::kBf16;
    case client::DType::kFp32:
      return Type::kFp32;
    case client::DType::kFp16:
      return Type::kFp16;
  }
  return Type::kFp32;
}

std::vector<int64_t> Ignoring(const std::vector<int64_t>& targets) {
  std::vector<int64_t> rows = targets;
  for (int64_t& row : rows) row = row == kIgnored ? -1 : row;
  return rows;
}

}  // namespace

std::vector<std::byte> EncodeBytes(kernels::DType dtype,
                                   const std::vector<float>& values) {
  const std::vector<uint8_t> encoded = kernels::Encode(dtype, values);
  const auto bytes = std::as_bytes(std::span(encoded));
  return {bytes.begin(), bytes.end()};
}

std::vector<float> DecodeBytes(kernels::DType dtype,
                               std::span<const std::byte> bytes) {
  std::vector<uint8_t> encoded(bytes.size());
  if (!bytes.empty()) {
    std::memcpy(encoded.data(), bytes.data(), bytes.size());
  }
  return kernels::Decode(dtype, encoded);
}

HostHead::HostHead(const client::TableSpec& spec, std::vector<int64_t> bounds)
    : bounds_(std::move(bounds)),
      spec_(spec),
      backend_(kernels::cpu::MakeCpuBackend(
          kernels::cpu::MakeThreadExecutor(/*thread_count=*/1))) {
  const auto elements = static_cast<size_t>(spec.row_count * spec.dim);
  table_.row_count = spec.row_count;
  table_.dim = spec.dim;
  table_.type = TypeOf(spec.row_dtype);
  table_.main_type = TypeOf(spec.dense->main_grad_dtype);
  table_.has_master = spec.dense->has_master;
  table_.has_bias = spec.dense->has_bias;
  for (auto* values :
       {&table_.weights, &table_.m, &table_.v, &table_.main_grad}) {
    values->resize(elements);
  }
  if (table_.has_master) table_.master.resize(elements);
  if (!table_.has_bias) return;
  for (auto* values :
       {&table_.bias, &table_.bias_grad, &table_.bias_m, &table_.bias_v}) {
    values->resize(static_cast<size_t>(spec.row_count));
  }
}

kernels::HeadResult HostHead::AddHead(const HostBatch& batch,
                                      const std::vector<float>& upstream,
                                      const HostTerms& terms) {
  kernels::HeadProblem problem;
  problem.token_count = batch.token_count();
  problem.row_count = spec_.row_count;
  problem.dim = spec_.dim;
  problem.hidden_dtype = batch.hidden_dtype;
  problem.weight_dtype = ToKernel(spec_.row_dtype);
  problem.main_grad_dtype = ToKernel(spec_.dense->main_grad_dtype);
  problem.hidden = batch.hidden;
  problem.weights = table_.weights;
  problem.bias = table_.bias;
  problem.targets = Ignoring(batch.targets);
  problem.upstream = upstream;
  problem.bounds = bounds_;
  problem.main_grad = table_.main_grad;
  problem.bias_grad = table_.bias_grad;
  problem.class_weights = terms.class_weights;
  problem.softcap = terms.softcap;
  problem.label_smoothing = terms.label_smoothing;
  problem.z_loss = terms.z_loss;
  problem.z_upstream = terms.z_upstream;
  problem.predict = terms.predict;
  kernels::HeadResult result = kernels::RunHead(*backend_, problem);
  table_.main_grad = result.main_grad;
  table_.bias_grad = result.bias_grad;
  return result;
}

reference::CrossEntropyResult HostHead::Exact(
    const HostBatch& batch, const std::vector<float>& upstream,
    const HostTerms& terms) const {
  return reference::LinearCrossEntropy(
      {batch.token_count(), spec_.row_count, spec_.dim, batch.hidden,
       table_.weights, table_.bias, Ignoring(batch.targets), upstream,
       terms.class_weights, terms.softcap, terms.label_smoothing, terms.z_loss,
       terms.z_upstream});
}

void HostHead::AddEmbedding(const std::vector<int64_t>& row_ids,
                            const std::vector<float>& rows) {
  table_.AddEmbeddingGradient(row_ids, rows, TypeOf(spec_.gradient_dtype));
}

void HostHead::Apply(const client::AdamWOptions& options, int applied_count,
                     int divisor) {
  table_.ApplyAdamW(
      {options.learning_rate, options.weight_decay, options.beta1,
       options.beta2, options.eps, applied_count, options.gradient_scale},
      divisor, /*keep_non_finite_rows=*/true);
  history_.push_back(static_cast<float>(options.beta2));
}

uint64_t HostHead::Digest() const {
  return table_.Digest() +
         kernels::HistoryDigest(history_.data(), std::ssize(history_) - 1);
}

}  // namespace rowhouse::testing
