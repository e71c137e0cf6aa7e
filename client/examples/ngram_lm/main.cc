// Trains a word-level language model on a text: launcher and trainers are this
// one program. README.md says what it computes.

#include <cstdio>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/examples/ngram_lm/launch.h"
#include "client/examples/ngram_lm/options.h"
#include "client/examples/ngram_lm/train.h"

namespace {

using rowhouse::ngram_lm::Options;

absl::Status Main(int argc, char** argv) {
  const absl::StatusOr<Options> options =
      rowhouse::ngram_lm::ParseCommandLine(argc, argv);
  if (!options.ok()) return options.status();
  if (options->trainer_rank >= 0) return rowhouse::ngram_lm::Train(*options);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return rowhouse::ngram_lm::Launch(*options, arguments);
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Main(argc, argv);
  if (status.ok()) return 0;
  std::fprintf(stderr, "rowhouse_ngram_lm: %s\n",
               std::string(status.message()).c_str());
  return status.code() == absl::StatusCode::kInvalidArgument ? 2 : 1;
}
