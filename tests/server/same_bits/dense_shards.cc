#include "tests/server/same_bits/dense_shards.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/executor.h"
#include "kernels/linear_cross_entropy.h"
#include "proto/wire/status_macros.h"
#include "tests/server/shard/pending.h"

namespace rowhouse::testing {

DenseShards::DenseShards(const server::ShardSpec& spec, int thread_count)
    : spec_(spec),
      sessions_(static_cast<size_t>(spec.trainer_count)),
      backend_(kernels::cpu::MakeCpuBackend(
          kernels::cpu::MakeThreadExecutor(thread_count))),
      timers_(server::MakeSystemTimerQueue()) {}

absl::StatusOr<std::unique_ptr<DenseShards>> DenseShards::Create(
    const server::ShardSpec& spec, int thread_count,
    const kernels::HeadBlocks& blocks) {
  std::unique_ptr<DenseShards> table(new DenseShards(spec, thread_count));
  server::ShardLimits limits;
  limits.head_blocks = blocks;
  for (int32_t s = 0; s < spec.placement.shard_count(); ++s) {
    server::ShardSpec own = spec;
    own.shard_index = s;
    ROWHOUSE_ASSIGN_OR_RETURN(
        std::unique_ptr<server::Shard> shard,
        server::Shard::Create(own, limits, *table->backend_, *table->timers_));
    table->blocking_.emplace_back(*shard);
    table->shards_.push_back(std::move(shard));
  }
  for (int32_t rank = 0; rank < spec.trainer_count; ++rank) {
    ROWHOUSE_RETURN_IF_ERROR(table->OpenSession(rank, 1));
  }
  return table;
}

absl::Status DenseShards::OpenSession(int32_t rank, int64_t session) {
  sessions_[static_cast<size_t>(rank)] = session;
  for (BlockingShard& shard : blocking_) {
    ROWHOUSE_RETURN_IF_ERROR(shard.OpenSession({rank, session}).status());
  }
  return absl::OkStatus();
}

absl::Status DenseShards::Contribute(int64_t event, const DensePart& part,
                                     int64_t rows_per_message) {
  if (!part.head) return Push(event, part, rows_per_message);
  return RunHead(event, part, server::HeadPurpose::kTraining, rows_per_message)
      .status();
}

absl::Status DenseShards::Push(int64_t event, const DensePart& part,
                               int64_t rows_per_message) {
  const auto row_bytes =
      static_cast<size_t>(spec_.dim * kernels::SizeOf(spec_.gradient_dtype));
  for (int s = 0; s < shard_count(); ++s) {
    PartToPush push;
    push.trainer = {part.rank, session(part.rank)};
    push.event = event;
    push.part = part.part;
    push.rows_per_message = rows_per_message;
    for (size_t i = 0; i < part.row_ids.size(); ++i) {
      if (spec_.placement.ShardOf(part.row_ids[i]) != s) continue;
      push.row_ids.push_back(part.row_ids[i]);
      push.rows += part.bytes.substr(i * row_bytes, row_bytes);
    }
    ROWHOUSE_RETURN_IF_ERROR(blocking_[s].Push(push).status());
  }
  return absl::OkStatus();
}

// A head call on one slice.
struct DenseShards::Slice {
  std::unique_ptr<server::HeadCall> call;
  std::vector<float> max_logits, exp_sums, target_logits, gradient;

