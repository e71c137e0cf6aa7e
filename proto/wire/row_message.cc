#include "proto/wire/row_message.h"

#include <cstddef>
#include <string>

#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "grpcpp/support/proto_buffer_reader.h"
#include "grpcpp/support/proto_buffer_writer.h"

namespace rowhouse::wire {
namespace {

using google::protobuf::MessageLite;
using google::protobuf::io::CodedInputStream;
using google::protobuf::io::CodedOutputStream;
using Format = google::protobuf::internal::WireFormatLite;

constexpr uint32_t kRowsTag =
    Format::MakeTag(15, Format::WIRETYPE_LENGTH_DELIMITED);
constexpr int kMostLengthBytes = 5;

// Reads a field's value, of any number but that of the rows.
bool SkipValue(CodedInputStream& in, uint32_t tag) {
  switch (Format::GetTagWireType(tag)) {
    case Format::WIRETYPE_VARINT: {
      uint64_t value = 0;
      return in.ReadVarint64(&value);
    }
    case Format::WIRETYPE_FIXED64:
      return in.Skip(8);
    case Format::WIRETYPE_FIXED32:
      return in.Skip(4);
    case Format::WIRETYPE_LENGTH_DELIMITED: {
      int size = 0;
      return in.ReadVarintSizeAsInt(&size) && in.Skip(size);
    }
    case Format::WIRETYPE_START_GROUP:
    case Format::WIRETYPE_END_GROUP:
      break;
  }
  return false;
}

}  // namespace

grpc::ByteBuffer JoinRows(const MessageLite& fields, const grpc::Slice& rows) {
  if (rows.size() == 0) return ToByteBuffer(fields);
  std::string front;
  front.reserve(fields.ByteSizeLong() + 1 + kMostLengthBytes);
  fields.AppendToString(&front);
  uint8_t field[1 + kMostLengthBytes];
  const uint8_t* const end = CodedOutputStream::WriteVarint32ToArray(
      static_cast<uint32_t>(rows.size()),
      CodedOutputStream::WriteTagToArray(kRowsTag, field));
  front.append(reinterpret_cast<const char*>(field),
               static_cast<size_t>(end - field));
  const grpc::Slice slices[] = {grpc::Slice(front), rows};
  return grpc::ByteBuffer(slices, 2);
}

grpc::ByteBuffer ToByteBuffer(const MessageLite& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

// The readers below change nothing, but take what they read as not constant.
bool FromByteBuffer(const grpc::ByteBuffer& bytes, MessageLite& message) {
  grpc::ByteBuffer shared = bytes;
  grpc::ProtoBufferReader reader(&shared);
  return message.ParseFromZeroCopyStream(&reader) && reader.status().ok();
}

bool ParseFront(const grpc::ByteBuffer& bytes, int64_t size_bytes,
                MessageLite& message) {
  grpc::ByteBuffer shared = bytes;
  grpc::ProtoBufferReader reader(&shared);
  return message.ParseFromBoundedZeroCopyStream(&reader,
                                                static_cast<int>(size_bytes)) &&
         reader.status().ok();
}

std::optional<RowsPlace> FindRows(const grpc::ByteBuffer& bytes) {
  grpc::ByteBuffer shared = bytes;
  const auto all = static_cast<int64_t>(shared.Length());
  grpc::ProtoBufferReader reader(&shared);
  if (!reader.status().ok()) return std::nullopt;
  CodedInputStream in(&reader);
  while (true) {
    const int before = in.CurrentPosition();
    const uint32_t tag = in.ReadTagNoLastTag();
    if (tag == 0) return std::nullopt;
    if (Format::GetTagFieldNumber(tag) != 15) {
      if (!SkipValue(in, tag)) return std::nullopt;
      continue;
    }
    const int behind_tag = in.CurrentPosition();
    int size = 0;
    if (tag != kRowsTag || behind_tag - before != 1 ||
        !in.ReadVarintSizeAsInt(&size)) {
      return std::nullopt;
    }
    const int first = in.CurrentPosition();
    const bool shortest =
        static_cast<size_t>(first - behind_tag) ==
        CodedOutputStream::VarintSize32(static_cast<uint32_t>(size));
    if (!shortest || first + int64_t{size} != all) return std::nullopt;
    return RowsPlace{before, first};
  }
}

}  // namespace rowhouse::wire
