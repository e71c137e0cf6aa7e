// Writes rows of a file into a table.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/command.h"
#include "client/cli/exit_code.h"
#include "client/cli/json.h"
#include "client/cli/npy.h"
#include "client/cli/progress.h"
#include "client/cli/terminal.h"
#include "client/cli/units.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::cli {
namespace {

constexpr char kExamples[] =
    "  rowhouse import words embedding.npy\n"
    "  rowhouse import words part2.npy --first-row=50000\n"
    "  rowhouse import words rows.bin --format=raw\n";

constexpr int64_t kChunkBytes = int64_t{16} << 20;

struct Flags {
  std::string file;
  std::string format;
  int64_t first_row = 0;
};

absl::Status BadFile(const std::string& message) {
  return BadArgument(message, kBadRowFile);
}

absl::Status AtFile(const std::string& file, const absl::Status& status) {
  return BadFile(absl::StrCat(file, ": ", status.message()));
}

// Rows in `in`, which is left before the first.
absl::StatusOr<int64_t> RowCountOf(std::ifstream& in, const Flags& flags,
                                   const client::TableInfo& table) {
  std::error_code fault;
  const auto size =
      static_cast<int64_t>(std::filesystem::file_size(flags.file, fault));
  if (fault) return BadFile(flags.file + " cannot be read");
  const int64_t row_bytes = table.row_bytes();
  int64_t header_bytes = 0;
  int64_t row_count = size / row_bytes;
  if (flags.format == "npy") {
    const absl::StatusOr<NpyHeader> header = ReadNpyHeader(in);
    if (!header.ok()) return AtFile(flags.file, header.status());
    const absl::StatusOr<int64_t> rows =
        CheckNpyRows(*header, table.spec.row_dtype, table.spec.dim);
    if (!rows.ok()) return AtFile(flags.file, rows.status());
    row_count = *rows;
    header_bytes = static_cast<int64_t>(in.tellg());
  }
  if (size != header_bytes + row_count * row_bytes) {
    return BadFile(absl::StrCat(
        flags.file, ": ", size - header_bytes, " bytes of rows, wanted ",
        flags.format == "npy"
            ? absl::StrCat(row_count, " rows of ", row_bytes, " bytes")
            : absl::StrCat("whole rows of ", row_bytes, " bytes")));
  }
  if (flags.first_row > table.spec.row_count - row_count) {
    return BadFile(absl::StrCat(flags.file, ": ", row_count, " rows from row ",
                                flags.first_row, " on, wanted rows in [0, ",
                                table.spec.row_count, ")"));
  }
  return row_count;
}

absl::Status Import(client::Cluster& cluster, const Context& context,
                    const Flags& flags, std::ifstream& in, int64_t row_count,
                    int64_t row_bytes) {
  Progress progress("importing", row_count * row_bytes, Progress::Unit::kBytes,
                    StderrScreen(context.quiet));
  const int64_t chunk_rows = std::max<int64_t>(1, kChunkBytes / row_bytes);
  std::vector<std::byte> chunk;
  for (int64_t row = 0; row < row_count; row += chunk_rows) {
    const int64_t count = std::min(chunk_rows, row_count - row);
    chunk.resize(count * row_bytes);
    in.read(reinterpret_cast<char*>(chunk.data()), std::ssize(chunk));
    if (in.gcount() != std::ssize(chunk)) {
      return BadFile(flags.file + " ends early");
    }
    ROWHOUSE_RETURN_IF_ERROR(
        cluster.ImportRows(context.table, flags.first_row + row, chunk,
                           {.timeout = context.connection.work_timeout()}));
    progress.Update((row + count) * row_bytes);
  }
  return absl::OkStatus();
}

absl::StatusOr<int> Run(const Context& context, Flags flags) {
  std::ifstream in(flags.file, std::ios::binary);
  if (!in) return BadFile(flags.file + " cannot be read");
  if (flags.format.empty()) {
    flags.format = flags.file.ends_with(".npy") ? "npy" : "raw";
  }
  ROWHOUSE_ASSIGN_OR_RETURN(const std::unique_ptr<client::Cluster> cluster,
                            Connect(context.connection));
  ROWHOUSE_ASSIGN_OR_RETURN(
      const client::TableInfo table,
      cluster->GetTable(context.table,
                        {.timeout = context.connection.timeout()}));
  ROWHOUSE_ASSIGN_OR_RETURN(const int64_t row_count,
                            RowCountOf(in, flags, table));
  ROWHOUSE_RETURN_IF_ERROR(
      Import(*cluster, context, flags, in, row_count, table.row_bytes()));
  if (context.json) {
    PrintJson({{"table", context.table},
               {"first_row", flags.first_row},
               {"row_count", row_count}});
  } else {
    Print(absl::StrCat(Count(row_count), " rows written to table ",
                       context.table, ", from row ", Count(flags.first_row),
                       " on\n"));
  }
  return 0;
}

}  // namespace

void AddImport(CLI::App& app, Context& context) {
  const auto flags = std::make_shared<Flags>();
  CLI::App& command =
      AddCommand(app, context, "import",
                 "Writes rows of a file into a table, before its first event",
                 kExamples, [&context, flags] { return Run(context, *flags); });
  AddTable(command, context);
  command
      .add_option("file", flags->file,
                  "Rows: a .npy array (rows, dim) of fp32, or of bf16 as "
                  "uint16; or raw rows in the table's type")
      ->required()
      ->type_name("FILE");
  command
      .add_option("--format", flags->format,
                  "npy or raw; by the file's name when not given")
      ->check(CLI::IsMember({"npy", "raw"}))
      ->type_name("NAME");
  AddCount(command, "--first-row", flags->first_row,
           "The row that the file's first goes to");
}

}  // namespace rowhouse::cli
