#ifndef ROWHOUSE_SERVER_TRANSPORT_HEAD_INBOX_H_
#define ROWHOUSE_SERVER_TRANSPORT_HEAD_INBOX_H_

#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/backend.h"
#include "rowhouse/v1/lm_head_service.pb.h"
#include "server/shard/head_call.h"
#include "server/shard/shard.h"
#include "server/table_registry.h"
#include "server/transport/mappings.h"

namespace rowhouse::server {

/// A head call's hold of a mapping's inbox: hidden states come out of it, and
/// the hidden gradient goes into it.
///
/// Thread-compatible.
class HeadInbox {
 public:
  /// Takes the inbox that `header` names, until this goes.
  ///
  /// Errors:
  ///   kInvalidArgument     BAD_NAME: the mapping is of another table.
  ///                        BAD_COUNT: no count of tokens.
  ///   kFailedPrecondition  MAPPING_GONE.
  ///   kOutOfRange          INBOX_RANGE.
  ///   kAborted             BUSY.
  static absl::StatusOr<std::unique_ptr<HeadInbox>> Open(
      const Mappings& mappings, const v1::LinearCrossEntropyHeader& header,
      const Shard& shard, const TableRegistry& tables);

  ~HeadInbox() { mapping_->Give(); }
  HeadInbox(const HeadInbox&) = delete;
  HeadInbox& operator=(const HeadInbox&) = delete;

  /// `HeadCall::AppendInputs` of hidden states in the inbox: each piece is
  /// copied to where the client cannot write before it is looked at.
  absl::Status AppendInputs(HeadCall& head, int64_t first_token,
                            std::span<const int64_t> targets);

  /// Puts the whole hidden gradient into the inbox.
  absl::Status PutGradient(HeadCall& head);

 private:
  HeadInbox(std::shared_ptr<Mapping> mapping,
            const v1::LinearCrossEntropyHeader& header,
            kernels::Backend& backend);

  const std::shared_ptr<Mapping> mapping_;
  const int64_t hidden_offset_;
  const int64_t gradient_offset_;
  kernels::Backend& backend_;
};

}  // namespace rowhouse::server

#endif  // ROWHOUSE_SERVER_TRANSPORT_HEAD_INBOX_H_
