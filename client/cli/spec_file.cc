// Table specs in textproto files.

#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/exit_code.h"
#include "client/cli/spec_flags.h"
#include "client/internal/grpc_convert.h"
#include "proto/wire/file.h"
#include "rowhouse/config/v1/server_config.pb.h"
#include "rowhouse/v1/table.pb.h"

namespace rowhouse::cli {
namespace {

// A spec, or an entry of a server's configuration.
absl::StatusOr<v1::TableSpec> Parse(const std::string& path) {
  v1::TableSpec spec;
  const absl::Status as_spec = wire::ReadTextProto(path, spec);
  if (as_spec.ok()) return spec;
  config::v1::TableConfig entry;
  if (wire::ReadTextProto(path, entry).ok() && entry.has_spec()) {
    return entry.spec();
  }
  return BadArgument(std::string(as_spec.message()));
}

}  // namespace

absl::StatusOr<client::TableSpec> ReadSpecFile(const std::string& path) {
  const absl::StatusOr<v1::TableSpec> proto = Parse(path);
  if (!proto.ok()) return proto.status();
  const auto missing = [&](const char* field, const char* wanted) {
    return BadArgument(absl::StrCat(path, ": no ", field, ", wanted ", wanted));
  };
  constexpr char kDtypes[] = "DATA_TYPE_BF16 or DATA_TYPE_FP32";
  if (proto->row_dtype() == v1::DATA_TYPE_UNSPECIFIED) {
    return missing("row_dtype", kDtypes);
  }
  if (proto->gradient_dtype() == v1::DATA_TYPE_UNSPECIFIED) {
    return missing("gradient_dtype", kDtypes);
  }
  if (proto->kind_case() == v1::TableSpec::KIND_NOT_SET) {
    return missing("kind of table", "`sparse {}` or `dense {}`");
  }
  return client::internal::FromProto(*proto);
}

}  // namespace rowhouse::cli
