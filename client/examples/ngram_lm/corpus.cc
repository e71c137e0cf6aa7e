#include "client/examples/ngram_lm/corpus.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/examples/ngram_lm/text.h"

namespace rowhouse::ngram_lm {
namespace {

absl::Status CheckOptions(const CorpusOptions& options) {
  if (options.max_vocabulary_size < 2) {
    return absl::InvalidArgumentError(absl::StrCat("the vocabulary's size is ",
                                                   options.max_vocabulary_size,
                                                   "; it must be at least 2"));
  }
  if (options.block_token_count <= kFirstScored) {
    return absl::InvalidArgumentError(
        absl::StrCat("a block has ", options.block_token_count,
                     " tokens; it must have more than ", kFirstScored));
  }
  if (options.held_out_interval < 2) {
    return absl::InvalidArgumentError(absl::StrCat("the held-out interval is ",
                                                   options.held_out_interval,
                                                   "; it must be at least 2"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Corpus> MakeCorpus(std::string_view text,
                                  const CorpusOptions& options) {
  const absl::Status checked = CheckOptions(options);
  if (!checked.ok()) return checked;
  const absl::StatusOr<std::vector<std::string>> words = SplitWords(text);
  if (!words.ok()) return words.status();
  const auto block_size = static_cast<size_t>(options.block_token_count);
  const auto interval = static_cast<size_t>(options.held_out_interval);
  const size_t block_count = words->size() / block_size;
  if (block_count < interval) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the text has ", words->size(), " words and marks; it must have ",
        block_size * interval, " for one held-out block"));
  }
  const std::span<const std::string> all(*words);
  std::vector<std::string> training;
  std::vector<std::span<const std::string>> held_out;
  for (size_t block = 0; block <= block_count; ++block) {
    const size_t begin = block * block_size;
    const auto part = block == block_count ? all.subspan(begin)
                                           : all.subspan(begin, block_size);
    if (block < block_count && block % interval == interval - 1) {
      held_out.push_back(part);
    } else {
      training.insert(training.end(), part.begin(), part.end());
    }
  }
  Vocabulary vocabulary(training, options.max_vocabulary_size);
  std::vector<int32_t> ids = vocabulary.Encode(training);
  Corpus corpus{std::move(vocabulary), std::move(ids), {}};
  for (const auto& block : held_out) {
    corpus.held_out.push_back(corpus.vocabulary.Encode(block));
  }
  return corpus;
}

}  // namespace rowhouse::ngram_lm
