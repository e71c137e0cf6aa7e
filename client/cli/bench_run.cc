#include "client/cli/bench_run.h"

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <random>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/clock.h"
#include "client/cli/elements.h"
#include "client/internal/trainer_core.h"
#include "kernels/mutex.h"
#include "proto/wire/status_macros.h"
#include "rowhouse/trainer.h"

namespace rowhouse::cli {
namespace {

constexpr absl::Duration kWatchPeriod = absl::Milliseconds(100);

double CpuSeconds() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

using Trainers = std::vector<std::unique_ptr<client::Trainer>>;

// What the trainers' threads and the watcher share.
class Shared {
 public:
  Shared(const BenchLoad& load, const Trainers& trainers)
      : measured_from_(absl::Now() + load.warm_up),
        trainers_(trainers),
        running_(load.trainer_count) {}

  absl::Time measured_from() const { return measured_from_; }

  // Whether a trainer is to take part in an event. Once one has, all do: they
  // wait for each other.
  bool BeginEvent(int64_t event) {
    MutexLock lock(mutex_);
    if (ending_ && event > newest_event_) return false;
    newest_event_ = std::max(newest_event_, event);
    return true;
  }

  bool ending() {
    MutexLock lock(mutex_);
    return ending_;
  }

  void End() {
    MutexLock lock(mutex_);
    ending_ = true;
  }

  // Ends all calls that are under way too; `fault` is the run's, if it is the
  // first.
  void Abort(const absl::Status& fault) {
    {
      MutexLock lock(mutex_);
      if (fault_.ok()) fault_ = fault;
      ending_ = true;
    }
    for (const auto& trainer : trainers_) trainer->core()->stop().Cancel();
  }

  void ThreadEnded(const absl::Status& status) {
    if (!status.ok()) Abort(status);
    MutexLock lock(mutex_);
    --running_;
    changed_.SignalAll();
  }

  // Waits a little; whether threads still run.
  bool WaitForThreads(absl::Time until) {
    MutexLock lock(mutex_);
    if (running_ > 0) changed_.WaitUntil(mutex_, absl::ToChronoTime(until));
    return running_ > 0;
  }

  absl::Status fault() {
    MutexLock lock(mutex_);
    return fault_;
  }

  std::atomic<int64_t> size_bytes = 0;  // Moved so far.

 private:
  const absl::Time measured_from_;
  const Trainers& trainers_;
  Mutex mutex_;
  CondVar changed_;
  int32_t running_ ABSL_GUARDED_BY(mutex_);
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t newest_event_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status fault_ ABSL_GUARDED_BY(mutex_);
};

// One trainer's part of the load.
class TrainerLoad {
 public:
  TrainerLoad(const BenchLoad& load, Shared& shared, client::Trainer& trainer)
      : load_(load),
        shared_(shared),
        trainer_(trainer),
        random_(load.seed + trainer.rank()),
        rows_(load.batch_rows * trainer.table().row_bytes()),
        gradients_(
            BytesOf(trainer.table().spec.gradient_dtype,
                    std::vector<float>(
                        load.batch_rows * trainer.table().spec.dim, 1e-3F))) {}

  absl::Status Run() {
    // Without events no trainer waits for another.
    while (load_.push_count == 0 ? !shared_.ending()
                                 : shared_.BeginEvent(trainer_.next_event())) {
      ROWHOUSE_RETURN_IF_ERROR(Step());
    }
    return absl::OkStatus();
  }

  void AddTo(BenchReport& report) const {
    report.pull.Merge(pull_);
    report.push.Merge(push_);
    report.event.Merge(event_);
  }

 private:
  absl::Status Step() {
    const int64_t event = trainer_.next_event();
    for (int32_t i = 0; i < load_.pull_count; ++i) {
      const std::vector<int64_t> row_ids = RandomRows();
      ROWHOUSE_RETURN_IF_ERROR(Timed(pull_, std::ssize(rows_), [&] {
        return trainer_
            .Pull(row_ids, rows_,
                  {.timeout = load_.timeout,
                   .exact_event = event - 1,
                   .training = load_.push_count > 0})
            .status();
      }));
    }
    if (load_.push_count == 0) return absl::OkStatus();
    for (int32_t i = 0; i < load_.push_count; ++i) {
      const std::vector<int64_t> row_ids = RandomRows();
      ROWHOUSE_RETURN_IF_ERROR(Timed(push_, std::ssize(gradients_), [&] {
        return trainer_
            .Push(event, row_ids, gradients_, {.timeout = load_.timeout})
            .status();
      }));
    }
    return Timed(event_, 0, [&] { return ApplyEvent(event); });
  }

