// Table specs in textproto files.

#include <algorithm>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/exit_code.h"
#include "client/cli/spec_flags.h"
#include "client/internal/grpc_convert.h"
#include "google/protobuf/descriptor.h"
#include "proto/wire/file.h"
#include "proto/wire/status_macros.h"
#include "rowhouse/config/v1/server_config.pb.h"
#include "rowhouse/v1/table.pb.h"

namespace rowhouse::cli {
namespace {

absl::Status BadFile(const std::string& message) {
  return BadArgument(message, kBadSpecFile);
}

// The name of a textproto's first field; empty where there is none.
std::string FirstField(const std::string& text) {
  for (const absl::string_view whole : absl::StrSplit(text, '\n')) {
    const absl::string_view line = absl::StripLeadingAsciiWhitespace(whole);
    if (line.empty() || line[0] == '#') continue;
    const auto end = std::find_if_not(line.begin(), line.end(), [](char c) {
      return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
    });
    return std::string(line.begin(), end);
  }
  return "";
}

template <typename Message>
absl::StatusOr<Message> Parse(const std::string& path,
                              const std::string& text) {
  Message message;
  const absl::Status parsed = wire::ParseTextProto(path, text, message);
  if (!parsed.ok()) return BadFile(std::string(parsed.message()));
  return message;
}

// A spec, what is in an entry `tables` of a server's configuration, or a
// configuration. No two of them have fields of the same name: the first one
// tells which it is, and so whose faults are told.
absl::StatusOr<v1::TableSpec> ReadSpec(const std::string& path) {
  const absl::StatusOr<std::string> text = wire::ReadFile(path);
  if (!text.ok()) return BadFile(std::string(text.status().message()));
  const std::string first = FirstField(*text);
  const auto begins = [&](const google::protobuf::Descriptor& message) {
    return message.FindFieldByName(first) != nullptr;
  };
  config::v1::TableConfig entry;
  if (begins(*config::v1::ServerConfig::descriptor())) {
    ROWHOUSE_ASSIGN_OR_RETURN(config::v1::ServerConfig config,
                              Parse<config::v1::ServerConfig>(path, *text));
    if (config.tables_size() != 1) {
      return BadFile(absl::StrCat(path, ": ", config.tables_size(),
                                  " entries `tables`, wanted one"));
    }
    entry.Swap(config.mutable_tables(0));
  } else if (begins(*config::v1::TableConfig::descriptor())) {
    ROWHOUSE_ASSIGN_OR_RETURN(entry,
                              Parse<config::v1::TableConfig>(path, *text));
  } else {
    return Parse<v1::TableSpec>(path, *text);
  }
  if (entry.has_spec()) return entry.spec();
  return BadFile(path + ": no spec, wanted `spec { ... }`");
}

}  // namespace

absl::StatusOr<client::TableSpec> ReadSpecFile(const std::string& path) {
  ROWHOUSE_ASSIGN_OR_RETURN(const v1::TableSpec proto, ReadSpec(path));
  const auto missing = [&](const char* field, const char* wanted) {
    return BadFile(absl::StrCat(path, ": no ", field, ", wanted ", wanted));
  };
  constexpr char kDtypes[] = "DATA_TYPE_BF16 or DATA_TYPE_FP32";
  if (proto.row_dtype() == v1::DATA_TYPE_UNSPECIFIED) {
    return missing("row_dtype", kDtypes);
  }
  if (proto.gradient_dtype() == v1::DATA_TYPE_UNSPECIFIED) {
    return missing("gradient_dtype", kDtypes);
  }
  if (proto.kind_case() == v1::TableSpec::KIND_NOT_SET) {
    return missing("kind of table", "`sparse {}` or `dense {}`");
  }
  return client::internal::FromProto(proto);
}

}  // namespace rowhouse::cli
