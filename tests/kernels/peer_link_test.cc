// Both ends of a link in this process, by threads: on CPUs, and between GPUs.

#include "kernels/peer_link.h"

#include <cstring>
#include <future>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/link_pieces.h"
#include "tests/kernels/require_gpu.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::kernels {
namespace {

using testing::IsOk;
using testing::StatusIs;

absl::Time Soon() { return absl::Now() + absl::Seconds(60); }

class PeerLinkTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    cuda_ = std::string(GetParam()) == "cuda";
    if (!cuda_) return;
    const absl::Status found = TwoGpus();
    if (MayLackGpu(found)) GTEST_SKIP() << found;
    ASSERT_THAT(found, IsOk());
  }

  BackendOptions OptionsOf(int end) const {
    if (!cuda_) return {.thread_count = 1};
    return {.kind = BackendKind::kCuda, .device_index = end};
  }

  void Make() {
    for (int end = 0; end < 2; ++end) {
      auto backend = MakeBackend(OptionsOf(end));
      ASSERT_THAT(backend, IsOk());
      backends_[end] = *std::move(backend);
      auto link = MakePeerLink(OptionsOf(end));
      ASSERT_THAT(link, IsOk());
      links_[end] = *std::move(link);
    }
  }

  void Join() {
    Make();
    const auto id = links_[0]->NewId();
    ASSERT_THAT(id, IsOk());
    std::jthread first([&] {
      EXPECT_THAT(links_[0]->Connect(*id, LinkEnd::kFirst, Soon()), IsOk());
    });
    EXPECT_THAT(links_[1]->Connect(*id, LinkEnd::kSecond, Soon()), IsOk());
  }

  Buffer Place(int end, const std::vector<uint8_t>& bytes) {
    auto buffer = backends_[end]->Allocate(std::ssize(bytes));
    EXPECT_THAT(buffer, IsOk());
    Copy(end, bytes.data(), buffer->data(), std::ssize(bytes));
    return *std::move(buffer);
  }

  std::vector<uint8_t> Read(int end, const Buffer& buffer) {
    std::vector<uint8_t> bytes(static_cast<size_t>(buffer.size_bytes()));
    Copy(end, buffer.data(), bytes.data(), buffer.size_bytes());
    return bytes;
  }

  void Copy(int end, const void* from, void* to, int64_t size) {
    EXPECT_THAT(backends_[end]->Copy(from, to, size), IsOk());
    EXPECT_THAT(backends_[end]->Synchronize(), IsOk());
  }

  bool cuda_ = false;
  std::unique_ptr<Backend> backends_[2];
  std::unique_ptr<PeerLink> links_[2];
};

TEST_P(PeerLinkTest, PiecesArriveInOrderBothWays) {
  Join();
  for (int from = 0; from < 2; ++from) {
    std::vector<uint8_t> bytes(1 << 20);
    std::iota(bytes.begin(), bytes.end(), static_cast<uint8_t>(from));
    const Buffer sent = Place(from, bytes);
    const Buffer received =
        Place(1 - from, std::vector<uint8_t>(bytes.size(), 255));
    const std::vector<int64_t> pieces = {1, 255, 1 << 18, 3, (1 << 18) + 1};
    std::jthread sending([&] {
      int64_t at = 0;
      for (const int64_t size : pieces) {
        EXPECT_THAT(links_[from]->Send(sent.as<uint8_t>() + at, size, Soon()),
                    IsOk());
        at += size;
      }
      EXPECT_THAT(links_[from]->Await(links_[from]->posted(), Soon()), IsOk());
    });
    PeerLink& to = *links_[1 - from];
    int64_t at = 0;
    for (const int64_t size : pieces) {
      EXPECT_THAT(to.Receive(received.as<uint8_t>() + at, size, Soon()),
                  IsOk());
      at += size;
    }
    EXPECT_THAT(to.Await(to.posted(), Soon()), IsOk());
    sending.join();
    std::vector<uint8_t> wanted(bytes.begin(), bytes.begin() + at);
    wanted.resize(bytes.size(), 255);
    EXPECT_TRUE(Read(1 - from, received) == wanted);
  }
}

