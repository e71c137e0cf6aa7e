#ifndef ROWHOUSE_CLIENT_CLI_CYCLE_RUN_H_
#define ROWHOUSE_CLIENT_CLI_CYCLE_RUN_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/intervals.h"
#include "client/cli/token_source.h"
#include "kernels/mutex.h"
#include "rowhouse/cluster.h"
#include "rowhouse/observer.h"

namespace rowhouse::cli {

/// Cycles of an n-gram embedding: every trainer, a thread, embeds its steps'
/// tokens, hands in gradients, and ends each cycle with an event. Tokens come
/// again after eight cycles.
struct CycleLoad {
  std::string table;
  int64_t token_count = 49152;  ///< Of a step of a trainer.
  int32_t step_count = 4;       ///< Of a cycle.
  int64_t cycle_count = 10;     ///< Measured.
  int64_t warm_up_count = 2;    ///< Cycles before those.
  bool prefetch = true;         ///< A cycle's ids are sent in the one before.
  TokenLaw law = TokenLaw::kUniform;
  /// What a step's model takes between embedding and gradient: a wait, as for
  /// a GPU.
  absl::Duration model_time;
  /// The GPU that has cache, embeddings and gradients; else the host does.
  std::optional<int> device_index = std::nullopt;
  absl::Duration timeout = absl::Seconds(60);  ///< Of a call.
  uint64_t seed = 1;

  /// The most rows of a cycle: two n-grams a token.
  int64_t MostRows() const { return 2 * token_count * step_count; }
};

/// Keeps spans.
///
/// Thread-safe.
class SpanLog {
 public:
  client::Observer observer() {
    return [this](const client::Span& span) {
      MutexLock lock(mutex_);
      spans_.push_back(span);
    };
  }

  std::vector<client::Span> Take() {
    MutexLock lock(mutex_);
    return std::exchange(spans_, {});
  }

 private:
  Mutex mutex_;
  std::vector<client::Span> spans_ ABSL_GUARDED_BY(mutex_);
};

/// What one trainer did.
struct TrainerTrace {
  std::vector<client::Span> spans;
  std::vector<Interval> model;
  /// When each measured cycle began, and when the one after them did.
  std::vector<absl::Time> starts;
};

struct CycleTrace {
  int64_t first_event = 0;  ///< Of the first measured cycle.
  std::vector<TrainerTrace> trainers;
};

/// A trainer's own client, whose calls `log` is told of; like a process of its
/// own.
struct CycleClient {
  std::unique_ptr<SpanLog> log;
  std::unique_ptr<client::Cluster> cluster;
};

/// Runs the load on an n-gram table that has as many trainers as `clients` and
/// room for their rows. `watch` is told how many cycles rank 0 has behind it,
/// on one thread; there is one more than measured and before those.
///
/// Errors: the first of a trainer's calls, which ends those of all others too.
absl::StatusOr<CycleTrace> RunCycles(
    const std::vector<CycleClient>& clients, const CycleLoad& load,
    const std::function<void(int64_t cycle_count)>& watch);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_CYCLE_RUN_H_
