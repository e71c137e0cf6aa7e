// Reads rows, and prints them or writes them to a file.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/checks.h"
#include "client/cli/command.h"
#include "client/cli/elements.h"
#include "client/cli/exit_code.h"
#include "client/cli/json.h"
#include "client/cli/npy.h"
#include "client/cli/progress.h"
#include "client/cli/row_ids.h"
#include "client/cli/terminal.h"
#include "client/cli/text_table.h"
#include "client/cli/units.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {
namespace {

constexpr char kExamples[] =
    "  rowhouse pull words 0 7 10-19\n"
    "  rowhouse pull words 7 --all\n"
    "  rowhouse pull words 0-99999 --out=rows.npy\n"
    "  cut -f1 hot_rows.tsv | rowhouse pull words - --json\n";

constexpr int64_t kChunkBytes = int64_t{16} << 20;
constexpr int64_t kMostPrintedRows = 10'000;
constexpr int64_t kFirstValues = 8;

struct Flags {
  std::vector<std::string> ids;
  std::optional<int64_t> event;
  bool all = false;
  std::string out;
};

absl::StatusOr<std::vector<RowIdRange>> RangesOf(const Flags& flags) {
  std::vector<RowIdRange> ranges;
  for (const std::string& text : flags.ids) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        const std::vector<RowIdRange> found,
        text == "-" ? ReadRowIds(std::cin) : ParseRowIds(text));
    ranges.insert(ranges.end(), found.begin(), found.end());
  }
  return ranges;
}

int64_t SizeOf(const std::vector<RowIdRange>& ranges) {
  int64_t size = 0;
  for (const RowIdRange& range : ranges) size += range.size();
  return size;
}

// The next ids of the ranges, which lose them.
std::vector<int64_t> TakeIds(std::vector<RowIdRange>& ranges, int64_t most) {
  std::vector<int64_t> ids;
  while (!ranges.empty() && std::ssize(ids) < most) {
    RowIdRange& range = ranges.front();
    const int64_t count = std::min(range.size(), most - std::ssize(ids));
    for (int64_t i = 0; i < count; ++i) ids.push_back(range.first + i);
    range.first += count;
    if (range.size() == 0) ranges.erase(ranges.begin());
  }
  return ids;
}

// What was read, as people or machines want it.
class Output {
 public:
  Output(const Context& context, const Flags& flags,
         const client::TableInfo& table)
      : context_(context), table_(table), text_(Columns(flags, table.spec)) {
    if (context.json) shown_ = table.spec.dim;
  }

  void Add(std::span<const int64_t> ids, std::span<const std::byte> bytes) {
    const std::vector<float> values = Elements(table_.spec.row_dtype, bytes);
    for (size_t i = 0; i < ids.size(); ++i) {
      const std::span<const float> row(values.data() + i * table_.spec.dim,
                                       shown_);
      if (context_.json) {
        rows_.push_back({{"row", ids[i]}, {"values", row}});
        continue;
      }
      std::vector<Cell> cells = {absl::StrCat(ids[i])};
      for (const float value : row) cells.emplace_back(Number(value));
      if (shown_ < table_.spec.dim) cells.emplace_back("...");
      text_.AddRow(std::move(cells));
    }
  }

  void Show(int64_t event) {
    if (context_.json) {
      PrintJson({{"table", table_.name},
                 {"event", event},
                 {"dim", table_.spec.dim},
                 {"rows", rows_}});
      return;
    }
    Print(absl::StrCat("table ", table_.name, " at event ", event, "\n\n",
                       text_.ToString(UsesColor())));
  }

 private:
  std::vector<TextTable::Column> Columns(const Flags& flags,
                                         const client::TableSpec& spec) {
    shown_ = flags.all ? spec.dim : std::min(spec.dim, kFirstValues);
    std::vector<TextTable::Column> columns = {{"row", Align::kRight}};
    for (int64_t i = 0; i < shown_; ++i) {
      columns.push_back({absl::StrCat("[", i, "]"), Align::kRight});
    }
    if (shown_ < spec.dim) columns.push_back({""});
    return columns;
  }

  const Context& context_;
  const client::TableInfo& table_;
  int64_t shown_ = 0;  // Values of a row.
  TextTable text_;
  Json rows_ = Json::array();
};

// Reads all rows, a chunk at a time, and hands each chunk to `take`; returns
// the event, which is that of the first chunk for all.
absl::StatusOr<int64_t> ReadAll(
    client::Cluster& cluster, const client::TableInfo& table,
    std::vector<RowIdRange> ranges, client::ReadOptions options,
    Progress& progress,
    const std::function<absl::Status(std::span<const int64_t>,
                                     std::span<const std::byte>)>& take) {
  const int64_t chunk_rows =
      std::max<int64_t>(1, kChunkBytes / table.row_bytes());
  int64_t done = 0;
  do {
    const std::vector<int64_t> ids = TakeIds(ranges, chunk_rows);
    std::vector<std::byte> rows(ids.size() * table.row_bytes());
    const absl::StatusOr<int64_t> event =
        cluster.ReadRows(table.name, ids, rows, options);
    ROWHOUSE_RETURN_IF_ERROR(WhileWaiting(event.status(), options.exact_event));
    options.exact_event = *event;
    ROWHOUSE_RETURN_IF_ERROR(take(ids, rows));
    done += std::ssize(ids);
    progress.Update(done);
  } while (!ranges.empty());
  return *options.exact_event;
}

