#include "client/internal/grpc_head_stream.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "client/internal/grpc_convert.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "kernels/backend.h"
#include "kernels/buffer.h"
#include "proto/wire/error.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"

namespace rowhouse::client::internal {
namespace {

constexpr int64_t kMessageBytes = int64_t{1} << 20;
constexpr int64_t kMessageTokens = int64_t{1} << 16;

using Request = v1::LinearCrossEntropyRequest;
using Response = v1::LinearCrossEntropyResponse;

absl::Status TimedOut() {
  return absl::DeadlineExceededError("the deadline passed in a head call");
}

// Ends a phase by cancellation.
class OnCancel {
 public:
  OnCancel(grpc::ClientContext& context, Cancellation* cancellation) {
    if (cancellation == nullptr) return;
    callback_.emplace(*cancellation, [&context] { context.TryCancel(); });
  }

 private:
  std::optional<Cancellation::Callback> callback_;
};

// Hidden states of messages in turn. A device copies those of the next while
// one is sent.
class HiddenPieces {
 public:
  HiddenPieces(const HeadTokens& tokens, int64_t row_bytes, int64_t most)
      : tokens_(tokens), row_bytes_(row_bytes), most_(most) {}
  // The device may not write to what goes now.
  ~HiddenPieces() {
    if (filling_) tokens_.device->Synchronize().IgnoreError();
  }
  HiddenPieces(const HiddenPieces&) = delete;
  HiddenPieces& operator=(const HiddenPieces&) = delete;

  // Copies those of tokens [first, first + count) to `out`.
  absl::Status Next(int64_t first, int64_t count, std::string& out) {
    const auto size = static_cast<size_t>(count * row_bytes_);
    if (tokens_.device == nullptr) {
      out.assign(From(first), size);
      return absl::OkStatus();
    }
    if (!filling_) ROWHOUSE_RETURN_IF_ERROR(Fill(first));
    filling_ = false;
    ROWHOUSE_RETURN_IF_ERROR(tokens_.device->Synchronize());
    out.assign(staged_.as<char>(), size);
    return first + count < std::ssize(tokens_.targets) ? Fill(first + count)
                                                       : absl::OkStatus();
  }

 private:
  const char* From(int64_t first) const {
    return reinterpret_cast<const char*>(tokens_.hidden.data()) +
           first * row_bytes_;
  }
  absl::Status Fill(int64_t first) {
    if (staged_.size_bytes() == 0) {
      ROWHOUSE_ASSIGN_OR_RETURN(
          staged_, tokens_.device->AllocateHost(most_ * row_bytes_));
    }
    const int64_t count = std::min(most_, std::ssize(tokens_.targets) - first);
    filling_ = true;
    return tokens_.device->Copy(From(first), staged_.data(),
                                count * row_bytes_);
  }

  const HeadTokens& tokens_;
  const int64_t row_bytes_;
  const int64_t most_;
  kernels::Buffer staged_;  // Page-locked.
  bool filling_ = false;
};

// Blocks by a queue of its own, one operation at a time: so each phase has its
// own deadline, which a context could not give.
class GrpcHeadStream final : public HeadStream {
 public:
  GrpcHeadStream(const HeadHeader& header, HeadCarrier carrier)
      : header_(header),
        inbox_(std::move(carrier.inbox)),
        link_(std::move(carrier.link)) {}

  ~GrpcHeadStream() override {
    if (stream_ != nullptr && !finished_) {
      context_.TryCancel();
      Finish(absl::InfiniteFuture()).IgnoreError();
    }
    queue_.Shutdown();
    void* tag = nullptr;
    bool ok = false;
    while (queue_.Next(&tag, &ok)) {
    }
  }

  absl::Status Open(v1::LmHeadService::Stub& stub, const CallContext& context);
  absl::Status Statistics(const HeadTokens& tokens,
                          const HeadStatisticsOut& out,
                          const CallContext& context) override;
  absl::Status Gradient(const HeadMerged& merged, HeadGradientSink sink,
                        const CallContext& context) override;

 private:
  // Runs one operation to its end; returns whether it succeeded.
  bool Run(absl::Time deadline, absl::FunctionRef<void(void*)> start);
  bool Write(const Request& request, absl::Time deadline) {
    return Run(deadline, [&](void* tag) { stream_->Write(request, tag); });
  }
  bool Read(Response& response, absl::Time deadline) {
    return Run(deadline, [&](void* tag) { stream_->Read(&response, tag); });
  }
  bool WriteClassWeights(std::span<const float> weights, absl::Time deadline);
  absl::StatusOr<bool> WriteInputs(const HeadTokens& tokens,
                                   absl::Time deadline);
  bool WriteMerged(const HeadMerged& merged, absl::Time deadline);
  // Whether tokens go beside the messages.
  bool beside() const { return inbox_ != nullptr || link_ != nullptr; }
  absl::Status SendHidden(const HeadTokens& tokens, const CallContext& context);
  // Hands on the rows of an answer; returns how many.
  absl::StatusOr<int64_t> LandGradient(const Response& answer, int64_t landed,
                                       kernels::Backend* device,
                                       HeadGradientSink sink,
                                       const CallContext& context);

