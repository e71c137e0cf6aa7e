#include "client/examples/ngram_lm/report.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/examples/ngram_lm/svg_chart.h"

namespace rowhouse::ngram_lm {

std::string ProgressLine(const Progress& progress, int64_t step_count,
                         const std::optional<Progress>& before) {
  const Progress since = before.value_or(Progress());
  const double seconds = progress.seconds - since.seconds;
  const auto tokens =
      static_cast<double>(progress.token_count - since.token_count);
  std::string line = absl::StrFormat("step %d/%d  loss %.3f", progress.step,
                                     step_count, progress.training_loss);
  if (progress.held_out_loss.has_value()) {
    absl::StrAppendFormat(&line, "  held out %.3f", *progress.held_out_loss);
  }
  absl::StrAppendFormat(&line, "  %.0f tokens/s  rows pulled %d",
                        seconds > 0 ? tokens / seconds : 0, progress.row_count);
  return line;
}

std::string LossCsv(const std::vector<Progress>& run) {
  std::string csv =
      "step,tokens,seconds,training_loss,held_out_loss,rows_pulled\n";
  for (const Progress& progress : run) {
    absl::StrAppendFormat(&csv, "%d,%d,%.3f,%.6f,", progress.step,
                          progress.token_count, progress.seconds,
                          progress.training_loss);
    if (progress.held_out_loss.has_value()) {
      absl::StrAppendFormat(&csv, "%.6f", *progress.held_out_loss);
    }
    absl::StrAppend(&csv, ",", progress.row_count, "\n");
  }
  return csv;
}

std::string LossSvg(const std::vector<Progress>& run,
                    const Baselines& baselines) {
  std::vector<ChartPoint> training;
  std::vector<ChartPoint> held_out;
  for (const Progress& progress : run) {
    const double thousands = static_cast<double>(progress.token_count) / 1000;
    training.push_back({thousands, progress.training_loss});
    if (progress.held_out_loss.has_value()) {
      held_out.push_back({thousands, *progress.held_out_loss});
    }
  }
  Chart chart;
  chart.title = "N-gram language model";
  chart.x_label = "thousand tokens trained on";
  chart.y_label = "loss, nats a token";
  chart.lines = {{.name = "training, smoothed",
                  .color = "#9ecae1",
                  .width = 1.5,
                  .points = Smooth(training, 2)},
                 {.name = "held out",
                  .color = "#08519c",
                  .width = 2.5,
                  .points = std::move(held_out)}};
  chart.levels = {{.name = absl::StrFormat("unigram (%.2f)", baselines.unigram),
                   .color = "#969696",
                   .y = baselines.unigram},
                  {.name = absl::StrFormat("Kneser-Ney trigram (%.2f)",
                                           baselines.kneser_ney),
                   .color = "#e6550d",
                   .y = baselines.kneser_ney}};
  return RenderSvg(chart);
}

std::string Summary(double held_out_loss, const Baselines& baselines,
                    double seconds, const std::vector<DigestLine>& digests) {
  const double perplexity = std::exp(held_out_loss);
  const double kneser_ney = std::exp(baselines.kneser_ney);
  const double percent = 100 * (perplexity / kneser_ney - 1);
  std::string text = absl::StrFormat(
      "held-out perplexity\n"
      "  unigram               %8.1f\n"
      "  Kneser-Ney trigram    %8.1f\n"
      "  this model            %8.1f   %.1f %% %s Kneser-Ney\n"
      "wall time %.1f s\n",
      std::exp(baselines.unigram), kneser_ney, perplexity, std::abs(percent),
      percent < 0 ? "below" : "above", seconds);
  for (const DigestLine& digest : digests) {
    absl::StrAppendFormat(&text, "digest of %s: %016x at event %d\n",
                          digest.table, digest.digest, digest.event);
  }
  return text;
}

}  // namespace rowhouse::ngram_lm
