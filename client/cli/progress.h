#ifndef ROWHOUSE_CLIENT_CLI_PROGRESS_H_
#define ROWHOUSE_CLIENT_CLI_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace rowhouse::cli {

/// Where progress is shown.
struct ProgressScreen {
  /// Rewrites one line, some times a second; else a line every few seconds.
  bool terminal = false;
  bool quiet = false;  ///< Shows nothing.
  std::function<void(std::string_view)> write;
  std::function<absl::Time()> now = absl::Now;
};

/// How far a long work has come, with its rate and the time left.
///
/// Thread-compatible.
class Progress {
 public:
  enum class Unit : uint8_t { kBytes, kRows, kEvents, kMilliseconds };

  /// `what` leads the line. A `total` of 0 is not known: no bar.
  Progress(std::string what, int64_t total, Unit unit, ProgressScreen screen);

  /// Ends the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Says the total once it is known.
  void SetTotal(int64_t total) { total_ = total; }

  /// `done` of the total is behind; `note` is shown at the end of the line.
  void Update(int64_t done, std::string_view note = "");

 private:
  std::string Line(absl::Time now, std::string_view note) const;
  std::string Amount(int64_t amount) const;

  const std::string what_;
  int64_t total_;
  const Unit unit_;
  const ProgressScreen screen_;
  const absl::Time started_;
  absl::Time shown_;
  int64_t done_ = 0;
  bool finished_ = false;  // The whole has been shown.
  size_t width_ = 0;       // Of what stands on the terminal's line.
};

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_PROGRESS_H_
