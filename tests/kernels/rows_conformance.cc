#include "kernels/hash.h"
#include "tests/kernels/host_table.h"

namespace rowhouse::kernels {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

TEST_P(BackendTest, AllocatesZeroedPages) {
  constexpr int64_t kBytes = (int64_t{3} << 20) + 5;
  auto buffer = backend_->Allocate(kBytes);
  ASSERT_THAT(buffer, IsOk());
  EXPECT_EQ(buffer->size_bytes(), kBytes);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 256, 0U);
  std::vector<uint8_t> bytes(kBytes, 1);
  ASSERT_THAT(backend_->Copy(buffer->data(), bytes.data(), kBytes), IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_THAT(bytes, Each(0));
}

TEST_P(BackendTest, RefusesMemoryItDoesNotHaveAndNamesTheBytes) {
  EXPECT_THAT(
      backend_->Allocate(int64_t{1} << 60),
      StatusIs(absl::StatusCode::kResourceExhausted, "1152921504606846976"));
  EXPECT_THAT(
      backend_->AllocateUninitialized(int64_t{1} << 60),
      StatusIs(absl::StatusCode::kResourceExhausted, "1152921504606846976"));
}

TEST_P(BackendTest, UninitializedMemoryTakesAnyBytesAlsoWhenUsedAgain) {
  constexpr int64_t kBytes = (int64_t{2} << 20) + 5;
  for (const uint8_t value : {uint8_t{3}, uint8_t{4}}) {
    auto buffer = backend_->AllocateUninitialized(kBytes);
    ASSERT_THAT(buffer, IsOk());
    EXPECT_EQ(buffer->size_bytes(), kBytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 256, 0U);
    const std::vector<uint8_t> bytes(kBytes, value);
    ASSERT_THAT(backend_->Copy(bytes.data(), buffer->data(), kBytes), IsOk());
    std::vector<uint8_t> read(kBytes);
    ASSERT_THAT(backend_->Copy(buffer->data(), read.data(), kBytes), IsOk());
    ASSERT_THAT(backend_->Synchronize(), IsOk());
    EXPECT_TRUE(read == bytes);
  }
}

TEST_P(BackendTest, RowsAreGatheredToHostMemoryOfItsOwn) {
  HostTable host(3, 2, DType::kBf16);
  host.weights = {0, 1, 10, 11, 20, 21};
  const BackendTable table(*backend_, host);
  auto out = backend_->AllocateHost(8);
  ASSERT_THAT(out, IsOk());
  EXPECT_EQ(out->size_bytes(), 8);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(out->data()) % 256, 0U);
  const std::vector<int64_t> slots = {2, 0};
  ASSERT_THAT(backend_->GatherRows(table.view(), slots, out->data()), IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  const auto* const bytes = out->as<uint8_t>();  // The host's to read.
  EXPECT_THAT(Decode(DType::kBf16, {bytes, bytes + 8}),
              ElementsAre(20, 21, 0, 1));
}

TEST_P(BackendTest, CopiesAnyNumberOfBytes) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{4097}, size_t{5} << 20}) {
    std::vector<uint8_t> bytes(size);
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 7);
    const auto from = Array(bytes);
    const auto to = Array(std::vector<uint8_t>(size));
    ASSERT_THAT(
        backend_->Copy(from.data(), to.data(), static_cast<int64_t>(size)),
        IsOk());
    ASSERT_THAT(backend_->Synchronize(), IsOk());
    EXPECT_EQ(to.Download(), bytes) << size;
  }
}

TEST_P(BackendTest, TellsItsMemoryFromTheHosts) {
  std::vector<uint8_t> host(300);
  const auto own = Array(host);
  const auto is_device = [&](const void* data, int64_t size) {
    const auto found = backend_->IsDeviceMemory(data, size);
    EXPECT_THAT(found, IsOk());
    return found.ok() && *found;
  };
  EXPECT_FALSE(is_device(host.data(), 300));
  EXPECT_FALSE(is_device(nullptr, 0));
  auto pinned = backend_->AllocateHost(300);
  ASSERT_THAT(pinned, IsOk());
  EXPECT_FALSE(is_device(pinned->data(), 300));
  const bool has_device = GetParam().is_gpu;
  EXPECT_EQ(is_device(own.data(), 300), has_device);
  EXPECT_EQ(is_device(own.data() + 299, 1), has_device);
}

