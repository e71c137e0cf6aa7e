#include "client/cli/spec_flags.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/cli/units.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {
namespace {

using client::DType;
using client::TableSpec;

const std::vector<std::pair<std::string, DType>>& RowTypes() {
  static const auto& types = *new std::vector<std::pair<std::string, DType>>(
      {{"bf16", DType::kBf16}, {"fp32", DType::kFp32}});
  return types;
}

// Flags that mean nothing without another, or a file that says the same.
struct Companions {
  const char* needed;
  bool (*needed_is_there)(const TableSpec& spec);
  std::vector<const char*> flags;
};

const std::vector<Companions>& AllCompanions() {
  static const auto& all = *new std::vector<Companions>(
      {{"--uniform",
        [](const TableSpec& spec) {
          return spec.initializer.kind == client::Initializer::Kind::kUniform;
        },
        {"--seed"}},
       {"--dense",
        [](const TableSpec& spec) { return spec.dense.has_value(); },
        {"--master", "--bias", "--main-grad-dtype", "--max-head-tokens"}},
       {"--ngram-sign-seed",
        [](const TableSpec& spec) { return spec.ngram.has_value(); },
        {"--ngram-sign-rows"}}});
  return all;
}

// Bytes of a pull call for a table that is not to reserve more than it can use:
// those of all its rows or, with repeats, of as many as a trainer may push; 0,
// the servers' 64 MiB, where that is less.
int64_t DefaultPullBytes(const TableSpec& spec) {
  constexpr int64_t kServersDefault = int64_t{64} << 20;
  constexpr int64_t kMostRows = 400'000;  // Of a call.
  const int64_t rows = std::min(
      std::max(spec.row_count, spec.max_contribution_row_count), kMostRows);
  const int64_t element_bytes = client::SizeOf(spec.row_dtype);
  if (rows >= kServersDefault / element_bytes / spec.dim) return 0;
  return rows * spec.dim * element_bytes;
}

}  // namespace

template <typename T>
void SpecFlags::AddValue(CLI::App& command, const std::string& flag,
                         const std::string& type_name,
                         const std::string& description,
                         std::function<void(TableSpec&, T)> edit) {
  command
      .add_option_function<T>(
          flag,
          [this, edit = std::move(edit)](const T& value) {
            edits_.push_back(
                [edit, value](TableSpec& spec) { edit(spec, value); });
          },
          description)
      ->type_name(type_name);
}

void SpecFlags::AddCountFlag(CLI::App& command, const std::string& flag,
                             const std::string& description,
                             std::function<void(TableSpec&, int64_t)> edit) {
  AddValue<std::string>(
      command, flag, "COUNT", description,
      [flag, edit = std::move(edit)](TableSpec& spec, const std::string& text) {
        edit(spec, ParseCount(text).value());
      });
  command.get_option(flag)->check([](const std::string& text) {
    const absl::StatusOr<int64_t> count = ParseCount(text);
    return count.ok() ? std::string() : std::string(count.status().message());
  });
}

template <typename T>
void SpecFlags::AddChoice(CLI::App& command, const std::string& flag,
                          const std::vector<std::pair<std::string, T>>& choices,
                          const std::string& description,
                          std::function<void(TableSpec&, T)> edit) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices) names.push_back(name);
  AddValue<std::string>(command, flag, "NAME", description,
                        [choices, edit = std::move(edit)](
                            TableSpec& spec, const std::string& text) {
                          for (const auto& [name, value] : choices) {
                            if (name == text) edit(spec, value);
                          }
                        });
  command.get_option(flag)->check(CLI::IsMember(names));
}

