#include "serve/http_server.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace serve {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kReadBytes = std::size_t{64} << 10;
constexpr int kBacklog = 128;

using Address = std::shared_ptr<addrinfo>;

Address numeric_address(const std::string& address, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &hints, &found) != 0)
    core::bad_usage(
        "--listen {}: takes a numeric address, such as 127.0.0.1, 0.0.0.0 or ::1", address);
  return {found, &::freeaddrinfo};
}

// Waits until the socket is ready, `stopping` is readable or the time is over; returns true if the
// socket is ready.
bool wait_for(int socket, short what, Clock::time_point until, int stopping = -1) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    pollfd both[2] = {{socket, what, 0}, {stopping, POLLIN, 0}};
    const int ready =
        ::poll(both, stopping < 0 ? 1 : 2, static_cast<int>(std::min<long>(left, 60'000)));
    if (ready < 0 && errno != EINTR) return false;
    if (both[0].revents != 0) return true;
    if (stopping >= 0 && both[1].revents != 0) return false;
  }
}

}  // namespace

// Serves the requests of one socket in sequence.
class HttpConnection {
 public:
  HttpConnection(HttpServer& server, int socket) : server_(server), socket_(socket) {}
  ~HttpConnection() { hold(0); }

  void run() {
    for (std::size_t n = 0; n < server_.limits_.requests; ++n) {
      try {
        hold(0);
        auto request = next();
        if (!request) return;
        const bool keep = request->keeps_alive() && n + 1 < server_.limits_.requests && !stopping();
        HttpAnswer answer(
            socket_, server_.limits_, request->http_1_0, keep, request->wants_head_only());
        answer_one(*request, answer);
        if (!keep || answer.failed_) return;
      } catch (const HttpError& error) {  // in the head or body; the position in the stream is lost
        hold(0);
        HttpAnswer answer(socket_, server_.limits_, false, false);
        refuse(answer, error.status(), error.what(), error.header());
        return linger();
      }
    }
  }

 private:
  bool stopping() const {
    pollfd one{server_.stopping_.fd(), POLLIN, 0};
    return ::poll(&one, 1, 0) > 0;
  }

