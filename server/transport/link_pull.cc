#include "server/transport/link_pull.h"

#include <cstddef>
#include <future>
#include <utility>

#include "proto/wire/status_macros.h"
#include "server/service/field_error.h"
#include "server/service/pull_request.h"
#include "server/shard/shard.h"

namespace rowhouse::server {
namespace {

// A pull that has its rows sent. Its shard lives as long.
struct Sending {
  std::shared_ptr<Shard> shard;
  std::unique_ptr<Pull> pull;
};

absl::Status ReadNow(Pull& pull, int64_t row_count, void* out) {
  std::promise<absl::Status> read;
  pull.Read(row_count, out,
            [&](absl::Status status) { read.set_value(std::move(status)); });
  return read.get_future().get();
}

// The rows of a link's next turn, on its thread.
void Send(Link& link, Sending sending) {
  const int64_t row_count = sending.pull->row_count();
  absl::Status sent = link.pieces().Send(
      row_count, PulledRowBytes(sending.shard->spec()), link.patience(),
      [&](int64_t first, int64_t count, std::byte* to) {
        absl::Status read = ReadNow(*sending.pull, count, to);
        // Its place is free before the last rows go.
        if (first + count == row_count) sending.pull.reset();
        return read;
      });
  if (!sent.ok()) link.End(std::move(sent));
}

// Answers, on the link's thread, and sends what was announced.
void Answer(Link& link, Sending sending, v1::PullLinkResponse& response,
            UnaryCall& call) {
  response.set_event(sending.pull->event());
  response.set_handle(sending.pull->handle());
  response.set_row_count(sending.pull->row_count());
  response.set_row_bytes(PulledRowBytes(sending.shard->spec()));
  if (sending.pull->row_count() == 0) {
    sending.pull.reset();  // Its place is free before the caller hears of it.
    return call.End(absl::OkStatus());
  }
  response.set_turn(link.NextTurn());
  call.End(absl::OkStatus());
  Send(link, std::move(sending));
}

}  // namespace

absl::Status PullLink(const TableRegistry& tables, std::shared_ptr<Link> link,
                      const v1::PullLinkRequest& request,
                      v1::PullLinkResponse& response, UnaryCall& call) {
  if (!request.has_pull()) return MissingError("pull");
  ROWHOUSE_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard,
                            tables.FindShard(request.pull().table()));
  ROWHOUSE_RETURN_IF_ERROR(link->CheckRowBytes(PulledRowBytes(shard->spec())));
  ROWHOUSE_ASSIGN_OR_RETURN(PullRequest pull,
                            ToPullRequest(request.pull(), *shard));
  call.active().Attach(shard);
  call.active().BeginWait();
  Shard& opening = *shard;
  opening.OpenPull(
      std::move(pull), call.call(),
      [&response, &call, link = std::move(link), shard = std::move(shard)](
          absl::StatusOr<std::unique_ptr<Pull>> opened) mutable {
        call.active().EndWait();
        if (!opened.ok()) return call.End(opened.status());
        absl::Status posted =
            link->Post([&response, &call, link = link.get(),
                        sending = Sending{std::move(shard),
                                          *std::move(opened)}]() mutable {
              Answer(*link, std::move(sending), response, call);
            });
        if (!posted.ok()) call.End(std::move(posted));
      });
  return absl::OkStatus();
}

}  // namespace rowhouse::server
