#include "client/cli/npy.h"

#include <cstddef>
#include <regex>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace rowhouse::cli {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeaderBytes = 1 << 16;
constexpr size_t kAlignment = 64;

absl::Status Bad(const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat(what, ", wanted a .npy file"));
}

// Little-endian.
size_t LengthOf(std::string_view bytes) {
  size_t length = 0;
  for (size_t i = bytes.size(); i > 0; --i) {
    length = length << 8 | static_cast<unsigned char>(bytes[i - 1]);
  }
  return length;
}

bool ReadBytes(std::istream& in, size_t count, std::string& out) {
  out.resize(count);
  in.read(out.data(), static_cast<std::streamsize>(count));
  return static_cast<size_t>(in.gcount()) == count;
}

absl::StatusOr<NpyHeader> ParseDictionary(const std::string& text) {
  const std::regex dtype(R"('descr'\s*:\s*'([^']*)')");
  const std::regex order(R"('fortran_order'\s*:\s*(True|False))");
  const std::regex shape(R"('shape'\s*:\s*\(([0-9,\s]*)\))");
  NpyHeader header;
  std::smatch found;
  if (!std::regex_search(text, found, dtype)) return Bad("no element type");
  header.dtype = found[1];
  if (!std::regex_search(text, found, order)) return Bad("no order");
  header.fortran_order = found[1] == "True";
  if (!std::regex_search(text, found, shape)) return Bad("no shape");
  for (const absl::string_view piece :
       absl::StrSplit(found[1].str(), ',', absl::SkipWhitespace())) {
    int64_t size = 0;
    if (!absl::SimpleAtoi(piece, &size)) return Bad("a shape that is none");
    header.shape.push_back(size);
  }
  return header;
}

}  // namespace

absl::StatusOr<NpyHeader> ReadNpyHeader(std::istream& in) {
  std::string bytes;
  if (!ReadBytes(in, kMagic.size() + 2, bytes) || !bytes.starts_with(kMagic)) {
    return Bad("a file that does not begin with \\x93NUMPY");
  }
  const int version = bytes[kMagic.size()];
  if (version < 1 || version > 3) {
    return Bad(absl::StrCat("format version ", version));
  }
  if (!ReadBytes(in, version == 1 ? 2 : 4, bytes)) return Bad("half a head");
  const size_t length = LengthOf(bytes);
  if (length > kMaxHeaderBytes || !ReadBytes(in, length, bytes)) {
    return Bad("half a head");
  }
  return ParseDictionary(bytes);
}

absl::StatusOr<int64_t> CheckNpyRows(const NpyHeader& header,
                                     client::DType dtype, int64_t dim) {
  const bool fp32 = dtype == client::DType::kFp32;
  const bool fits = fp32 ? header.dtype == "<f4"
                         : header.dtype == "<u2" || header.dtype == "|V2" ||
                               header.dtype == "<V2";
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "an array of '", header.dtype, "', wanted ",
        fp32 ? "'<f4': the table's rows are fp32"
             : "'<u2' (the bits of bf16) or 'V2': the table's rows are bf16"));
  }
  if (header.fortran_order) {
    return absl::InvalidArgumentError(
        "an array in Fortran order, wanted C order: "
        "numpy.ascontiguousarray(rows)");
  }
  if (header.shape.size() != 2 || header.shape[1] != dim) {
    return absl::InvalidArgumentError(
        absl::StrCat("an array of shape (", absl::StrJoin(header.shape, ", "),
                     "), wanted (rows, ", dim, ")"));
  }
  return header.shape[0];
}

std::string NpyHeaderOf(client::DType dtype, int64_t row_count, int64_t dim) {
  std::string dictionary = absl::StrFormat(
      "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }",
      dtype == client::DType::kFp32 ? "<f4" : "<u2", row_count, dim);
  const size_t before = kMagic.size() + 4;
  const size_t size = before + dictionary.size() + 1;  // And a line end.
  dictionary.append((kAlignment - size % kAlignment) % kAlignment, ' ');
  dictionary += '\n';
  std::string out(kMagic);
  out += {'\x01', '\x00', static_cast<char>(dictionary.size() & 0xff),
          static_cast<char>(dictionary.size() >> 8)};
  return out + dictionary;
}

}  // namespace rowhouse::cli