TEST_P(BackendTest, RowsAreGatheredToTheirPositions) {
  for (const int64_t dim : {1, 2, 6, 8, 96, 768}) {
    HostTable host(3, dim, DType::kBf16);
    for (size_t i = 0; i < host.weights.size(); ++i) {
      host.weights[i] = static_cast<float>(i % 251);
    }
    const BackendTable table(*backend_, host);
    const std::vector<int64_t> slots = {2, 0, 2};
    const std::vector<int64_t> positions = {3, 0, 1};
    const auto device_slots = Array(slots);
    const auto device_positions = Array(positions);
    std::vector<float> wanted(4 * dim, -1);
    for (size_t i = 0; i < slots.size(); ++i) {
      std::copy_n(host.weights.begin() + slots[i] * dim, dim,
                  wanted.begin() + positions[i] * dim);
    }
    for (const bool on_host : {false, true}) {
      const auto out =
          Array(Encode(DType::kBf16, std::vector<float>(4 * dim, -1)));
      using Span = std::span<const int64_t>;
      ASSERT_THAT(
          backend_->GatherRowsTo(
              table.view(), on_host ? Span(slots) : Span(device_slots.span()),
              on_host ? Span(positions) : Span(device_positions.span()),
              out.data()),
          IsOk());
      ASSERT_THAT(backend_->Synchronize(), IsOk());
      EXPECT_EQ(Decode(DType::kBf16, out.Download()), wanted) << dim;
    }
  }
}

