#ifndef ROWHOUSE_PROTO_WIRE_REASONS_H_
#define ROWHOUSE_PROTO_WIRE_REASONS_H_

#include <string_view>

/// Every reason that a fault of Rowhouse can carry in its ErrorInfo. Reasons
/// are part of the protocol: they may be added, never changed.
namespace rowhouse::wire::reasons {

// INVALID_ARGUMENT: the call is wrong as it stands; do not repeat it.

/// A table's name is not `tables/{table}`.
inline constexpr std::string_view kBadName = "BAD_NAME";
/// A field of a TableSpec is out of range; metadata `field` names it.
inline constexpr std::string_view kBadSpec = "BAD_SPEC";
/// Shard bounds do not ascend from 0 to the row count.
inline constexpr std::string_view kBadBounds = "BAD_BOUNDS";
/// A message's payload is not whole rows, or is too large.
inline constexpr std::string_view kBadShape = "BAD_SHAPE";
/// An element type is not the table's, or not one that the call takes.
inline constexpr std::string_view kBadDtype = "BAD_DTYPE";
/// A message's rows or tokens do not follow those before.
inline constexpr std::string_view kBadOffset = "BAD_OFFSET";
/// A count disagrees with what was sent, or is out of range.
inline constexpr std::string_view kBadCount = "BAD_COUNT";
/// An event number is out of range, or two that exclude each other are set.
inline constexpr std::string_view kBadEvent = "BAD_EVENT";
/// A part number or part count is out of range.
inline constexpr std::string_view kBadPart = "BAD_PART";
/// A trainer rank is out of range for the event.
inline constexpr std::string_view kBadRank = "BAD_RANK";
/// A session number or owner is out of range.
inline constexpr std::string_view kBadSession = "BAD_SESSION";
/// A handle is out of range, or its rank and the caller's differ.
inline constexpr std::string_view kBadHandle = "BAD_HANDLE";
/// A commit is not possible in this form, or names too few or many sessions.
inline constexpr std::string_view kBadCommit = "BAD_COMMIT";
/// A scalar of an update or of a loss is not finite or out of range.
inline constexpr std::string_view kBadScalar = "BAD_SCALAR";
/// A page size or page token is not valid.
inline constexpr std::string_view kBadPage = "BAD_PAGE";
/// A gradient, imported weight, hidden state or merged statistic is not finite,
/// and the table rejects those.
inline constexpr std::string_view kNotFinite = "NOT_FINITE";
/// Merged statistics of a head call are not of all slices: a maximum is below
/// that of one slice.
inline constexpr std::string_view kBadStatistics = "BAD_STATISTICS";
/// A pull names more rows than one call may.
inline constexpr std::string_view kPullTooLarge = "PULL_TOO_LARGE";
/// A required field or message is absent, or one is there that must not be.
inline constexpr std::string_view kMalformed = "MALFORMED";

// OUT_OF_RANGE.

/// A row id or target is not in [0, row_count). Do not repeat the call.
inline constexpr std::string_view kRowOutOfTable = "ROW_OUT_OF_TABLE";
/// A row id is another shard's. Read the placement again.
inline constexpr std::string_view kRowOfOtherShard = "ROW_OF_OTHER_SHARD";
/// A part is said to lie outside of its mapping's inbox.
inline constexpr std::string_view kInboxRange = "INBOX_RANGE";

// NOT_FOUND.

/// This server has no such table.
inline constexpr std::string_view kNoSuchTable = "NO_SUCH_TABLE";

// ALREADY_EXISTS.

/// A part of this name was accepted with other content.
inline constexpr std::string_view kPartDiffers = "PART_DIFFERS";
/// A table of this name has another spec; metadata `field` names the first
/// difference.
inline constexpr std::string_view kTableDiffers = "TABLE_DIFFERS";
/// The event was committed otherwise.
inline constexpr std::string_view kCommitDiffers = "COMMIT_DIFFERS";

// FAILED_PRECONDITION.

/// The event is too far ahead of the last applied one.
inline constexpr std::string_view kEventAhead = "EVENT_AHEAD";
/// The event is past.
inline constexpr std::string_view kEventPast = "EVENT_PAST";
/// The rows did not come to be from those of the base. Write a checkpoint
/// without one.
inline constexpr std::string_view kNoBase = "NO_BASE";
/// The server's configuration names no directory of checkpoints.
inline constexpr std::string_view kNoCheckpointDirectory =
    "NO_CHECKPOINT_DIRECTORY";
/// The shard is being restored, or a restore failed. Restore, reset or delete.
inline constexpr std::string_view kNotRestored = "NOT_RESTORED";
/// The handle has expired or was never given. Send the row ids.
inline constexpr std::string_view kHandleGone = "HANDLE_GONE";
/// A seal counts parts that have not landed; names the first.
inline constexpr std::string_view kPartsMissing = "PARTS_MISSING";
/// The contribution has been sealed, otherwise.
inline constexpr std::string_view kContributionSealed = "CONTRIBUTION_SEALED";
/// Some rank has not sealed the event.
inline constexpr std::string_view kNotSealed = "NOT_SEALED";
/// A commit names other sessions than those that sealed.
inline constexpr std::string_view kSessionsDiffer = "SESSIONS_DIFFER";
/// Rows are imported before the table's first head call.
inline constexpr std::string_view kImportLate = "IMPORT_LATE";
/// Only rank 0 commits.
inline constexpr std::string_view kNotRank0 = "NOT_RANK_0";
/// The session was never opened on this shard.
inline constexpr std::string_view kNoSession = "NO_SESSION";
/// The table has no shard on this server.
inline constexpr std::string_view kNotPlaced = "NOT_PLACED";
/// The table is of another kind than the call is for.
inline constexpr std::string_view kTableKind = "TABLE_KIND";
/// The server does not offer the one-sided path, or links, or not for this
/// table.
inline constexpr std::string_view kNotOffered = "NOT_OFFERED";
/// The one-sided path is for clients of the server's host.
inline constexpr std::string_view kOtherHost = "OTHER_HOST";
/// The one-sided path is for processes of the server's user.
inline constexpr std::string_view kOtherUser = "OTHER_USER";
/// The mapping, or the table that it was of, is gone. Map the table again.
inline constexpr std::string_view kMappingGone = "MAPPING_GONE";
/// The link has ended or was never made. Make a new one.
inline constexpr std::string_view kLinkGone = "LINK_GONE";

// ABORTED.

/// A newer session of the rank exists. Do not repeat the call.
inline constexpr std::string_view kFenced = "FENCED";
/// A later call took this one's place or dropped it. Repeat it.
inline constexpr std::string_view kSuperseded = "SUPERSEDED";
/// Another call of the same name is under way. Repeat this one.
inline constexpr std::string_view kBusy = "BUSY";
/// Rows were imported, or the table was reset, under a recording. Begin a new
/// recording.
inline constexpr std::string_view kTableRewritten = "TABLE_REWRITTEN";

// RESOURCE_EXHAUSTED. With a retry delay: wait it out, then repeat.

/// The shard's lane is full. With a retry delay.
inline constexpr std::string_view kLaneFull = "LANE_FULL";
/// The caller has as many pulls open as it may. With a retry delay.
inline constexpr std::string_view kPullsOpen = "PULLS_OPEN";
/// The rank repeats as many known parts as it may. With a retry delay.
inline constexpr std::string_view kRepeatsOpen = "REPEATS_OPEN";
/// The shard has as many waiting reads as it may. With a retry delay.
inline constexpr std::string_view kParkedReadsFull = "PARKED_READS_FULL";
/// The contribution would exceed the table's row count for one trainer.
inline constexpr std::string_view kContributionFull = "CONTRIBUTION_FULL";
/// The contribution would exceed the table's head tokens for one trainer.
inline constexpr std::string_view kTokensFull = "TOKENS_FULL";
/// The caller has as many head calls open as it may. With a retry delay.
inline constexpr std::string_view kHeadCallsOpen = "HEAD_CALLS_OPEN";
/// The shard holds as many different class weights as it may. With a retry
/// delay.
inline constexpr std::string_view kClassWeightsFull = "CLASS_WEIGHTS_FULL";
/// The contribution would exceed the table's part count for one trainer.
inline constexpr std::string_view kPartsFull = "PARTS_FULL";
/// The table's trainer count has changed as often as is kept.
inline constexpr std::string_view kTrainerCountsFull = "TRAINER_COUNTS_FULL";
/// As many imports of the table are under way as may be. With a retry delay.
inline constexpr std::string_view kImportsOpen = "IMPORTS_OPEN";
/// As many recordings of the shard are under way as may be. With a retry delay.
inline constexpr std::string_view kRecordingsOpen = "RECORDINGS_OPEN";
/// An event did not fit into a recording's buffer. Ask for a larger one.
inline constexpr std::string_view kRecorderBehind = "RECORDER_BEHIND";
/// The shard is writing a checkpoint. Wait for its end.
inline constexpr std::string_view kCheckpointsOpen = "CHECKPOINTS_OPEN";
/// A checkpoint's buffer had no room for the rows that the event would change
/// until the call's end. With a retry delay.
inline constexpr std::string_view kCheckpointBehind = "CHECKPOINT_BEHIND";
/// The table needs more bytes than are left.
inline constexpr std::string_view kMemory = "MEMORY";

// DEADLINE_EXCEEDED.

/// The event was still open when the wait ended. Ask again.
inline constexpr std::string_view kEventPending = "EVENT_PENDING";

// UNAVAILABLE.

/// The server is ending. Repeat the call, with backoff.
inline constexpr std::string_view kDraining = "DRAINING";

// From the client library, without a call.

/// FAILED_PRECONDITION: a server is not the one that was configured.
inline constexpr std::string_view kServerDiffers = "SERVER_DIFFERS";
/// INTERNAL: shards disagree on the history of a table.
inline constexpr std::string_view kHistoryDiffers = "HISTORY_DIFFERS";
/// INTERNAL: a head call that was made again has other statistics.
inline constexpr std::string_view kStatisticsDiffer = "STATISTICS_DIFFER";
/// DEADLINE_EXCEEDED: events went on while shards were read.
inline constexpr std::string_view kEventsMovedOn = "EVENTS_MOVED_ON";
/// FAILED_PRECONDITION: a part of the event is under way whose number was left
/// out.
inline constexpr std::string_view kPartInFlight = "PART_IN_FLIGHT";
/// FAILED_PRECONDITION: a step came before the one it needs, or once too often.
inline constexpr std::string_view kOutOfOrder = "OUT_OF_ORDER";
/// NOT_FOUND: a row was not pulled in this cycle.
inline constexpr std::string_view kRowNotCached = "ROW_NOT_CACHED";

// Of checkpoints' files. Metadata `file` names the file.

/// DATA_LOSS: a file is not what was written; metadata `offset` is where, in
/// bytes.
inline constexpr std::string_view kDamaged = "DAMAGED";
/// NOT_FOUND: there is no whole checkpoint of this name, or it does not have
/// the table or rank.
inline constexpr std::string_view kNoSuchCheckpoint = "NO_SUCH_CHECKPOINT";
/// ALREADY_EXISTS: there is a whole checkpoint of this name.
inline constexpr std::string_view kCheckpointExists = "CHECKPOINT_EXISTS";
/// FAILED_PRECONDITION: a shard's files or a rank's state are missing, or are
/// not of this checkpoint.
inline constexpr std::string_view kCheckpointIncomplete =
    "CHECKPOINT_INCOMPLETE";
/// FAILED_PRECONDITION: another checkpoint is based on it; metadata
/// `checkpoint` names that one.
inline constexpr std::string_view kCheckpointInUse = "CHECKPOINT_IN_USE";
/// RESOURCE_EXHAUSTED: the disk is full. UNAVAILABLE or INTERNAL: a file
/// cannot be written.
inline constexpr std::string_view kNotWritable = "NOT_WRITABLE";
/// UNAVAILABLE or INTERNAL: a file is there but cannot be read.
inline constexpr std::string_view kNotReadable = "NOT_READABLE";

}  // namespace rowhouse::wire::reasons

#endif  // ROWHOUSE_PROTO_WIRE_REASONS_H_
