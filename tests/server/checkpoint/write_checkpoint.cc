// Writes checkpoints of known rows for safetensors_test.py: `full` of a table
// in two shards and an empty one, and `delta` on it.
//
// usage: write_checkpoint DIRECTORY

#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/checkpoint/checkpoint_directory.h"
#include "tests/server/checkpoint/sample.h"
#include "tests/testing/random.h"

namespace rowhouse::server {
namespace {

constexpr int64_t kRowCount = 10;
constexpr int64_t kWidth = 3;

template <typename Element>
void Append(Element element, std::string& bytes) {
  bytes.append(reinterpret_cast<const char*>(&element), sizeof(element));
}

// Element j of row i of `weights` has bits 256 * i + j, plus `added`.
SampleTable KnownTable(int64_t event, int64_t added) {
  SampleTable table = {"words",
                       kRowCount,
                       event,
                       {{"weights", "BF16", kWidth, 2 * kWidth},
                        {"row_state", "I32", 2, 8},
                        {"bias", "F32", 0, 4}},
                       std::vector<std::string>(3)};
  for (int64_t i = 0; i < kRowCount; ++i) {
    for (int64_t j = 0; j < kWidth; ++j) {
      Append(static_cast<uint16_t>(256 * i + j + added), table.bytes[0]);
    }
    Append(static_cast<int32_t>(-i), table.bytes[1]);
    Append(static_cast<int32_t>(event), table.bytes[1]);
    Append(static_cast<float>(i) / 2, table.bytes[2]);
  }
  return table;
}

absl::Status WriteAll(const std::string& path) {
  CheckpointDirectory directory(SystemFiles(), path);
  testing::Random random(1);
  const SampleTable full = KnownTable(2, 0);
  absl::Status status =
      WriteSample(directory, "full", full, {{0, 6, 6, kRowCount}, 4}, random);
  if (!status.ok()) return status;
  status = PublishSample(directory, "full", {full}, absl::UnixEpoch()).status();
  if (!status.ok()) return status;
  const SampleTable changed = KnownTable(3, 7);
  status =
      WriteSample(directory, "delta", changed,
                  {{0, kRowCount}, 4, BaseTable{"full", 2}, {1, 5, 9}}, random);
  if (!status.ok()) return status;
  return PublishSample(directory, "delta", {changed}, absl::UnixEpoch(), "full")
      .status();
}

}  // namespace
}  // namespace rowhouse::server

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_checkpoint DIRECTORY\n", stderr);
    return 2;
  }
  const absl::Status status = rowhouse::server::WriteAll(argv[1]);
  if (!status.ok()) std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}
