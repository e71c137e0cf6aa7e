#include "client/internal/one_sided_channel.h"

#include <cstddef>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "client/internal/grpc_call.h"
#include "client/internal/grpc_convert.h"
#include "client/internal/grpc_head_stream.h"
#include "client/internal/head_inbox.h"
#include "client/internal/transport_faults.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

// After so many gathers in vain the server's own snapshots serve better.
constexpr int kMaxGathers = 3;

// Whether the rows of `event` are what `call` asks for.
bool Serves(int64_t event, const PullCall& call) {
  if (call.exact_event.has_value()) return event == *call.exact_event;
  return event >= call.min_event.value_or(event);
}

// The path is at fault, and not the call.
bool IsGone(const absl::Status& status) {
  return absl::IsUnimplemented(status) ||
         wire::ReasonOf(status) == wire::reasons::kMappingGone;
}

}  // namespace

OneSidedChannel::Mapping OneSidedChannel::Find(std::string_view table,
                                               MappingUse use) {
  Mapping replaced;  // Ends with no lock held.
  MutexLock lock(mutex_);
  Mapping& mapping = mappings_[{std::string(table), use}];
  if (mapping == nullptr || mapping->MayRepeat()) {
    replaced =
        std::exchange(mapping, std::make_shared<TableMapping>(
                                   stub_, std::string(table), use, backend_));
  }
  return mapping;
}

absl::StatusOr<PullAnswer> OneSidedChannel::Pull(const PullCall& call,
                                                 RowSink sink,
                                                 const CallContext& context) {
  // Handles are of rows that the server sent.
  if (call.handle.has_value()) {
    return ForwardingShardChannel::Pull(call, sink, context);
  }
  const Mapping mapping = Find(call.table, MappingUse::kPull);
  const absl::StatusOr<TableMapping::Use> use = mapping->Enter(context);
  // A table that was made again may be of another shape than the caller's.
  const auto holds = [&](const MappedRows& rows) {
    return rows.row_bytes() == call.row_bytes &&
           rows.Holds(call.bounds.has_value() ? *call.bounds
                                              : BoundsOf(call.row_ids));
  };
  if (use.ok() && holds(use->rows())) {
    const absl::StatusOr<std::optional<PullAnswer>> pulled =
        PullMapped(call, *mapping, *use, sink, context);
    if (!pulled.ok() && !IsGone(pulled.status())) return pulled.status();
    if (pulled.ok() && pulled->has_value()) {
      ++pulls_;
      return **pulled;
    }
    if (!pulled.ok()) mapping->Break();
  }
  return ForwardingShardChannel::Pull(call, sink, context);
}

absl::StatusOr<TableMapping::Window> OneSidedChannel::WindowFor(
    const PullCall& call, TableMapping& mapping, int64_t number,
    const CallContext& context) {
  const std::optional<TableMapping::Window> known = mapping.window();
  if (known.has_value() && Serves(known->event, call)) return *known;
  v1::OpenReadWindowRequest request;
  request.set_mapping(number);
  if (call.trainer.has_value()) {
    *request.mutable_trainer() = ToProto(*call.trainer);
  }
  if (call.min_event.has_value()) request.set_min_event(*call.min_event);
  if (call.exact_event.has_value()) request.set_exact_event(*call.exact_event);
  v1::OpenReadWindowResponse response;
  ROWHOUSE_RETURN_IF_ERROR(Unary(stub_,
                                 &v1::TransportService::Stub::OpenReadWindow,
                                 context, request, response));
  const TableMapping::Window window{response.event(), response.epoch()};
  mapping.OpenWindow(window);
  return window;
}

