// Any head from a client is a valid request, or is refused with a status; so is a chunked body,
// which is the same however it arrives.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "fuzz/target.h"
#include "serve/http_request.h"

namespace {

// Returns the body that arrives in pieces; nothing if it is refused or does not end.
std::optional<std::string> chunked_body(std::string_view bytes, std::size_t piece) {
  serve::ChunkedBody chunks(1000);
  std::string received, body;
  try {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(piece, bytes.size()))) {
      received += bytes.substr(0, piece);
      if (chunks.take(received, body)) return body;
      if (body.size() > 1000) std::abort();
    }
  } catch (const serve::HttpError&) {}
  return std::nullopt;
}

}  // namespace

FUZZ_TARGET(http_request)(const std::uint8_t* data, std::size_t size) {
  const std::string_view head(reinterpret_cast<const char*>(data), size);
  try {
    const auto request = serve::parse_head(head);
    if (!(request.path.starts_with('/') || request.path == "*") ||
        request.path.find('?') != request.path.npos)
      std::abort();
    if (request.headers.size() > 100 || request.path.size() > size) std::abort();
    for (const auto& [name, value] : request.headers)
      for (const char c : name + value)
        if (c == '\r' || c == '\n' || c == '\0') std::abort();
    request.keeps_alive();
    if (request.body_bytes(1000).value_or(0) > 1000) std::abort();
  } catch (const serve::HttpError& error) {
    if (error.status() < 400 || error.status() >= 600) std::abort();
  }
  if (chunked_body(head, size) != chunked_body(head, 1)) std::abort();
}
