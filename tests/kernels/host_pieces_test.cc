#include "kernels/host_pieces.h"

#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace rowhouse::kernels {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string_view> kPieces = {"", "abc", "", "d", "efgh", ""};

std::string Copied(PieceReader& reader, int64_t size) {
  std::string text(static_cast<size_t>(size), '?');
  reader.Copy(text.data(), size);
  return text;
}

TEST(HostPiecesTest, ATextIsOnePiece) {
  const HostPieces pieces(std::string_view("abc"));
  EXPECT_THAT(pieces.pieces(), ElementsAre("abc"));
  EXPECT_EQ(pieces.size_bytes(), 3);
  const HostPieces copy = pieces;
  EXPECT_THAT(copy.pieces(), ElementsAre("abc"));
}

TEST(HostPiecesTest, SizesAddUp) {
  EXPECT_EQ(HostPieces(kPieces).size_bytes(), 8);
  EXPECT_EQ(HostPieces().size_bytes(), 0);
}

TEST(PieceReaderTest, CopiesAcrossPieces) {
  PieceReader reader{HostPieces(kPieces)};
  EXPECT_EQ(Copied(reader, 2), "ab");
  EXPECT_EQ(Copied(reader, 4), "cdef");
  EXPECT_EQ(Copied(reader, 0), "");
  EXPECT_EQ(Copied(reader, 2), "gh");
}

TEST(PieceReaderTest, BeginsAnywhere) {
  for (int64_t offset = 0; offset <= 8; ++offset) {
    PieceReader reader(HostPieces(kPieces), offset);
    EXPECT_EQ(Copied(reader, 8 - offset),
              std::string("abcdefgh").substr(static_cast<size_t>(offset)));
  }
}

TEST(PieceReaderTest, TakesPiecesOfAPart) {
  PieceReader reader{HostPieces(kPieces)};
  EXPECT_THAT(reader.Take(6), ElementsAre("abc", "d", "ef"));
  EXPECT_THAT(reader.Take(2), ElementsAre("gh"));
  EXPECT_THAT(reader.Take(0), IsEmpty());
}

TEST(PieceReaderTest, PeeksOnlyAtWhatLiesTogether) {
  PieceReader reader{HostPieces(kPieces)};
  EXPECT_EQ(reader.Peek(3), "abc");
  EXPECT_EQ(reader.Peek(4), "");
  reader.Pass(5);
  EXPECT_EQ(reader.Peek(3), "fgh");
  reader.Pass(3);
  EXPECT_EQ(reader.Peek(1), "");
}

}  // namespace
}  // namespace rowhouse::kernels
