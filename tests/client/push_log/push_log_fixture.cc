#include "tests/client/push_log/push_log_fixture.h"

#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>

#include "rowhouse/adamw.h"
#include "tests/testing/status_matchers.h"

namespace rowhouse::client::push_log {
namespace {

using rowhouse::testing::IsOk;
using rowhouse::testing::Random;

int32_t TrainerCountAt(int64_t event) {
  return event < 4 ? 2 : event < 7 ? 3 : 1;
}

std::vector<std::byte> RandomGradients(int64_t count, DType dtype,
                                       Random& random) {
  std::vector<std::byte> bytes(count * SizeOf(dtype));
  for (int64_t i = 0; i < count; ++i) {
    const auto bits = std::bit_cast<uint32_t>(random.Normal());
    const auto upper = static_cast<uint16_t>(bits >> 16);
    if (dtype == DType::kFp32) {
      std::memcpy(bytes.data() + 4 * i, &bits, 4);
    } else {
      std::memcpy(bytes.data() + 2 * i, &upper, 2);
    }
  }
  return bytes;
}

CommitDecision RandomDecision(const TableSpec& spec, int64_t event,
                              Random& random) {
  if (random.Chance(0.2)) return SkipEvent();
  if (spec.dense.has_value()) {
    return MakeAdamWScalars({.learning_rate = random.Uniform(0.01F, 0.1F)},
                            event);
  }
  return RowAdamScalars{.step_size = random.Uniform(0.01F, 0.1F),
                        .decay = 0.01,
                        .beta2 = random.Uniform(0.5F, 0.999F),
                        .eps = 1e-8};
}

}  // namespace

RunningRecord::RunningRecord(Cluster& cluster, const std::string& path,
                             RecordOptions options) {
  options.stop = stop_.get_token();
  options.progress = [this](const RecordProgress& progress) {
    MutexLock lock(mutex_);
    event_ = progress.event;
    changed_.SignalAll();
  };
  thread_ = std::thread([this, &cluster, path, options = std::move(options)] {
    report_ = Record(cluster, "t", path, options);
    MutexLock lock(mutex_);
    ended_ = true;
    changed_.SignalAll();
  });
  MutexLock lock(mutex_);
  while (event_ < 0 && !ended_) changed_.Wait(mutex_);
}

void RunningRecord::WaitForEvent(int64_t event) {
  MutexLock lock(mutex_);
  while (event_ < event && !ended_) changed_.Wait(mutex_);
}

const absl::StatusOr<RecordReport>& RunningRecord::Wait() {
  if (thread_.joinable()) thread_.join();
  return report_;
}

PushLogTest::PushLogTest() {
  std::string pattern = ::testing::TempDir() + "push_log_XXXXXX";
  folder_ = std::string(mkdtemp(pattern.data())) + "/";
}

PushLogTest::~PushLogTest() { std::filesystem::remove_all(folder_); }

TableSpec PushLogTest::Spec() {
  TableSpec spec;
  spec.row_count = 37;
  spec.dim = 3;
  spec.row_dtype = DType::kFp32;
  spec.gradient_dtype = DType::kFp32;
  spec.shard_count = 3;
  spec.initializer = {Initializer::Kind::kUniform, 7, 0.5F};
  spec.trainer_count = 2;
  spec.gradient_reduction = GradientReduction::kSum;
  spec.max_contribution_row_count = 40;
  spec.max_part_count = 8;
  return spec;
}

TableSpec PushLogTest::MeanOfBf16() {
  TableSpec spec = Spec();
  spec.row_dtype = DType::kBf16;
  spec.gradient_dtype = DType::kBf16;
  spec.gradient_reduction = GradientReduction::kMean;
  spec.shard_bounds = {0, 3, 3, 37};
  return spec;
}

TableSpec PushLogTest::Dense() {
  TableSpec spec = Spec();
  spec.row_dtype = DType::kBf16;
  spec.dense = DenseTableSpec{.has_master = true};
  return spec;
}

void PushLogTest::MakeTable(const TableSpec& spec) {
  ASSERT_THAT(cluster_->CreateTable("t", spec), IsOk());
  for (const int64_t from_event : {4, 7}) {
    ASSERT_THAT(cluster_->UpdateTrainerCount("t", TrainerCountAt(from_event),
                                             from_event),
                IsOk());
  }
  digests_[0] = *cluster_->Digest("t");
}

void PushLogTest::Contribute(Trainer& trainer, int64_t event, Random& random) {
  const TableSpec& spec = trainer.table().spec;
  const auto push = [&] {
    // At most 40 rows in all, which may lie on one shard.
    std::vector<int64_t> row_ids(random.Chance(0.2) ? 0
                                                    : random.Integer(1, 10));
    for (int64_t& id : row_ids) id = random.Integer(0, spec.row_count - 1);
    ASSERT_THAT(trainer.Push(event, row_ids,
                             RandomGradients(std::ssize(row_ids) * spec.dim,
                                             spec.gradient_dtype, random)),
                IsOk());
  };
  if (random.Chance(0.3)) {
    push();
    ASSERT_THAT(trainer.Discard(event), IsOk());
  }
  for (int64_t part = random.Integer(0, 4); part > 0; --part) push();
  ASSERT_THAT(trainer.Seal(event), IsOk());
}

void PushLogTest::Train(int64_t first, int64_t last, Random& random) {
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (int64_t event = first; event <= last; ++event) {
    const int32_t count = TrainerCountAt(event);
    while (std::ssize(trainers) > count) trainers.pop_back();
    while (std::ssize(trainers) < count) {
      auto trainer =
          Trainer::Join(*cluster_, "t", static_cast<int32_t>(trainers.size()));
      ASSERT_THAT(trainer, IsOk());
      trainers.push_back(*std::move(trainer));
    }
    for (const auto& trainer : trainers) Contribute(*trainer, event, random);
    const TableSpec& spec = trainers[0]->table().spec;
    ASSERT_THAT(trainers[0]->Commit(event, RandomDecision(spec, event, random)),
                IsOk());
    ASSERT_THAT(trainers[0]->WaitForEvent(event), IsOk());
    digests_[event] = *cluster_->Digest("t", event);
  }
}

RecordReport PushLogTest::RecordTraining(const TableSpec& spec, int64_t last,
                                         const std::string& path,
                                         Random& random) {
  MakeTable(spec);
  RunningRecord record(*cluster_, path, {.last_event = last});
  Train(1, last, random);
  const absl::StatusOr<RecordReport>& report = record.Wait();
  EXPECT_THAT(report, IsOk());
  return report.ok() ? *report : RecordReport();
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << bytes;
}

}  // namespace rowhouse::client::push_log
