// The calls that look at files for a moment: on the thread of the checkpoints.

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"
#include "server/checkpoint/checkpoint_paths.h"
#include "server/checkpoint_format.h"
#include "server/service/checkpoint_convert.h"
#include "server/service/checkpoint_service.h"
#include "server/service/field_error.h"
#include "server/service/unary_call.h"
#include "spdlog/spdlog.h"

namespace rowhouse::server {
namespace {

constexpr int32_t kDefaultPageSize = 100;
constexpr int32_t kMaxPageSize = 1000;

// Runs `work()`, which fills the response, where files may be waited for.
template <typename Work>
absl::Status PostWork(Checkpoints& checkpoints, UnaryCall& call, Work work) {
  checkpoints.Post([&call, work = std::move(work)]() mutable {
    call.End(call.call()->cancelled
                 ? absl::CancelledError("the caller has gone")
                 : work());
  });
  return absl::OkStatus();
}

Publication ToPublication(const v1::PublishCheckpointRequest& request,
                          std::string checkpoint, std::string base,
                          absl::Time now) {
  Publication publication;
  publication.checkpoint = std::move(checkpoint);
  publication.base = std::move(base);
  publication.created_time = now;
  for (const v1::CheckpointTable& table : request.tables()) {
    publication.tables.push_back({ShortName(table.name()), table.event(), 0});
  }
  publication.trainer_state_count = request.trainer_state_count();
  return publication;
}

absl::Status Publish(Checkpoints& checkpoints, const Publication& publication,
                     v1::PublishCheckpointResponse& response) {
  CheckpointDirectory& directory = checkpoints.directory();
  ROWHOUSE_RETURN_IF_ERROR(directory.Publish(publication).status());
  spdlog::info("checkpoints/{}: whole", publication.checkpoint);
  ROWHOUSE_ASSIGN_OR_RETURN(const LoadedCheckpoint loaded,
                            directory.Load(publication.checkpoint));
  ROWHOUSE_RETURN_IF_ERROR(
      Fill(loaded, /*with_specs=*/true, *response.mutable_checkpoint()));
  if (checkpoints.options().keep_count == 0) return absl::OkStatus();
  // It is whole whatever becomes of the older ones.
  const absl::StatusOr<std::vector<std::string>> deleted = directory.Retain(
      checkpoints.options().keep_count, checkpoints.UnderWay());
  if (!deleted.ok()) {
    spdlog::warn("older checkpoints cannot be deleted: {}",
                 deleted.status().ToString());
    return absl::OkStatus();
  }
  for (const std::string& checkpoint : *deleted) {
    spdlog::info("checkpoints/{}: deleted, past keep_count", checkpoint);
    response.add_deleted_names(FullCheckpointName(checkpoint));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> NameBefore(const std::string& page_token) {
  if (page_token.empty()) return std::string();
  std::string name;
  if (absl::WebSafeBase64Unescape(page_token, &name) &&
      CheckName("page_token", name).ok()) {
    return name;
  }
  return FieldError(wire::reasons::kBadPage, "page_token",
                    std::string_view(Quoted(page_token)),
                    "the next_page_token of an answer");
}

absl::Status List(CheckpointDirectory& directory, int32_t page_size,
                  const std::string& before,
                  v1::ListCheckpointsResponse& response) {
  ROWHOUSE_ASSIGN_OR_RETURN(const CheckpointList list, directory.List());
  for (const auto& [checkpoint, fault] : list.damaged) {
    spdlog::warn("checkpoints/{}: {}", checkpoint, fault.ToString());
  }
  auto next = list.whole.begin();
  if (!before.empty()) {
    next = std::find_if(next, list.whole.end(), [&](const Manifest& manifest) {
      return manifest.checkpoint == before;
    });
    if (next == list.whole.end()) {
      return FieldError(wire::reasons::kBadPage, "page_token",
                        std::string_view(Quoted(before)),
                        "of a checkpoint that is still there");
    }
    ++next;
  }
  for (; next != list.whole.end(); ++next) {
    if (response.checkpoints_size() == page_size) {
      const std::string& last = std::prev(next)->checkpoint;
      response.set_next_page_token(absl::WebSafeBase64Escape(last));
      break;
    }
    ROWHOUSE_ASSIGN_OR_RETURN(const LoadedCheckpoint loaded,
                              directory.Load(next->checkpoint));
    ROWHOUSE_RETURN_IF_ERROR(
        Fill(loaded, /*with_specs=*/false, *response.add_checkpoints()));
  }
  return absl::OkStatus();
}

}  // namespace

grpc::ServerUnaryReactor* CheckpointService::PublishCheckpoint(
    grpc::CallbackServerContext* context,
    const v1::PublishCheckpointRequest* request,
    v1::PublishCheckpointResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_RETURN_IF_ERROR(CheckOffered(checkpoints_));
    ROWHOUSE_ASSIGN_OR_RETURN(std::string checkpoint,
                              ToCheckpoint("name", request->name()));
    ROWHOUSE_ASSIGN_OR_RETURN(std::string base, ToBase(request->base()));
    ROWHOUSE_RETURN_IF_ERROR(CheckTables(request->tables()));
    if (request->trainer_state_count() < 0) {
      return FieldError(wire::reasons::kBadCount, "trainer_state_count",
                        int64_t{request->trainer_state_count()}, "at least 0");
    }
    return PostWork(
        *checkpoints_, call,
        [this, response,
         publication = ToPublication(*request, std::move(checkpoint),
                                     std::move(base), timers_.Now())] {
          return Publish(*checkpoints_, publication, *response);
        });
  });
}

grpc::ServerUnaryReactor* CheckpointService::ListCheckpoints(
    grpc::CallbackServerContext* context,
    const v1::ListCheckpointsRequest* request,
    v1::ListCheckpointsResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_RETURN_IF_ERROR(CheckOffered(checkpoints_));
    if (request->page_size() < 0) {
      return FieldError(wire::reasons::kBadPage, "page_size",
                        int64_t{request->page_size()}, "at least 0");
    }
    const int32_t page_size =
        request->page_size() == 0
            ? kDefaultPageSize
            : std::min(request->page_size(), kMaxPageSize);
    ROWHOUSE_ASSIGN_OR_RETURN(const std::string before,
                              NameBefore(request->page_token()));
    return PostWork(*checkpoints_, call, [this, page_size, before, response] {
      return List(checkpoints_->directory(), page_size, before, *response);
    });
  });
}

