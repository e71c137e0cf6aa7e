#include "server/service/field_error.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::server {
namespace {

std::string String(std::string_view text) { return std::string(text); }

}  // namespace

absl::Status FieldError(std::string_view reason, std::string_view field,
                        std::string_view found, std::string_view wanted) {
  return wire::Error(
      absl::StatusCode::kInvalidArgument, reason,
      String(field) + " is " + String(found) + "; it must be " + String(wanted),
      {{"field", String(field)},
       {"found", String(found)},
       {"wanted", String(wanted)}});
}

absl::Status FieldError(std::string_view reason, std::string_view field,
                        int64_t found, std::string_view wanted) {
  return FieldError(reason, field, std::string_view(absl::StrCat(found)),
                    wanted);
}

absl::Status FieldError(std::string_view reason, std::string_view field,
                        double found, std::string_view wanted) {
  return FieldError(reason, field, std::string_view(absl::StrCat(found)),
                    wanted);
}

absl::Status MissingError(std::string_view field) {
  return FieldError(wire::reasons::kMalformed, field,
                    std::string_view("not set"), "set");
}

absl::Status NotAMessageError() {
  return FieldError(wire::reasons::kMalformed, "a message",
                    std::string_view("no protobuf of its type"),
                    "bytes that its type can be parsed from");
}

std::string Quoted(std::string_view text) {
  constexpr size_t kMaxBytes = 80;
  const std::string_view head = text.substr(0, kMaxBytes);
  return absl::StrCat(
      "'", absl::CHexEscape(absl::string_view(head.data(), head.size())),
      head.size() < text.size() ? "...'" : "'");
}

}  // namespace rowhouse::server
