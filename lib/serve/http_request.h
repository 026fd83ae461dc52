#pragma once
// Parses the head of an HTTP/1.1 request (RFC 9112). Clients are untrusted: anything ambiguous is
// refused.

#include "core/json.h"

namespace serve {

/// An HttpError becomes the response to the client; its text is one sentence for people. `header`
/// is a further header line of the response, without its end.
class HttpError : public std::runtime_error {
 public:
  HttpError(int status, const std::string& text, std::string header = {})
      : std::runtime_error(text), status_(status), header_(std::move(header)) {}
  int status() const { return status_; }
  const std::string& header() const { return header_; }

 private:
  int status_;
  std::string header_;
};

/// The header of an HttpError 503 that ends by itself.
inline constexpr const char* kRetry = "Retry-After: 1";

/// Throws HttpError 400.
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw HttpError(400, fmt::format(format, std::forward<Args>(args)...));
}

/// Returns the text with the letters A to Z in lower case.
std::string lower_case(std::string_view text);

/// Parses the body of a request, a JSON object. Throws HttpError 400.
core::Json json_object(const std::string& body);

/// Returns the reason phrase of a status: "Not Found" for 404.
std::string_view reason_of(int status);

/// An HttpRequest is a parsed request.
struct HttpRequest {
  /// path: without the query after "?"; "*" for a request of OPTIONS about the server. An absolute
  /// target has given it, and the header Host.
  std::string method, path;
  bool http_1_0 = false;                       ///< else HTTP/1.1
  std::map<std::string, std::string> headers;  ///< names in lower case, values trimmed
  std::string body;

  /// Returns the value of a header; empty if it is absent.
  std::string_view header(const std::string& name) const;
  /// Returns true if the response has no body (RFC 9110, section 9.3.2).
  bool wants_head_only() const { return method == "HEAD"; }
  /// Returns true if the client wants the connection to stay open after the response.
  bool keeps_alive() const;
  /// Returns the length of the body in bytes; nothing for a chunked body. Throws HttpError: 400 for
  /// an invalid number and for two lengths, 411 if the length is not declared, 413 for more than
  /// `most`, 415 for a Content-Encoding, 501 for another coding than chunked.
  std::optional<std::size_t> body_bytes(std::size_t most) const;
};

/// A ChunkedBody decodes a chunked body (RFC 9112, section 7.1). Extensions and trailers are
/// discarded.
class ChunkedBody {
 public:
  explicit ChunkedBody(std::size_t most) : most_(most) {}
  /// Removes decoded bytes from the front of `received` and appends the body's bytes to `body`.
  /// Returns true after the end of the body. Throws HttpError: 400 for wrong framing, 413 for more
  /// than `most` bytes, 431 for long trailers.
  bool take(std::string& received, std::string& body);

 private:
  enum class Part { size, data, data_end, trailers, done };
  bool take_line(std::string_view line);

  std::size_t most_, taken_ = 0;  // of the body
  std::size_t left_ = 0;          // of the chunk
  std::size_t trailers_ = 0;      // bytes
  Part part_ = Part::size;
};

/// Parses a head, which includes the empty line at its end. Throws HttpError: 400 (invalid request,
/// a repeated header that must be unique, an illegal character), 431 (more than 100 headers), 505
/// (another version).
HttpRequest parse_head(std::string_view head);

}  // namespace serve
