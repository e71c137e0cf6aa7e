#ifndef ROWHOUSE_SERVER_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
#define ROWHOUSE_SERVER_CHECKPOINT_CHECKPOINT_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/checkpoint/checkpoint_paths.h"
#include "server/checkpoint/files.h"
#include "server/checkpoint/loaded_checkpoint.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/shard_file_writer.h"

namespace rowhouse::server {

/// Told how far a long call is, about every block; `total_bytes` does not
/// change. Where it returns false the call ends, kCancelled.
using FileProgress =
    absl::FunctionRef<bool(int64_t done_bytes, int64_t total_bytes)>;

/// What is to be a checkpoint.
struct Publication {
  struct Table {
    std::string table;
    int64_t event = 0;
    int64_t shard_count = 0;  ///< 0: what the files say.
  };

  std::string checkpoint;
  int64_t step = 0;
  absl::Time created_time;
  std::string base;  ///< Or empty.
  std::vector<Table> tables;
  int64_t trainer_state_count = 0;
};

/// What is in a directory of checkpoints.
struct CheckpointList {
  std::vector<Manifest> whole;  ///< The oldest first.
  std::vector<std::string> unfinished;
  /// Those whose manifest cannot be read, and why.
  std::vector<std::pair<std::string, absl::Status>> damaged;
};

/// How a table of one checkpoint compares with that of another.
struct TableDiff {
  std::string table;
  std::optional<int64_t> event;  ///< None where it does not have the table.
  std::optional<int64_t> other_event;
  /// Whether row counts or columns differ; then rows are not compared.
  bool shape_differs = false;
  int64_t differing_row_count = 0;  ///< With any other bit in any column.
  std::optional<int64_t> first_differing_row_id;

  friend bool operator==(const TableDiff&, const TableDiff&) = default;
};

/// The checkpoints in one directory, which servers share; `format.md` describes
/// its files. A checkpoint is whole when its manifest is there; the manifest is
/// the last file that is written, and the first that is deleted.
///
/// Errors of all: kInvalidArgument BAD_NAME, and those of `Files`; of those
/// that read a checkpoint:
///   kNotFound  NO_SUCH_CHECKPOINT: there is none of this name that is whole.
///   kDataLoss  DAMAGED: names file and offset.
///
/// Thread-safe. Each checkpoint is published, and each shard of it written, by
/// one caller at a time, on whatever machine.
class CheckpointDirectory {
 public:
  /// `path` is there; `files` must outlive it.
  CheckpointDirectory(Files& files, std::string path)
      : files_(files), paths_(std::move(path)) {}

  const std::string& path() const { return paths_.root(); }
  const CheckpointPaths& paths() const { return paths_; }
  Files& files() const { return files_; }

  // ------------------------------------------------------------- writing --

  /// Errors:
  ///   kAlreadyExists  CHECKPOINT_EXISTS: it is there, and whole.
  absl::Status CheckNotWhole(std::string_view checkpoint);

  /// Begins the file of a shard.
  ///
  /// Errors:
  ///   kAlreadyExists  CHECKPOINT_EXISTS.
  absl::StatusOr<std::unique_ptr<ShardFileWriter>> CreateShardFile(
      const ShardName& shard, const ShardFileWriter::Options& options);

  /// Once the file is finished: makes the shard count.
  absl::Status WriteShardManifest(std::string_view checkpoint,
                                  const ShardManifest& manifest);

  /// Removes what a shard has written. OK where nothing is.
  ///
  /// Errors:
  ///   kAlreadyExists  CHECKPOINT_EXISTS.
  absl::Status RemoveShard(const ShardName& shard);

  /// Keeps what a trainer needs to go on; in place of what was there.
  ///
  /// Errors:
  ///   kAlreadyExists  CHECKPOINT_EXISTS.
  absl::Status WriteTrainerState(std::string_view checkpoint, int64_t rank,
                                 std::string_view state);

