#include <limits>

#include "kernels/hash.h"
#include "tests/kernels/host_table.h"
#include "tests/testing/random.h"

namespace rowhouse::kernels {
namespace {

using ::rowhouse::testing::Random;

ContentSum WordsOf(const uint8_t* bytes, int64_t size) {
  ContentSum sum;
  for (int64_t at = 0; at < size; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + at,
                static_cast<size_t>(std::min<int64_t>(8, size - at)));
    sum += WordContent(word, WordSecret(at / 8));
  }
  return sum;
}

std::vector<float> RandomRows(Random& random, int64_t count) {
  std::vector<float> rows(static_cast<size_t>(count));
  for (float& x : rows) x = Bf16ToFloat(FloatToBf16(random.Normal()));
  return rows;
}

TEST_P(BackendTest, LandRowsGivesTheStatedContent) {
  const std::vector<uint8_t> bytes =
      Encode(DType::kBf16, {1.0F, 2.0F, 3.0F, -1.0F, 0.5F, -0.0F});
  const auto to = Array(std::vector<uint8_t>(bytes.size()));
  ContentSum content;
  RowScan scan;
  ASSERT_THAT(backend_->LandRows(bytes.data(), to.data(), 2, 3, DType::kBf16,
                                 10, content, scan),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  // From an independent implementation in Python.
  EXPECT_EQ(content, (ContentSum{0x4e74d7fcc2d296a6U, 0x4f1712ce4a23195cU}));
  EXPECT_EQ(to.Download(), bytes);
}

TEST_P(BackendTest, LandRowsContentDoesNotDependOnTheCut) {
  Random random(11);
  SCOPED_TRACE(random.Trace());
  for (const DType dtype : {DType::kBf16, DType::kFp32}) {
    for (const int64_t dim : {1, 3, 5, 32, 33, 768}) {
      constexpr int64_t kRows = 61;
      const int64_t row_bytes = dim * SizeOf(dtype);
      const std::vector<uint8_t> bytes =
          Encode(dtype, RandomRows(random, kRows * dim));
      const auto to = Array(std::vector<uint8_t>(bytes.size()));
      ContentSum expected;
      for (int64_t i = 0; i < kRows; ++i) {
        expected += RowContent(
            100 + i, WordsOf(bytes.data() + i * row_bytes, row_bytes));
      }
      ContentSum content;
      for (int64_t row = 0; row < kRows;) {
        const int64_t count = random.Integer(0, kRows - row);
        RowScan scan;
        ASSERT_THAT(backend_->LandRows(bytes.data() + row * row_bytes,
                                       to.data() + row * row_bytes, count, dim,
                                       dtype, 100 + row, content, scan),
                    IsOk());
        ASSERT_THAT(backend_->Synchronize(), IsOk());
        EXPECT_EQ(scan.non_finite_row, RowScan::kNone);
        row += count;
      }
      EXPECT_EQ(content, expected) << dim;
      EXPECT_EQ(to.Download(), bytes) << dim;
    }
  }
}

TEST_P(BackendTest, LandRowsTakesRowsThatAreCutAnywhere) {
  Random random(12);
  SCOPED_TRACE(random.Trace());
  // The last are of a size for which a backend may take another way.
  for (const auto& [dim, rows] :
       {std::pair(1, 7), {3, 61}, {33, 100}, {768, 700}, {770, 700}}) {
    const std::vector<uint8_t> bytes =
        Encode(DType::kBf16, RandomRows(random, rows * dim));
    const std::string_view all(reinterpret_cast<const char*>(bytes.data()),
                               bytes.size());
    std::vector<std::string_view> pieces;
    for (size_t at = 0; at < all.size();) {
      const auto size =
          static_cast<size_t>(random.Chance(0.2) ? random.Integer(0, 3)
                                                 : random.Integer(0, 70'000));
      pieces.push_back(all.substr(at, size));
      at += pieces.back().size();
    }
    const auto whole = Array(std::vector<uint8_t>(bytes.size()));
    const auto cut = Array(std::vector<uint8_t>(bytes.size()));
    ContentSum whole_content;
    ContentSum cut_content;
    RowScan scan;
    ASSERT_THAT(backend_->LandRows(bytes.data(), whole.data(), rows, dim,
                                   DType::kBf16, 5, whole_content, scan),
                IsOk());
    ASSERT_THAT(backend_->LandRows(HostPieces(pieces), cut.data(), rows, dim,
                                   DType::kBf16, 5, cut_content, scan),
                IsOk());
    ASSERT_THAT(backend_->Synchronize(), IsOk());
    EXPECT_EQ(scan.non_finite_row, RowScan::kNone);
    EXPECT_EQ(cut_content, whole_content) << dim;
    EXPECT_TRUE(cut.Download() == bytes) << dim;
  }
}

TEST_P(BackendTest, LandRowsFindsWhatIsNotFiniteInARowOfTwoPieces) {
  std::vector<uint8_t> bytes = Encode(DType::kBf16, {1, 2, 3, 4, 5, 6});
  bytes[7] = 0x7f;  // Row 1, column 1: an infinity.
  bytes[6] = 0x80;
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()),
                             bytes.size());
  const std::vector<std::string_view> pieces = {all.substr(0, 7),
                                                all.substr(7)};
  const auto to = Array(std::vector<uint8_t>(bytes.size()));
  ContentSum content;
  RowScan scan;
  ASSERT_THAT(backend_->LandRows(HostPieces(pieces), to.data(), 3, 2,
                                 DType::kBf16, 0, content, scan),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(scan.non_finite_row, 1);
  EXPECT_EQ(scan.non_finite_column, 1);
}

TEST_P(BackendTest, LandRowsReadsHostMemoryOfAnyAlignment) {
  const std::vector<uint8_t> bytes = Encode(DType::kFp32, {1, 2, 3, 4, 5, 6});
  std::vector<uint8_t> shifted = {0};
  shifted.insert(shifted.end(), bytes.begin(), bytes.end());
  const auto to = Array(std::vector<uint8_t>(bytes.size()));
  ContentSum content;
  ContentSum content_shifted;
  RowScan scan;
  ASSERT_THAT(backend_->LandRows(bytes.data(), to.data(), 2, 3, DType::kFp32, 0,
                                 content, scan),
              IsOk());
  ASSERT_THAT(backend_->LandRows(shifted.data() + 1, to.data(), 2, 3,
                                 DType::kFp32, 0, content_shifted, scan),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(content_shifted, content);
  EXPECT_EQ(to.Download(), bytes);
}

TEST_P(BackendTest, LandRowsFindsTheFirstElementThatIsNotFinite) {
  const float kInfinity = std::numeric_limits<float>::infinity();
  const float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const DType dtype : {DType::kBf16, DType::kFp32}) {
    for (const int64_t dim : {1, 5, 768}) {
      for (const float bad : {kInfinity, -kInfinity, kNan, -kNan}) {
        constexpr int64_t kRows = 2000;
        std::vector<float> rows(static_cast<size_t>(kRows * dim), -3e38F);
        const int64_t column = dim - 1;
        for (const int64_t row : {1999, 1234}) {
          rows[static_cast<size_t>(row * dim + column)] = bad;
        }
        const std::vector<uint8_t> bytes = Encode(dtype, rows);
        const auto to = Array(std::vector<uint8_t>(bytes.size()));
        ContentSum content;
        RowScan scan;
        ASSERT_THAT(backend_->LandRows(bytes.data(), to.data(), kRows, dim,
                                       dtype, 0, content, scan),
                    IsOk());
        ASSERT_THAT(backend_->Synchronize(), IsOk());
        EXPECT_EQ(scan.non_finite_row, 1234);
        EXPECT_EQ(scan.non_finite_column, column);
      }
    }
  }
}

TEST_P(BackendTest, LandRowsForgetsWhatAnEarlierScanFound) {
  const std::vector<uint8_t> bytes = Encode(DType::kBf16, {1.0F});
  const auto to = Array(std::vector<uint8_t>(bytes.size()));
  ContentSum content;
  RowScan scan = {7, 8};
  ASSERT_THAT(backend_->LandRows(bytes.data(), to.data(), 1, 1, DType::kBf16, 0,
                                 content, scan),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(scan.non_finite_row, RowScan::kNone);
  EXPECT_EQ(scan.non_finite_column, RowScan::kNone);
}

HostTable RandomTable(Random& random, int64_t rows, int64_t dim, DType dtype) {
  HostTable host(rows, dim, dtype);
  host.weights = RandomRows(random, rows * dim);
  for (float& v : host.second_moment) v = random.Uniform(0, 2);
  for (int32_t& e : host.last_event) {
    e = static_cast<int32_t>(random.Integer(0, 3));
  }
  return host;
}

const HostHistory kHistory = {{0.0F, 0.95F, 0.9F, 0.99F}};

TEST_P(BackendTest, DigestIsTheSumOfRowDigestsAsIfCurrent) {
  Random random(12);
  SCOPED_TRACE(random.Trace());
  for (const DType dtype : {DType::kBf16, DType::kFp32}) {
    for (const int64_t dim : {1, 5, 32, 768}) {
      HostTable host = RandomTable(random, 500, dim, dtype);
      host.first_row_id = 1000000007;
      const std::vector<uint8_t> bytes = Encode(dtype, host.weights);
      uint64_t expected = 0;
      for (int64_t i = 0; i < host.row_count; ++i) {
        const auto row = static_cast<size_t>(i);
        float v = host.second_moment[row];
        for (size_t e = static_cast<size_t>(host.last_event[row]) + 1; e <= 3;
             ++e) {
          v = v * kHistory.beta2[e];
        }
        expected += RowDigest(host.first_row_id + i,
                              WordsOf(bytes.data() + i * dim * SizeOf(dtype),
                                      dim * SizeOf(dtype)),
                              std::bit_cast<uint32_t>(v));
      }
      const BackendTable table(*backend_, host);
      const BackendHistory past(*backend_, kHistory);
      uint64_t sum = 0;
      ASSERT_THAT(backend_->Digest(table.view(), past.view(), sum), IsOk());
      ASSERT_THAT(backend_->Synchronize(), IsOk());
      EXPECT_EQ(sum, expected) << dim;
    }
  }
}

TEST_P(BackendTest, BringCurrentReplaysItsRowsAndChangesNoDigest) {
  Random random(13);
  SCOPED_TRACE(random.Trace());
  HostTable host = RandomTable(random, 400, 4, DType::kBf16);
  const BackendTable table(*backend_, host);
  const BackendHistory past(*backend_, kHistory);
  uint64_t before = 0;
  ASSERT_THAT(backend_->Digest(table.view(), past.view(), before), IsOk());
  std::vector<int64_t> slots;
  for (int64_t i = 399; i >= 0; i -= 3) slots.push_back(i);
  const auto device_slots = Array(slots);
  ASSERT_THAT(
      backend_->BringCurrent(table.view(), past.view(), device_slots.span()),
      IsOk());
  uint64_t after = 0;
  ASSERT_THAT(backend_->Digest(table.view(), past.view(), after), IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(after, before);
  for (const int64_t slot : slots) {
    const auto row = static_cast<size_t>(slot);
    for (; host.last_event[row] < 3; ++host.last_event[row]) {
      host.second_moment[row] =
          host.second_moment[row] *
          kHistory.beta2[static_cast<size_t>(host.last_event[row] + 1)];
    }
  }
  table.ExpectIs(host);
}

TEST_P(BackendTest, DigestsOfShardsAddToThatOfTheTable) {
  Random random(14);
  SCOPED_TRACE(random.Trace());
  const HostTable whole = RandomTable(random, 10, 3, DType::kFp32);
  uint64_t sums[3] = {0, 0, 0};
  const BackendHistory past(*backend_, kHistory);
  const BackendTable table(*backend_, whole);
  ASSERT_THAT(backend_->Digest(table.view(), past.view(), sums[0]), IsOk());
  RowTable low = table.view();
  low.row_count = 4;
  RowTable high = table.view();
  high.weights = static_cast<float*>(high.weights) + 12;
  high.states += 4;
  high.first_row_id = 4;
  high.row_count = 6;
  ASSERT_THAT(backend_->Digest(low, past.view(), sums[1]), IsOk());
  ASSERT_THAT(backend_->Digest(high, past.view(), sums[2]), IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(sums[0], sums[1] + sums[2]);
}

}  // namespace
}  // namespace rowhouse::kernels
