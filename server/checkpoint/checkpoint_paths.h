#ifndef ROWHOUSE_SERVER_CHECKPOINT_CHECKPOINT_PATHS_H_
#define ROWHOUSE_SERVER_CHECKPOINT_CHECKPOINT_PATHS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace rowhouse::server {

/// Whose rows a shard's file has.
struct ShardName {
  std::string checkpoint;
  std::string table;
  int64_t index = 0;
  int64_t count = 1;

  friend bool operator==(const ShardName&, const ShardName&) = default;
};

/// Errors:
///   kInvalidArgument  BAD_NAME: `what`'s name is not 1 to 63 characters from
///                     [a-z0-9_-], the first a letter.
absl::Status CheckName(std::string_view what, std::string_view name);

/// Where the files of checkpoints are.
class CheckpointPaths {
 public:
  explicit CheckpointPaths(std::string root) : root_(std::move(root)) {}

  const std::string& root() const { return root_; }
  std::string Checkpoint(std::string_view checkpoint) const;
  std::string Manifest(std::string_view checkpoint) const;
  std::string Table(std::string_view checkpoint, std::string_view table) const;
  std::string ShardFile(const ShardName& shard) const;
  std::string ShardManifest(const ShardName& shard) const;
  std::string Trainers(std::string_view checkpoint) const;
  std::string TrainerState(std::string_view checkpoint, int64_t rank) const;
  std::string TrainerStateManifest(std::string_view checkpoint,
                                   int64_t rank) const;

 private:
  const std::string root_;
};

/// Of a shard's manifest, from its checkpoint's directory.
std::string RelativeManifestPath(const ShardName& shard);

/// Index and count of a shard by the name of its manifest's file; `checkpoint`
/// and `table` are left empty. Nothing for other files.
std::optional<ShardName> ParseShardManifestName(std::string_view file_name);

/// Rank of a trainer by the name of its state's manifest. Nothing for other
/// files.
std::optional<int64_t> ParseTrainerStateManifestName(
    std::string_view file_name);

/// Whether a file of a checkpoint, finished or not, has such a name.
bool IsFileOfCheckpoints(std::string_view file_name);

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_CHECKPOINT_PATHS_H_
