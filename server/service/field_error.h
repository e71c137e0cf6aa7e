#ifndef ROWHOUSE_SERVER_SERVICE_FIELD_ERROR_H_
#define ROWHOUSE_SERVER_SERVICE_FIELD_ERROR_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace rowhouse::server {

/// INVALID_ARGUMENT (`reason`): "`field` is `found`; it must be `wanted`", with
/// all three as metadata.
absl::Status FieldError(std::string_view reason, std::string_view field,
                        std::string_view found, std::string_view wanted);
absl::Status FieldError(std::string_view reason, std::string_view field,
                        int64_t found, std::string_view wanted);
absl::Status FieldError(std::string_view reason, std::string_view field,
                        double found, std::string_view wanted);

/// INVALID_ARGUMENT (MALFORMED): a required field is not set.
absl::Status MissingError(std::string_view field);

/// INVALID_ARGUMENT (MALFORMED): the bytes of a message are none of its type.
absl::Status NotAMessageError();

/// A caller's text, fit for a message: quoted, escaped, cut at 80 bytes.
std::string Quoted(std::string_view text);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_SERVICE_FIELD_ERROR_H_