// Nothing when events followed each other too fast, or memory is at fault.
absl::StatusOr<std::optional<PullAnswer>> OneSidedChannel::PullMapped(
    const PullCall& call, TableMapping& mapping, const TableMapping::Use& use,
    RowSink sink, const CallContext& context) {
  const auto count = static_cast<int64_t>(call.row_ids.size());
  MappedRows& rows = use.rows();
  const bool on_device = rows.IsOn(call.device);
  const bool land =
      on_device || (call.device == nullptr && call.landing != nullptr);
  std::vector<std::byte> together;
  if (!land) together.resize(static_cast<size_t>(count * rows.row_bytes()));
  const std::span<const int64_t> row_ids =
      on_device && !call.device_row_ids.empty() ? call.device_row_ids
                                                : call.row_ids;
  const auto gather = [&] {
    if (!land) return rows.Gather(row_ids, together.data());
    if (call.landing != nullptr) return rows.Gather(row_ids, call.landing);
    return rows.GatherTo(row_ids, call.positions, call.buffer);
  };
  for (int i = 0; i < kMaxGathers; ++i) {
    ROWHOUSE_ASSIGN_OR_RETURN(const TableMapping::Window window,
                              WindowFor(call, mapping, use.number(), context));
    if (call.watch != nullptr) call.watch->RowsBegin();
    const absl::Status gathered = gather();
    if (after_gather_ != nullptr) after_gather_();
    const absl::StatusOr<int64_t> epoch = rows.Finish();
    if (!gathered.ok() || !epoch.ok()) {
      mapping.Break();
      return std::nullopt;
    }
    if (*epoch == window.epoch) {
      const PullAnswer answer{window.event, /*handle=*/0, count, land,
                              Path::kOneSided};
      if (land) return answer;
      ROWHOUSE_RETURN_IF_ERROR(sink(
          0, std::string_view(reinterpret_cast<const char*>(together.data()),
                              together.size())));
      return answer;
    }
    ++discarded_;
    mapping.CloseWindow(window.epoch);
  }
  return std::nullopt;
}

absl::StatusOr<PushAnswer> OneSidedChannel::Push(const PushCall& call,
                                                 const CallContext& context) {
  if (call.selection->size() > 0) {
    const Mapping mapping = Find(call.table, MappingUse::kPush);
    const absl::StatusOr<std::optional<PushAnswer>> pushed =
        TryPush(call, *mapping, context);
    if (!pushed.ok()) return pushed.status();
    if (pushed->has_value()) {
      ++pushes_;
      return **pushed;
    }
  }
  return ForwardingShardChannel::Push(call, context);
}

// Nothing where the inbox cannot be had, or is of rows of another shape.
absl::StatusOr<std::optional<PushAnswer>> OneSidedChannel::TryPush(
    const PushCall& call, TableMapping& mapping, const CallContext& context) {
  const absl::StatusOr<TableMapping::Use> use = mapping.Enter(context);
  if (!use.ok() || use->rows().dim() * SizeOf(call.dtype) != call.row_bytes ||
      !mapping.TakeInbox()) {
    return std::nullopt;
  }
  absl::StatusOr<std::optional<PushAnswer>> result = std::nullopt;
  const absl::StatusOr<std::optional<InboxPlace>> place = use->rows().Put(call);
  if (!place.ok()) {  // Memory is at fault.
    mapping.Break();
    return std::nullopt;
  }
  if (place->has_value()) {
    const absl::StatusOr<PushAnswer> pushed =
        PushMapped(call, *use, **place, context);
    if (pushed.ok()) {
      result = *pushed;
    } else if (!IsGone(pushed.status())) {
      result = pushed.status();
    }
    // The server may still read the inbox: nothing else is put there.
    if (!pushed.ok() && (IsGone(pushed.status()) || MayGoOn(pushed.status()))) {
      mapping.Break();
      return result;
    }
  }
  mapping.GiveInbox();
  return result;
}

absl::StatusOr<PushAnswer> OneSidedChannel::PushMapped(
    const PushCall& call, const TableMapping::Use& use, const InboxPlace& place,
    const CallContext& context) {
  v1::PushInboxRequest request;
  request.set_mapping(use.number());
  *request.mutable_header() = ToProto(call);
  request.set_row_ids_offset_bytes(place.ids_offset);
  request.set_rows_offset_bytes(place.rows_offset);
  request.set_row_bytes(call.row_bytes);
  v1::PushInboxResponse response;
  ROWHOUSE_RETURN_IF_ERROR(Unary(stub_, &v1::TransportService::Stub::PushInbox,
                                 context, request, response));
  return PushAnswer{response.event(), response.row_count(),
                    response.duplicate(), Path::kOneSided};
}

absl::StatusOr<std::unique_ptr<HeadStream>> OneSidedChannel::OpenHead(
    const HeadHeader& header, const CallContext& context) {
  std::unique_ptr<HeadInbox> inbox;
  if (header.token_count > 0) {
    inbox =
        HeadInbox::Take(Find(header.table, MappingUse::kHead), header, context);
  }
  if (inbox == nullptr) {
    return ForwardingShardChannel::OpenHead(header, context);
  }
  ++heads_opened_;
  return OpenGrpcHeadStream(heads_, header, context,
                            {.inbox = std::move(inbox)});
}

}  // namespace rowhouse::client::internal
