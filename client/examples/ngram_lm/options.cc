#include "client/examples/ngram_lm/options.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/flags/usage_config.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

using Strings = std::vector<std::string>;

ABSL_FLAG(std::string, text, "", "File of UTF-8 text to learn. Required.");
ABSL_FLAG(std::string, output, "ngram_lm_run",
          "Folder for loss.csv, loss.svg and the servers' configuration; it is "
          "made if it is not there.");
ABSL_FLAG(std::string, server, "",
          "Path of rowhouse-server; that of this build when empty.");
ABSL_FLAG(std::string, backend, "cpu", "Backend of the servers: cpu or cuda.");
ABSL_FLAG(int32_t, device, 0, "GPU of all servers, with --backend=cuda.");
ABSL_FLAG(int32_t, shards, 2,
          "Servers that hold the n-gram table, each a range of its rows.");
ABSL_FLAG(int32_t, lm_slices, 2,
          "Servers that hold the tied table, each a slice of the vocabulary.");
ABSL_FLAG(int32_t, trainers, 2, "Trainer processes.");
ABSL_FLAG(int32_t, vocabulary, 4096,
          "Words that the model knows, <unk> included: the most frequent.");
ABSL_FLAG(int32_t, dim, 128, "Elements of a row, in both tables.");
ABSL_FLAG(int64_t, ngram_rows, 1 << 20, "Rows of the n-gram table.");
ABSL_FLAG(int64_t, tokens, 512,
          "Tokens of one trainer in one step, a multiple of 256.");
ABSL_FLAG(double, epochs, 1, "Times that the text is read.");
ABSL_FLAG(int32_t, trainer_rank, -1, "Set by the launcher.");
ABSL_FLAG(Strings, addresses, {}, "Set by the launcher.");

namespace rowhouse::ngram_lm {
namespace {

constexpr char kUsage[] =
    "Trains a word-level language model on a text, with shard servers and "
    "trainers as processes of their own, and compares it with models of counts."
    "\n\nUsage: rowhouse_ngram_lm --text=FILE [--flag=value]...";

// `--lm-slices` is `--lm_slices`.
void UnderscoreNames(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with("--")) continue;
    char* const end = argv[i] + std::min(argument.find('='), argument.size());
    std::replace(argv[i] + 2, end, '-', '_');
  }
}

struct Range {
  const char* name;
  int64_t value;
  int64_t low;
  int64_t high;
};

absl::Status Check(const Options& options) {
  if (options.text.empty()) {
    return absl::InvalidArgumentError("--text is not set; it must name a file");
  }
  for (const Range& range : std::vector<Range>{
           {"shards", options.shards, 1, 64},
           {"lm_slices", options.lm_slices, 1, 64},
           {"trainers", options.trainers, 1, 64},
           {"vocabulary", options.vocabulary, 64, 1 << 21},
           {"dim", options.dim, 1, 4096},
           {"ngram_rows", options.ngram_rows, 64, (int64_t{1} << 31) - 1},
           {"tokens", options.tokens, 256, 1 << 16},
           {"trainer_rank", options.trainer_rank, -1, options.trainers - 1}}) {
    if (range.value >= range.low && range.value <= range.high) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", range.name, " is ", range.value, "; it must be in [",
                     range.low, ", ", range.high, "]"));
  }
  if (options.epochs > 0 && options.epochs <= 1000) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("--epochs is ", options.epochs,
                                                 "; it must be in (0, 1000]"));
}

}  // namespace

absl::StatusOr<Options> ParseCommandLine(int argc, char** argv) {
  absl::SetProgramUsageMessage(kUsage);
  absl::FlagsUsageConfig usage;
  usage.contains_help_flags = [](absl::string_view file) {
    return absl::EndsWith(file, "ngram_lm/options.cc");
  };
  absl::SetFlagsUsageConfig(usage);
  UnderscoreNames(argc, argv);
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", rest[1], "' is not a flag; --help lists the flags"));
  }
  Options options;
  options.text = absl::GetFlag(FLAGS_text);
  options.output = absl::GetFlag(FLAGS_output);
  options.server = absl::GetFlag(FLAGS_server);
  options.backend = absl::GetFlag(FLAGS_backend);
  options.device = absl::GetFlag(FLAGS_device);
  options.shards = absl::GetFlag(FLAGS_shards);
  options.lm_slices = absl::GetFlag(FLAGS_lm_slices);
  options.trainers = absl::GetFlag(FLAGS_trainers);
  options.vocabulary = absl::GetFlag(FLAGS_vocabulary);
  options.dim = absl::GetFlag(FLAGS_dim);
  options.ngram_rows = absl::GetFlag(FLAGS_ngram_rows);
  options.tokens = absl::GetFlag(FLAGS_tokens);
  options.epochs = absl::GetFlag(FLAGS_epochs);
  options.trainer_rank = absl::GetFlag(FLAGS_trainer_rank);
  options.addresses = absl::GetFlag(FLAGS_addresses);
  const absl::Status checked = Check(options);
  if (!checked.ok()) return checked;
  return options;
}

}  // namespace rowhouse::ngram_lm
