#ifndef ROWHOUSE_CLIENT_CLI_TOKEN_SOURCE_H_
#define ROWHOUSE_CLIENT_CLI_TOKEN_SOURCE_H_

#include <cstdint>
#include <random>
#include <vector>

namespace rowhouse::cli {

/// How often the tokens of a vocabulary occur; each is drawn by itself.
enum class TokenLaw : uint8_t {
  kUniform = 0,  ///< All alike: hardly an n-gram twice, so the most rows.
  kZipf = 1,     ///< The n-th token 1/n as often as the first.
};

/// Random tokens, the same for the same seed.
///
/// Thread-compatible.
class TokenSource {
 public:
  static constexpr int32_t kVocabulary = 50304;

  TokenSource(TokenLaw law, uint64_t seed);

  /// `count` tokens in [0, kVocabulary).
  std::vector<int32_t> Next(int64_t count);

 private:
  std::mt19937_64 random_;
  std::vector<double> bounds_;  // Of each token's share of [0, 1).
};

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_TOKEN_SOURCE_H_