  explicit Slice(size_t tokens)
      : max_logits(tokens), exp_sums(tokens), target_logits(tokens) {}
  kernels::HeadStatistics view() {
    return {max_logits.data(), exp_sums.data(), target_logits.data()};
  }
};

namespace {

using Opened = absl::StatusOr<std::unique_ptr<server::HeadCall>>;

absl::Status LandInputs(server::HeadCall& call, const DensePart& part,
                        int64_t per_message) {
  const auto tokens = static_cast<int64_t>(part.row_ids.size());
  const int64_t row_bytes =
      tokens == 0 ? 0 : static_cast<int64_t>(part.bytes.size()) / tokens;
  for (int64_t first = 0; first < tokens; first += per_message) {
    const int64_t count = std::min(per_message, tokens - first);
    const std::string_view hidden =
        std::string_view(part.bytes)
            .substr(static_cast<size_t>(first * row_bytes),
                    static_cast<size_t>(count * row_bytes));
    ROWHOUSE_RETURN_IF_ERROR(call.AppendInputs(
        first, std::span(part.row_ids).subspan(first, count), hidden));
  }
  return absl::OkStatus();
}

absl::Status LandMerged(server::HeadCall& call, const HeadAnswer& merged,
                        const std::vector<float>& upstream,
                        int64_t per_message) {
  const auto tokens = static_cast<int64_t>(upstream.size());
  for (int64_t first = 0; first < tokens; first += per_message) {
    const int64_t count = std::min(per_message, tokens - first);
    const auto share = [&](const std::vector<float>& values) {
      return std::span(values).subspan(first, count);
    };
    ROWHOUSE_RETURN_IF_ERROR(
        call.AppendMerged({first, share(merged.max_logits),
                           share(merged.exp_sums), share(upstream)}));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<HeadAnswer> DenseShards::RunHead(int64_t event,
                                                const DensePart& part,
                                                server::HeadPurpose purpose,
                                                int64_t rows_per_message) {
  const size_t tokens = part.row_ids.size();
  std::vector<Slice> slices;
  for (int s = 0; s < shard_count(); ++s) slices.emplace_back(tokens);
  server::HeadHeader header;
  header.purpose = purpose;
  header.trainer = server::TrainerSession{part.rank, session(part.rank)};
  header.event = event;
  header.part = part.part;
  header.token_count = static_cast<int64_t>(tokens);
  header.hidden_dtype = part.hidden_dtype;
  std::vector<kernels::HeadStatistics> views;
  for (int s = 0; s < shard_count(); ++s) {
    server::Shard& shard = blocking_[s].shard();
    Slice& slice = slices[s];
    Pending<Opened> opened;
    shard.OpenHead(header, BlockingShard::NewCall(), opened.Callback());
    ROWHOUSE_ASSIGN_OR_RETURN(slice.call, opened.Wait());
    ROWHOUSE_RETURN_IF_ERROR(LandInputs(*slice.call, part, rows_per_message));
    PendingCall<int64_t> computed;
    shard.ComputeHeadStatistics(*slice.call, BlockingShard::NewCall(),
                                computed.Callback());
    ROWHOUSE_RETURN_IF_ERROR(computed.Wait().status());
    ROWHOUSE_RETURN_IF_ERROR(slice.call->ReadStatistics(
        0, {slice.max_logits, slice.exp_sums, slice.target_logits}));
    views.push_back(slice.view());
  }
  HeadAnswer answer;
  answer.max_logits.resize(tokens);
  answer.exp_sums.resize(tokens);
  answer.target_logits.resize(tokens);
  kernels::MergeHeadStatistics(
      views, static_cast<int64_t>(tokens),
      {answer.max_logits.data(), answer.exp_sums.data(),
       answer.target_logits.data()});
  if (purpose == server::HeadPurpose::kEvaluation) return answer;
  answer.hidden_gradient.resize(tokens * static_cast<size_t>(spec_.dim));
  std::vector<float> gradient(answer.hidden_gradient.size());
  for (int s = 0; s < shard_count(); ++s) {
    server::HeadCall& call = *slices[s].call;
    ROWHOUSE_RETURN_IF_ERROR(
        LandMerged(call, answer, part.upstream, rows_per_message));
    PendingCall<server::PartReceipt> finished;
    blocking_[s].shard().FinishHead(call, BlockingShard::NewCall(),
                                    finished.Callback());
    ROWHOUSE_RETURN_IF_ERROR(finished.Wait().status());
    ROWHOUSE_RETURN_IF_ERROR(call.ReadHiddenGradient(0, gradient));
    for (size_t i = 0; i < gradient.size(); ++i) {
      answer.hidden_gradient[i] += gradient[i];
    }
  }
  return answer;
}

absl::Status DenseShards::Seal(int64_t event, int32_t rank,
                               int32_t part_count) {
  for (BlockingShard& shard : blocking_) {
    ROWHOUSE_RETURN_IF_ERROR(
        shard.Seal({rank, session(rank)}, event, part_count).status());
  }
  return absl::OkStatus();
}

absl::Status DenseShards::Commit(int64_t event,
                                 const kernels::AdamWScalars& scalars) {
  server::EventCommit commit;
  commit.adamw = scalars;
  return CommitAll(event, std::move(commit));
}

absl::Status DenseShards::CommitAll(int64_t event, server::EventCommit commit) {
  commit.sessions = sessions_;
  for (BlockingShard& shard : blocking_) {
    ROWHOUSE_RETURN_IF_ERROR(
        shard.Commit({0, session(0)}, event, commit).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> DenseShards::RowSum(int64_t event) {
  uint64_t sum = 0;
  for (BlockingShard& shard : blocking_) {
    ROWHOUSE_ASSIGN_OR_RETURN(const server::ShardDigest digest,
                              shard.Digest(event));
    sum += digest.row_sum;
  }
  return sum;
}

absl::StatusOr<std::string> DenseShards::Rows() {
  std::string rows;
  for (int s = 0; s < shard_count(); ++s) {
    std::vector<int64_t> ids(static_cast<size_t>(spec_.placement.end_row(s) -
                                                 spec_.placement.first_row(s)));
    std::iota(ids.begin(), ids.end(), spec_.placement.first_row(s));
    ROWHOUSE_ASSIGN_OR_RETURN(const PulledRows pulled, shard(s).Pull(ids));
    rows += pulled.rows;
  }
  return rows;
}

}  // namespace rowhouse::testing
