#pragma once
// Parses the head of an HTTP/1.1 request (RFC 9112). Clients are untrusted: anything ambiguous is
// refused.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

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

/// Returns the text with the letters A to Z in lower case.
std::string lower_case(std::string_view text);

/// Parses the body of a request, a JSON object. Throws HttpError 400.
core::Json json_object(const std::string& body);

/// Returns the reason phrase of a status: "Not Found" for 404.
std::string_view reason_of(int status);

/// An HttpRequest is a parsed request.
struct HttpRequest {
  std::string method, path;                    ///< path: without the query after "?"
  bool http_1_0 = false;                       ///< else HTTP/1.1
  std::map<std::string, std::string> headers;  ///< names in lower case, values trimmed
  std::string body;

  /// Returns the value of a header; empty if it is absent.
  std::string_view header(const std::string& name) const;
  /// Returns true if the response has no body (RFC 9110, section 9.3.2).
  bool wants_head_only() const { return method == "HEAD"; }
  /// Returns true if the client wants the connection to stay open after the response.
  bool keeps_alive() const;
  /// Returns the length of the body in bytes. Throws HttpError: 400 for an invalid number, 411 if
  /// the length is not declared, 413 for more than `most`.
  std::size_t body_bytes(std::size_t most) const;
};

/// Parses a head, which includes the empty line at its end. Throws HttpError: 400 (invalid request,
/// a repeated header that must be unique, an illegal character), 431 (more than 100 headers), 505
/// (another version).
HttpRequest parse_head(std::string_view head);

}  // namespace serve
