// Trains a few rows of a table: connect, create, join, pull, push, commit.
//
//   rowhouse_train_rows ADDRESS...     one address a server, in shard order

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "rowhouse/cluster.h"
#include "rowhouse/trainer.h"

namespace {

using namespace rowhouse::client;  // NOLINT: an example reads better so.

constexpr char kTable[] = "example";
constexpr int64_t kDim = 64;

// A table of a million rows, spread evenly. The same spec again is OK.
absl::Status MakeTable(Cluster& cluster, int32_t shard_count) {
  TableSpec spec;
  spec.row_count = 1'000'000;
  spec.dim = kDim;
  spec.row_dtype = DType::kFp32;
  spec.gradient_dtype = DType::kFp32;
  spec.shard_count = shard_count;
  spec.trainer_count = 1;
  spec.gradient_reduction = GradientReduction::kSum;
  spec.max_contribution_row_count = 4096;
  return cluster.CreateTable(kTable, spec).status();
}

// Step size and decay of second moments, the same for every event.
RowAdamScalars Scalars() {
  RowAdamScalars scalars;
  scalars.step_size = 0.02;
  scalars.beta2 = 0.95;
  scalars.eps = 1e-10;
  return scalars;
}

// One event: rows 7 and 42 and the last learn that every weight should be 1.
absl::Status TrainEvent(Trainer& trainer, int64_t event) {
  const std::vector<int64_t> row_ids = {7, 999'999, 42, 7};
  std::vector<float> rows(row_ids.size() * kDim);

  // The rows as the last event left them; it waits for that if need be.
  const auto pulled =
      trainer.Pull(row_ids, std::as_writable_bytes(std::span(rows)),
                   {.exact_event = event - 1});
  if (!pulled.ok()) return pulled.status();

  // Row 7 was asked for twice: its two gradients are summed.
  std::vector<float> gradients(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) gradients[i] = rows[i] - 1.0F;
  const auto pushed =
      trainer.Push(event, *pulled, std::as_bytes(std::span(gradients)));
  if (!pushed.ok()) return pushed.status();

  std::printf("event %ld: row 7 begins with %g\n", static_cast<long>(event),
              static_cast<double>(rows[0]));

  // Our part is complete; when all trainers say so, the event is applied.
  return trainer.SealAndCommit(event, Scalars());
}

absl::Status Train(const std::vector<std::string>& addresses) {
  // Connects to every server and checks that it is the one expected.
  ClusterOptions options;
  options.addresses = addresses;
  auto cluster = Cluster::Connect(options);
  if (!cluster.ok()) return cluster.status();

  const absl::Status made =
      MakeTable(**cluster, static_cast<int32_t>(addresses.size()));
  if (!made.ok()) return made;

  // This process is the table's only trainer, so it also commits.
  auto trainer = Trainer::Join(**cluster, kTable, /*rank=*/0);
  if (!trainer.ok()) return trainer.status();
  // A predecessor may have died between its seal and its commit.
  while ((*trainer)->next_commit() < (*trainer)->next_event()) {
    const absl::Status owed =
        (*trainer)->Commit((*trainer)->next_commit(), Scalars());
    if (!owed.ok()) return owed;
  }
  for (int step = 0; step < 10; ++step) {
    const absl::Status trained =
        TrainEvent(**trainer, (*trainer)->next_event());
    if (!trained.ok()) return trained;
  }

  // The digest names the table's exact bits, whatever the number of shards.
  const auto digest = (*cluster)->Digest(kTable, (*trainer)->next_event() - 1);
  if (!digest.ok()) return digest.status();
  std::printf("digest %016lx at event %ld\n",
              static_cast<unsigned long>(digest->digest),
              static_cast<long>(digest->event));
  return absl::OkStatus();
}

}  // namespace

int main(int argc, char** argv) {
  const absl::Status status = Train({argv + 1, argv + argc});
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  return 1;
}
