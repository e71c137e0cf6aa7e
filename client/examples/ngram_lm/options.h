#ifndef ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_OPTIONS_H_
#define ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_OPTIONS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace rowhouse::ngram_lm {

/// A run, as the flags say; each flag has the name of its field. `--help` says
/// what they mean.
struct Options {
  std::string text;
  std::string output;
  std::string server;
  std::string backend = "cpu";
  int32_t device = 0;
  int32_t shards = 2;
  int32_t lm_slices = 2;
  int32_t trainers = 2;

  int32_t vocabulary = 4096;
  int32_t dim = 128;
  int64_t ngram_rows = 1 << 20;
  int64_t tokens = 512;
  double epochs = 1;

  /// Of a trainer's process; the launcher sets them.
  int32_t trainer_rank = -1;
  std::vector<std::string> addresses;

  int32_t server_count() const {
    return shards > lm_slices ? shards : lm_slices;
  }
};

/// Reads the flags. Ends the process for `--help` and flags that it does not
/// know. Names may be written with dashes.
///
/// Errors:
///   kInvalidArgument  an argument that is no flag; a value out of range; no
///                     text.
absl::StatusOr<Options> ParseCommandLine(int argc, char** argv);

}  // namespace rowhouse::ngram_lm

#endif  // ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_OPTIONS_H_
