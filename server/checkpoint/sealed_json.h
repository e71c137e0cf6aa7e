#ifndef ROWHOUSE_SERVER_CHECKPOINT_SEALED_JSON_H_
#define ROWHOUSE_SERVER_CHECKPOINT_SEALED_JSON_H_

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace rowhouse::server {

/// Members in the order they are added.
using Json = nlohmann::ordered_json;

/// The one text that a manifest has: indented by 2, a line end, and as last
/// member `checksum`, that of the text without this member.
///
/// REQUIRES: `object` is one, without `checksum`; its texts are UTF-8.
std::string Seal(Json object);

/// The inverse. Any other text than `Seal` gives is refused, by so much as a
/// bit.
///
/// Errors:
///   kDataLoss  DAMAGED: names `file`, and the offset where it is no JSON or
///              not in the one form; else 0.
absl::StatusOr<Json> Unseal(std::string_view file, std::string_view text);

/// Calls `read`, which takes members out of what `Unseal` returned; DAMAGED
/// where one is not there or of another type.
absl::Status ReadMembers(std::string_view file,
                         absl::FunctionRef<absl::Status()> read);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_SEALED_JSON_H_
