// Any head from a client is a valid request, or is refused with a status.

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fuzz/target.h"
#include "serve/http_request.h"

FUZZ_TARGET(http_request)(const std::uint8_t* data, std::size_t size) {
  const std::string_view head(reinterpret_cast<const char*>(data), size);
  try {
    const auto request = serve::parse_head(head);
    if (!request.path.starts_with('/') || request.path.find('?') != request.path.npos) std::abort();
    if (request.headers.size() > 100 || request.path.size() > size) std::abort();
    for (const auto& [name, value] : request.headers)
      for (const char c : name + value)
        if (c == '\r' || c == '\n' || c == '\0') std::abort();
    request.keeps_alive();
    if (request.body_bytes(1000) > 1000) std::abort();
  } catch (const serve::HttpError& error) {
    if (error.status() < 400 || error.status() >= 600) std::abort();
  }
}
