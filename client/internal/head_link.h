#ifndef ROWHOUSE_CLIENT_INTERNAL_HEAD_LINK_H_
#define ROWHOUSE_CLIENT_INTERNAL_HEAD_LINK_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "client/internal/cancellation.h"
#include "client/internal/head_stream.h"
#include "client/internal/server_link.h"

namespace rowhouse::client::internal {

/// A link that the tokens of one head call go over: hidden states one way, the
/// hidden gradient the other, each at the turn that the server names.
///
/// Thread-compatible.
class HeadLink {
 public:
  /// Null where there is no link, or rows are too large for its pieces.
  static std::unique_ptr<HeadLink> Take(std::shared_ptr<ServerLink> link,
                                        const HeadHeader& header,
                                        const CallContext& context);

  /// Breaks the link, unless `Finish` was called: the server may have given a
  /// turn that nobody knows of.
  ~HeadLink();
  HeadLink(const HeadLink&) = delete;
  HeadLink& operator=(const HeadLink&) = delete;

  int64_t number() const { return number_; }

  /// Sends all hidden states, out of the host's or a device's memory. Errors:
  /// kUnavailable: the link failed.
  absl::Status Send(int64_t turn, const HeadHeader& header,
                    const HeadTokens& tokens, const CallContext& context);

  /// Hands the gradient of all tokens to `sink`, in the memory of `device`
  /// where the link is that device's, else of the host. Errors: those, and the
  /// sink's.
  absl::Status Receive(int64_t turn, const HeadHeader& header,
                       kernels::Backend* device, HeadGradientSink sink,
                       const CallContext& context);

  /// The server has ended the call.
  void Finish() { finished_ = true; }

 private:
  HeadLink(std::shared_ptr<ServerLink> link, int64_t number)
      : link_(std::move(link)), number_(number) {}

  const std::shared_ptr<ServerLink> link_;
  const int64_t number_;
  bool finished_ = false;
};

}  // namespace rowhouse::client::internal

#endif  // ROWHOUSE_CLIENT_INTERNAL_HEAD_LINK_H_