grpc::ServerUnaryReactor* CheckpointService::GetCheckpoint(
    grpc::CallbackServerContext* context,
    const v1::GetCheckpointRequest* request,
    v1::GetCheckpointResponse* response) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_RETURN_IF_ERROR(CheckOffered(checkpoints_));
    ROWHOUSE_ASSIGN_OR_RETURN(const std::string checkpoint,
                              ToCheckpoint("name", request->name()));
    return PostWork(
        *checkpoints_, call, [this, checkpoint, response]() -> absl::Status {
          ROWHOUSE_ASSIGN_OR_RETURN(const LoadedCheckpoint loaded,
                                    checkpoints_->directory().Load(checkpoint));
          return Fill(loaded, /*with_specs=*/true,
                      *response->mutable_checkpoint());
        });
  });
}

grpc::ServerUnaryReactor* CheckpointService::DeleteCheckpoint(
    grpc::CallbackServerContext* context,
    const v1::DeleteCheckpointRequest* request,
    v1::DeleteCheckpointResponse* /*response*/) {
  return RunUnary(calls_, context, [&](UnaryCall& call) -> absl::Status {
    ROWHOUSE_RETURN_IF_ERROR(CheckOffered(checkpoints_));
    ROWHOUSE_ASSIGN_OR_RETURN(const std::string checkpoint,
                              ToCheckpoint("name", request->name()));
    return PostWork(
        *checkpoints_, call,
        [this, checkpoint,
         unfinished_only = request->unfinished_only()]() -> absl::Status {
          CheckpointDirectory& directory = checkpoints_->directory();
          if (unfinished_only) {
            ROWHOUSE_RETURN_IF_ERROR(directory.CheckNotWhole(checkpoint));
          }
          return directory.Delete(checkpoint);
        });
  });
}

}  // namespace rowhouse::server
