#pragma once
// A small HTTP/1.1 server for few clients: one thread for each connection, every wait and every
// size bounded. It knows no files. Debian 12's cpp-httplib (0.11.4) bounds neither the headers of a
// request nor the time that a slow sender holds a thread, which is why it is not used.

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "serve/http_request.h"

namespace serve {

struct HttpLimits {
  std::size_t connections = 64;  ///< one more is answered with 503
  std::size_t head_bytes = std::size_t{16} << 10;
  std::size_t body_bytes = std::size_t{4} << 20;
  std::size_t requests = 1000;  ///< of a connection
  std::chrono::milliseconds request =
      std::chrono::seconds(20);                                ///< from its first byte to its last
  std::chrono::milliseconds idle = std::chrono::seconds(60);   ///< between requests
  std::chrono::milliseconds write = std::chrono::seconds(20);  ///< without taking a byte
};

/// What a handler answers. One a request; not thread safe.
class HttpAnswer {
 public:
  /// One answer, whole. `type` is its content type.
  void send(int status, std::string_view type, std::string_view body);
  /// An answer in chunks: begin(), chunk() as often as there is more, end().
  void begin(std::string_view type);
  /// False: the client is gone.
  bool chunk(std::string_view text);
  void end();
  /// Whether the client has left, as far as its system has told.
  bool gone() const;
  bool begun() const { return begun_; }

 private:
  friend class HttpConnection;
  friend class HttpServer;
  HttpAnswer(int socket, const HttpLimits& limits, bool http_1_0, bool keep)
      : socket_(socket), limits_(limits), http_1_0_(http_1_0), keep_(keep) {}
  bool write(std::string_view bytes);
  int socket_;
  const HttpLimits& limits_;
  bool http_1_0_, keep_;
  bool begun_ = false, failed_ = false;
};

class HttpServer {
 public:
  /// Called in many threads at once; throws HttpError for what it refuses.
  using Handler = std::function<void(const HttpRequest&, HttpAnswer&)>;
  /// How a refusal looks: {content type, body} of a status and a sentence.
  using Refusal = std::function<std::string(int status, const std::string& text)>;

  /// Binds and listens. `address` is numeric (IPv4 or IPv6); port 0: any that is free. Throws
  /// Error{usage} for what is no address, Error{cannot_create} where it cannot be bound.
  HttpServer(const std::string& address, std::uint16_t port, const HttpLimits& limits,
             Handler handler, Refusal refusal);
  /// As stop().
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  std::uint16_t port() const { return port_; }
  /// Nothing new is taken; connections without a request are closed, and those with one behind its
  /// answer. Returns when all are closed.
  void stop();

 private:
  friend class HttpConnection;
  void accept_all();
  void serve_one(int socket);
  HttpLimits limits_;
  Handler handler_;
  Refusal refusal_;
  int socket_ = -1, stopping_ = -1;  // the second is readable once the server stops
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable closed_;
  std::size_t open_ = 0;  // connections
  std::thread accepting_;
};

/// 127.0.0.0/8 and ::1. Throws Error{usage} for what is no numeric address.
bool is_loopback(const std::string& address);

}  // namespace serve
