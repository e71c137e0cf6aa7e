#include "client/cli/cycle_run.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "absl/time/clock.h"
#include "client/internal/trainer_core.h"
#include "kernels/backend.h"
#include "proto/wire/status_macros.h"
#include "rowhouse/ngram_embedding.h"
#include "rowhouse/trainer.h"

namespace rowhouse::cli {
namespace {

constexpr client::RowAdamScalars kScalars{
    .step_size = 1e-3, .decay = 0, .beta2 = 0.95, .eps = 1e-10};

client::NgramOptions OptionsOf(const CycleLoad& load, SpanLog& log) {
  client::NgramOptions options;
  options.cache_row_count = load.MostRows();
  options.is_update = [steps = load.step_count](int64_t step) {
    return step % steps == steps - 1;
  };
  options.on_device = load.device_index.has_value();
  options.timeout = load.timeout;
  options.observer = log.observer();
  return options;
}

// So many cycles have tokens of their own; then the first come again.
constexpr int64_t kKinds = 8;

// One trainer's part of the load.
class CycleTrainer {
 public:
  static absl::StatusOr<std::unique_ptr<CycleTrainer>> Make(
      const CycleClient& client, const CycleLoad& load, int32_t rank) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        std::unique_ptr<client::Trainer> trainer,
        client::Trainer::Join(*client.cluster, load.table, rank,
                              {.timeout = load.timeout}));
    ROWHOUSE_ASSIGN_OR_RETURN(
        std::unique_ptr<client::NgramEmbedding> embedding,
        client::NgramEmbedding::Create(*trainer, OptionsOf(load, *client.log)));
    ROWHOUSE_ASSIGN_OR_RETURN(
        std::unique_ptr<kernels::Backend> backend,
        kernels::MakeBackend({.kind = load.device_index.has_value()
                                          ? kernels::BackendKind::kCuda
                                          : kernels::BackendKind::kCpu,
                              .device_index = load.device_index.value_or(0),
                              .thread_count = 1}));
    ROWHOUSE_ASSIGN_OR_RETURN(
        kernels::Buffer rows,
        backend->Allocate(load.token_count * trainer->table().row_bytes()));
    return std::make_unique<CycleTrainer>(load, std::move(trainer),
                                          std::move(embedding),
                                          std::move(backend), std::move(rows));
  }

  CycleTrainer(const CycleLoad& load, std::unique_ptr<client::Trainer> trainer,
               std::unique_ptr<client::NgramEmbedding> embedding,
               std::unique_ptr<kernels::Backend> backend, kernels::Buffer rows)
      : load_(load),
        trainer_(std::move(trainer)),
        embedding_(std::move(embedding)),
        backend_(std::move(backend)),
        buffer_(std::move(rows)),
        rows_(buffer_.as<std::byte>(),
              static_cast<size_t>(buffer_.size_bytes())) {
    TokenSource source(load.law, load.seed + trainer_->rank());
    for (int64_t i = 0; i < std::min(cycle_count(), kKinds); ++i) {
      std::vector<std::vector<int32_t>>& steps = tokens_.emplace_back();
      for (int32_t step = 0; step < load.step_count; ++step) {
        steps.push_back(source.Next(load.token_count));
      }
    }
  }

  // The last one is not measured: what the one before it left under way ends in
  // it.
  int64_t cycle_count() const {
    return load_.warm_up_count + load_.cycle_count + 1;
  }
  client::Trainer& trainer() { return *trainer_; }

  absl::Status Run(const std::function<void(int64_t)>& watch) {
    for (int64_t cycle = 0; cycle < cycle_count(); ++cycle) {
      ROWHOUSE_RETURN_IF_ERROR(RunCycle(cycle));
      if (trainer_->rank() == 0) watch(cycle + 1);
    }
    return absl::OkStatus();
  }

  // Waits for each event, so that it is told when it was applied.
  absl::Status WatchEvents() {
    for (int64_t event = 1; event <= cycle_count(); ++event) {
      ROWHOUSE_RETURN_IF_ERROR(
          trainer_->WaitForEvent(event, {.timeout = load_.timeout}));
    }
    return absl::OkStatus();
  }

  TrainerTrace TakeTrace(SpanLog& log) {
    return {log.Take(), std::move(model_), std::move(starts_)};
  }

