#include "client/cli/progress.h"

#include <string>

#include "gtest/gtest.h"

namespace rowhouse::cli {
namespace {

class ProgressTest : public ::testing::Test {
 protected:
  ProgressScreen Screen(bool terminal, bool quiet = false) {
    return {.terminal = terminal,
            .quiet = quiet,
            .write = [this](std::string_view text) { shown_ += text; },
            .now = [this] { return now_; }};
  }

  absl::Time now_ = absl::UnixEpoch();
  std::string shown_;
};

TEST_F(ProgressTest, ATerminalHasOneLineWithTheTimeLeft) {
  {
    Progress progress("importing", 1000, Progress::Unit::kRows, Screen(true));
    now_ += absl::Seconds(10);
    progress.Update(250);
    EXPECT_EQ(shown_,
              "\rimporting [######..................]  25 %  250 rows of 1,000 "
              "rows  25 rows/s  30.0 s left");
    shown_.clear();
    now_ += absl::Milliseconds(10);
    progress.Update(251);
    EXPECT_EQ(shown_, "") << "too soon";
    now_ += absl::Seconds(30);
    progress.Update(1000);
    EXPECT_EQ(shown_.find("\rimporting [########################] 100 %  1,000 "
                          "rows of 1,000 rows  24 rows/s"),
              0)
        << shown_;
    EXPECT_EQ(shown_.find("left"), std::string::npos);
    EXPECT_EQ(shown_.back(), ' ') << "the longer line is overwritten";
    shown_.clear();
  }
  EXPECT_EQ(shown_, "\n");
}

TEST_F(ProgressTest, ElsewhereALineComesEveryFewSeconds) {
  {
    Progress progress("pulling", 3 << 20, Progress::Unit::kBytes,
                      Screen(false));
    now_ += absl::Seconds(1);
    progress.Update(1 << 20);
    EXPECT_EQ(shown_, "");
    now_ += absl::Seconds(5);
    progress.Update(2 << 20, "at event 7");
    EXPECT_EQ(shown_,
              "pulling [################........]  66 %  2.00 MiB of 3.00 MiB  "
              "341 KiB/s  3.00 s left  at event 7\n");
  }
  EXPECT_EQ(shown_.back(), '\n');
}

TEST_F(ProgressTest, WithoutATotalThereIsNoBar) {
  Progress progress("recording", 0, Progress::Unit::kEvents, Screen(true));
  now_ += absl::Seconds(2);
  progress.Update(10);
  EXPECT_EQ(shown_, "\rrecording 10 events  5 events/s");
}

TEST_F(ProgressTest, ATotalMayBeKnownLater) {
  Progress progress("writing", 0, Progress::Unit::kBytes, Screen(true));
  now_ += absl::Seconds(1);
  progress.Update(1 << 20);
  EXPECT_EQ(shown_, "\rwriting 1.00 MiB  1.00 MiB/s");
  shown_.clear();
  progress.SetTotal(4 << 20);
  now_ += absl::Seconds(1);
  progress.Update(2 << 20);
  EXPECT_EQ(shown_,
            "\rwriting [############............]  50 %  2.00 MiB of 4.00 MiB  "
            "1.00 MiB/s  2.00 s left");
}

TEST_F(ProgressTest, TheEndIsShownHoweverSoon) {
  Progress progress("bench", 1000, Progress::Unit::kMilliseconds,
                    Screen(false));
  progress.Update(2000);
  progress.Update(2100);
  EXPECT_EQ(shown_,
            "bench [########################] 100 %  1.00 s of 1.00 s\n");
}

TEST_F(ProgressTest, QuietIsQuiet) {
  {
    Progress progress("x", 10, Progress::Unit::kRows, Screen(true, true));
    now_ += absl::Seconds(10);
    progress.Update(10);
  }
  EXPECT_EQ(shown_, "");
}

}  // namespace
}  // namespace rowhouse::cli