  absl::Status Finish(absl::Time deadline);
  absl::Status Broken(absl::Time deadline);
  absl::Status End(absl::Time deadline);
  absl::Status Malformed(absl::Status status);

  const HeadHeader header_;  // Its table's name lasts as long as `Open`.
  // Without either, tokens go in messages.
  const std::unique_ptr<HeadInbox> inbox_;
  const std::unique_ptr<HeadLink> link_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::ClientAsyncReaderWriter<Request, Response>> stream_;
  bool timed_out_ = false;
  bool finished_ = false;
};

bool GrpcHeadStream::Run(absl::Time deadline,
                         absl::FunctionRef<void(void*)> start) {
  start(this);
  void* tag = nullptr;
  bool ok = false;
  if (queue_.AsyncNext(&tag, &ok, absl::ToChronoTime(deadline)) ==
      grpc::CompletionQueue::TIMEOUT) {
    timed_out_ = true;
    context_.TryCancel();
    queue_.Next(&tag, &ok);
  }
  return ok;
}

absl::Status GrpcHeadStream::Finish(absl::Time deadline) {
  grpc::Status status;
  Run(deadline, [&](void* tag) { stream_->Finish(&status, tag); });
  finished_ = true;
  if (timed_out_ && status.error_code() == grpc::StatusCode::CANCELLED) {
    return TimedOut();
  }
  absl::Status fault = wire::FromGrpc(status);
  if (!beside()) return fault;
  const std::string reason = wire::ReasonOf(fault);
  // The call is made again then, on another path.
  if (reason == wire::reasons::kMappingGone ||
      reason == wire::reasons::kLinkGone) {
    return absl::UnavailableError(fault.message());
  }
  // The server itself has ended the call.
  if (fault.ok() || !reason.empty()) {
    if (inbox_ != nullptr) inbox_->Finish();
    if (link_ != nullptr) link_->Finish();
  }
  return fault;
}

// The fault that ended the stream before its time.
absl::Status GrpcHeadStream::Broken(absl::Time deadline) {
  Response rest;
  while (Read(rest, deadline)) {
  }
  ROWHOUSE_RETURN_IF_ERROR(Finish(deadline));
  if (timed_out_) return TimedOut();
  return absl::InternalError("a head call that ended before its last answer");
}

// The end after the last answer.
absl::Status GrpcHeadStream::End(absl::Time deadline) {
  Response rest;
  if (Read(rest, deadline)) {
    return Malformed(
        absl::InternalError("a head call with more answers than tokens"));
  }
  return Finish(deadline);
}

absl::Status GrpcHeadStream::Malformed(absl::Status status) {
  context_.TryCancel();
  Finish(absl::InfiniteFuture()).IgnoreError();
  return status;
}

absl::Status GrpcHeadStream::Open(v1::LmHeadService::Stub& stub,
                                  const CallContext& context) {
  const OnCancel on_cancel(context_, context.cancellation);
  Request request;
  v1::LinearCrossEntropyHeader& header = *request.mutable_header();
  header.set_table(ResourceName(header_.table));
  *header.mutable_trainer() = ToProto(header_.trainer);
  header.set_event(header_.event);
  header.set_part(header_.part);
  header.set_token_count(header_.token_count);
  header.set_hidden_dtype(ToProto(header_.hidden_dtype));
  header.set_ignore_index(header_.ignore_index);
  header.set_evaluation(header_.purpose == HeadPurpose::kEvaluation);
  header.set_frozen_weights(header_.purpose == HeadPurpose::kFrozen);
  if (header_.softcap > 0) header.set_softcap(header_.softcap);
  header.set_class_weights(header_.class_weights);
  header.set_weighted_logit_sums(header_.weighted_logit_sums);
  header.set_predicted_rows(header_.predicted);
  header.set_coefficients(header_.coefficients);
  if (inbox_ != nullptr) {
    header.set_mapping(inbox_->mapping());
    header.set_hidden_offset_bytes(inbox_->hidden_offset());
    header.set_gradient_offset_bytes(inbox_->gradient_offset());
  }
  if (link_ != nullptr) header.set_link(link_->number());
  stream_ = stub.PrepareAsyncLinearCrossEntropy(&context_, &queue_);
  const bool opened =
      Run(context.deadline, [&](void* tag) { stream_->StartCall(tag); }) &&
      Write(request, context.deadline);
  return opened ? absl::OkStatus() : Broken(context.deadline);
}

bool GrpcHeadStream::WriteClassWeights(std::span<const float> weights,
                                       absl::Time deadline) {
  constexpr int64_t kMost = kMessageBytes / int64_t{sizeof(float)};
  Request request;
  v1::LinearCrossEntropyClassWeights& message =
      *request.mutable_class_weights();
  for (int64_t first = 0; first < std::ssize(weights); first += kMost) {
    const auto values =
        weights.subspan(first, std::min(kMost, std::ssize(weights) - first));
    message.set_first_row(first);
    message.mutable_class_weights()->Assign(values.begin(), values.end());
    if (!Write(request, deadline)) return false;
  }
  return true;
}

absl::StatusOr<bool> GrpcHeadStream::WriteInputs(const HeadTokens& tokens,
                                                 absl::Time deadline) {
  const int64_t row_bytes = header_.hidden_row_bytes();
  const int64_t most = beside() ? kMessageTokens
                                : std::clamp<int64_t>(kMessageBytes / row_bytes,
                                                      1, kMessageTokens);
  Request request;
  v1::LinearCrossEntropyInputs& inputs = *request.mutable_inputs();
  HiddenPieces hidden(tokens, row_bytes, most);
  for (int64_t first = 0; first < header_.token_count; first += most) {
    const int64_t count = std::min(most, header_.token_count - first);
    const auto targets = tokens.targets.subspan(first, count);
    inputs.set_first_token(first);
    inputs.mutable_targets()->Assign(targets.begin(), targets.end());
    if (!beside()) {
      ROWHOUSE_RETURN_IF_ERROR(
          hidden.Next(first, count, *inputs.mutable_hidden()));
    }
    if (!Write(request, deadline)) return false;
  }
  return true;
}

bool GrpcHeadStream::WriteMerged(const HeadMerged& merged,
                                 absl::Time deadline) {
  Request request;
  v1::LinearCrossEntropyStatistics& statistics =
      *request.mutable_merged_statistics();
  const auto assign = [](std::span<const float> values,
                         google::protobuf::RepeatedField<float>* field) {
    field->Assign(values.begin(), values.end());
  };
  for (int64_t first = 0; first < header_.token_count;
       first += kMessageTokens) {
    const int64_t count = std::min(kMessageTokens, header_.token_count - first);
    statistics.set_first_token(first);
    assign(merged.max_logits.subspan(first, count),
           statistics.mutable_max_logits());
    assign(merged.exp_sums.subspan(first, count),
           statistics.mutable_exp_sums());
    assign(merged.upstream.subspan(first, count),
           statistics.mutable_upstream_gradients());
    if (header_.coefficients) {
      assign(merged.target.subspan(first, count),
             statistics.mutable_target_coefficients());
      assign(merged.smoothing.subspan(first, count),
             statistics.mutable_smoothing_coefficients());
    }
    if (!Write(request, deadline)) return false;
  }
  return true;
}

// Copies an answer's statistics to their place; returns how many.
absl::StatusOr<int64_t> Land(const v1::LinearCrossEntropyStatistics& answer,
                             int64_t landed, const HeadStatisticsOut& out) {
  const int64_t count = answer.max_logits_size();
  const auto left = static_cast<int64_t>(out.max_logits.size()) - landed;
  const auto complete = [&](const auto& values, const auto& to) {
    return values.size() == (to.empty() ? 0 : count);
  };
  if (answer.first_token() != landed || count > left ||
      answer.exp_sums_size() != count || answer.target_logits_size() != count ||
      !complete(answer.weighted_logit_sums(), out.weighted_logit_sums) ||
      !complete(answer.predicted_rows(), out.predicted)) {
    return absl::InternalError(absl::StrCat(
        "statistics of ", count, " tokens from token ", answer.first_token(),
        ", wanted up to ", left, " from token ", landed));
  }
  const auto copy = [&](const auto& values, const auto& to) {
    if (!to.empty()) std::copy_n(values.begin(), count, to.begin() + landed);
  };
  copy(answer.max_logits(), out.max_logits);
  copy(answer.exp_sums(), out.exp_sums);
  copy(answer.target_logits(), out.target_logits);
  copy(answer.weighted_logit_sums(), out.weighted_logit_sums);
  copy(answer.predicted_rows(), out.predicted);
  return count;
}

absl::Status GrpcHeadStream::Statistics(const HeadTokens& tokens,
                                        const HeadStatisticsOut& out,
                                        const CallContext& context) {
  const OnCancel on_cancel(context_, context.cancellation);
  const absl::Time deadline = context.deadline;
  if (inbox_ != nullptr) {
    const absl::Status put = inbox_->PutHidden(tokens);
    if (!put.ok()) return Malformed(put);
  }
  if (!WriteClassWeights(tokens.class_weights, deadline)) {
    return Broken(deadline);
  }
  const absl::StatusOr<bool> written = WriteInputs(tokens, deadline);
  if (!written.ok()) return Malformed(written.status());
  if (!*written) return Broken(deadline);
  if (link_ != nullptr && header_.token_count > 0) {
    ROWHOUSE_RETURN_IF_ERROR(SendHidden(tokens, context));
  }
  Response answer;
  int64_t landed = 0;
  do {
    if (!Read(answer, deadline)) return Broken(deadline);
    if (!answer.has_statistics()) {
      return Malformed(
          absl::InternalError("another answer, wanted a slice's statistics"));
    }
    const absl::StatusOr<int64_t> count =
        Land(answer.statistics(), landed, out);
    if (!count.ok()) return Malformed(count.status());
    landed += *count;
  } while (landed < header_.token_count);
  return header_.purpose == HeadPurpose::kEvaluation ? End(deadline)
                                                     : absl::OkStatus();
}

// At the turn that the server names.
absl::Status GrpcHeadStream::SendHidden(const HeadTokens& tokens,
                                        const CallContext& context) {
  Response answer;
  if (!Read(answer, context.deadline)) return Broken(context.deadline);
  if (answer.link_turn() == 0) {
    return Malformed(absl::InternalError("another answer, wanted a turn"));
  }
  absl::Status sent = link_->Send(answer.link_turn(), header_, tokens, context);
  return sent.ok() ? sent : Malformed(std::move(sent));
}

absl::Status GrpcHeadStream::Gradient(const HeadMerged& merged,
                                      HeadGradientSink sink,
                                      const CallContext& context) {
  const OnCancel on_cancel(context_, context.cancellation);
  const absl::Time deadline = context.deadline;
  if (!WriteMerged(merged, deadline)) return Broken(deadline);
  // A server that has answered already takes no end of requests.
  Run(deadline, [&](void* tag) { stream_->WritesDone(tag); });
  Response answer;
  int64_t landed = 0;
  do {
    if (!Read(answer, deadline)) return Broken(deadline);
    const absl::StatusOr<int64_t> count =
        LandGradient(answer, landed, merged.device, sink, context);
    if (!count.ok()) return Malformed(count.status());
    landed += *count;
  } while (landed < header_.token_count);
  return End(deadline);
}

absl::StatusOr<int64_t> GrpcHeadStream::LandGradient(
    const Response& answer, int64_t landed, kernels::Backend* device,
    HeadGradientSink sink, const CallContext& context) {
  const int64_t row_bytes = header_.gradient_row_bytes();
  const v1::LinearCrossEntropyGradients& gradients = answer.gradients();
  const std::string& rows = gradients.hidden_gradient();
  const auto size = static_cast<int64_t>(rows.size());
  if (beside() && size == 0 && gradients.token_count() == header_.token_count) {
    if (inbox_ != nullptr) {
      ROWHOUSE_RETURN_IF_ERROR(inbox_->ReadGradient(header_, device, sink));
    } else if (header_.token_count > 0) {
      ROWHOUSE_RETURN_IF_ERROR(
          link_->Receive(answer.link_turn(), header_, device, sink, context));
    }
    return header_.token_count;
  }
  const int64_t count = size / row_bytes;
  if (!answer.has_gradients() || size % row_bytes != 0 ||
      gradients.first_token() != landed ||
      count > header_.token_count - landed) {
    return absl::InternalError(
        absl::StrCat("a hidden gradient of ", size, " bytes, wanted rows of ",
                     row_bytes, " bytes from token ", landed));
  }
  ROWHOUSE_RETURN_IF_ERROR(sink(landed, rows));
  return count;
}

}  // namespace

absl::StatusOr<std::unique_ptr<HeadStream>> OpenGrpcHeadStream(
    v1::LmHeadService::Stub& stub, const HeadHeader& header,
    const CallContext& context, HeadCarrier carrier) {
  auto stream = std::make_unique<GrpcHeadStream>(header, std::move(carrier));
  ROWHOUSE_RETURN_IF_ERROR(stream->Open(stub, context));
  return stream;
}

}  // namespace rowhouse::client::internal
