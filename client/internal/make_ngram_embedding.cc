#include <memory>
#include <utility>

#include "client/internal/ngram_core.h"
#include "client/internal/trainer_core.h"
#include "kernels/backend.h"
#include "proto/wire/status_macros.h"
#include "rowhouse/ngram_embedding.h"

namespace rowhouse::client {

absl::StatusOr<std::unique_ptr<NgramEmbedding>> NgramEmbedding::Create(
    Trainer& trainer, const NgramOptions& options) {
  if (options.on_device) {
    const std::shared_ptr<kernels::Backend>& device =
        trainer.core()->cluster().device();
    if (device == nullptr) {
      return absl::FailedPreconditionError(
          "on_device, but the cluster was connected without a device_index");
    }
    return internal::MakeNgramEmbedding(trainer, options, device);
  }
  ROWHOUSE_ASSIGN_OR_RETURN(
      std::unique_ptr<kernels::Backend> backend,
      kernels::MakeBackend({.kind = kernels::BackendKind::kCpu,
                            .device_index = 0,
                            .thread_count = options.thread_count}));
  return internal::MakeNgramEmbedding(trainer, options, std::move(backend));
}

}  // namespace rowhouse::client
