#ifndef ROWHOUSE_TESTS_TESTING_RANDOM_H_
#define ROWHOUSE_TESTS_TESTING_RANDOM_H_

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace rowhouse::testing {

/// Seed of a random test: the environment's ROWHOUSE_TEST_SEED, or `fallback`.
inline uint64_t TestSeed(uint64_t fallback) {
  const char* text = std::getenv("ROWHOUSE_TEST_SEED");
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 0);
}

/// A generator that remembers its seed. A test shows it on failure with
/// `SCOPED_TRACE(random.Trace())`.
class Random {
 public:
  explicit Random(uint64_t fallback_seed)
      : seed_(TestSeed(fallback_seed)), engine_(seed_) {}

  std::string Trace() const {
    return "ROWHOUSE_TEST_SEED=" + std::to_string(seed_);
  }

  /// In [low, high].
  int64_t Integer(int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(engine_);
  }
  uint64_t Bits() { return engine_(); }
  /// In [low, high).
  float Uniform(float low, float high) {
    return std::uniform_real_distribution<float>(low, high)(engine_);
  }
  float Normal() { return normal_(engine_); }
  bool Chance(double probability) {
    return std::bernoulli_distribution(probability)(engine_);
  }
  std::mt19937_64& engine() { return engine_; }

 private:
  uint64_t seed_;
  std::mt19937_64 engine_;
  std::normal_distribution<float> normal_;
};

}  // namespace rowhouse::testing

#endif  // ROWHOUSE_TESTS_TESTING_RANDOM_H_
