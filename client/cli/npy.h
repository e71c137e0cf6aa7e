#ifndef ROWHOUSE_CLIENT_CLI_NPY_H_
#define ROWHOUSE_CLIENT_CLI_NPY_H_

#include <cstdint>
#include <istream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "rowhouse/types.h"

namespace rowhouse::cli {

/// What the head of a .npy file says of the array behind it.
struct NpyHeader {
  std::string dtype;  ///< `descr` as it stands: `<f4`.
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

/// Reads the head; the stream is then at the first element. Versions 1 to 3 of
/// the format.
///
/// Errors:
///   kInvalidArgument  it is no .npy file; says what is wrong.
absl::StatusOr<NpyHeader> ReadNpyHeader(std::istream& in);

/// Returns the row count of an array that can be rows of a table.
///
/// Errors:
///   kInvalidArgument  it is not [_, dim] in C order, or of another element
///                     type: `<f4` for FP32; for BF16 `<u2` (its bits) or a
///                     bfloat16 extension's `V2`.
absl::StatusOr<int64_t> CheckNpyRows(const NpyHeader& header,
                                     client::DType dtype, int64_t dim);

/// The head of a file of rows; 64-byte aligned.
std::string NpyHeaderOf(client::DType dtype, int64_t row_count, int64_t dim);

}  // namespace rowhouse::cli

#endif  // ROWHOUSE_CLIENT_CLI_NPY_H_
