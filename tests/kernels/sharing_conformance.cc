// Memory that other processes map, and the word by which they learn of changes.

#include <cstdint>
#include <string>
#include <vector>

#include "tests/kernels/backend_conformance.h"
#include "tests/kernels/host_table.h"

namespace rowhouse::kernels {
namespace {

using ::testing::ElementsAre;

TEST_P(BackendTest, SharedMemoryIsZeroedMemory) {
  auto buffer = backend_->AllocateShared(5000);
  ASSERT_THAT(buffer, IsOk());
  EXPECT_GE(buffer->size_bytes(), 5000);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data()) % 256, 0U);
  std::vector<uint8_t> bytes(5000, 1);
  ASSERT_THAT(backend_->Copy(buffer->data(), bytes.data(), 5000), IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_THAT(bytes, ::testing::Each(0));
}

TEST_P(BackendTest, SharedMemoryThatIsNotThereIsRefusedWithItsBytes) {
  EXPECT_THAT(
      backend_->AllocateShared(int64_t{1} << 60),
      StatusIs(absl::StatusCode::kResourceExhausted, "1152921504606846976"));
}

TEST_P(BackendTest, AnEpochIsLoadedAsItWasStored) {
  auto word = backend_->AllocateShared(sizeof(int64_t));
  ASSERT_THAT(word, IsOk());
  for (const int64_t value : {int64_t{1}, int64_t{-1}, int64_t{1} << 62}) {
    int64_t found = 0;
    ASSERT_THAT(backend_->StoreEpoch(word->as<int64_t>(), value), IsOk());
    ASSERT_THAT(backend_->LoadEpoch(word->as<int64_t>(), found), IsOk());
    ASSERT_THAT(backend_->Synchronize(), IsOk());
    EXPECT_EQ(found, value);
  }
}

TEST_P(BackendTest, AnEpochIsLoadedAfterTheRows) {
  HostTable host(3, 2, DType::kFp32);
  host.weights = {0, 1, 10, 11, 20, 21};
  const BackendTable table(*backend_, host);
  auto word = backend_->AllocateShared(sizeof(int64_t));
  ASSERT_THAT(word, IsOk());
  ASSERT_THAT(backend_->StoreEpoch(word->as<int64_t>(), 7), IsOk());
  const std::vector<int64_t> slots = {2, 0};
  std::vector<float> out(4);
  int64_t epoch = 0;
  ASSERT_THAT(backend_->GatherRows(table.view(), slots, out.data()), IsOk());
  ASSERT_THAT(backend_->LoadEpoch(word->as<int64_t>(), epoch), IsOk());
  ASSERT_THAT(backend_->Synchronize(), IsOk());
  EXPECT_EQ(epoch, 7);
  EXPECT_THAT(out, ElementsAre(20, 21, 0, 1));
}

TEST_P(BackendTest, NamesOfNoMemoryAreRefused) {
  EXPECT_THAT(backend_->Map({}, MapAccess::kRead),
              StatusIs(absl::StatusCode::kInvalidArgument, "0 bytes"));
  EXPECT_THAT(backend_->Map({std::string(17, 'x'), 0, 8}, MapAccess::kRead),
              StatusIs(absl::StatusCode::kInvalidArgument, "17 bytes"));
}

}  // namespace
}  // namespace rowhouse::kernels
