#ifndef ROWHOUSE_CLIENT_INTERNAL_HEAD_INBOX_H_
#define ROWHOUSE_CLIENT_INTERNAL_HEAD_INBOX_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "client/internal/cancellation.h"
#include "client/internal/head_stream.h"
#include "client/internal/table_mapping.h"

namespace rowhouse::client::internal {

/// Memory of the server that the tokens of one head call travel through: hidden
/// states one way, the hidden gradient the other.
///
/// Thread-compatible.
class HeadInbox {
 public:
  /// Takes the inbox of `mapping` for a call; null where it is not to be had,
  /// or too small.
  static std::unique_ptr<HeadInbox> Take(std::shared_ptr<TableMapping> mapping,
                                         const HeadHeader& header,
                                         const CallContext& context);

  /// Gives it back or, unless `Finish` was called, ends the mapping: the server
  /// may still be at work on the call.
  ~HeadInbox();
  HeadInbox(const HeadInbox&) = delete;
  HeadInbox& operator=(const HeadInbox&) = delete;

  int64_t mapping() const { return use_.number(); }
  int64_t hidden_offset() const { return 0; }
  int64_t gradient_offset() const { return gradient_offset_; }

  absl::Status PutHidden(const HeadTokens& tokens);

  /// Hands the gradient of all tokens to `sink`: in pieces, or, where it is in
  /// memory of `device`, at once as it lies there.
  absl::Status ReadGradient(const HeadHeader& header, kernels::Backend* device,
                            HeadGradientSink sink);

  /// The server has ended the call.
  void Finish() { finished_ = true; }

 private:
  HeadInbox(std::shared_ptr<TableMapping> mapping, TableMapping::Use use,
            int64_t gradient_offset)
      : mapping_(std::move(mapping)),
        use_(std::move(use)),
        gradient_offset_(gradient_offset) {}

  const std::shared_ptr<TableMapping> mapping_;
  TableMapping::Use use_;
  const int64_t gradient_offset_;
  bool finished_ = false;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_HEAD_INBOX_H_