  // Reads available bytes until `until`; returns false at the end or on a timeout.
  bool read_more(Clock::time_point until) {
    if (!wait_for(socket_, POLLIN, until)) throw HttpError(408, "the request came too slowly");
    const std::size_t at = buffer_.size();
    buffer_.resize(at + kReadBytes);
    const ssize_t n = ::recv(socket_, buffer_.data() + at, kReadBytes, 0);
    buffer_.resize(at + static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    return n > 0;
  }

  // Returns nothing if the client has closed or sends nothing.
  std::optional<HttpRequest> next() {
    const HttpLimits& limits = server_.limits_;
    if (buffer_.empty() &&
        !wait_for(socket_, POLLIN, Clock::now() + limits.idle, server_.stopping_.fd()))
      return std::nullopt;
    const auto until = Clock::now() + limits.request;
    std::size_t end = 0, from = 0;
    while ((end = buffer_.find("\r\n\r\n", from)) == std::string::npos) {
      if (buffer_.size() > limits.head_bytes) throw HttpError(431, "the head is too long");
      from = buffer_.size() - std::min<std::size_t>(buffer_.size(), 3);
      if (!read_more(until)) return std::nullopt;
    }
    if (end > limits.head_bytes) throw HttpError(431, "the head is too long");
    HttpRequest request = parse_head(std::string_view(buffer_).substr(0, end + 4));
    buffer_.erase(0, end + 4);
    const auto bytes = request.body_bytes(limits.body_bytes);
    if (const auto expected = request.header("expect"); !expected.empty()) {
      if (lower_case(expected) != "100-continue")
        throw HttpError(417, "only 100-continue is supported");
      if (bytes ? *bytes > buffer_.size() : buffer_.empty()) {
        HttpAnswer go(socket_, limits, false, true);
        go.write("HTTP/1.1 100 Continue\r\n\r\n");
      }
    }
    if (!read_body(request.body, bytes, until)) return std::nullopt;
    return request;
  }

  // Moves the body from what is received to `body`. Returns false if the client closes before its
  // end.
  bool read_body(std::string& body, std::optional<std::size_t> bytes, Clock::time_point until) {
    ChunkedBody chunks(server_.limits_.body_bytes);
    for (;;) {
      bool done = false;
      if (bytes) {
        const auto n = std::min(*bytes - body.size(), buffer_.size());
        body.append(buffer_, 0, n);
        buffer_.erase(0, n);
        done = body.size() == *bytes;
      } else {
        done = chunks.take(buffer_, body);
      }
      hold(body.size());
      if (done) return true;
      if (!read_more(until)) return false;
    }
  }

  // Counts the bytes of this connection's body among those of all.
  void hold(std::size_t bytes) {
    auto& all = server_.body_bytes_;
    if (bytes <= held_) {
      all -= std::exchange(held_, bytes) - bytes;
      return;
    }
    const auto more = bytes - std::exchange(held_, bytes);
    if (all.fetch_add(more) + more >
        std::max(server_.limits_.all_body_bytes, server_.limits_.body_bytes))
      throw HttpError(503, "too many bytes of waiting requests; try again", kRetry);
  }

  void answer_one(HttpRequest& request, HttpAnswer& answer) {
    int status = 500;
    std::string what = "internal error", header;
    try {
      server_.handler_(request, answer);
      return;
    } catch (const HttpError& error) {
      status = error.status();
      what = error.what();
      header = error.header();
    } catch (const std::bad_alloc&) {
      what = "out of memory";
    } catch (const std::exception& error) { what = error.what(); }
    if (answer.begun()) answer.failed_ = true;  // a partial response ends the connection
    else refuse(answer, status, what, header);
  }

  void refuse(HttpAnswer& answer, int status, const std::string& what, const std::string& header) {
    answer.send(status, "application/json", server_.refusal_(status, what), header);
  }

  // Reads what the client still sends for a moment, so that it receives the response instead of a
  // reset.
  void linger() {
    ::shutdown(socket_, SHUT_WR);
    const auto until = Clock::now() + std::chrono::milliseconds(500);
    char rest[4096];
    while (wait_for(socket_, POLLIN, until) && ::recv(socket_, rest, sizeof rest, 0) > 0) {}
  }

  HttpServer& server_;
  int socket_;
  std::string buffer_;    // received and not yet consumed
  std::size_t held_ = 0;  // bytes of the request's body
};

bool HttpAnswer::write(std::string_view bytes) {
  while (!bytes.empty() && !failed_) {
    const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      failed_ = !wait_for(socket_, POLLOUT, Clock::now() + limits_.write);
    } else if (errno != EINTR) {
      failed_ = true;
    }
  }
  return !failed_;
}

void HttpAnswer::send(
    int status, std::string_view type, std::string_view body, std::string_view header) {
  begun_ = true;
  const auto about_body =
      status == 204 ? std::string()
                    : fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", type, body.size());
  if (head_only_) body = {};
  // The beginning of the body goes with the head; a copy of a large one would take as much memory.
  write(
      fmt::format("HTTP/1.1 {} {}\r\n{}{}{}{}"
                  "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
                  "Connection: {}\r\n\r\n{}",
          status, reason_of(status), about_body, header, header.empty() ? "" : "\r\n", headers_,
          keep_ ? "keep-alive" : "close", body.substr(0, kReadBytes)));
  write(body.substr(std::min(body.size(), kReadBytes)));
}

void HttpAnswer::begin(std::string_view type) {
  begun_ = true;
  const bool chunked = !http_1_0_;
  if (!chunked) keep_ = false;
  write(
      fmt::format("HTTP/1.1 200 OK\r\nContent-Type: {}\r\n{}{}"
                  "X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\n"
                  "Connection: {}\r\n\r\n",
          type, chunked ? "Transfer-Encoding: chunked\r\n" : "", headers_,
          keep_ ? "keep-alive" : "close"));
}