  /// Has all trainers hand in their states anew: what is there may be of an
  /// earlier attempt at the name. OK where nothing is.
  ///
  /// Errors:
  ///   kAlreadyExists  CHECKPOINT_EXISTS.
  absl::Status ForgetTrainerStates(std::string_view checkpoint);

  /// Makes a checkpoint whole, once all that belongs to it is there by its
  /// manifests: shards 0 .. n - 1 of each table, of its event and base, and the
  /// states of trainers 0 .. `trainer_state_count` - 1. Again is OK.
  ///
  /// Errors:
  ///   kFailedPrecondition  CHECKPOINT_INCOMPLETE: names the first that is not.
  ///   kAlreadyExists       CHECKPOINT_EXISTS: it is whole, of other tables,
  ///                        events, base, step or count of states.
  ///   kInvalidArgument     a table is named twice.
  absl::StatusOr<Manifest> Publish(const Publication& publication);

  // ------------------------------------------------------------- reading --

  absl::StatusOr<CheckpointList> List();

  /// A checkpoint and all its shards' manifests, which agree.
  absl::StatusOr<LoadedCheckpoint> Load(std::string_view checkpoint);

  /// It and those that it is based on, which agree; the one that is based on
  /// none comes first.
  absl::StatusOr<std::vector<LoadedCheckpoint>> LoadChain(
      std::string_view checkpoint);

  /// Errors:
  ///   kNotFound  NO_SUCH_CHECKPOINT: or it has no state of this rank.
  absl::StatusOr<std::string> ReadTrainerState(std::string_view checkpoint,
                                               int64_t rank);

  /// Reads all of a checkpoint, and of those that it is based on, against the
  /// checksums.
  absl::Status Verify(std::string_view checkpoint, FileProgress progress);

  /// Compares all tables of both, by name, row by row.
  absl::StatusOr<std::vector<TableDiff>> Diff(std::string_view checkpoint,
                                              std::string_view other,
                                              FileProgress progress);

  /// Writes the rows of a checkpoint, and of those that it is based on, as a
  /// checkpoint of its own: the same tables, shards, events, step and states.
  /// Nothing is left when it fails.
  ///
  /// Errors:
  ///   kAlreadyExists  CHECKPOINT_EXISTS.
  absl::StatusOr<Manifest> Compact(std::string_view checkpoint,
                                   std::string_view compact_name,
                                   absl::Time created_time,
                                   FileProgress progress);

  // ------------------------------------------------------------ deleting --

  /// Deletes a checkpoint, whole or not.
  ///
  /// Errors:
  ///   kNotFound            NO_SUCH_CHECKPOINT: there is nothing of this name.
  ///   kFailedPrecondition  CHECKPOINT_IN_USE; or a file is in it that is none
  ///                        of a checkpoint, which it names.
  ///   NOT_READABLE: another one's manifest, which may name it as its base.
  absl::Status Delete(std::string_view checkpoint);

  /// Deletes the oldest whole checkpoints past `keep`, but none that a kept one
  /// is based on; and what is unfinished, was last written an hour and more
  /// before the newest whole one was made, and is not in `under_way`: one that
  /// others write, or that waits for states of trainers, is younger. Passes
  /// over what has other files in it. Returns the names of what it has deleted.
  ///
  /// Errors:
  ///   NOT_READABLE: a manifest; what it is based on is not known.
  ///
  /// REQUIRES: `keep` is at least 1.
  absl::StatusOr<std::vector<std::string>> Retain(
      int64_t keep, const std::set<std::string>& under_way);

 private:
  absl::StatusOr<Manifest> LoadManifest(std::string_view checkpoint);
  // Reads a state, against what its manifest says.
  absl::StatusOr<std::string> CheckStateFile(std::string_view checkpoint,
                                             const TrainerStateEntry& entry);
  absl::StatusOr<TrainerStateEntry> CheckTrainerState(
      std::string_view checkpoint, int64_t rank);
  absl::Status RemoveCheckpoint(std::string_view checkpoint);

  Files& files_;
  const CheckpointPaths paths_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
