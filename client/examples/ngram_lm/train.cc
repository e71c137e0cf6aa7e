#include "client/examples/ngram_lm/train.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/examples/ngram_lm/baselines.h"
#include "client/examples/ngram_lm/batches.h"
#include "client/examples/ngram_lm/corpus.h"
#include "client/examples/ngram_lm/lm_trainer.h"
#include "client/examples/ngram_lm/options.h"
#include "client/examples/ngram_lm/recipe.h"
#include "client/examples/ngram_lm/report.h"
#include "client/examples/ngram_lm/tables.h"
#include "client/examples/ngram_lm/text.h"
#include "rowhouse/cluster.h"

namespace rowhouse::ngram_lm {
namespace {

constexpr int64_t kReportCount = 30;  // In a run.
constexpr int64_t kReportsAnEvaluation = 3;

Baselines MeasureBaselines(const Corpus& corpus) {
  const Unigram unigram(corpus.training, corpus.vocabulary.size());
  const KneserNeyTrigram kneser_ney(corpus.training, corpus.vocabulary.size());
  return {MeanLoss(corpus.held_out, kFirstScored,
                   [&](std::span<const int32_t>, int32_t token) {
                     return unigram.Probability(token);
                   }),
          MeanLoss(corpus.held_out, kFirstScored,
                   [&](std::span<const int32_t> history, int32_t token) {
                     return kneser_ney.Probability(history, token);
                   })};
}

void Print(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

/// A trainer's run; rank 0 also evaluates and reports.
class Run {
 public:
  Run(const Options& options, const Corpus& corpus, const Batches& batches,
      client::Cluster& cluster, std::unique_ptr<LmTrainer> trainer)
      : options_(options),
        corpus_(corpus),
        batches_(batches),
        cluster_(cluster),
        trainer_(std::move(trainer)) {}

  absl::Status Train() {
    const bool reports = options_.trainer_rank == 0;
    Baselines baselines;
    if (reports) baselines = MeasureBaselines(corpus_);
    start_ = absl::Now();
    for (int64_t step = 0; step < batches_.step_count(); ++step) {
      const auto loss = trainer_->Step(step);
      if (!loss.ok()) return loss.status();
      loss_sum_ += *loss;
      ++loss_count_;
      if (!reports || !IsReport(step)) continue;
      absl::Status reported = Report(step + 1);
      if (!reported.ok()) return reported;
    }
    absl::Status finished = trainer_->Finish();
    if (!finished.ok() || !reports) return finished;
    return Conclude(baselines);
  }

 private:
  bool IsReport(int64_t step) const {
    const int64_t interval =
        std::max<int64_t>(batches_.step_count() / kReportCount, 1);
    return (step + 1) % interval == 0 && step + 1 < batches_.step_count();
  }

  Progress ProgressAt(int64_t step_count) {
    Progress progress;
    progress.step = step_count;
    progress.token_count = step_count * options_.tokens * options_.trainers;
    progress.seconds = absl::ToDoubleSeconds(absl::Now() - start_ - evaluated_);
    progress.training_loss = loss_sum_ / static_cast<double>(loss_count_);
    progress.row_count = trainer_->pulled_row_count();
    loss_sum_ = 0;
    loss_count_ = 0;
    return progress;
  }

  absl::Status Report(int64_t step_count) {
    Progress progress = ProgressAt(step_count);
    if (progress_.size() % kReportsAnEvaluation == kReportsAnEvaluation - 1) {
      const absl::Time before = absl::Now();
      const auto loss = trainer_->Evaluate(corpus_.held_out);
      if (!loss.ok()) return loss.status();
      progress.held_out_loss = *loss;
      evaluated_ += absl::Now() - before;
    }
    Add(progress);
    return absl::OkStatus();
  }

  void Add(const Progress& progress) {
    std::optional<Progress> before;
    if (!progress_.empty()) before = progress_.back();
    Print(ProgressLine(progress, batches_.step_count(), before));
    progress_.push_back(progress);
  }

  absl::Status Conclude(const Baselines& baselines) {
    Progress progress = ProgressAt(batches_.step_count());
    const auto loss = trainer_->Evaluate(corpus_.held_out);
    if (!loss.ok()) return loss.status();
    progress.held_out_loss = *loss;
    Add(progress);
    std::vector<DigestLine> digests;
    for (const char* table : {kWordTable, kNgramTable}) {
      const auto digest = cluster_.Digest(table);
      if (!digest.ok()) return digest.status();
      digests.push_back({table, digest->digest, digest->event});
    }
    const double seconds = absl::ToDoubleSeconds(absl::Now() - start_);
    Print(Summary(*loss, baselines, seconds, digests));
    absl::Status written =
        WriteFile(options_.output + "/loss.csv", LossCsv(progress_));
    if (written.ok()) {
      written = WriteFile(options_.output + "/loss.svg",
                          LossSvg(progress_, baselines));
    }
    if (!written.ok()) return written;
    Print("losses: " + options_.output +
          "/loss.csv, picture: " + options_.output + "/loss.svg");
    return absl::OkStatus();
  }

  const Options& options_;
  const Corpus& corpus_;
  const Batches& batches_;
  client::Cluster& cluster_;
  const std::unique_ptr<LmTrainer> trainer_;
  absl::Time start_;
  absl::Duration evaluated_;  // What evaluations have taken so far.
  double loss_sum_ = 0;       // Since the last report.
  int64_t loss_count_ = 0;
  std::vector<Progress> progress_;
};

TableSizes SizesOf(const Options& options, const Corpus& corpus) {
  int64_t block = 0;
  if (!corpus.held_out.empty()) {
    block = static_cast<int64_t>(corpus.held_out.front().size());
  }
  return {.vocabulary_size = corpus.vocabulary.size(),
          .dim = options.dim,
          .ngram_row_count = options.ngram_rows,
          .ngram_shard_count = options.shards,
          .word_shard_count = options.lm_slices,
          .trainer_count = options.trainers,
          .step_token_count = options.tokens,
          .call_token_count = block};
}

}  // namespace

absl::Status Train(const Options& options) {
  const auto text = ReadFile(options.text);
  if (!text.ok()) return text.status();
  const auto corpus =
      MakeCorpus(*text, {.max_vocabulary_size = options.vocabulary});
  if (!corpus.ok()) return corpus.status();
  const auto batches =
      Batches::Make(corpus->training, {.trainer_count = options.trainers,
                                       .token_count = options.tokens,
                                       .epochs = options.epochs});
  if (!batches.ok()) return batches.status();
  client::ClusterOptions cluster_options;
  cluster_options.addresses = options.addresses;
  const auto cluster = client::Cluster::Connect(cluster_options);
  if (!cluster.ok()) return cluster.status();
  const Recipe recipe;
  absl::Status created =
      CreateTables(**cluster, SizesOf(options, *corpus), recipe);
  if (!created.ok()) return created;
  auto trainer = LmTrainer::Join(**cluster, *batches, options.trainer_rank,
                                 options.trainers, recipe);
  if (!trainer.ok()) return trainer.status();
  return Run(options, *corpus, *batches, **cluster, *std::move(trainer))
      .Train();
}

}  // namespace rowhouse::ngram_lm
