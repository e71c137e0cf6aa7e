#include "client/cli/spec_text.h"

#include "absl/strings/str_cat.h"
#include "client/cli/elements.h"
#include "client/cli/json.h"
#include "client/cli/text_table.h"
#include "client/cli/units.h"

namespace rowhouse::cli {
namespace {

std::string InitializerText(const client::Initializer& initializer) {
  if (initializer.kind == client::Initializer::Kind::kZeros) return "zeros";
  return absl::StrCat("uniform in (-", initializer.bound, ", ",
                      initializer.bound, "), seed ", initializer.seed);
}

std::string KindText(const client::TableSpec& spec) {
  if (!spec.dense.has_value()) return "sparse, row Adam";
  const client::DenseTableSpec& dense = *spec.dense;
  std::string text =
      absl::StrCat("dense, AdamW, main_grad ", NameOf(dense.main_grad_dtype));
  if (dense.has_master) text += ", fp32 master";
  if (dense.has_bias) text += ", bias";
  if (dense.max_head_token_count > 0) {
    absl::StrAppend(&text, ", head of up to ",
                    Count(dense.max_head_token_count), " tokens");
  }
  return text;
}

}  // namespace

std::string SpecText(const client::TableSpec& spec, bool color) {
  TextTable table({{"field"}, {"value"}});
  table.AddRow({"rows", absl::StrCat(Count(spec.row_count), " of ", spec.dim,
                                     " ", NameOf(spec.row_dtype))});
  table.AddRow({"kind", KindText(spec)});
  table.AddRow(
      {"shards",
       absl::StrCat(spec.shard_count,
                    spec.shard_bounds.empty() ? "" : ", explicit bounds")});
  table.AddRow({"initializer", InitializerText(spec.initializer)});
  table.AddRow({"gradients", absl::StrCat(NameOf(spec.gradient_dtype), ", ",
                                          spec.gradient_reduction.has_value()
                                              ? NameOf(*spec.gradient_reduction)
                                              : "?",
                                          " of ", spec.trainer_count,
                                          " trainers, not finite: ",
                                          NameOf(spec.non_finite_policy))});
  table.AddRow({"a trainer's event",
                absl::StrCat("at most ", Count(spec.max_contribution_row_count),
                             " rows on a shard, in ",
                             Count(spec.max_part_count), " parts")});
  table.AddRow({"a pull call",
                spec.max_pull_bytes == 0
                    ? std::string("at most 64 MiB")
                    : absl::StrCat("at most ", Bytes(spec.max_pull_bytes))});
  if (spec.ngram.has_value()) {
    table.AddRow(
        {"n-gram signs", absl::StrCat(Count(spec.ngram->sign_row_count),
                                      " rows, seed ", spec.ngram->sign_seed)});
  }
  return table.ToString(color);
}

}  // namespace rowhouse::cli
