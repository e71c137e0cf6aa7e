#include "client/cli/latencies.h"

#include "gtest/gtest.h"

namespace rowhouse::cli {
namespace {

TEST(LatenciesTest, QuantilesAreOfWhatWasSeen) {
  Latencies latencies;
  for (int i = 1000; i > 0; --i) latencies.Add(absl::Milliseconds(i));
  EXPECT_EQ(latencies.count(), 1000);
  EXPECT_EQ(latencies.Quantile(0.5), absl::Milliseconds(500));
  EXPECT_EQ(latencies.Quantile(0.99), absl::Milliseconds(990));
  EXPECT_EQ(latencies.Quantile(0.999), absl::Milliseconds(999));
  EXPECT_EQ(latencies.Quantile(1), absl::Milliseconds(1000));
}

TEST(LatenciesTest, OneCallIsEveryQuantile) {
  Latencies latencies;
  EXPECT_EQ(latencies.Quantile(0.5), absl::ZeroDuration());
  latencies.Add(absl::Seconds(2));
  EXPECT_EQ(latencies.Quantile(0.5), absl::Seconds(2));
  EXPECT_EQ(latencies.Quantile(0.999), absl::Seconds(2));
}

TEST(LatenciesTest, MergedOnesCountTogether) {
  Latencies one;
  one.Add(absl::Seconds(1));
  Latencies two;
  two.Add(absl::Seconds(3));
  two.Merge(one);
  EXPECT_EQ(two.count(), 2);
  EXPECT_EQ(two.Quantile(0.5), absl::Seconds(1));
}

}  // namespace
}  // namespace rowhouse::cli