TEST_P(PeerLinkTest, RowsGoThroughBlocksOrStraight) {
  Join();
  constexpr int64_t kRowBytes = 48;
  // Two rows a piece, with one left.
  auto sender = LinkPieces::Make(*backends_[0], *links_[0], 100);
  auto receiver = LinkPieces::Make(*backends_[1], *links_[1], 100);
  ASSERT_THAT(sender, IsOk());
  ASSERT_THAT(receiver, IsOk());
  for (const int64_t rows : {1, 2, 3, 6, 41}) {
    std::vector<uint8_t> bytes(static_cast<size_t>(rows * kRowBytes));
    std::iota(bytes.begin(), bytes.end(), static_cast<uint8_t>(rows));
    const Buffer sent = Place(0, bytes);
    for (const bool sender_fills : {false, true}) {
      const Buffer received = Place(1, std::vector<uint8_t>(bytes.size(), 255));
      std::jthread sending([&] {
        EXPECT_THAT(sender_fills
                        ? (*sender)->Send(
                              rows, kRowBytes, {},
                              [&](int64_t first, int64_t count, std::byte* to) {
                                Copy(0, bytes.data() + first * kRowBytes, to,
                                     count * kRowBytes);
                                return absl::OkStatus();
                              })
                        : (*sender)->SendFrom(sent.as<std::byte>(), rows,
                                              kRowBytes, {}),
                    IsOk());
      });
      int64_t next = 0;
      EXPECT_THAT(
          sender_fills
              ? (*receiver)->ReceiveAt(received.as<std::byte>(), rows,
                                       kRowBytes, {})
              : (*receiver)->Receive(
                    rows, kRowBytes, {},
                    [&](int64_t first, int64_t count, const std::byte* from) {
                      EXPECT_EQ(first, next);
                      next += count;
                      Copy(1, from,
                           received.as<std::byte>() + first * kRowBytes,
                           count * kRowBytes);
                      return absl::OkStatus();
                    }),
          IsOk());
      EXPECT_TRUE(Read(1, received) == bytes) << rows << " rows";
    }
  }
}

TEST_P(PeerLinkTest, AnEndThatDoesNotComeIsWaitedForUntilTheDeadline) {
  Make();
  const auto id = links_[0]->NewId();
  ASSERT_THAT(id, IsOk());
  const absl::Time deadline = absl::Now() + absl::Milliseconds(200);
  EXPECT_THAT(links_[0]->Connect(*id, LinkEnd::kFirst, deadline),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "in time"));
  EXPECT_GE(absl::Now(), deadline);
  EXPECT_LE(absl::Now(), deadline + absl::Seconds(20));
  // It stays so.
  EXPECT_THAT(links_[0]->Await(1, Soon()),
              StatusIs(absl::StatusCode::kDeadlineExceeded, "in time"));
}

TEST_P(PeerLinkTest, AbortEndsTheWaitForAnEndThatDoesNotCome) {
  Make();
  const auto id = links_[0]->NewId();
  ASSERT_THAT(id, IsOk());
  auto joined = std::async(std::launch::async, [&] {
    return links_[0]->Connect(*id, LinkEnd::kFirst, absl::InfiniteFuture());
  });
  links_[0]->Abort();
  EXPECT_THAT(joined.get(),
              StatusIs(absl::StatusCode::kUnavailable, "aborted"));
}

TEST_P(PeerLinkTest, AbortEndsAPieceUnderWay) {
  Join();
  const Buffer place = Place(1, std::vector<uint8_t>(1 << 16, 0));
  auto received = std::async(std::launch::async, [&] {
    PeerLink& link = *links_[1];
    absl::Status status =
        link.Receive(place.data(), 1 << 16, absl::InfiniteFuture());
    if (status.ok()) status = link.Await(link.posted(), absl::InfiniteFuture());
    return status;
  });
  links_[1]->Abort();
  EXPECT_THAT(received.get(),
              StatusIs(absl::StatusCode::kUnavailable, "aborted"));
  // Its memory is free, and the device at work.
  EXPECT_EQ(Read(1, place), std::vector<uint8_t>(1 << 16, 0));
}

TEST_P(PeerLinkTest, APieceThatDoesNotComeEndsWithTheDeadline) {
  Join();
  const Buffer place = Place(1, std::vector<uint8_t>(1 << 16, 0));
  PeerLink& link = *links_[1];
  const absl::Time deadline = absl::Now() + absl::Milliseconds(100);
  absl::Status status = link.Receive(place.data(), 1 << 16, deadline);
  if (status.ok()) status = link.Await(link.posted(), deadline);
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded, "in time"));
}

TEST_P(PeerLinkTest, NamesOfNoLinkAreRefused) {
  Make();
  EXPECT_THAT(links_[1]->Connect("no name", LinkEnd::kSecond, Soon()),
              StatusIs(absl::StatusCode::kInvalidArgument, "name"));
}

INSTANTIATE_TEST_SUITE_P(Backends, PeerLinkTest,
                         ::testing::Values("cpu", "cuda"),
                         [](const auto& backend) {
                           return std::string(backend.param);
                         });

}  // namespace
}  // namespace rowhouse::kernels
