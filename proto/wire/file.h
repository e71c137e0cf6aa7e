#ifndef ROWHOUSE_PROTO_WIRE_FILE_H_
#define ROWHOUSE_PROTO_WIRE_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "google/protobuf/message.h"

namespace rowhouse::wire {

/// Reads a file as a whole.
///
/// Errors:
///   kNotFound         it cannot be read.
///   kInvalidArgument  it is a directory.
absl::StatusOr<std::string> ReadFile(const std::string& path);

/// Parses a textproto into `message`; `path` is where `text` is from.
///
/// Errors:
///   kInvalidArgument  it does not parse; names path, line and column.
absl::Status ParseTextProto(const std::string& path, const std::string& text,
                            google::protobuf::Message& message);

/// Reads a textproto file into `message`.
///
/// Errors: those of `ReadFile` and `ParseTextProto`.
absl::Status ReadTextProto(const std::string& path,
                           google::protobuf::Message& message);

}  // namespace rowhouse::wire

#endif  // ROWHOUSE_PROTO_WIRE_FILE_H_
