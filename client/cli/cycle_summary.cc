#include "client/cli/cycle_summary.h"

#include <algorithm>
#include <map>
#include <utility>

#include "client/cli/stage_name.h"

namespace rowhouse::cli {
namespace {

using client::Span;
using client::Stage;

// What the trainer's own thread works at.
bool IsWork(Stage stage) {
  switch (stage) {
    case Stage::kWantList:
    case Stage::kEmbed:
    case Stage::kAccumulate:
    case Stage::kSum:
      return true;
    case Stage::kPullWait:
    case Stage::kSendIds:
    case Stage::kAwaitRows:
    case Stage::kTakeRows:
    case Stage::kPush:
    case Stage::kSeal:
    case Stage::kCommit:
    case Stage::kAwaitEvent:
      return false;
  }
  return false;
}

bool IsPull(Stage stage) {
  return stage == Stage::kSendIds || stage == Stage::kAwaitRows ||
         stage == Stage::kTakeRows;
}

// The event that ends the cycle which a span belongs to: rows are of the one
// before.
int64_t CycleOf(const Span& span) {
  return span.event + (IsPull(span.stage) ? 1 : 0);
}

// Spans of one cycle of a trainer.
class Cycle {
 public:
  void Add(const Span& span) { spans_.push_back(span); }

  std::vector<Interval> Of(std::initializer_list<Stage> stages) const {
    std::vector<Interval> intervals;
    for (const Span& span : spans_) {
      if (std::find(stages.begin(), stages.end(), span.stage) != stages.end()) {
        intervals.push_back({span.begin, span.end});
      }
    }
    return UnionOf(std::move(intervals));
  }

  int64_t Rows(Stage stage) const {
    int64_t rows = 0;
    for (const Span& span : spans_) {
      if (span.stage == stage) rows += span.row_count;
    }
    return rows;
  }

  const std::vector<Span>& spans() const { return spans_; }

 private:
  std::vector<Span> spans_;
};

// From the first commit until the last shard has applied the event.
std::vector<Interval> EventOf(const Cycle& rank0) {
  const std::vector<Interval> commits = rank0.Of({Stage::kCommit});
  const std::vector<Interval> waits = rank0.Of({Stage::kAwaitEvent});
  if (commits.empty() || waits.empty()) return {};
  return UnionOf({{commits.front().begin,
                   std::max(commits.front().begin, waits.back().end)}});
}

// A stage of the summary.
struct Row {
  Stage stage;
  bool in_flight;
  int64_t bytes_of_row;
};

class Summary {
 public:
  Summary(const CycleTrace& trace, int64_t row_bytes, int64_t gradient_bytes)
      : trace_(trace),
        rows_{
            {Stage::kWantList, false, 0},
            {Stage::kSendIds, true, sizeof(int64_t)},
            {Stage::kAwaitRows, true, 0},
            {Stage::kTakeRows, true, row_bytes},
            {Stage::kPullWait, false, 0},
            {Stage::kEmbed, false, row_bytes},
            {Stage::kAccumulate, false, row_bytes},
            {Stage::kSum, false, gradient_bytes},
            {Stage::kPush, true, gradient_bytes},
            {Stage::kSeal, true, 0},
            {Stage::kCommit, true, 0},
        } {
    for (const Row& row : rows_) {
      result_.stages.push_back(
          {NameOf(row.stage), row.in_flight, {}, {}, {}, 0, row.bytes_of_row});
    }
    model_ = {"model", false, {}, {}, {}, 0, 0};
    event_ = {"event", true, {}, {}, {}, 0, 0};
    rest_ = {"rest", false, {}, {}, {}, 0, 0};
    result_.pull = {"pull", true, {}, {}, {}, 0, row_bytes};
  }

  CycleSummary Make() {
    const std::map<int64_t, Cycle> rank0 = CyclesOf(trace_.trainers.at(0));
    for (const TrainerTrace& trainer : trace_.trainers) {
      AddTrainer(trainer, rank0);
    }
    const auto place = [](const StageSummary& stage, const char* name) {
      return stage.name == name;
    };
    auto& stages = result_.stages;
    if (model_.total > absl::ZeroDuration()) {
      stages.insert(std::find_if(stages.begin(), stages.end(),
                                 [&](const StageSummary& stage) {
                                   return place(stage, "accumulate");
                                 }),
                    model_);
    }
    stages.push_back(event_);
    stages.push_back(rest_);
    std::erase_if(stages, [](const StageSummary& stage) {
      return stage.total == absl::ZeroDuration();
    });
    return std::move(result_);
  }

