#include "client/examples/ngram_lm/report.h"

#include <cmath>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rowhouse::ngram_lm {
namespace {

using ::testing::HasSubstr;

const std::vector<Progress> kRun = {{.step = 10,
                                     .token_count = 1000,
                                     .seconds = 2,
                                     .training_loss = 6.5,
                                     .held_out_loss = std::nullopt,
                                     .row_count = 300},
                                    {.step = 20,
                                     .token_count = 2000,
                                     .seconds = 2.5,
                                     .training_loss = 5.25,
                                     .held_out_loss = 5,
                                     .row_count = 550}};

TEST(ReportTest, AProgressLineGivesTheRateSinceTheLast) {
  EXPECT_EQ(ProgressLine(kRun[0], 80, std::nullopt),
            "step 10/80  loss 6.500  500 tokens/s  rows pulled 300");
  EXPECT_EQ(ProgressLine(kRun[1], 80, kRun[0]),
            "step 20/80  loss 5.250  held out 5.000  2000 tokens/s  rows "
            "pulled 550");
  EXPECT_THAT(ProgressLine({}, 80, std::nullopt), HasSubstr(" 0 tokens/s"));
}

TEST(ReportTest, TheTableHasALineForEachReport) {
  EXPECT_EQ(LossCsv(kRun),
            "step,tokens,seconds,training_loss,held_out_loss,rows_pulled\n"
            "10,1000,2.000,6.500000,,300\n"
            "20,2000,2.500,5.250000,5.000000,550\n");
}

TEST(ReportTest, ThePictureShowsBothLossesAndBothBaselines) {
  const std::string svg = LossSvg(kRun, {.unigram = 5.53, .kneser_ney = 3.78});
  for (const char* text : {">training, smoothed<", ">held out<",
                           ">unigram (5.53)<", ">Kneser-Ney trigram (3.78)<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
}

TEST(ReportTest, TheSummarySaysHowItStandsAgainstKneserNey) {
  const Baselines baselines = {.unigram = std::log(250.0),
                               .kneser_ney = std::log(40.0)};
  const std::vector<DigestLine> digests = {{"ngram", 0xabcULL, 7}};
  EXPECT_EQ(Summary(std::log(30.0), baselines, 100.25, digests),
            "held-out perplexity\n"
            "  unigram                  250.0\n"
            "  Kneser-Ney trigram        40.0\n"
            "  this model                30.0   25.0 % below Kneser-Ney\n"
            "wall time 100.2 s\n"
            "digest of ngram: 0000000000000abc at event 7\n");
  EXPECT_THAT(Summary(std::log(50.0), baselines, 1, {}),
              HasSubstr("50.0   25.0 % above Kneser-Ney\n"));
}

}  // namespace
}  // namespace rowhouse::ngram_lm
