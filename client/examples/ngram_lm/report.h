#ifndef ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_REPORT_H_
#define ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace rowhouse::ngram_lm {

/// Where a run is. Losses are means a token, in nats.
struct Progress {
  int64_t step = 0;          ///< Steps done.
  int64_t token_count = 0;   ///< Trained on so far, by all trainers.
  double seconds = 0;        ///< Of training: evaluations are not counted.
  double training_loss = 0;  ///< Since the last report, before each update.
  std::optional<double> held_out_loss;  ///< Where it was measured.
  int64_t row_count = 0;  ///< N-gram rows pulled so far, by this trainer.
};

/// Losses of the models of counts on the same tokens.
struct Baselines {
  double unigram = 0;
  double kneser_ney = 0;
};

/// A table's bits after the last event.
struct DigestLine {
  std::string table;
  uint64_t digest = 0;
  int64_t event = 0;
};

/// `step 40/848  loss 5.310  held out 5.102  12345 tokens/s  rows pulled
/// 98765`: one line, without its end. `before` is the report before this one,
/// if any; the rate is that since then.
std::string ProgressLine(const Progress& progress, int64_t step_count,
                         const std::optional<Progress>& before);

/// `step,tokens,seconds,training_loss,held_out_loss,rows_pulled` and a line for
/// each report; a held-out loss that was not measured is left empty.
std::string LossCsv(const std::vector<Progress>& run);

/// The picture of both losses over the tokens trained on, between the
/// baselines.
std::string LossSvg(const std::vector<Progress>& run,
                    const Baselines& baselines);

/// The end of a run: perplexities of all three models, and how far the trained
/// one, of loss `held_out_loss`, is above or below Kneser-Ney; wall time;
/// digests. Several lines.
std::string Summary(double held_out_loss, const Baselines& baselines,
                    double seconds, const std::vector<DigestLine>& digests);

}  // namespace rowhouse::ngram_lm

#endif  // ROWHOUSE_CLIENT_EXAMPLES_NGRAM_LM_REPORT_H_