 private:
  static std::map<int64_t, Cycle> CyclesOf(const TrainerTrace& trainer) {
    std::map<int64_t, Cycle> cycles;
    for (const Span& span : trainer.spans) cycles[CycleOf(span)].Add(span);
    return cycles;
  }

  static void Add(const std::vector<Interval>& intervals, int64_t row_count,
                  const std::vector<Interval>& work, StageSummary& stage) {
    const absl::Duration length = LengthOf(intervals);
    stage.latencies.Add(length);
    stage.total += length;
    stage.hidden += LengthOf(Common(intervals, work));
    stage.row_count += row_count;
  }

  void AddTrainer(const TrainerTrace& trainer,
                  const std::map<int64_t, Cycle>& rank0) {
    std::vector<Interval> work = trainer.model;
    std::vector<Interval> known = trainer.model;
    for (const Span& span : trainer.spans) {
      const Interval interval = {span.begin, span.end};
      if (IsWork(span.stage)) work.push_back(interval);
      // Through these the thread waits.
      const bool waits = span.stage == Stage::kPullWait ||
                         span.stage == Stage::kPush ||
                         span.stage == Stage::kSeal;
      if (IsWork(span.stage) || waits) known.push_back(interval);
    }
    work = UnionOf(std::move(work));
    known = UnionOf(std::move(known));
    const std::map<int64_t, Cycle> cycles = CyclesOf(trainer);
    const Cycle none;
    for (size_t i = 0; i + 1 < trainer.starts.size(); ++i) {
      const int64_t event = trace_.first_event + static_cast<int64_t>(i);
      const auto find = [&](const std::map<int64_t, Cycle>& map) -> auto& {
        const auto found = map.find(event);
        return found == map.end() ? none : found->second;
      };
      const Cycle& cycle = find(cycles);
      for (size_t row = 0; row < rows_.size(); ++row) {
        Add(cycle.Of({rows_[row].stage}), cycle.Rows(rows_[row].stage), work,
            result_.stages[row]);
      }
      Add(cycle.Of({Stage::kSendIds, Stage::kTakeRows}),
          cycle.Rows(Stage::kTakeRows), work, result_.pull);
      Add(EventOf(find(rank0)), 0, work, event_);
      AddWhole({trainer.starts[i], trainer.starts[i + 1]}, trainer.model, work,
               known);
      AddCalls(cycle);
    }
  }

  void AddWhole(const Interval& cycle, const std::vector<Interval>& model,
                const std::vector<Interval>& work,
                const std::vector<Interval>& known) {
    const std::vector<Interval> whole = {cycle};
    const absl::Duration length = LengthOf(whole);
    result_.cycles.Add(length);
    result_.total += length;
    result_.work += LengthOf(Common(whole, work));
    Add(Common(whole, model), 0, work, model_);
    const absl::Duration rest = length - LengthOf(Common(whole, known));
    rest_.latencies.Add(rest);
    rest_.total += rest;
  }

  void AddCalls(const Cycle& cycle) {
    for (const Span& span : cycle.spans()) {
      const int64_t one_sided = span.path == client::Path::kOneSided ? 1 : 0;
      if (span.stage == Stage::kTakeRows) {
        ++result_.pull_count;
        result_.one_sided_pulls += one_sided;
        result_.row_count += span.row_count;
      } else if (span.stage == Stage::kPush && span.row_count > 0) {
        ++result_.push_count;
        result_.one_sided_pushes += one_sided;
      }
    }
  }

  const CycleTrace& trace_;
  const std::vector<Row> rows_;
  CycleSummary result_;
  StageSummary model_;
  StageSummary event_;
  StageSummary rest_;
};

}  // namespace

CycleSummary Summarize(const CycleTrace& trace, int64_t row_bytes,
                       int64_t gradient_bytes) {
  return Summary(trace, row_bytes, gradient_bytes).Make();
}

}  // namespace rowhouse::cli