absl::Status StatusOf(const std::ofstream& file, const std::string& path) {
  if (file) return absl::OkStatus();
  return absl::UnknownError(path + " cannot be written to its end");
}

absl::StatusOr<int64_t> WriteTo(const std::string& path,
                                client::Cluster& cluster,
                                const client::TableInfo& table,
                                const std::vector<RowIdRange>& ranges,
                                const client::ReadOptions& options,
                                bool quiet) {
  const int64_t row_count = SizeOf(ranges);
  Progress progress("pulling", row_count, Progress::Unit::kRows,
                    StderrScreen(quiet));
  std::ofstream file(path, std::ios::binary);
  if (!file) return BadArgument(path + " cannot be written");
  file << NpyHeaderOf(table.spec.row_dtype, row_count, table.spec.dim);
  ROWHOUSE_ASSIGN_OR_RETURN(
      const int64_t event,
      ReadAll(cluster, table, ranges, options, progress,
              [&](std::span<const int64_t>, std::span<const std::byte> rows) {
                file.write(reinterpret_cast<const char*>(rows.data()),
                           std::ssize(rows));
                return StatusOf(file, path);
              }));
  file.close();
  ROWHOUSE_RETURN_IF_ERROR(StatusOf(file, path));
  return event;
}

// Writes beside the file, which changes once all rows are there.
absl::StatusOr<int64_t> WriteFile(client::Cluster& cluster,
                                  const client::TableInfo& table,
                                  const std::vector<RowIdRange>& ranges,
                                  const client::ReadOptions& options,
                                  const std::string& path, bool quiet) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status there = fs::status(path, error);
  if (fs::exists(there) && !fs::is_regular_file(there)) {  // Say, a pipe.
    return WriteTo(path, cluster, table, ranges, options, quiet);
  }
  const std::string part = path + ".part";
  absl::StatusOr<int64_t> event =
      WriteTo(part, cluster, table, ranges, options, quiet);
  if (event.ok()) fs::rename(part, path, error);
  if (event.ok() && !error) return event;
  const absl::Status fault =
      event.ok() ? BadArgument(path + " cannot be written: " + error.message())
                 : event.status();
  fs::remove(part, error);
  return fault;
}

absl::StatusOr<int> Run(const Context& context, const Flags& flags) {
  ROWHOUSE_ASSIGN_OR_RETURN(const std::vector<RowIdRange> ranges,
                            RangesOf(flags));
  if (flags.all && (context.json || !flags.out.empty())) {
    return BadArgument(absl::StrCat(
        "--all with ", flags.out.empty() ? "--json" : "--out",
        ", which has every value of a row anyway; wanted one of them"));
  }
  const int64_t row_count = SizeOf(ranges);
  if (flags.out.empty() && row_count > kMostPrintedRows) {
    return BadArgument(absl::StrCat(
        Count(row_count), " rows to print, wanted at most ",
        Count(kMostPrintedRows), "; --out=FILE.npy takes any number"));
  }
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  const client::ReadOptions options{.timeout = context.connection.timeout(),
                                    .exact_event = flags.event};
  ROWHOUSE_ASSIGN_OR_RETURN(
      const client::TableInfo table,
      cluster->GetTable(context.table, {.timeout = options.timeout}));
  if (flags.out.empty()) {
    Output output(context, flags, table);
    Progress silent("", 0, Progress::Unit::kRows, StderrScreen(true));
    ROWHOUSE_ASSIGN_OR_RETURN(const int64_t event,
                              ReadAll(*cluster, table, ranges, options, silent,
                                      [&](std::span<const int64_t> ids,
                                          std::span<const std::byte> rows) {
                                        output.Add(ids, rows);
                                        return absl::OkStatus();
                                      }));
    output.Show(event);
    return 0;
  }
  ROWHOUSE_ASSIGN_OR_RETURN(
      const int64_t event,
      WriteFile(*cluster, table, ranges, options, flags.out, context.quiet));
  if (context.json) {
    PrintJson({{"table", table.name},
               {"event", event},
               {"row_count", row_count},
               {"out", flags.out}});
  } else {
    Print(absl::StrCat(Count(row_count), " rows of table ", table.name,
                       " at event ", event, " written to ", flags.out, "\n"));
  }
  return 0;
}

}  // namespace

void AddPull(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<Flags>();
  CLI::App& command =
      AddCommand(app, context, "pull", "Reads rows; no trainer is disturbed",
                 kExamples, [&context, flags] { return Run(context, *flags); });
  AddTable(command, context);
  command
      .add_option("ids", flags->ids,
                  "Row ids: 7, 10-19 (both ends in it), or - for stdin")
      ->required()
      ->type_name("IDS");
  command
      .add_option_function<int64_t>(
          "--event", [flags](int64_t value) { flags->event = value; },
          "The rows as of this event; waits for it")
      ->type_name("EVENT")
      ->check(AtLeast(0));
  command.add_flag("--all", flags->all, "Prints every value of a row");
  command
      .add_option("--out", flags->out,
                  "Writes a .npy array (rows, dim) of fp32, or of bf16 as "
                  "uint16")
      ->type_name("FILE");
}

}  // namespace rowhouse::cli
