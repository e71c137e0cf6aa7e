#ifndef ROWHOUSE_TESTS_SERVER_CHECKPOINT_SAMPLE_H_
#define ROWHOUSE_TESTS_SERVER_CHECKPOINT_SAMPLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/checkpoint/checkpoint_directory.h"
#include "server/checkpoint/row_source.h"
#include "tests/testing/random.h"

namespace rowhouse::server {

/// A table's rows in memory: what files are held against.
struct SampleTable {
  std::string name;
  int64_t row_count = 0;
  int64_t event = 0;
  std::vector<ColumnSpec> columns;
  std::vector<std::string> bytes;  ///< Of each column, all rows.

  friend bool operator==(const SampleTable&, const SampleTable&) = default;
};

/// Random rows, of one to four columns of random types and widths.
SampleTable RandomTable(const std::string& name, int64_t row_count,
                        testing::Random& random);

/// The table after one more event, which changes about `share` of its rows;
/// their ids, ascending, go to `changed`.
SampleTable NextEvent(const SampleTable& table, double share,
                      testing::Random& random, std::vector<int64_t>& changed);

/// Row ids that shards begin at, and the row count; some may be empty.
std::vector<int64_t> RandomBounds(int64_t row_count, testing::Random& random);

struct SampleWriting {
  std::vector<int64_t> bounds;
  int64_t block_rows = 1;
  std::optional<BaseTable> base = std::nullopt;
  std::vector<int64_t> changed = {};  ///< With a base.
};

/// Writes all shards of a table, some rows ahead; does not publish.
absl::Status WriteSample(CheckpointDirectory& directory,
                         const std::string& checkpoint,
                         const SampleTable& table, const SampleWriting& writing,
                         testing::Random& random);

/// Makes a checkpoint of tables that were written.
absl::StatusOr<Manifest> PublishSample(CheckpointDirectory& directory,
                                       const std::string& checkpoint,
                                       const std::vector<SampleTable>& tables,
                                       absl::Time created_time,
                                       const std::string& base = "",
                                       int64_t trainer_state_count = 0);

/// All rows of a table of a checkpoint.
absl::StatusOr<SampleTable> ReadSample(CheckpointDirectory& directory,
                                       const std::string& checkpoint,
                                       const std::string& table);

/// The state of a trainer in samples.
std::string SampleState(int64_t rank);

/// A call goes on to its end.
inline bool GoOn(int64_t /*done_bytes*/, int64_t /*total_bytes*/) {
  return true;
}

}  // namespace rowhouse::server

#endif  // ROWHOUSE_TESTS_SERVER_CHECKPOINT_SAMPLE_H_
