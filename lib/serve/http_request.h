#pragma once
// The head of an HTTP/1.1 request (RFC 9112), as data of a stranger: what is not plainly right is
// refused.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace serve {

/// What a client gets instead of an answer; the text is one sentence for people.
class HttpError : public std::runtime_error {
 public:
  HttpError(int status, const std::string& text) : std::runtime_error(text), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

/// "Not Found" of 404.
std::string_view reason_of(int status);

struct HttpRequest {
  std::string method, path;                    ///< path: without what is behind a "?"
  bool http_1_0 = false;                       ///< else HTTP/1.1
  std::map<std::string, std::string> headers;  ///< names in small letters, values trimmed
  std::string body;

  /// Empty: it is not there.
  std::string_view header(const std::string& name) const;
  /// Whether the connection stays open behind the answer, as far as the client says.
  bool keeps_alive() const;
  /// Bytes of the body. Throws HttpError: 400 for no number, 411 for a body whose length is not
  /// said before it, 413 for more than `most`.
  std::size_t body_bytes(std::size_t most) const;
};

/// Reads a head: the lines up to the empty one, which is among them. Throws HttpError 400 (no
/// request, a name twice that may be there once, a character that may not be there), 431 (more than
/// 100 headers), 505 (another version).
HttpRequest parse_head(std::string_view head);

}  // namespace serve
