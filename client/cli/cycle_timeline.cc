#include "client/cli/cycle_timeline.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/stage_name.h"
#include "client/cli/units.h"

namespace rowhouse::cli {
namespace {

using client::Span;
using client::Stage;

constexpr char kModel[] = "#bbbbbb";
constexpr char kApplied[] = "#994455";

const char* ColorOf(Stage stage) {
  switch (stage) {
    case Stage::kWantList:
      return "#997700";
    case Stage::kPullWait:
      return "#f4d6d2";
    case Stage::kEmbed:
      return "#228833";
    case Stage::kAccumulate:
      return "#66b36f";
    case Stage::kSum:
      return "#117755";
    case Stage::kSendIds:
      return "#114477";
    case Stage::kAwaitRows:
      return "#cfdff0";
    case Stage::kTakeRows:
      return "#4477aa";
    case Stage::kPush:
      return "#ee7733";
    case Stage::kSeal:
      return "#aa3377";
    case Stage::kCommit:
      return "#cc6688";
    case Stage::kAwaitEvent:
      return kApplied;
  }
  return kModel;
}

// Where a lane stands, from above.
enum class Place : uint8_t { kWork = 0, kPulls = 1, kPushes = 2, kEvents = 3 };

Place PlaceOf(Stage stage) {
  switch (stage) {
    case Stage::kWantList:
    case Stage::kPullWait:
    case Stage::kEmbed:
    case Stage::kAccumulate:
    case Stage::kSum:
      return Place::kWork;
    case Stage::kSendIds:
    case Stage::kAwaitRows:
    case Stage::kTakeRows:
      return Place::kPulls;
    case Stage::kPush:
    case Stage::kSeal:
      return Place::kPushes;
    case Stage::kCommit:
    case Stage::kAwaitEvent:
      return Place::kEvents;
  }
  return Place::kEvents;
}

class Maker {
 public:
  Maker(const CycleTrace& trace, absl::Duration length) : trace_(trace) {
    const std::vector<absl::Time>& starts = trace.trainers.at(0).starts;
    const size_t first = MedianCycle(starts);
    zero_ = starts[first];
    timeline_.length =
        length > absl::ZeroDuration()
            ? length
            : starts[std::min(first + 2, starts.size() - 1)] - zero_;
    for (size_t i = first; i < starts.size(); ++i) {
      timeline_.marks.push_back(
          {starts[i] - zero_,
           absl::StrCat("cycle of event ",
                        trace.first_event + static_cast<int64_t>(i))});
    }
  }

  Timeline Make() {
    for (size_t rank = 0; rank < trace_.trainers.size(); ++rank) {
      AddTrainer(static_cast<int32_t>(rank));
    }
    for (auto& [key, lane] : lanes_) {
      timeline_.lanes.push_back(std::move(lane));
    }
    AddLegend();
    return std::move(timeline_);
  }

 private:
  // Events stand below all trainers.
  struct Key {
    int32_t rank;
    Place place;
    int32_t shard;
    auto operator<=>(const Key&) const = default;
  };

  // That a second one follows, if there are two.
  static size_t MedianCycle(const std::vector<absl::Time>& starts) {
    std::vector<std::pair<absl::Duration, size_t>> cycles;
    for (size_t i = 0; i + 2 < starts.size(); ++i) {
      cycles.emplace_back(starts[i + 1] - starts[i], i);
    }
    if (cycles.empty()) return 0;
    const auto middle =
        cycles.begin() + static_cast<std::ptrdiff_t>((cycles.size() - 1) / 2);
    std::nth_element(cycles.begin(), middle, cycles.end());
    return middle->second;
  }

  std::string NameOf(const Key& key) const {
    const std::string shard =
        key.shard < 0 ? "" : absl::StrCat(", shard ", key.shard);
    const std::string whose =
        trace_.trainers.size() == 1 ? "" : absl::StrCat(" ", key.rank);
    switch (key.place) {
      case Place::kWork:
        return "trainer" + whose;
      case Place::kPulls:
        return absl::StrCat("pulls", whose, shard);
      case Place::kPushes:
        return absl::StrCat("pushes", whose, shard);
      case Place::kEvents:
        return "event" + shard;
    }
    return "";
  }

  void AddBar(const Key& key, const Interval& when, const std::string& color,
              const std::string& tip) {
    Timeline::Lane& lane = lanes_[key];
    if (lane.name.empty()) lane.name = NameOf(key);
    if (when.end < zero_ || when.begin > zero_ + timeline_.length) return;
    lane.bars.push_back(
        {when.begin - zero_, when.end - zero_, color,
         absl::StrCat(tip, ", ", cli::Span(when.end - when.begin))});
  }

  void AddTrainer(int32_t rank) {
    const TrainerTrace& trainer = trace_.trainers[static_cast<size_t>(rank)];
    for (const Interval& model : trainer.model) {
      AddBar({rank, Place::kWork, -1}, model, kModel, "model");
    }
    for (const Span& span : trainer.spans) {
      // Only what became of rank 0's commits is an event's.
      if (span.stage == Stage::kAwaitEvent) continue;
      const Place place = PlaceOf(span.stage);
      AddBar({place == Place::kEvents ? kBelow : rank, place, span.shard},
             {span.begin, span.end}, ColorOf(span.stage),
             absl::StrCat(cli::NameOf(span.stage), ", event ", span.event));
    }
    if (rank == 0) AddEvents(trainer);
  }

  // From a shard's commit until it has applied the event.
  void AddEvents(const TrainerTrace& trainer) {
    std::map<std::pair<int32_t, int64_t>, absl::Time> applied;
    for (const Span& span : trainer.spans) {
      if (span.stage != Stage::kAwaitEvent) continue;
      absl::Time& end = applied[{span.shard, span.event}];
      end = std::max(end, span.end);
    }
    for (const Span& span : trainer.spans) {
      if (span.stage != Stage::kCommit) continue;
      const auto found = applied.find({span.shard, span.event});
      if (found == applied.end() || found->second <= span.end) continue;
      AddBar({kBelow, Place::kEvents, span.shard}, {span.end, found->second},
             kApplied, absl::StrCat("event ", span.event));
    }
  }

  void AddLegend() {
    for (const Stage stage :
         {Stage::kWantList, Stage::kPullWait, Stage::kEmbed, Stage::kAccumulate,
          Stage::kSum, Stage::kSendIds, Stage::kAwaitRows, Stage::kTakeRows,
          Stage::kPush, Stage::kSeal, Stage::kCommit}) {
      timeline_.legend.push_back({cli::NameOf(stage), ColorOf(stage)});
    }
    timeline_.legend.push_back({"event applied", kApplied});
    if (!trace_.trainers[0].model.empty()) {
      timeline_.legend.push_back({"model", kModel});
    }
  }

  static constexpr int32_t kBelow = 1 << 30;

  const CycleTrace& trace_;
  absl::Time zero_;
  std::map<Key, Timeline::Lane> lanes_;
  Timeline timeline_;
};

}  // namespace

Timeline TimelineOf(const CycleTrace& trace, absl::Duration length) {
  return Maker(trace, length).Make();
}

}  // namespace rowhouse::cli