 private:
  std::vector<client::Tokens> StepsOf(int64_t cycle) const {
    const auto& steps = tokens_[cycle % kKinds];
    return {steps.begin(), steps.end()};
  }

  absl::Status RunCycle(int64_t cycle) {
    if (cycle >= load_.warm_up_count) starts_.push_back(absl::Now());
    ROWHOUSE_RETURN_IF_ERROR(
        embedding_->StartCycle(cycle * load_.step_count, StepsOf(cycle)));
    if (load_.prefetch && cycle + 1 < cycle_count()) {
      ROWHOUSE_RETURN_IF_ERROR(
          embedding_->PrefetchNextCycle(StepsOf(cycle + 1)));
    }
    for (const client::Tokens& tokens : StepsOf(cycle)) {
      ROWHOUSE_RETURN_IF_ERROR(embedding_->Embed(tokens, rows_));
      ROWHOUSE_RETURN_IF_ERROR(AwaitModel());
      // What was embedded serves as its gradient.
      ROWHOUSE_RETURN_IF_ERROR(embedding_->AccumulateGradient(tokens, rows_));
    }
    return embedding_
        ->FinishCycle(trainer_->rank() == 0
                          ? std::optional<client::CommitDecision>(kScalars)
                          : std::nullopt)
        .status();
  }

  absl::Status AwaitModel() {
    if (load_.model_time <= absl::ZeroDuration()) return absl::OkStatus();
    client::internal::TrainerCore& core = *trainer_->core();
    const absl::Time begin = absl::Now();
    if (!core.stop().WaitUntil(core.cluster().clock(),
                               begin + load_.model_time)) {
      return absl::CancelledError("the run ends");
    }
    model_.push_back({begin, absl::Now()});
    return absl::OkStatus();
  }

  const CycleLoad& load_;
  const std::unique_ptr<client::Trainer> trainer_;
  const std::unique_ptr<client::NgramEmbedding> embedding_;
  std::vector<std::vector<std::vector<int32_t>>> tokens_;  // By kind and step.
  const std::unique_ptr<kernels::Backend> backend_;
  const kernels::Buffer buffer_;     // After its backend.
  const std::span<std::byte> rows_;  // A step's embedding, and its gradient.
  std::vector<Interval> model_;
  std::vector<absl::Time> starts_;
};

// The first fault; it ends all calls.
class Fault {
 public:
  explicit Fault(const std::vector<CycleClient>& clients) : clients_(clients) {}

  void Note(const absl::Status& status) {
    if (status.ok()) return;
    {
      MutexLock lock(mutex_);
      if (fault_.ok()) fault_ = status;
    }
    for (const CycleClient& client : clients_) client.cluster->CancelCalls();
  }

  absl::Status status() {
    MutexLock lock(mutex_);
    return fault_;
  }

 private:
  const std::vector<CycleClient>& clients_;
  Mutex mutex_;
  absl::Status fault_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

absl::StatusOr<CycleTrace> RunCycles(
    const std::vector<CycleClient>& clients, const CycleLoad& load,
    const std::function<void(int64_t)>& watch) {
  std::vector<std::unique_ptr<CycleTrainer>> trainers;
  for (size_t rank = 0; rank < clients.size(); ++rank) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        std::unique_ptr<CycleTrainer> trainer,
        CycleTrainer::Make(clients[rank], load, static_cast<int32_t>(rank)));
    trainers.push_back(std::move(trainer));
  }
  Fault fault(clients);
  std::vector<std::thread> threads;
  threads.emplace_back([&] { fault.Note(trainers[0]->WatchEvents()); });
  for (const auto& trainer : trainers) {
    threads.emplace_back([&] { fault.Note(trainer->Run(watch)); });
  }
  for (std::thread& thread : threads) thread.join();
  ROWHOUSE_RETURN_IF_ERROR(fault.status());
  CycleTrace trace{.first_event = load.warm_up_count + 1, .trainers = {}};
  for (size_t rank = 0; rank < clients.size(); ++rank) {
    trace.trainers.push_back(trainers[rank]->TakeTrace(*clients[rank].log));
  }
  return trace;
}

}  // namespace rowhouse::cli
