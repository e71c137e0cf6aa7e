#ifndef ROWHOUSE_PROTO_WIRE_ROW_MESSAGE_H_
#define ROWHOUSE_PROTO_WIRE_ROW_MESSAGE_H_

/// Messages that end with rows, `bytes rows = 15`, such as PullRowsResponse and
/// PushGradientsRequest: written and read without a copy of the rows. On the
/// wire they are ordinary protobuf.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace rowhouse::wire {

/// The bytes that protobuf writes for `fields`, whose rows are not set, with
/// `rows` as its rows. Refers to them.
grpc::ByteBuffer JoinRows(const google::protobuf::MessageLite& fields,
                          const grpc::Slice& rows);

/// The bytes that protobuf writes for `message`.
grpc::ByteBuffer ToByteBuffer(const google::protobuf::MessageLite& message);

/// Whether `bytes` is a message; fills `message` from it.
[[nodiscard]] bool FromByteBuffer(const grpc::ByteBuffer& bytes,
                                  google::protobuf::MessageLite& message);

/// Where a message ends with its rows.
struct RowsPlace {
  int64_t fields_bytes = 0;  ///< Before the tag of the rows.
  int64_t first_byte = 0;    ///< Of the rows, which take all that is left.
};

/// Nothing where the bytes do not end with the only field 15, as protobuf
/// writes it, behind others that can be told apart; they may be a message all
/// the same.
std::optional<RowsPlace> FindRows(const grpc::ByteBuffer& bytes);

/// Fills `message` from the first `size_bytes` of `bytes`.
[[nodiscard]] bool ParseFront(const grpc::ByteBuffer& bytes, int64_t size_bytes,
                              google::protobuf::MessageLite& message);

/// A received message. Takes whatever protobuf takes; rows that are its last
/// field, as every writer of ours and of protobuf puts them, are not copied.
///
/// Thread-compatible.
template <typename Message>
class RowMessage {
 public:
  /// Whether `bytes` is a message; refers to them until the next.
  [[nodiscard]] bool Parse(const grpc::ByteBuffer& bytes) {
    DropRows();
    const std::optional<RowsPlace> rows = FindRows(bytes);
    if (!rows.has_value()) {
      if (!FromByteBuffer(bytes, fields_)) return false;
      pieces_.push_back(fields_.rows());
      return true;
    }
    if (!ParseFront(bytes, rows->fields_bytes, fields_)) return false;
    if (!bytes.Dump(&slices_).ok()) return false;
    auto skip = static_cast<size_t>(rows->first_byte);
    for (const grpc::Slice& slice : slices_) {
      const std::string_view piece(reinterpret_cast<const char*>(slice.begin()),
                                   slice.size());
      if (skip < piece.size()) pieces_.push_back(piece.substr(skip));
      skip -= std::min(skip, piece.size());
    }
    return true;
  }

  /// Lets go of the bytes.
  void DropRows() {
    pieces_.clear();
    slices_.clear();
  }

  /// The message; where the rows lie is no one's business but `rows`'.
  const Message& fields() const { return fields_; }

  /// Views that stay valid while this does, also when it moves.
  std::span<const std::string_view> rows() const { return pieces_; }

 private:
  Message fields_;
  std::vector<grpc::Slice> slices_;
  std::vector<std::string_view> pieces_;
};

}  // namespace rowhouse::wire

#endif  // ROWHOUSE_PROTO_WIRE_ROW_MESSAGE_H_