  absl::Status ApplyEvent(int64_t event) {
    constexpr client::RowAdamScalars kScalars{
        .step_size = 1e-3, .decay = 0, .beta2 = 0.95, .eps = 1e-10};
    const client::CallOptions options{.timeout = load_.timeout};
    ROWHOUSE_RETURN_IF_ERROR(
        trainer_.rank() == 0 ? trainer_.SealAndCommit(event, kScalars, options)
                             : trainer_.Seal(event, options));
    return trainer_.WaitForEvent(event, options);
  }

  // Makes the call; counts it if it began within the measured time.
  template <typename Call>
  absl::Status Timed(OperationReport& report, int64_t size_bytes, Call call) {
    const absl::Time start = absl::Now();
    ROWHOUSE_RETURN_IF_ERROR(call());
    shared_.size_bytes += size_bytes;
    if (start < shared_.measured_from()) return absl::OkStatus();
    report.latencies.Add(absl::Now() - start);
    report.size_bytes += size_bytes;
    report.row_count += size_bytes > 0 ? load_.batch_rows : 0;
    return absl::OkStatus();
  }

  std::vector<int64_t> RandomRows() {
    std::uniform_int_distribution<int64_t> row(
        0, trainer_.table().spec.row_count - 1);
    std::vector<int64_t> row_ids(load_.batch_rows);
    for (int64_t& row_id : row_ids) row_id = row(random_);
    return row_ids;
  }

  const BenchLoad& load_;
  Shared& shared_;
  client::Trainer& trainer_;
  std::mt19937_64 random_;
  std::vector<std::byte> rows_;
  const std::vector<std::byte> gradients_;
  OperationReport pull_;
  OperationReport push_;
  OperationReport event_;
};

// Ends the load when its time is over, and measures from the warm-up's end.
void Watch(const BenchLoad& load, Shared& shared,
           const std::function<void(const BenchProgress&)>& watch,
           BenchReport& report) {
  const absl::Time started = shared.measured_from() - load.warm_up;
  const absl::Time end = shared.measured_from() + load.duration;
  bool measuring = false;
  absl::Time now = absl::Now();
  do {
    if (!measuring && now >= shared.measured_from()) {
      measuring = true;
      report.cpu_seconds = -CpuSeconds();
    }
    watch({now - started, shared.size_bytes});
    if (now >= end) shared.End();
    absl::Time next = now + kWatchPeriod;
    if (!measuring) next = std::min(next, shared.measured_from());
    if (now < end) next = std::min(next, end);
    const bool running = shared.WaitForThreads(next);
    now = absl::Now();
    if (!running) break;
  } while (true);
  if (!measuring) return;
  report.cpu_seconds += CpuSeconds();
  report.measured = now - shared.measured_from();
}

}  // namespace

void OperationReport::Merge(const OperationReport& other) {
  latencies.Merge(other.latencies);
  row_count += other.row_count;
  size_bytes += other.size_bytes;
}

absl::StatusOr<BenchReport> RunBench(
    client::Cluster& cluster, const BenchLoad& load,
    const std::function<void(const BenchProgress&)>& watch) {
  Trainers trainers;
  for (int32_t rank = 0; rank < load.trainer_count; ++rank) {
    ROWHOUSE_ASSIGN_OR_RETURN(std::unique_ptr<client::Trainer> trainer,
                              client::Trainer::Join(cluster, load.table, rank,
                                                    {.timeout = load.timeout}));
    trainers.push_back(std::move(trainer));
  }
  Shared shared(load, trainers);
  std::vector<std::unique_ptr<TrainerLoad>> loads;
  std::vector<std::thread> threads;
  for (const auto& trainer : trainers) {
    loads.push_back(std::make_unique<TrainerLoad>(load, shared, *trainer));
  }
  for (const auto& trainer_load : loads) {
    threads.emplace_back(
        [&shared, &trainer_load] { shared.ThreadEnded(trainer_load->Run()); });
  }
  BenchReport report;
  Watch(load, shared, watch, report);
  for (std::thread& thread : threads) thread.join();
  ROWHOUSE_RETURN_IF_ERROR(shared.fault());
  for (const auto& trainer_load : loads) trainer_load->AddTo(report);
  return report;
}

}  // namespace rowhouse::cli
