#include "bench/server/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "bench/support/quantile.h"
#include "bench/support/run.h"
#include "bench/support/sampled.h"

namespace rowhouse::bench {
namespace {

constexpr int64_t kMessageBytes = 1 << 20;

double total_cpu_seconds = 0;  // NOLINT: of all passes.
double total_bytes = 0;        // NOLINT

double ProcessCpuSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) +
         static_cast<double>(time.tv_nsec) * 1e-9;
}

// Without sockets on the loopback there is nothing to measure.
int Must(int result, const char* call) {
  if (result >= 0) return result;
  std::perror(call);
  std::exit(1);
}

// One end of a connection.
class Socket {
 public:
  explicit Socket(int file) : file_(file) {
    const int one = 1;
    setsockopt(file_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  }
  Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  ~Socket() {
    if (file_ >= 0) close(file_);
  }

  void Send(int64_t size) {
    while (size > 0) {
      const auto part = static_cast<size_t>(std::min(size, kMessageBytes));
      size -=
          Must(static_cast<int>(send(file_, block_.data(), part, 0)), "send");
    }
  }

  // False where the other end is closed.
  bool Receive(int64_t size) {
    while (size > 0) {
      const auto part = static_cast<size_t>(std::min(size, kMessageBytes));
      const int got =
          Must(static_cast<int>(recv(file_, block_.data(), part, 0)), "recv");
      if (got == 0) return false;
      size -= got;
    }
    return true;
  }

 private:
  int file_;
  std::vector<char> block_ = std::vector<char>(kMessageBytes, 1);
};

// Both ends of a new connection over 127.0.0.1.
std::pair<Socket, Socket> Connect() {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* any = reinterpret_cast<sockaddr*>(&address);
  socklen_t size = sizeof(address);
  const int listener = Must(socket(AF_INET, SOCK_STREAM, 0), "socket");
  Must(bind(listener, any, size), "bind");
  Must(listen(listener, 1), "listen");
  Must(getsockname(listener, any, &size), "getsockname");
  const int client = Must(socket(AF_INET, SOCK_STREAM, 0), "socket");
  Must(connect(client, any, size), "connect");
  const int server = Must(accept(listener, nullptr, nullptr), "accept");
  close(listener);
  return {Socket(client), Socket(server)};
}

}  // namespace

double LoopbackBytesPerSecond() {
  static const int64_t size = Size(int64_t{128} << 20, int64_t{1} << 20);
  static std::pair<Socket, Socket> ends = Connect();
  static SampledRate sampled;
  return sampled.Of(static_cast<double>(size), [] {
    const double before = ProcessCpuSeconds();
    std::thread sender([] { ends.first.Send(size); });
    ends.second.Receive(size);
    sender.join();
    total_cpu_seconds += ProcessCpuSeconds() - before;
    total_bytes += static_cast<double>(size);
  });
}

double LoopbackCpuSecondsPerByte() { return total_cpu_seconds / total_bytes; }

double LoopbackRoundTripSeconds(int64_t request_bytes, int64_t response_bytes) {
  std::vector<double> seconds(static_cast<size_t>(Size(500, 5)));
  std::pair<Socket, Socket> ends = Connect();
  std::thread server([&] {
    for (size_t i = 0; i < seconds.size(); ++i) {
      ends.second.Receive(request_bytes);
      ends.second.Send(response_bytes);
    }
  });
  for (double& took : seconds) {
    const auto start = std::chrono::steady_clock::now();
    ends.first.Send(request_bytes);
    ends.first.Receive(response_bytes);
    took =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
            .count();
  }
  server.join();
  return Quantile(seconds, 0.5);
}

}  // namespace rowhouse::bench
