#include "tests/client/in_memory_head_stream.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "kernels/backend.h"
#include "proto/wire/status_macros.h"
#include "tests/client/in_memory_convert.h"
#include "tests/client/running_call.h"
#include "tests/server/shard/pending.h"

namespace rowhouse::testing {
namespace {

using client::internal::CallContext;
using client::internal::HeadGradientSink;
using client::internal::HeadHeader;
using client::internal::HeadMerged;
using client::internal::HeadStatisticsOut;
using client::internal::HeadTokens;

constexpr int64_t kTokensPerMessage = 3;

server::HeadHeader HeaderOf(const HeadHeader& header) {
  return {.purpose = static_cast<server::HeadPurpose>(header.purpose),
          .trainer = ToServer(header.trainer),
          .event = header.event,
          .part = header.part,
          .token_count = header.token_count,
          .hidden_dtype = ToKernel(header.hidden_dtype),
          .ignore_index = header.ignore_index,
          .softcap = header.softcap,
          .class_weights = header.class_weights,
          .weighted_logit_sums = header.weighted_logit_sums,
          .predicted = header.predicted,
          .coefficients = header.coefficients};
}

absl::Status Lost() { return absl::UnavailableError("a message was lost"); }

class InMemoryHeadStream final : public client::internal::HeadStream {
 public:
  InMemoryHeadStream(server::Shard& shard, const HeadHeader& header,
                     HeadFaults faults)
      : shard_(shard), header_(header), faults_(std::move(faults)) {}

  absl::Status Open(const CallContext& context) {
    return Make("OpenHead", [&] { return OpenOnce(context); });
  }

  absl::Status Statistics(const HeadTokens& tokens,
                          const HeadStatisticsOut& out,
                          const CallContext& context) override {
    tokens_ = tokens;
    return Make("HeadStatistics", [&]() -> absl::Status {
      ROWHOUSE_RETURN_IF_ERROR(ComputeStatistics(context));
      return ReadStatistics(out);
    });
  }

  absl::Status Gradient(const HeadMerged& merged, HeadGradientSink sink,
                        const CallContext& context) override {
    int64_t arriving = header_.token_count / 2;  // Of an answer that is lost.
    absl::Status status = Make("HeadGradient", [&]() -> absl::Status {
      if (std::exchange(finished_, true)) {
        ROWHOUSE_RETURN_IF_ERROR(OpenOnce(context));
        ROWHOUSE_RETURN_IF_ERROR(ComputeStatistics(context));
      }
      return FinishOnce(merged, context);
    });
    if (status.ok()) arriving = header_.token_count;
    if (head_finished_) {
      ROWHOUSE_RETURN_IF_ERROR(ReadGradient(arriving, sink));
    }
    return status;
  }

 private:
  template <typename Phase>
  absl::Status Make(std::string_view name, Phase phase) {
    const Fault fault = faults_(name);
    if (fault == Fault::kLoseRequest) return Lost();
    absl::Status status = phase();
    if (fault == Fault::kRepeat) status = phase();
    return fault == Fault::kLoseAnswer ? Lost() : status;
  }

  absl::Status OpenOnce(const CallContext& context) {
    head_.reset();
    input_count_ = 0;
    const RunningCall call(context, shard_);
    Pending<absl::StatusOr<std::unique_ptr<server::HeadCall>>> opened;
    shard_.OpenHead(HeaderOf(header_), call.get(), opened.Callback());
    ROWHOUSE_ASSIGN_OR_RETURN(head_, opened.Wait());
    return absl::OkStatus();
  }

