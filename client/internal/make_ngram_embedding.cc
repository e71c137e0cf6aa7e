#include <memory>
#include <utility>

#include "client/internal/ngram_core.h"
#include "kernels/backend.h"
#include "proto/wire/status_macros.h"
#include "rowhouse/ngram_embedding.h"

namespace rowhouse::client {

absl::StatusOr<std::unique_ptr<NgramEmbedding>> NgramEmbedding::Create(
    Trainer& trainer, const NgramOptions& options) {
  ROWHOUSE_ASSIGN_OR_RETURN(
      std::unique_ptr<kernels::Backend> backend,
      kernels::MakeBackend({.kind = kernels::BackendKind::kCpu,
                            .device_index = 0,
                            .thread_count = options.thread_count}));
  return internal::MakeNgramEmbedding(trainer, options, std::move(backend));
}

}  // namespace rowhouse::client
