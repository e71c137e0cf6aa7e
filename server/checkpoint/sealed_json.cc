#include "server/checkpoint/sealed_json.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "server/checkpoint/checksum.h"
#include "server/checkpoint/file_errors.h"

namespace rowhouse::server {
namespace {

constexpr char kChecksum[] = "checksum";
constexpr int kIndent = 2;

}  // namespace

std::string Seal(Json object) {
  object[kChecksum] = ChecksumText(ChecksumOf(object.dump(kIndent)));
  return object.dump(kIndent) + '\n';
}

absl::StatusOr<Json> Unseal(std::string_view file, std::string_view text) {
  Json json;
  try {
    json = Json::parse(text);
  } catch (const Json::parse_error& error) {
    const auto at = static_cast<int64_t>(error.byte);
    return DamagedError(file, std::max<int64_t>(at - 1, 0),
                        "this is no JSON text");
  } catch (const Json::exception& error) {  // Say a number out of range.
    return DamagedError(file, 0, error.what());
  }
  const auto checksum = json.is_object() ? json.find(kChecksum) : json.end();
  if (!json.is_object() || checksum == json.end()) {
    return DamagedError(file, 0, "it is no object with a checksum");
  }
  json.erase(checksum);
  const std::string wanted = Seal(json);
  if (wanted != text) {
    const auto [found, same] =
        std::mismatch(text.begin(), text.end(), wanted.begin(), wanted.end());
    return DamagedError(file, found - text.begin(),
                        "the text is not what was written: its checksum or its "
                        "form differ, here or before");
  }
  return json;
}

absl::Status ReadMembers(std::string_view file,
                         absl::FunctionRef<absl::Status()> read) {
  try {
    return read();
  } catch (const Json::exception& error) {
    return DamagedError(file, 0, error.what());
  }
}

}  // namespace rowhouse::server
