// Messages of rows against protobuf's own parser and writer.

#include "proto/wire/row_message.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"
#include "rowhouse/v1/row_service.pb.h"
#include "tests/testing/random.h"

namespace rowhouse::wire {
namespace {

using google::protobuf::io::CodedOutputStream;
using google::protobuf::io::StringOutputStream;
using google::protobuf::util::MessageDifferencer;
using ::rowhouse::testing::Random;

std::string Text(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string text;
  EXPECT_TRUE(buffer.Dump(&slices).ok());
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

std::string Text(std::span<const std::string_view> pieces) {
  std::string text;
  for (const std::string_view piece : pieces) text += piece;
  return text;
}

// `text` in slices cut anywhere, some of them empty.
grpc::ByteBuffer Cut(Random& random, const std::string& text) {
  std::vector<grpc::Slice> slices;
  for (size_t at = 0; at < text.size();) {
    const auto size =
        std::min(text.size() - at, static_cast<size_t>(random.Integer(0, 40)));
    slices.emplace_back(text.data() + at, size);
    at += size;
  }
  return {slices.data(), slices.size()};
}

std::string Bytes(Random& random, int64_t most) {
  std::string bytes(static_cast<size_t>(random.Integer(0, most)), '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.Bits());
  return bytes;
}

v1::PullRowsResponse SomeResponse(Random& random) {
  v1::PullRowsResponse message;
  message.set_event(random.Integer(0, 1000));
  if (random.Chance(0.5)) message.set_handle(random.Integer(-5, 5));
  if (random.Chance(0.5)) message.set_row_count(random.Integer(0, 1 << 30));
  message.set_dtype(v1::DATA_TYPE_BF16);
  message.set_first_row(random.Integer(0, 300));
  return message;
}

v1::PushGradientsRequest SomeRequest(Random& random) {
  v1::PushGradientsRequest message;
  if (random.Chance(0.5)) {
    message.mutable_header()->set_table("tables/t");
    message.mutable_header()->set_row_count(random.Integer(0, 9));
    message.mutable_header()->mutable_trainer()->set_session(3);
  }
  message.set_first_row(random.Integer(0, 300));
  for (int64_t i = random.Integer(0, 20); i > 0; --i) {
    message.add_row_ids(static_cast<int64_t>(random.Bits()));
  }
  return message;
}

// One field: one of the message, perhaps of another type than it should have,
// or an unknown one; perhaps not written as briefly as could be, or not whole.
std::string SomeField(Random& random) {
  std::string text;
  StringOutputStream stream(&text);
  {
    CodedOutputStream out(&stream);
    const auto number =
        static_cast<uint32_t>(random.Chance(0.3) ? 15 : random.Integer(0, 18));
    const auto type =
        static_cast<uint32_t>(random.Chance(0.5) ? 2 : random.Integer(0, 7));
    const uint32_t tag = number << 3 | type;
    if (random.Chance(0.05)) {  // Longer than needed.
      out.WriteRaw("\xfa\x80\x00", 3);
    } else {
      out.WriteVarint32(tag);
    }
    if (type == 0) out.WriteVarint64(random.Bits() >> random.Integer(0, 63));
    if (type == 1) out.WriteLittleEndian64(random.Bits());
    if (type == 5) out.WriteLittleEndian32(1);
    if (type == 2) {
      const std::string value = Bytes(random, 30);
      auto size = static_cast<uint64_t>(value.size());
      if (random.Chance(0.05)) size = random.Bits() >> random.Integer(0, 63);
      out.WriteVarint64(size);
      out.WriteString(value);
    }
  }
  return text;
}

// Both take it, or neither, and then the same.
template <typename Message>
bool ExpectAsProtobuf(Random& random, const std::string& text) {
  Message wanted;
  const bool taken = wanted.ParseFromString(text);
  RowMessage<Message> parsed;
  const grpc::ByteBuffer buffer = Cut(random, text);
  EXPECT_EQ(parsed.Parse(buffer), taken) << text.size();
  if (!taken) return false;
  const RowMessage<Message> moved = std::move(parsed);
  EXPECT_EQ(Text(moved.rows()), wanted.rows());
  Message found = moved.fields();
  found.set_rows(wanted.rows());
  EXPECT_TRUE(MessageDifferencer::Equals(found, wanted))
      << found.ShortDebugString() << " for " << wanted.ShortDebugString();
  return true;
}

TEST(RowMessageTest, WritesTheBytesThatProtobufWrites) {
  Random random(1);
  SCOPED_TRACE(random.Trace());
  for (int i = 0; i < 300; ++i) {
    const std::string rows = Bytes(random, 300);
    v1::PullRowsResponse response = SomeResponse(random);
    const grpc::ByteBuffer joined = JoinRows(response, grpc::Slice(rows));
    response.set_rows(rows);
    EXPECT_EQ(Text(joined), response.SerializeAsString());
    v1::PushGradientsRequest request = SomeRequest(random);
    const grpc::ByteBuffer pushed = JoinRows(request, grpc::Slice(rows));
    request.set_rows(rows);
    EXPECT_EQ(Text(pushed), request.SerializeAsString());
  }
}

TEST(RowMessageTest, JoinedRowsAreNotCopied) {
  const std::string rows(1000, 'r');
  v1::PullRowsResponse fields;
  fields.set_event(1);
  const grpc::ByteBuffer joined = JoinRows(
      fields, grpc::Slice(rows.data(), rows.size(), grpc::Slice::STATIC_SLICE));
  RowMessage<v1::PullRowsResponse> message;
  ASSERT_TRUE(message.Parse(joined));
  ASSERT_EQ(message.rows().size(), 1U);
  EXPECT_EQ(message.rows()[0].data(), rows.data());
  EXPECT_EQ(message.rows()[0].size(), rows.size());
  EXPECT_EQ(message.fields().event(), 1);
}

TEST(RowMessageTest, ReadsWhatProtobufWrites) {
  Random random(2);
  SCOPED_TRACE(random.Trace());
  for (int i = 0; i < 300; ++i) {
    v1::PullRowsResponse response = SomeResponse(random);
    response.set_rows(Bytes(random, 300));
    EXPECT_TRUE(ExpectAsProtobuf<v1::PullRowsResponse>(
        random, response.SerializeAsString()));
    v1::PushGradientsRequest request = SomeRequest(random);
    request.set_rows(Bytes(random, 300));
    EXPECT_TRUE(ExpectAsProtobuf<v1::PushGradientsRequest>(
        random, request.SerializeAsString()));
  }
}

// Fields in any order, several times, unknown, of wrong types, damaged.
TEST(RowMessageTest, TakesAndRefusesWhatProtobufDoes) {
  Random random(3);
  SCOPED_TRACE(random.Trace());
  int taken = 0;
  constexpr int kTimes = 20'000;
  for (int i = 0; i < kTimes; ++i) {
    std::string text;
    if (random.Chance(0.5)) text = SomeResponse(random).SerializeAsString();
    for (int64_t fields = random.Integer(0, 3); fields > 0; --fields) {
      text += SomeField(random);
    }
    if (random.Chance(0.1)) {
      text.resize(static_cast<size_t>(
          random.Integer(0, static_cast<int64_t>(text.size()))));
    }
    taken += ExpectAsProtobuf<v1::PullRowsResponse>(random, text) ? 1 : 0;
    ExpectAsProtobuf<v1::PushGradientsRequest>(random, text);
    if (HasFailure()) return;
  }
  EXPECT_GT(taken, kTimes / 10);  // Both ways were seen.
  EXPECT_LT(taken, kTimes - kTimes / 10);
}

TEST(RowMessageTest, EveryTruncationIsJudgedAsProtobufDoes) {
  Random random(4);
  SCOPED_TRACE(random.Trace());
  v1::PushGradientsRequest message = SomeRequest(random);
  message.set_rows(Bytes(random, 50) + "x");
  const std::string text = message.SerializeAsString();
  for (size_t size = 0; size < text.size(); ++size) {
    ExpectAsProtobuf<v1::PushGradientsRequest>(random, text.substr(0, size));
  }
}

}  // namespace
}  // namespace rowhouse::wire
