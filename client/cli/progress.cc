#include "client/cli/progress.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/units.h"

namespace rowhouse::cli {
namespace {

constexpr absl::Duration kTerminalPeriod = absl::Milliseconds(100);
constexpr absl::Duration kLinePeriod = absl::Seconds(5);
constexpr int64_t kBarWidth = 24;

std::string Bar(int64_t done, int64_t total) {
  const auto full = static_cast<size_t>(static_cast<double>(done) /
                                        static_cast<double>(total) * kBarWidth);
  std::string bar(full, '#');
  bar.resize(kBarWidth, '.');
  return absl::StrCat("[", bar, "]");
}

}  // namespace

Progress::Progress(std::string what, int64_t total, Unit unit,
                   ProgressScreen screen)
    : what_(std::move(what)),
      total_(total),
      unit_(unit),
      screen_(std::move(screen)),
      started_(screen_.now()),
      shown_(started_) {}

Progress::~Progress() {
  if (width_ > 0) screen_.write("\n");
}

void Progress::Update(int64_t done, std::string_view note) {
  done_ = total_ > 0 ? std::min(done, total_) : done;
  if (screen_.quiet) return;
  const absl::Time now = screen_.now();
  if (finished_) return;
  const bool last = total_ > 0 && done_ == total_;
  finished_ = last;
  const absl::Duration period =
      screen_.terminal ? kTerminalPeriod : kLinePeriod;
  if (!last && now - shown_ < period) return;
  shown_ = now;
  std::string line = Line(now, note);
  if (!screen_.terminal) {
    screen_.write(line + "\n");
    return;
  }
  const size_t width = line.size();
  // What is left of a longer line goes.
  if (width < width_) line.append(width_ - width, ' ');
  width_ = width;
  screen_.write("\r" + line);
}

std::string Progress::Amount(int64_t amount) const {
  switch (unit_) {
    case Unit::kBytes:
      return Bytes(amount);
    case Unit::kRows:
      return Count(amount) + " rows";
    case Unit::kEvents:
      return Count(amount) + " events";
    case Unit::kMilliseconds:
      return Span(absl::Milliseconds(amount));
  }
  return "";
}

std::string Progress::Line(absl::Time now, std::string_view note) const {
  std::string line = what_;
  if (total_ > 0) {
    absl::StrAppend(&line, " ", Bar(done_, total_),
                    absl::StrFormat(" %3d %%  ", done_ * 100 / total_),
                    Amount(done_), " of ", Amount(total_));
  } else {
    absl::StrAppend(&line, " ", Amount(done_));
  }
  const double seconds = absl::ToDoubleSeconds(now - started_);
  if (done_ > 0 && seconds > 0) {
    const double rate = static_cast<double>(done_) / seconds;
    if (unit_ != Unit::kMilliseconds) {
      absl::StrAppend(&line, "  ", Amount(static_cast<int64_t>(rate)), "/s");
    }
    if (done_ < total_) {
      const double left = static_cast<double>(total_ - done_) / rate;
      absl::StrAppend(&line, "  ", Span(absl::Seconds(left)), " left");
    }
  }
  if (!note.empty()) absl::StrAppend(&line, "  ", std::string(note));
  return line;
}

}  // namespace rowhouse::cli
