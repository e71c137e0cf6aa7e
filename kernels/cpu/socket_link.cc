#include "kernels/cpu/socket_link.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace rowhouse::kernels::cpu {
namespace {

constexpr std::string_view kPrefix = "rowhouse-link-";

// How often what waits looks whether it was aborted.
constexpr absl::Duration kLook = absl::Milliseconds(20);

class SocketLink final : public PeerLink {
 public:
  ~SocketLink() override {
    if (listening_ >= 0) close(listening_);
    if (socket_ >= 0) close(socket_);
  }

  absl::StatusOr<std::string> NewId() override {
    std::random_device random;
    std::string id(kPrefix);
    for (int i = 0; i < 4; ++i) absl::StrAppend(&id, absl::Hex(random()), "-");
    listening_ = NewSocket();
    const Address address(id);
    if (listening_ < 0 ||
        bind(listening_, address.get(), address.size()) != 0 ||
        listen(listening_, 1) != 0) {
      return Fault("making a socket");
    }
    return id;
  }

  absl::Status Connect(std::string_view id, LinkEnd end,
                       absl::Time deadline) override {
    if (!id.starts_with(kPrefix) || id.size() > Address::kMostBytes) {
      return absl::InvalidArgumentError("a name that is no socket's of a link");
    }
    if (end == LinkEnd::kFirst) return Accept(deadline);
    socket_ = NewSocket();
    const Address address(id);
    if (socket_ < 0 || connect(socket_, address.get(), address.size()) != 0) {
      return Fault("connecting");
    }
    return CheckUser();
  }

  bool Reaches(const void* /*memory*/) const override { return true; }

  absl::Status Send(const void* from, int64_t size_bytes,
                    absl::Time deadline) override {
    ++posted_;
    return Move(size_bytes, POLLOUT, deadline, [&](int64_t done) {
      return send(socket_, static_cast<const char*>(from) + done,
                  static_cast<size_t>(size_bytes - done),
                  MSG_NOSIGNAL | MSG_DONTWAIT);
    });
  }

  absl::Status Receive(void* to, int64_t size_bytes,
                       absl::Time deadline) override {
    ++posted_;
    return Move(size_bytes, POLLIN, deadline, [&](int64_t done) {
      return recv(socket_, static_cast<char*>(to) + done,
                  static_cast<size_t>(size_bytes - done), MSG_DONTWAIT);
    });
  }

  int64_t posted() const override { return posted_; }

  // Pieces are through when they are posted.
  absl::Status Await(int64_t /*count*/, absl::Time /*deadline*/) override {
    return fault_;
  }

  void Abort() override { aborted_ = true; }

 private:
  // An abstract name of the host's.
  class Address {
   public:
    static constexpr size_t kMostBytes = sizeof(sockaddr_un::sun_path) - 1;
    explicit Address(std::string_view id) : id_size_(id.size()) {
      address_.sun_family = AF_UNIX;
      std::memcpy(address_.sun_path + 1, id.data(), id.size());
    }
    const sockaddr* get() const {
      return reinterpret_cast<const sockaddr*>(&address_);
    }
    socklen_t size() const {
      return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 +
                                    id_size_);
    }

   private:
    sockaddr_un address_ = {};
    size_t id_size_;
  };

  static int NewSocket() {
    return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  }

  absl::Status Fault(const char* doing) {
    fault_ = absl::UnavailableError(
        absl::StrCat("a link: ", doing, ": ", std::strerror(errno)));
    return fault_;
  }

  absl::Status Accept(absl::Time deadline) {
    absl::Status ready = Await(listening_, POLLIN, deadline);
    if (!ready.ok()) return ready;
    socket_ = accept4(listening_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket_ < 0) return Fault("accepting");
    close(std::exchange(listening_, -1));
    return CheckUser();
  }

  absl::Status CheckUser() {
    ucred peer = {};
    socklen_t size = sizeof(peer);
    if (getsockopt(socket_, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
        peer.uid == geteuid()) {
      return absl::OkStatus();
    }
    fault_ = absl::UnavailableError("a link to another user's process");
    return fault_;
  }

  // Waits until `file` is ready for `events`.
  absl::Status Await(int file, short events, absl::Time deadline) {
    while (fault_.ok()) {
      const absl::Time now = absl::Now();
      if (aborted_) {
        fault_ = absl::UnavailableError("the link was aborted");
      } else if (now >= deadline) {
        fault_ = absl::DeadlineExceededError(
            "the other end of a link was not there in time");
      } else {
        pollfd poll_file = {file, events, 0};
        const absl::Duration wait = std::min(kLook, deadline - now);
        const int ready =
            poll(&poll_file, 1,
                 static_cast<int>(absl::ToInt64Milliseconds(wait)) + 1);
        if (ready > 0) break;
      }
    }
    return fault_;
  }

  template <typename Step>
  absl::Status Move(int64_t size_bytes, short events, absl::Time deadline,
                    Step step) {
    int64_t done = 0;
    while (fault_.ok() && done < size_bytes) {
      absl::Status ready = Await(socket_, events, deadline);
      if (!ready.ok()) return ready;
      const ssize_t moved = step(done);
      if (moved > 0) {
        done += moved;
      } else if (moved == 0) {
        fault_ = absl::UnavailableError("the other end of a link has gone");
      } else if (errno != EAGAIN && errno != EINTR) {
        return Fault("moving bytes");
      }
    }
    return fault_;
  }

  std::atomic<bool> aborted_ = false;
  absl::Status fault_;
  int listening_ = -1;  // The first end's, until the other has come.
  int socket_ = -1;
  int64_t posted_ = 0;
};

}  // namespace

std::unique_ptr<PeerLink> MakeSocketLink() {
  return std::make_unique<SocketLink>();
}

}  // namespace rowhouse::kernels::cpu
