#include "server/service/linear_cross_entropy_call.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/repeated_field.h"
#include "kernels/dtype.h"
#include "proto/wire/reasons.h"
#include "proto/wire/status.h"
#include "proto/wire/status_macros.h"
#include "server/service/convert.h"
#include "server/service/field_error.h"
#include "server/service/head_header.h"
#include "server/service/limits.h"

namespace rowhouse::server {
namespace {

namespace reasons = wire::reasons;
using Floats = google::protobuf::RepeatedField<float>;

std::span<const float> SpanOf(const Floats& values) {
  return {values.data(), static_cast<size_t>(values.size())};
}

template <typename T>
std::span<T> Resized(google::protobuf::RepeatedField<T>& values,
                     int64_t count) {
  values.Resize(static_cast<int>(count), T{});
  return {values.mutable_data(), static_cast<size_t>(values.size())};
}

int64_t GradientRowBytes(const Shard& shard) {
  return shard.spec().dim * static_cast<int64_t>(sizeof(float));
}

absl::Status WrongPhase(const v1::LinearCrossEntropyRequest& request,
                        std::string_view wanted) {
  std::string_view found = "empty";
  if (request.has_header()) found = "a header";
  if (request.has_class_weights()) found = "class_weights";
  if (request.has_inputs()) found = "inputs";
  if (request.has_merged_statistics()) found = "merged_statistics";
  return FieldError(reasons::kMalformed, "phase", found, wanted);
}

}  // namespace

void LinearCrossEntropyCall::Start() {
  absl::Status status = active_.admission();
  if (!status.ok()) return End(std::move(status));
  Read();
}

void LinearCrossEntropyCall::OnReadDone(bool ok) {
  absl::Status status = ok ? OnMessage() : OnEnd();
  if (!status.ok() || !ok) End(std::move(status));
}

absl::Status LinearCrossEntropyCall::OnMessage() {
  switch (phase_) {
    case Phase::kHeader:
      return Open();
    case Phase::kClassWeights:
      return LandClassWeights();
    case Phase::kInputs:
      return LandInputs();
    case Phase::kMerged:
    case Phase::kStatistics:  // Nothing is read in these two.
    case Phase::kGradient:
      break;
  }
  return LandMerged();
}

// A caller that closes after the statistics wants no gradient.
absl::Status LinearCrossEntropyCall::OnEnd() {
  if (active_.call()->cancelled) {
    return absl::CancelledError("the caller has gone");
  }
  if (phase_ == Phase::kHeader) {
    return FieldError(reasons::kMalformed, "the stream",
                      std::string_view("empty"), "a header, then inputs");
  }
  if (phase_ == Phase::kClassWeights) {
    return FieldError(reasons::kBadCount, "the stream",
                      std::string_view("closed"),
                      "open until all class weights have come");
  }
  if (phase_ == Phase::kInputs || merged_count_ > 0) {
    return FieldError(reasons::kBadCount, "the stream",
                      std::string_view("closed"),
                      "open until all tokens have come");
  }
  return absl::OkStatus();
}

absl::Status LinearCrossEntropyCall::Open() {
  if (!request_.has_header()) return MissingError("header");
  const v1::LinearCrossEntropyHeader& proto = request_.header();
  ROWHOUSE_ASSIGN_OR_RETURN(std::shared_ptr<Shard> shard,
                            tables_.FindShard(proto.table()));
  ROWHOUSE_ASSIGN_OR_RETURN(HeadHeader header, ToHeadHeader(proto));
  if (proto.mapping() != 0) {
    ROWHOUSE_ASSIGN_OR_RETURN(
        inbox_, HeadInbox::Open(mappings_, proto, *shard, tables_));
  }
  if (proto.link() != 0) {
    if (proto.mapping() != 0) {
      return FieldError(reasons::kMalformed, "header.link",
                        std::string_view("set"),
                        "not set together with mapping");
    }
    ROWHOUSE_ASSIGN_OR_RETURN(link_, links_.Find(proto.link()));
    ROWHOUSE_RETURN_IF_ERROR(link_->CheckRowBytes(GradientRowBytes(*shard)));
  }
  Shard& opened = *shard;
  active_.Attach(std::move(shard));
  BeginShardWork([&] {
    opened.OpenHead(std::move(header), active_.call(),
                    [this](absl::StatusOr<std::unique_ptr<HeadCall>> head) {
                      OnOpened(std::move(head));
                    });
  });
  return absl::OkStatus();
}

void LinearCrossEntropyCall::OnOpened(
    absl::StatusOr<std::unique_ptr<HeadCall>> head) {
  if (head.ok()) head_ = *std::move(head);
  if (!EndShardWork(head.status())) return;
  head_->set_on_revoked(
      [this](const absl::Status& reason) { OnRevoked(reason); });
  if (head_->class_weights_complete()) return ReadInputs();
  phase_ = Phase::kClassWeights;
  Read();
}

void LinearCrossEntropyCall::ReadInputs() {
  phase_ = Phase::kInputs;
  if (head_->inputs_complete()) return ComputeStatistics();
  Read();
}

// The shard's own work ends by itself, with a fault.
void LinearCrossEntropyCall::OnRevoked(const absl::Status& reason) {
  if (turn_->Revoke(reason)) {
    End(reason);
  } else {
    active_.Cancel();
  }
}

absl::Status LinearCrossEntropyCall::LandClassWeights() {
  if (!request_.has_class_weights()) {
    return WrongPhase(request_,
                      "class_weights until those of all rows have come");
  }
  const v1::LinearCrossEntropyClassWeights& weights = request_.class_weights();
  const auto bytes = static_cast<int64_t>(weights.class_weights_size() *
                                          int64_t{sizeof(float)});
  if (bytes > kMaxPayloadBytes) {
    return FieldError(
        reasons::kBadShape, "the size of class_weights", bytes,
        absl::StrCat("at most ", kMaxPayloadBytes, " bytes in one message"));
  }
  ROWHOUSE_RETURN_IF_ERROR(head_->AppendClassWeights(
      weights.first_row(), SpanOf(weights.class_weights())));
  if (head_->class_weights_complete()) {
    ReadInputs();
  } else {
    Read();
  }
  return absl::OkStatus();
}

absl::Status LinearCrossEntropyCall::LandInputs() {
  if (!request_.has_inputs()) {
    return WrongPhase(request_, "inputs until all tokens have come");
  }
  const v1::LinearCrossEntropyInputs& inputs = request_.inputs();
  const auto bytes = static_cast<int64_t>(inputs.hidden().size());
  if (bytes > kMaxPayloadBytes) {
    return FieldError(
        reasons::kBadShape, "the size of inputs.hidden", bytes,
        absl::StrCat("at most ", kMaxPayloadBytes, " bytes in one message"));
  }
  const auto targets = server::SpanOf(inputs.targets());
  if (inbox_ == nullptr && link_ == nullptr) {
    ROWHOUSE_RETURN_IF_ERROR(
        head_->AppendInputs(inputs.first_token(), targets, inputs.hidden()));
  } else if (bytes > 0) {
    return FieldError(reasons::kBadShape, "the size of inputs.hidden", bytes,
                      "0, the header having a mapping or a link");
  } else if (link_ != nullptr) {
    return LandTargets(inputs.first_token(), targets);
  } else {
    ROWHOUSE_RETURN_IF_ERROR(
        inbox_->AppendInputs(*head_, inputs.first_token(), targets));
  }
  if (head_->inputs_complete()) {
    ComputeStatistics();
  } else {
    Read();
  }
  return absl::OkStatus();
}

// The hidden states come when all targets are there.
absl::Status LinearCrossEntropyCall::LandTargets(
    int64_t first_token, std::span<const int64_t> targets) {
  const int64_t token_count = head_->header().token_count;
  if (first_token != std::ssize(targets_) ||
      std::ssize(targets) > token_count - first_token) {
    // Whoever counts wrongly is told by the call itself, of no tokens.
    ROWHOUSE_RETURN_IF_ERROR(head_->AppendInputs(first_token, targets, {}));
    return WrongPhase(request_, "inputs of the tokens that follow");
  }
  targets_.insert(targets_.end(), targets.begin(), targets.end());
  if (std::ssize(targets_) < token_count) {
    Read();
  } else {
    OnLink(&LinearCrossEntropyCall::ReceiveInputs);
  }
  return absl::OkStatus();
}

void LinearCrossEntropyCall::OnLink(void (LinearCrossEntropyCall::*work)()) {
  BeginShardWork([&] {
    const absl::Status posted = link_->Post([this, work] { (this->*work)(); });
    if (!posted.ok()) (void)EndShardWork(posted);
  });
}

// Of what is refused, the rest is received all the same.
void LinearCrossEntropyCall::ReceiveInputs() {
  const HeadHeader& header = head_->header();
  const int64_t row_bytes =
      active_.shard()->spec().dim * kernels::SizeOf(header.hidden_dtype);
  absl::Status landed = absl::OkStatus();
  const absl::Status received = Transfer([&] {
    return link_->pieces().Receive(
        header.token_count, row_bytes, link_->patience(),
        [&](int64_t first, int64_t count, const std::byte* rows) {
          if (!landed.ok()) return absl::OkStatus();
          landed = head_->AppendInputs(
              first,
              std::span<const int64_t>(targets_).subspan(
                  static_cast<size_t>(first), static_cast<size_t>(count)),
              std::string_view(reinterpret_cast<const char*>(rows),
                               static_cast<size_t>(count * row_bytes)));
          return absl::OkStatus();
        });
  });
  targets_ = {};
  if (EndShardWork(received.ok() ? landed : received)) ComputeStatistics();
}

void LinearCrossEntropyCall::SendGradient() {
  const int64_t dim = active_.shard()->spec().dim;
  response_.Clear();
  response_.mutable_gradients()->set_token_count(head_->header().token_count);
  const absl::Status sent = Transfer([&] {
    return link_->pieces().Send(
        head_->header().token_count, GradientRowBytes(*active_.shard()),
        link_->patience(), [&](int64_t first, int64_t count, std::byte* to) {
          return head_->ReadHiddenGradient(
              first,
              {reinterpret_cast<float*>(to), static_cast<size_t>(count * dim)});
        });
  });
  if (!EndShardWork(sent)) return;
  head_.reset();  // Its place is free before the caller hears of the end.
  End(absl::OkStatus());
}

// A link that failed is of no more use.
absl::Status LinearCrossEntropyCall::Transfer(
    absl::FunctionRef<absl::Status()> move) {
  response_.set_event(head_->header().event - 1);
  response_.set_link_turn(link_->NextTurn());
  std::future<bool> written = turns_written_[transfer_count_].get_future();
  writes_turn_ = true;
  StartWrite(&response_);
  absl::Status moved = move();
  if (!moved.ok()) link_->End(moved);
  if (!written.get() && moved.ok()) {
    moved = absl::CancelledError("the caller has gone");
  }
  ++transfer_count_;
  response_.Clear();
  return moved;
}

void LinearCrossEntropyCall::ComputeStatistics() {
  phase_ = Phase::kStatistics;
  BeginShardWork([&] {
    active_.BeginWait();
    active_.shard()->ComputeHeadStatistics(
        *head_, active_.call(), [this](absl::StatusOr<int64_t> event) {
          active_.EndWait();
          if (!EndShardWork(event.status())) return;
          absl::Status status = WriteNext();
          if (!status.ok()) End(std::move(status));
        });
  });
}

absl::Status LinearCrossEntropyCall::LandMerged() {
  if (!request_.has_merged_statistics()) {
    return WrongPhase(request_, "merged_statistics after the statistics");
  }
  const v1::LinearCrossEntropyStatistics& merged = request_.merged_statistics();
  ROWHOUSE_RETURN_IF_ERROR(head_->AppendMerged(
      {.first_token = merged.first_token(),
       .max_logits = SpanOf(merged.max_logits()),
       .exp_sums = SpanOf(merged.exp_sums()),
       .upstream = SpanOf(merged.upstream_gradients()),
       .target = SpanOf(merged.target_coefficients()),
       .smoothing = SpanOf(merged.smoothing_coefficients())}));
  merged_count_ += merged.max_logits_size();
  if (head_->merged_complete()) {
    ComputeGradient();
  } else {
    Read();
  }
  return absl::OkStatus();
}

void LinearCrossEntropyCall::ComputeGradient() {
  phase_ = Phase::kGradient;
  BeginShardWork([&] {
    active_.shard()->FinishHead(
        *head_, active_.call(), [this](absl::StatusOr<PartReceipt> receipt) {
          if (!EndShardWork(receipt.status())) return;
          if (link_ != nullptr && head_->header().token_count > 0) {
            return OnLink(&LinearCrossEntropyCall::SendGradient);
          }
          written_count_ = 0;
          message_count_ = 0;
          response_.Clear();
          absl::Status status = WriteNext();
          if (!status.ok()) End(std::move(status));
        });
  });
}

void LinearCrossEntropyCall::OnWriteDone(bool ok) {
  if (writes_turn_.exchange(false)) {
    return turns_written_[transfer_count_].set_value(ok);
  }
  if (!ok) return End(absl::CancelledError("the caller has gone"));
  absl::Status status = WriteNext();
  if (!status.ok()) End(std::move(status));
}

// At least one message a phase: it tells that the phase is through.
absl::Status LinearCrossEntropyCall::WriteNext() {
  const HeadHeader& header = head_->header();
  if (written_count_ < header.token_count || message_count_ == 0) {
    ROWHOUSE_RETURN_IF_ERROR(phase_ == Phase::kStatistics ? FillStatistics()
                                                          : FillGradient());
    response_.set_event(header.event - 1);
    ++message_count_;
    Write();
    return absl::OkStatus();
  }
  if (phase_ == Phase::kGradient ||
      header.purpose == HeadPurpose::kEvaluation) {
    head_.reset();  // Its place is free before the caller hears of the end.
    End(absl::OkStatus());
    return absl::OkStatus();
  }
  phase_ = Phase::kMerged;
  if (head_->merged_complete()) {
    ComputeGradient();
  } else {
    Read();
  }
  return absl::OkStatus();
}

int64_t LinearCrossEntropyCall::TokensOfMessage(int64_t token_bytes) {
  return std::min(std::max(int64_t{1}, kMaxPayloadBytes / token_bytes),
                  head_->header().token_count - written_count_);
}

absl::Status LinearCrossEntropyCall::FillStatistics() {
  const HeadHeader& header = head_->header();
  const int64_t count = TokensOfMessage(
      3 * sizeof(float) + (header.weighted_logit_sums ? sizeof(float) : 0) +
      (header.predicted ? sizeof(int64_t) : 0));
  v1::LinearCrossEntropyStatistics& message = *response_.mutable_statistics();
  message.set_first_token(written_count_);
  HeadStatisticsOut out{Resized(*message.mutable_max_logits(), count),
                        Resized(*message.mutable_exp_sums(), count),
                        Resized(*message.mutable_target_logits(), count)};
  if (header.weighted_logit_sums) {
    out.weighted_logit_sums =
        Resized(*message.mutable_weighted_logit_sums(), count);
  }
  if (header.predicted) {
    out.predicted = Resized(*message.mutable_predicted_rows(), count);
  }
  ROWHOUSE_RETURN_IF_ERROR(head_->ReadStatistics(written_count_, out));
  written_count_ += count;
  return absl::OkStatus();
}

absl::Status LinearCrossEntropyCall::FillGradient() {
  if (inbox_ != nullptr) {
    ROWHOUSE_RETURN_IF_ERROR(inbox_->PutGradient(*head_));
    written_count_ = head_->header().token_count;
    response_.mutable_gradients()->set_token_count(written_count_);
    return absl::OkStatus();
  }
  const int64_t dim = active_.shard()->spec().dim;
  const auto row_bytes = dim * static_cast<int64_t>(sizeof(float));
  const int64_t count = TokensOfMessage(row_bytes);
  v1::LinearCrossEntropyGradients& message = *response_.mutable_gradients();
  message.set_first_token(written_count_);
  std::string& bytes = *message.mutable_hidden_gradient();
  bytes.resize(static_cast<size_t>(count * row_bytes));
  // A string's memory is aligned for any element.
  ROWHOUSE_RETURN_IF_ERROR(head_->ReadHiddenGradient(
      written_count_, {reinterpret_cast<float*>(bytes.data()),
                       static_cast<size_t>(count * dim)}));
  written_count_ += count;
  return absl::OkStatus();
}

// Reactions never run under these calls, and whoever ends the call touches
// nothing but the turn after that.

void LinearCrossEntropyCall::Read() {
  const std::shared_ptr<CallTurn> turn = turn_;
  turn->Start([this] { StartRead(&request_); });
}

void LinearCrossEntropyCall::Write() {
  const std::shared_ptr<CallTurn> turn = turn_;
  turn->Start([this] { StartWrite(&response_); });
}

void LinearCrossEntropyCall::BeginShardWork(absl::FunctionRef<void()> work) {
  if (turn_->EnterShard()) work();
}

bool LinearCrossEntropyCall::EndShardWork(const absl::Status& status) {
  const absl::Status revoked = turn_->LeaveShard();
  if (revoked.ok() && status.ok()) return true;
  End(revoked.ok() ? status : revoked);
  return false;
}

void LinearCrossEntropyCall::End(absl::Status status) {
  const std::shared_ptr<CallTurn> turn = turn_;
  turn->End([&] {
    inbox_.reset();  // It is free before the caller hears of the end.
    Finish(wire::ToGrpc(active_.Outcome(std::move(status))));
  });
}

}  // namespace rowhouse::server