bool HttpAnswer::chunk(std::string_view text) {
  if (text.empty()) return !failed_;
  if (http_1_0_) return write(text);
  return write(fmt::format("{:x}\r\n{}\r\n", text.size(), text));
}

void HttpAnswer::end() {
  if (http_1_0_) failed_ = true;  // the end of the connection ends the response
  else write("0\r\n\r\n");
}

bool HttpAnswer::gone() const {
  if (failed_) return true;
  // Not by reading: further requests of the client may hide the end behind them.
  pollfd one{socket_, POLLRDHUP, 0};
  return ::poll(&one, 1, 0) > 0;
}

HttpServer::HttpServer(const std::string& address, std::uint16_t port, const HttpLimits& limits,
    Handler handler, Refusal refusal)
    : limits_(limits), handler_(std::move(handler)), refusal_(std::move(refusal)) {
  const auto where = numeric_address(address, port);
  socket_ = core::Descriptor(::socket(where->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  if (!socket_ || ::setsockopt(socket_.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      ::bind(socket_.fd(), where->ai_addr, where->ai_addrlen) != 0 ||
      ::listen(socket_.fd(), kBacklog) != 0)
    core::fail(core::Code::cannot_create, "{} port {}: cannot listen: {}; give another --port",
        address, port, core::error_text(errno));
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  ::getsockname(socket_.fd(), reinterpret_cast<sockaddr*>(&bound), &size);
  const auto* const v4 = reinterpret_cast<const sockaddr_in*>(&bound);
  const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(&bound);
  port_ = ntohs(bound.ss_family == AF_INET6 ? v6->sin6_port : v4->sin_port);
  stopping_ = core::Descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  accepting_ = std::thread([this] { accept_all(); });
}

void HttpServer::stop() {
  if (!accepting_.joinable()) return;
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(stopping_.fd(), &one, sizeof one);
  accepting_.join();
  socket_.reset();
  std::unique_lock lock(mutex_);
  closed_.wait(lock, [this] { return open_ == 0; });
}

void HttpServer::accept_all() {
  for (;;) {
    pollfd both[2] = {{socket_.fd(), POLLIN, 0}, {stopping_.fd(), POLLIN, 0}};
    if (::poll(both, 2, -1) < 0 && errno != EINTR) return;
    if (both[1].revents != 0) return;
    if (both[0].revents == 0) continue;
    const int socket = ::accept4(socket_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) {
      // The client disconnected at once, or no descriptor is free; wait a moment.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
      continue;
    }
    serve_one(socket);
  }
}

void HttpServer::serve_one(int socket) {
  const int on = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const auto busy = [&] {
    HttpLimits quick = limits_;
    quick.write = std::chrono::milliseconds(0);
    HttpAnswer answer(socket, quick, false, false);
    answer.send(503, "application/json", refusal_(503, "too many connections; try again"), kRetry);
    ::close(socket);
  };
  {
    const std::lock_guard lock(mutex_);
    if (open_ < limits_.connections) ++open_;
    else return busy();
  }
  try {
    std::thread([this, socket] {
      try {
        HttpConnection(*this, socket).run();
      } catch (const std::exception&) {  // out of memory: the client sees the connection close
      }
      ::close(socket);
      const std::lock_guard lock(mutex_);
      --open_;
      closed_.notify_all();
    }).detach();
  } catch (const std::system_error&) {  // the system refused a thread
    busy();
    const std::lock_guard lock(mutex_);
    --open_;
  }
}

bool is_loopback(const std::string& address) {
  const auto where = numeric_address(address, 0);
  if (where->ai_family == AF_INET6) {
    const auto* const v6 = reinterpret_cast<const sockaddr_in6*>(where->ai_addr);
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
  }
  const auto* const v4 = reinterpret_cast<const sockaddr_in*>(where->ai_addr);
  return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
}

}  // namespace serve
