#pragma once
// A small HTTP/1.1 server for few clients. It uses one thread per connection, bounds every wait and
// every size, and serves no files. Debian 12's cpp-httplib (0.11.4) is not used because it bounds
// neither the headers of a request nor the time that a slow sender holds a thread.

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/temporary_file.h"
#include "serve/http_request.h"

namespace serve {

/// HttpLimits holds the server's limits.
struct HttpLimits {
  std::size_t connections = 64;  ///< further connections are answered with 503
  std::size_t head_bytes = std::size_t{16} << 10;
  std::size_t body_bytes = std::size_t{4} << 20;
  std::size_t all_body_bytes = std::size_t{64}
                               << 20;  ///< of the requests that are not answered yet
  std::size_t requests = 1000;         ///< per connection
  std::chrono::milliseconds request =
      std::chrono::seconds(20);  ///< from the first byte of a request to its last
  std::chrono::milliseconds idle = std::chrono::seconds(60);   ///< between requests
  std::chrono::milliseconds write = std::chrono::seconds(20);  ///< without progress
};

/// An HttpAnswer sends the response to one request. Not thread safe.
class HttpAnswer {
 public:
  /// Adds a header line, without its end, to every response.
  void add_header(std::string_view line) { headers_.append(line).append("\r\n"); }
  /// Sends a whole response, without the body in answer to HEAD. `type` is the content type,
  /// `header` a further header line without its end; empty: none.
  void send(int status, std::string_view type, std::string_view body, std::string_view header = {});
  /// Starts a chunked response: call begin(), then chunk() repeatedly, then end().
  void begin(std::string_view type);
  /// Sends a chunk. Returns false if the client has disconnected.
  bool chunk(std::string_view text);
  void end();
  /// Returns true if the client is known to have disconnected or to send nothing more.
  bool gone() const;
  bool begun() const { return begun_; }

 private:
  friend class HttpConnection;
  friend class HttpServer;
  HttpAnswer(int socket, const HttpLimits& limits, bool http_1_0, bool keep, bool head_only = false)
      : socket_(socket), limits_(limits), http_1_0_(http_1_0), keep_(keep), head_only_(head_only) {}
  bool write(std::string_view bytes);
  int socket_;
  const HttpLimits& limits_;
  bool http_1_0_, keep_, head_only_;
  std::string headers_;
  bool begun_ = false, failed_ = false;
};

/// An HttpServer accepts connections until stop().
class HttpServer {
 public:
  /// A Handler answers requests. It is called concurrently from many threads and throws HttpError
  /// to refuse a request.
  using Handler = std::function<void(HttpRequest&, HttpAnswer&)>;
  /// A Refusal returns the body of an error response for a status and a sentence.
  using Refusal = std::function<std::string(int status, const std::string& text)>;

  /// Binds and listens. `address` is numeric (IPv4 or IPv6); port 0 selects a free port. Throws
  /// Error{usage} for an invalid address, Error{cannot_create} if binding fails.
  HttpServer(const std::string& address, std::uint16_t port, const HttpLimits& limits,
      Handler handler, Refusal refusal);
  /// Calls stop().
  ~HttpServer() { stop(); }
  HttpServer(HttpServer&&) = delete;

  std::uint16_t port() const { return port_; }
  /// Returns the bytes of the bodies that have been received and are not answered yet.
  std::size_t body_bytes() const { return body_bytes_; }
  /// Stops accepting connections, closes idle connections, and closes the others after their
  /// current response. Returns when all are closed.
  void stop();

 private:
  friend class HttpConnection;
  void accept_all();
  void serve_one(int socket);
  HttpLimits limits_;
  Handler handler_;
  Refusal refusal_;
  core::Descriptor socket_, stopping_;  // stopping_ becomes readable when the server stops
  std::uint16_t port_ = 0;
  std::mutex mutex_;
  std::condition_variable closed_;
  std::size_t open_ = 0;                     // number of open connections
  std::atomic<std::size_t> body_bytes_ = 0;  // of all requests that are not answered yet
  std::thread accepting_;
};

/// Returns true for 127.0.0.0/8 and ::1. Throws Error{usage} for text that is not a numeric
/// address.
bool is_loopback(const std::string& address);

}  // namespace serve
