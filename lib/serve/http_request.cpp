#include "serve/http_request.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace serve {
namespace {

constexpr std::size_t kMostHeaders = 100;
constexpr std::string_view kLineEnd = "\r\n";

[[noreturn]] void refuse(const std::string& what) { throw HttpError(400, what); }

bool is_token_char(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kOthers.find(c) != kOthers.npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

void parse_request_line(std::string_view line, HttpRequest& request) {
  const auto first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || first == last) refuse("no request line");
  request.method = line.substr(0, first);
  const auto target = line.substr(first + 1, last - first - 1), version = line.substr(last + 1);
  if (!is_token(request.method)) refuse("no method");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    if (version.starts_with("HTTP/")) throw HttpError(505, "only HTTP/1.1 is supported");
    refuse("no request line");
  }
  request.http_1_0 = version == "HTTP/1.0";
  const auto visible = [](char c) { return c > ' ' && c < '\x7f'; };
  if (!target.starts_with('/') || !std::all_of(target.begin(), target.end(), visible))
    refuse("a path must begin with / and consist of visible ASCII characters");
  request.path = target.substr(0, target.find('?'));
}

void parse_header(std::string_view line, HttpRequest& request) {
  const auto colon = line.find(':');
  if (colon == line.npos || !is_token(line.substr(0, colon))) refuse("a header without a name");
  const auto value = trimmed(line.substr(colon + 1));
  const auto control = [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == '\x7f'; };
  if (std::any_of(value.begin(), value.end(), control)) refuse("a header with a control character");
  if (request.headers.size() == kMostHeaders) throw HttpError(431, "too many headers");
  const auto [at, is_new] = request.headers.emplace(lower_case(line.substr(0, colon)), value);
  if (is_new) return;
  for (const char* once : {"host", "content-length", "transfer-encoding", "authorization"})
    if (at->first == once) refuse("the header " + at->first + " twice");
  at->second.append(", ").append(value);
}

}  // namespace

std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

core::Json json_object(const std::string& body) {
  core::Json json;
  try {
    json = core::parse_json(body, "the request");
  } catch (const core::Error& error) {
    refuse(error.what());
  }
  if (!json.is_object()) refuse("the request is not a JSON object");
  return json;
}

std::string_view reason_of(int status) {
  static constexpr std::pair<int, std::string_view> kReasons[] = {
      {100, "Continue"},
      {200, "OK"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {411, "Length Required"},
      {413, "Content Too Large"},
      {417, "Expectation Failed"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {503, "Service Unavailable"},
      {505, "HTTP Version Not Supported"}};
  for (const auto& [code, reason] : kReasons)
    if (code == status) return reason;
  return "Unknown";
}

std::string_view HttpRequest::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

bool HttpRequest::keeps_alive() const {
  const std::string connection = lower_case(header("connection"));
  if (connection.find("close") != connection.npos) return false;
  return !http_1_0 || connection.find("keep-alive") != connection.npos;
}

std::size_t HttpRequest::body_bytes(std::size_t most) const {
  if (!header("transfer-encoding").empty())
    throw HttpError(411, "a body needs Content-Length; Transfer-Encoding is not supported");
  const auto length = header("content-length");
  if (headers.count("content-length") == 0) {
    if (method == "POST" || method == "PUT") throw HttpError(411, "a body needs Content-Length");
    return 0;
  }
  const bool digits = !length.empty() && std::all_of(length.begin(), length.end(),
                                                     [](char c) { return c >= '0' && c <= '9'; });
  if (!digits) refuse("Content-Length is not a number");
  std::size_t bytes = 0;
  const auto read = std::from_chars(length.data(), length.data() + length.size(), bytes);
  if (read.ec != std::errc() || bytes > most)
    throw HttpError(413, "the body is larger than " + std::to_string(most) + " bytes");
  return bytes;
}

HttpRequest parse_head(std::string_view head) {
  HttpRequest request;
  if (!head.ends_with("\r\n\r\n")) refuse("the head does not end");
  head.remove_suffix(kLineEnd.size());
  bool first = true;
  while (!head.empty()) {
    const auto end = head.find(kLineEnd);
    const auto line = head.substr(0, end);
    head.remove_prefix(end + kLineEnd.size());
    if (line.find_first_of({"\r\n\0", 3}) != line.npos) refuse("a line that ends without CRLF");
    first ? parse_request_line(line, request) : parse_header(line, request);
    first = false;
  }
  if (first) refuse("no request line");
  if (!request.http_1_0 && request.headers.count("host") == 0) refuse("the header Host is missing");
  return request;
}

}  // namespace serve