SpecFlags::SpecFlags(CLI::App& command) : command_(command) {
  command
      .add_option("--spec", file_,
                  "Textproto of rowhouse.v1.TableSpec, or a server's "
                  "configuration with one entry `tables`, or what is in such "
                  "an entry; other flags change it")
      ->type_name("FILE");
  AddCountFlag(command, "--rows", "Rows of the whole table",
               [](TableSpec& spec, int64_t v) { spec.row_count = v; });
  AddCountFlag(command, "--dim", "Elements of a row",
               [](TableSpec& spec, int64_t v) { spec.dim = v; });
  AddChoice<DType>(command, "--dtype", RowTypes(),
                   "Element type of rows; bf16 when not given",
                   [](TableSpec& spec, DType v) { spec.row_dtype = v; });
  AddChoice<DType>(command, "--gradient-dtype", RowTypes(),
                   "Element type of pushed gradients; bf16 when not given",
                   [](TableSpec& spec, DType v) { spec.gradient_dtype = v; });
  AddValue<int32_t>(command, "--shards", "COUNT",
                    "Shards; one a server when not given",
                    [](TableSpec& spec, int32_t v) { spec.shard_count = v; });
  AddValue<int32_t>(command, "--trainers", "COUNT", "Trainers; 1 at first",
                    [](TableSpec& spec, int32_t v) { spec.trainer_count = v; });
  AddChoice<client::GradientReduction>(
      command, "--reduction",
      {{"sum", client::GradientReduction::kSum},
       {"mean", client::GradientReduction::kMean}},
      "How trainers' gradients combine: required, averaging is never silent",
      [](TableSpec& spec, client::GradientReduction v) {
        spec.gradient_reduction = v;
      });
  AddCountFlag(
      command, "--max-rows",
      "Most gradient rows of a trainer in an event on a shard; memory "
      "is reserved for them",
      [](TableSpec& spec, int64_t v) { spec.max_contribution_row_count = v; });
  AddValue<int32_t>(
      command, "--max-parts", "COUNT", "Most parts of a trainer in an event",
      [](TableSpec& spec, int32_t v) { spec.max_part_count = v; });
  AddCountFlag(
      command, "--max-pull-bytes",
      "Most bytes of a pull call; a shard reserves several. When not given: "
      "those of --rows or, if more, --max-rows rows, at most 64 MiB; with "
      "--spec what the file says",
      [](TableSpec& spec, int64_t v) { spec.max_pull_bytes = v; });
  AddValue<float>(command, "--uniform", "BOUND",
                  "Rows begin uniform in (-BOUND, BOUND), not with zeros",
                  [](TableSpec& spec, float v) {
                    spec.initializer.kind = client::Initializer::Kind::kUniform;
                    spec.initializer.bound = v;
                  });
  AddValue<uint64_t>(
      command, "--seed", "NUMBER", "Seed of --uniform",
      [](TableSpec& spec, uint64_t v) { spec.initializer.seed = v; });
  AddChoice<client::NonFinitePolicy>(
      command, "--non-finite",
      {{"reject", client::NonFinitePolicy::kReject},
       {"skip-row", client::NonFinitePolicy::kSkipRow},
       {"propagate", client::NonFinitePolicy::kPropagate}},
      "What becomes of gradients that are not finite",
      [](TableSpec& spec, client::NonFinitePolicy v) {
        spec.non_finite_policy = v;
      });
  AddDense(command);
  AddValue<uint64_t>(command, "--ngram-sign-seed", "NUMBER",
                     "Makes it an n-gram table with this sign pool",
                     [](TableSpec& spec, uint64_t v) {
                       if (!spec.ngram) spec.ngram.emplace();
                       spec.ngram->sign_seed = v;
                     });
  AddValue<int32_t>(command, "--ngram-sign-rows", "COUNT",
                    "Rows of the sign pool", [](TableSpec& spec, int32_t v) {
                      if (spec.ngram) spec.ngram->sign_row_count = v;
                    });
}

void SpecFlags::AddDense(CLI::App& command) {
  const auto add_flag = [&](const std::string& flag,
                            const std::string& description, Edit edit) {
    command.add_flag_callback(
        flag, [this, edit = std::move(edit)] { edits_.push_back(edit); },
        description);
  };
  // Before those that change what it makes: edits are in this order.
  add_flag("--dense", "A dense table, updated whole by AdamW",
           [](TableSpec& spec) {
             if (!spec.dense) spec.dense.emplace();
           });
  add_flag("--master", "Dense: keeps an fp32 master of the weights",
           [](TableSpec& spec) {
             if (spec.dense) spec.dense->has_master = true;
           });
  add_flag("--bias", "Dense: each row has a bias", [](TableSpec& spec) {
    if (spec.dense) spec.dense->has_bias = true;
  });
  AddChoice<DType>(
      command, "--main-grad-dtype", RowTypes(),
      "Dense: element type of the gradient buffer; fp32 when not given",
      [](TableSpec& spec, DType v) {
        if (spec.dense) spec.dense->main_grad_dtype = v;
      });
  AddCountFlag(command, "--max-head-tokens",
               "Dense: most tokens of a trainer's head calls in an event",
               [](TableSpec& spec, int64_t v) {
                 if (spec.dense) spec.dense->max_head_token_count = v;
               });
}

absl::Status SpecFlags::CheckCompany(const TableSpec& spec) const {
  for (const Companions& companions : AllCompanions()) {
    if (companions.needed_is_there(spec)) continue;
    for (const char* flag : companions.flags) {
      if (command_.count(flag) == 0) continue;
      return BadArgument(absl::StrCat(flag, " without ", companions.needed,
                                      ", wanted both or neither"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<TableSpec> SpecFlags::Spec(int32_t server_count) const {
  TableSpec spec;
  spec.shard_count = server_count;
  if (!file_.empty()) {
    ROWHOUSE_ASSIGN_OR_RETURN(spec, ReadSpecFile(file_));
  }
  for (const Edit& edit : edits_) edit(spec);
  ROWHOUSE_RETURN_IF_ERROR(CheckCompany(spec));
  if (spec.row_count == 0) return BadArgument("no --rows, wanted a count");
  if (spec.dim == 0) return BadArgument("no --dim, wanted a count");
  if (!spec.gradient_reduction.has_value()) {
    return BadArgument("no --reduction, wanted sum or mean");
  }
  if (spec.max_contribution_row_count == 0) {
    return BadArgument(
        "no --max-rows, wanted the most gradient rows of a trainer in an event "
        "on a shard");
  }
  if (file_.empty() && command_.count("--max-pull-bytes") == 0) {
    spec.max_pull_bytes = DefaultPullBytes(spec);
  }
  return spec;
}

}  // namespace rowhouse::cli
