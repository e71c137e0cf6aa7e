#include "client/cli/exit_code.h"

#include <array>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/push_log/file_fault.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"

namespace rowhouse::cli {
namespace {

namespace reasons = wire::reasons;
namespace push_log = client::push_log;

struct Advice {
  std::string_view reason;
  std::string_view text;          // TABLE stands for the table.
  std::string_view command = "";  // If only of this one.
};

constexpr std::array kAdvice = {
    Advice{reasons::kEventPast,
           "name an event that is still to come: --tables=TABLE@EVENT; "
           "`rowhouse list` shows where tables stand",
           "checkpoint create"},
    Advice{reasons::kNoSuchTable,
           "`rowhouse list` shows the tables; where `rowhouse status` misses a "
           "shard, its server has lost it: create the table again, or delete "
           "it"},
    Advice{reasons::kNotPlaced,
           "`rowhouse describe TABLE` shows which servers hold it"},
    Advice{reasons::kServerDiffers,
           "name all servers of one cluster, in the order of their indexes; "
           "`rowhouse status` shows what each of them says"},
    Advice{reasons::kTableDiffers,
           "`rowhouse describe TABLE` shows what is there; take another name, "
           "or `rowhouse delete TABLE` first"},
    Advice{reasons::kMemory,
           "`rowhouse status` shows the memory that is left; spread the table "
           "over more servers, raise their memory_limit_bytes, or delete a "
           "table"},
    Advice{reasons::kEventPast,
           "`rowhouse events TABLE` shows where the table stands; before rows "
           "are imported, `rowhouse reset TABLE` takes it back to event 0, and "
           "what was trained is lost"},
    Advice{reasons::kEventPending,
           "`rowhouse events TABLE` shows which trainers are awaited"},
    Advice{reasons::kRowOutOfTable,
           "`rowhouse describe TABLE` shows how many rows there are"},
    Advice{reasons::kBadSpec, "`rowhouse create --help` tells each flag"},
    Advice{reasons::kBadName,
           "a name is 1 to 63 characters from [a-z0-9_-], the first a letter"},
    Advice{
        reasons::kContributionFull,
        "the table's max_contribution_row_count is too small; it is set when "
        "the table is created"},
    Advice{reasons::kFenced,
           "another trainer of this rank has taken over the table; use a table "
           "that no trainer is at work on"},
    Advice{reasons::kDraining,
           "the server is ending; try again once it is back"},
    Advice{reasons::kRecorderBehind,
           "record again with a larger --buffer-bytes, or to a faster disk"},
    Advice{reasons::kNoCheckpointDirectory,
           "name a directory that all servers share in their configuration: "
           "checkpoint { directory: ... }"},
    Advice{reasons::kNoSuchCheckpoint,
           "`rowhouse checkpoint list` shows the checkpoints; `rowhouse "
           "checkpoint inspect` the tables of one"},
    Advice{reasons::kCheckpointExists,
           "take another name, or `rowhouse checkpoint delete` it first"},
    Advice{reasons::kCheckpointInUse,
           "`rowhouse checkpoint compact` the one that is based on it to have "
           "all its rows, and delete that one first"},
    Advice{reasons::kCheckpointIncomplete,
           "every trainer hands in its state for it; --trainer-states says of "
           "how many"},
    Advice{reasons::kCheckpointsOpen,
           "wait until the checkpoint that is being written is whole, or "
           "cancel it"},
    Advice{reasons::kNoBase,
           "the table was reset, imported or restored since; write a "
           "checkpoint without --base"},
    Advice{reasons::kNotRestored,
           "`rowhouse checkpoint restore` it again, or `rowhouse reset TABLE`, "
           "or `rowhouse delete TABLE`"},
    Advice{reasons::kDamaged,
           "restore another checkpoint; `rowhouse checkpoint verify` tells "
           "which are whole"},
    Advice{reasons::kNotReadable,
           "servers must be able to read all files of their checkpoint "
           "directory"},
    Advice{reasons::kNotWritable,
           "make room on the disk of the servers' checkpoint directory, which "
           "they must be able to write; `rowhouse checkpoint list` shows what "
           "is there"},
    Advice{push_log::kNoFile, "name a push log that `rowhouse record` wrote"},
    Advice{push_log::kNotReadable,
           "name a push log that you may read, on a disk that works"},
    Advice{push_log::kDamaged,
           "name a push log that `rowhouse record` wrote; copy it again if it "
           "came from elsewhere"},
    Advice{push_log::kOtherVersion,
           "use the rowhouse of the version that wrote it"},
    Advice{push_log::kFileExists,
           "name another file, or replace it with --overwrite"},
    Advice{push_log::kNotWritable,
           "name a file that you may write, on a disk with room; `rowhouse "
           "replay --inspect FILE` shows what one holds"},
    Advice{kBadConnectionFlags,
           "`rowhouse --help` tells the flags that all commands have"},
    Advice{kBadRowFile,
           "`rowhouse describe TABLE` shows the rows that it takes; `rowhouse "
           "import --help` tells of which files"},
    Advice{kBadSpecFile,
           "rowhouse/v1/table.proto tells the fields of a TableSpec; `rowhouse "
           "create --help` tells flags for the same"},
};

// A server that is there, but waits for trainers, or for its disk, is not.
bool IsAway(const absl::Status& status) {
  const std::string reason = wire::ReasonOf(status);
  if (reason == reasons::kNotReadable || reason == reasons::kNotWritable) {
    return false;
  }
  return absl::IsUnavailable(status) ||
         (absl::IsDeadlineExceeded(status) && reason != reasons::kEventPending);
}

}  // namespace

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return kOk;
  if (push_log::IsFileFault(status)) return kBadArguments;
  if (IsAway(status)) return kServerAway;
  if (absl::IsInvalidArgument(status) || absl::IsOutOfRange(status)) {
    return kBadArguments;
  }
  return kRefused;
}

std::string AdviceOn(const absl::Status& status, const std::string& table,
                     const std::string& command) {
  const std::string reason = wire::ReasonOf(status);
  for (const Advice& advice : kAdvice) {
    if (advice.reason != reason) continue;
    if (!advice.command.empty() && advice.command != command) continue;
    return absl::StrReplaceAll(std::string(advice.text),
                               {{"TABLE", table.empty() ? "TABLE" : table}});
  }
  if (IsAway(status)) {
    return "`rowhouse status` shows which servers answer; --timeout gives them "
           "more time";
  }
  if (ExitCodeOf(status) != kBadArguments) return "";
  return absl::StrCat("`rowhouse ", command, command.empty() ? "" : " ",
                      "--help` tells what there is");
}

absl::Status WhileWaiting(const absl::Status& status,
                          const std::optional<int64_t>& event) {
  if (!event.has_value() || !absl::IsDeadlineExceeded(status)) return status;
  return wire::Error(absl::StatusCode::kDeadlineExceeded,
                     reasons::kEventPending,
                     absl::StrCat("event ", *event, " did not come in time"),
                     {{"event", absl::StrCat(*event)}});
}

absl::Status BadArgument(const std::string& message, std::string_view reason) {
  if (reason.empty()) return absl::InvalidArgumentError(message);
  return wire::Error(absl::StatusCode::kInvalidArgument, reason, message);
}

}  // namespace rowhouse::cli