  absl::Status ComputeStatistics(const CallContext& context) {
    const int64_t row_bytes = header_.hidden_row_bytes();
    std::span<const std::byte> of_host = tokens_.hidden;
    std::vector<std::byte> copy;
    if (tokens_.device != nullptr) {
      copy.resize(of_host.size());
      ROWHOUSE_RETURN_IF_ERROR(
          tokens_.device->Copy(of_host.data(), copy.data(), std::ssize(copy)));
      ROWHOUSE_RETURN_IF_ERROR(tokens_.device->Synchronize());
      of_host = copy;
    }
    const std::string_view hidden(reinterpret_cast<const char*>(of_host.data()),
                                  of_host.size());
    ROWHOUSE_RETURN_IF_ERROR(LandClassWeights());
    while (input_count_ < header_.token_count) {
      const int64_t count =
          std::min(kTokensPerMessage, header_.token_count - input_count_);
      ROWHOUSE_RETURN_IF_ERROR(head_->AppendInputs(
          input_count_, tokens_.targets.subspan(input_count_, count),
          hidden.substr(input_count_ * row_bytes, count * row_bytes)));
      input_count_ += count;
    }
    const RunningCall call(context, shard_);
    Pending<absl::StatusOr<int64_t>> computed;
    shard_.ComputeHeadStatistics(*head_, call.get(), computed.Callback());
    return computed.Wait().status();
  }

  absl::Status LandClassWeights() {
    const std::span<const float> weights = tokens_.class_weights;
    for (int64_t first = head_->class_weights_complete() ? std::ssize(weights)
                                                         : 0;
         first < std::ssize(weights); first += kTokensPerMessage) {
      ROWHOUSE_RETURN_IF_ERROR(head_->AppendClassWeights(
          first,
          weights.subspan(first, std::min(kTokensPerMessage,
                                          std::ssize(weights) - first))));
    }
    return absl::OkStatus();
  }

  absl::Status ReadStatistics(const HeadStatisticsOut& out) {
    for (int64_t first = 0; first < header_.token_count;
         first += kTokensPerMessage) {
      const int64_t count =
          std::min(kTokensPerMessage, header_.token_count - first);
      const auto share = [&](auto values) {
        return values.empty() ? values : values.subspan(first, count);
      };
      ROWHOUSE_RETURN_IF_ERROR(head_->ReadStatistics(
          first,
          {share(out.max_logits), share(out.exp_sums), share(out.target_logits),
           share(out.weighted_logit_sums), share(out.predicted)}));
    }
    return absl::OkStatus();
  }

  absl::Status FinishOnce(const HeadMerged& merged,
                          const CallContext& context) {
    for (int64_t first = 0; first < header_.token_count;
         first += kTokensPerMessage) {
      const int64_t count =
          std::min(kTokensPerMessage, header_.token_count - first);
      const auto share = [&](std::span<const float> values) {
        return values.empty() ? values : values.subspan(first, count);
      };
      ROWHOUSE_RETURN_IF_ERROR(
          head_->AppendMerged({first, share(merged.max_logits),
                               share(merged.exp_sums), share(merged.upstream),
                               share(merged.target), share(merged.smoothing)}));
    }
    const RunningCall call(context, shard_);
    Pending<absl::StatusOr<server::PartReceipt>> finished;
    shard_.FinishHead(*head_, call.get(), finished.Callback());
    absl::Status status = finished.Wait().status();
    head_finished_ = status.ok();
    return status;
  }

  absl::Status ReadGradient(int64_t token_count, HeadGradientSink sink) {
    for (int64_t first = 0; first < token_count; first += kTokensPerMessage) {
      const int64_t count = std::min(kTokensPerMessage, token_count - first);
      std::vector<float> rows(count * header_.dim);
      ROWHOUSE_RETURN_IF_ERROR(head_->ReadHiddenGradient(first, rows));
      ROWHOUSE_RETURN_IF_ERROR(sink(
          first, std::string_view(reinterpret_cast<const char*>(rows.data()),
                                  rows.size() * sizeof(float))));
    }
    return absl::OkStatus();
  }

  server::Shard& shard_;
  const HeadHeader header_;
  const HeadFaults faults_;
  HeadTokens tokens_;
  std::unique_ptr<server::HeadCall> head_;
  int64_t input_count_ = 0;
  bool finished_ = false;       // `HeadGradient` has begun.
  bool head_finished_ = false;  // `head_` has a hidden gradient.
};

}  // namespace

absl::StatusOr<std::unique_ptr<client::internal::HeadStream>>
OpenInMemoryHeadStream(server::Shard& shard, const HeadHeader& header,
                       HeadFaults faults, const CallContext& context) {
  auto stream =
      std::make_unique<InMemoryHeadStream>(shard, header, std::move(faults));
  ROWHOUSE_RETURN_IF_ERROR(stream->Open(context));
  return stream;
}

}  // namespace rowhouse::testing