// In pieces of all kinds, which go as soon as the call returns.
TEST_P(BackendTest, HostRowsAreLaidDownInOrderOrAtTheirPositions) {
  constexpr int64_t kRows = 700;
  constexpr int64_t kRowBytes = 3000;  // Over 1 MiB in all.
  std::vector<int64_t> positions(kRows);
  for (int64_t i = 0; i < kRows; ++i) positions[i] = (i * 37 + 5) % (kRows + 9);
  const auto device_positions = Array(positions);
  using Span = std::span<const int64_t>;
  for (const Span where :
       {Span(), Span(positions), Span(device_positions.span())}) {
    std::string rows(kRows * kRowBytes, '\0');
    for (size_t i = 0; i < rows.size(); ++i) {
      rows[i] = static_cast<char>(i * 7 + i / 256);
    }
    std::vector<uint8_t> wanted((kRows + 9) * kRowBytes, 255);
    for (int64_t i = 0; i < kRows; ++i) {
      const int64_t to = where.empty() ? i : positions[i];
      std::copy_n(rows.begin() + i * kRowBytes, kRowBytes,
                  wanted.begin() + to * kRowBytes);
    }
    const auto out = Array(std::vector<uint8_t>((kRows + 9) * kRowBytes, 255));
    const std::string_view all = rows;
    const std::vector<std::string_view> pieces = {
        all.substr(0, 1), all.substr(1, 4095), "", all.substr(4096, 1500000),
        all.substr(1504096)};
    ASSERT_THAT(
        backend_->PlaceRows(HostPieces(pieces), kRowBytes, where, out.data()),
        IsOk());
    rows.assign(rows.size(), 'x');
    ASSERT_THAT(backend_->Synchronize(), IsOk());
    EXPECT_TRUE(out.Download() == wanted);
  }
  const auto untouched = Array(std::vector<uint8_t>(2, 7));
  ASSERT_THAT(backend_->PlaceRows(HostPieces(), 2, {}, untouched.data()),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_THAT(untouched.Download(), ElementsAre(7, 7));
}

TEST_P(BackendTest, GatherRowsKeepsRequestOrderAndRepeats) {
  for (const DType dtype : {DType::kBf16, DType::kFp32}) {
    HostTable host(3, 2, dtype);
    host.weights = {0, 1, 10, 11, 20, 21};
    const BackendTable table(*backend_, host);
    const auto slots = Array<int64_t>({2, 0, 2});
    const auto out = Array(Encode(dtype, std::vector<float>(6, -1.0F)));
    ASSERT_THAT(backend_->GatherRows(table.view(), slots.span(), out.data()),
                IsOk());
    ASSERT_THAT(backend_->Synchronize(), IsOk());
    EXPECT_THAT(Decode(dtype, out.Download()),
                ElementsAre(20, 21, 0, 1, 20, 21));
  }
}

TEST_P(BackendTest, SlotsAndGatheredRowsMayBeTheHosts) {
  HostTable host(3, 2, DType::kBf16);
  host.weights = {0, 1, 10, 11, 20, 21};
  host.second_moment = {1, 2, 3};
  const BackendTable table(*backend_, host);
  const std::vector<int64_t> slots = {2, 0};
  std::vector<uint8_t> out(8);
  ASSERT_THAT(backend_->GatherRows(table.view(), slots, out.data()), IsOk());
  const BackendHistory history(*backend_, {{0.0F, 0.5F}});
  ASSERT_THAT(backend_->BringCurrent(table.view(), history.view(), slots),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_THAT(Decode(DType::kBf16, out), ElementsAre(20, 21, 0, 1));
  EXPECT_EQ(table.second_moment_bits(), BitsOf({0.5F, 2.0F, 1.5F}));
}

TEST_P(BackendTest, GatherRowsCopiesManyRowsOfAnyWidth) {
  for (const int64_t dim : {1, 7, 32, 257, 768}) {
    constexpr int64_t kRows = 300;
    HostTable host(kRows, dim, DType::kBf16);
    for (size_t i = 0; i < host.weights.size(); ++i) {
      host.weights[i] = static_cast<float>(i % 251) - 125;
    }
    std::vector<int64_t> slots(1000);
    std::vector<float> expected;
    for (size_t i = 0; i < slots.size(); ++i) {
      slots[i] = static_cast<int64_t>(i * 37) % kRows;
      const auto row = host.weights.begin() + slots[i] * dim;
      expected.insert(expected.end(), row, row + dim);
    }
    const BackendTable table(*backend_, host);
    const auto device_slots = Array(slots);
    const auto out = Array(std::vector<uint8_t>(expected.size() * 2, 0xff));
    ASSERT_THAT(
        backend_->GatherRows(table.view(), device_slots.span(), out.data()),
        IsOk());
    ASSERT_THAT(backend_->Synchronize(), IsOk());
    EXPECT_EQ(out.Download(), Encode(DType::kBf16, expected)) << dim;
  }
}

TEST_P(BackendTest, WriteRowsTouchesItsWeightsOnly) {
  HostTable host(4, 3, DType::kBf16);
  host.weights.assign(12, 9.0F);
  host.second_moment = {1, 2, 3, 4};
  host.last_event = {5, 6, 7, 8};
  const BackendTable table(*backend_, host);
  const auto rows = Array(Encode(DType::kBf16, {1, 2, 3, 4, 5, 6}));
  ASSERT_THAT(backend_->WriteRows(table.view(), 1, 2, rows.data()), IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  host.weights = {9, 9, 9, 1, 2, 3, 4, 5, 6, 9, 9, 9};
  table.ExpectIs(host);
}

TEST_P(BackendTest, InitializesToZerosWhateverWasThere) {
  HostTable host(50, 33, DType::kFp32);
  host.weights.assign(host.weights.size(), 7.0F);
  host.second_moment.assign(50, 8.0F);
  host.last_event.assign(50, 9);
  const BackendTable table(*backend_, host);
  ASSERT_THAT(backend_->InitializeRows(table.view(), {}, false), IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  table.ExpectIs(HostTable(50, 33, DType::kFp32));
}

TEST_P(BackendTest, InitializesUniformByGlobalRowId) {
  const Initializer initializer = {Initializer::Kind::kUniform, 42, 0.05F};
  for (const DType dtype : {DType::kBf16, DType::kFp32}) {
    for (const bool fresh : {true, false}) {
      HostTable host(100, 9, dtype);
      host.first_row_id = 84602780;
      if (!fresh) {
        host.second_moment.assign(100, 8.0F);
        host.last_event.assign(100, 9);
      }
      const BackendTable table(*backend_, host);
      ASSERT_THAT(backend_->InitializeRows(table.view(), initializer, fresh),
                  IsOk());
      ASSERT_THAT(backend_->Synchronize(), IsOk());
      HostTable expected(100, 9, dtype);
      for (int64_t i = 0; i < 100; ++i) {
        for (int64_t j = 0; j < 9; ++j) {
          expected.weights[static_cast<size_t>(i * 9 + j)] =
              UniformInitial(42, 0.05F, 84602780 + i, j);
        }
      }
      table.ExpectIs(expected);
    }
  }
}

TEST_P(BackendTest, EverythingAcceptsSizesOfZero) {
  EXPECT_THAT(backend_->Allocate(0), IsOk());
  EXPECT_THAT(backend_->Copy(nullptr, nullptr, 0), IsOk());
  const HostTable host(0, 4, DType::kBf16);
  const BackendTable table(*backend_, host);
  const BackendHistory history(*backend_, {});
  EXPECT_THAT(backend_->InitializeRows(
                  table.view(), {Initializer::Kind::kUniform, 1, 1.0F}, false),
              IsOk());
  EXPECT_THAT(backend_->GatherRows(table.view(), {}, nullptr), IsOk());
  EXPECT_THAT(backend_->WriteRows(table.view(), 0, 0, nullptr), IsOk());
  EXPECT_THAT(backend_->BringCurrent(table.view(), history.view(), {}), IsOk());
  uint64_t sum = 1;
  EXPECT_THAT(backend_->Digest(table.view(), history.view(), sum), IsOk());
  ContentSum content;
  RowScan scan;
  EXPECT_THAT(backend_->LandRows(nullptr, nullptr, 0, 4, DType::kBf16, 0,
                                 content, scan),
              IsOk());
  GradientStatistics statistics;
  EXPECT_THAT(backend_->MergedStatistics({}, 4, DType::kBf16, statistics),
              IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(sum, 0U);
  EXPECT_EQ(content, ContentSum());
  EXPECT_EQ(scan.non_finite_row, RowScan::kNone);
  EXPECT_EQ(statistics.row_count, 0);
}

}  // namespace
}  // namespace rowhouse::kernels
