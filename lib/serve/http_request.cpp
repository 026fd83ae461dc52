#include "serve/http_request.h"

#include <charconv>
#include <system_error>

namespace serve {
namespace {

constexpr std::size_t kMostHeaders = 100;
constexpr std::size_t kMostChunkLine = 4096, kMostTrailers = 16384;  // bytes
constexpr std::string_view kLineEnd = "\r\n";

bool is_token_char(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         kOthers.find(c) != kOthers.npos;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

std::string_view trimmed(std::string_view text) {
  const auto from = std::min(text.find_first_not_of(" \t"), text.size());
  return text.substr(from, text.find_last_not_of(" \t") + 1 - from);
}

// Takes a path, or the absolute form of a target that proxies receive (RFC 9112, section 3.2.2),
// whose host it returns; else an empty text.
std::string_view take_target(std::string_view target, HttpRequest& request) {
  const auto visible = [](char c) { return c > ' ' && c < '\x7f'; };
  if (!std::all_of(target.begin(), target.end(), visible))
    refuse("a target must consist of visible ASCII characters");
  request.path = target.substr(0, target.find('?'));
  if (target.starts_with('/') || (target == "*" && request.method == "OPTIONS")) return {};
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (lower_case(target.substr(0, scheme.size())) != scheme) continue;
    target.remove_prefix(scheme.size());
    const auto host = target.substr(0, target.find_first_of("/?#"));
    if (host.empty() || host.find('@') != host.npos) refuse("an absolute target without a host");
    target.remove_prefix(host.size());
    request.path = target.substr(0, target.find_first_of("?#"));
    if (request.path.empty()) request.path = "/";
    return host;
  }
  refuse("a target must be a path that begins with /, or begin with http://");
}

// Returns the host of an absolute target.
std::string_view parse_request_line(std::string_view line, HttpRequest& request) {
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
  return take_target(target, request);
}

void parse_header(std::string_view line, HttpRequest& request) {
  const auto colon = line.find(':');
  if (colon == line.npos || !is_token(line.substr(0, colon))) refuse("a header without a name");
  const auto value = trimmed(line.substr(colon + 1));
  const auto control = [](char c) { return (c >= 0 && c < ' ' && c != '\t') || c == '\x7f'; };
  if (std::any_of(value.begin(), value.end(), control)) refuse("a header with a control character");
  if (request.headers.size() == kMostHeaders) throw HttpError(431, "too many headers");
  const auto name = lower_case(line.substr(0, colon));
  const auto [at, is_new] = request.headers.emplace(name, value);
  if (is_new) return;
  for (const char* once : {"host", "content-length", "transfer-encoding", "authorization"})
    if (at->first == once) refuse("the header {} twice", at->first);
  at->second.append(", ").append(value);
}

// Returns the escaped UTF-16 unit at the front of a text, a backslash, u and four digits; 0: none.
unsigned escaped_unit(std::string_view text) {
  unsigned unit = 0;
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u') return 0;
  const auto read = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
  return read.ptr == text.data() + 6 ? unit : 0;
}

// Replaces escapes of lone surrogates, which are no characters, by that of U+FFFD, as browsers do
// where they encode a text. JavaScript writes them where a program cuts a text between the two
// units of a character.
std::string without_lone_surrogates(std::string text) {
  for (std::size_t at = text.find('\\'); at != text.npos; at = text.find('\\', at)) {
    const auto rest = std::string_view(text).substr(at);
    const unsigned unit = escaped_unit(rest), surrogates = 0xD800, low = 0xDC00, end = 0xE000;
    if (unit < surrogates || unit >= end) {
      at += 2;  // the escaped character may be a backslash
      continue;
    }
    const unsigned next = unit < low ? escaped_unit(rest.substr(6)) : 0;
    if (next >= low && next < end) at += 12;
    else text.replace(at, 6, "\\ufffd"), at += 6;
  }
  return text;
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
    json = core::parse_json(without_lone_surrogates(body), "the request");
  } catch (const core::Error& error) { refuse("{}", error.what()); }
  if (!json.is_object()) refuse("the request is not a JSON object");
  return json;
}

std::string_view reason_of(int status) {
  static constexpr std::pair<int, std::string_view> kReasons[] = {{100, "Continue"}, {200, "OK"},
      {204, "No Content"}, {400, "Bad Request"}, {401, "Unauthorized"}, {403, "Forbidden"},
      {404, "Not Found"}, {405, "Method Not Allowed"}, {408, "Request Timeout"},
      {411, "Length Required"}, {413, "Content Too Large"}, {415, "Unsupported Media Type"},
      {417, "Expectation Failed"}, {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"}, {501, "Not Implemented"}, {503, "Service Unavailable"},
      {505, "HTTP Version Not Supported"}};
  const auto* const known = core::find_by(kReasons, status, [](auto& one) { return one.first; });
  return known == nullptr ? "Unknown" : known->second;
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

std::optional<std::size_t> HttpRequest::body_bytes(std::size_t most) const {
  const auto encoding = lower_case(header("content-encoding"));
  if (!encoding.empty() && encoding != "identity")
    throw HttpError(415, "no Content-Encoding is supported; send the body as it is");
  if (headers.count("transfer-encoding") > 0) {
    // Two lengths of one body, or a coding that the version does not have, may hide a request.
    if (http_1_0 || headers.count("content-length") > 0)
      refuse("Transfer-Encoding with Content-Length, or in HTTP/1.0");
    if (lower_case(header("transfer-encoding")) != "chunked")
      throw HttpError(501, "the only Transfer-Encoding that is supported is chunked");
    return std::nullopt;
  }
  const auto length = header("content-length");
  if (headers.count("content-length") == 0) {
    if (method == "POST" || method == "PUT") throw HttpError(411, "a body needs Content-Length");
    return 0;
  }
  std::size_t bytes = 0;
  const auto read = std::from_chars(length.data(), length.data() + length.size(), bytes);
  if (read.ec == std::errc::invalid_argument || read.ptr != length.data() + length.size())
    refuse("Content-Length is not a number");
  if (read.ec != std::errc() || bytes > most)
    throw HttpError(413, "the body is larger than " + std::to_string(most) + " bytes");
  return bytes;
}

// Takes a line that gives the size of a chunk, ends its data or is a trailer. Returns false after
// the last one.
bool ChunkedBody::take_line(std::string_view line) {
  switch (part_) {
    case Part::size: {
      const auto end = line.data() + line.size();
      const auto read = std::from_chars(line.data(), end, left_, 16);
      const auto rest = trimmed({read.ptr, static_cast<std::size_t>(end - read.ptr)});
      if (read.ec == std::errc::invalid_argument || (!rest.empty() && rest[0] != ';'))
        refuse("the size of a chunk is not a hexadecimal number");
      if (read.ec != std::errc() || left_ > most_ - taken_)
        throw HttpError(413, "the body is larger than " + std::to_string(most_) + " bytes");
      part_ = left_ == 0 ? Part::trailers : Part::data;
      return true;
    }
    case Part::data_end:
      if (!line.empty()) refuse("a chunk is longer than its size");
      part_ = Part::size;
      return true;
    default:
      trailers_ += line.size();
      if (trailers_ > kMostTrailers) throw HttpError(431, "the trailers are too long");
      if (line.empty()) part_ = Part::done;
      return !line.empty();
  }
}

bool ChunkedBody::take(std::string& received, std::string& body) {
  std::size_t at = 0;
  while (part_ != Part::done) {
    const auto rest = std::string_view(received).substr(at);
    if (part_ == Part::data) {
      const auto n = std::min(left_, rest.size());
      body += rest.substr(0, n);
      at += n, left_ -= n, taken_ += n;
      if (left_ > 0) break;
      part_ = Part::data_end;
      continue;
    }
    const auto end = rest.find(kLineEnd);
    // Without its end, a line may have the first byte of it.
    if (end == rest.npos ? rest.size() > kMostChunkLine + 1 : end > kMostChunkLine)
      refuse("a line between chunks is too long");
    if (end == rest.npos) break;
    at += end + kLineEnd.size();
    if (!take_line(rest.substr(0, end))) break;
  }
  received.erase(0, at);
  return part_ == Part::done;
}

HttpRequest parse_head(std::string_view head) {
  HttpRequest request;
  if (!head.ends_with("\r\n\r\n")) refuse("the head does not end");
  head.remove_suffix(kLineEnd.size());
  bool first = true;
  std::string_view host;
  while (!head.empty()) {
    const auto end = head.find(kLineEnd);
    const auto line = head.substr(0, end);
    head.remove_prefix(end + kLineEnd.size());
    if (line.find_first_of({"\r\n\0", 3}) != line.npos) refuse("a line that ends without CRLF");
    if (first) host = parse_request_line(line, request);
    else parse_header(line, request);
    first = false;
  }
  if (first) refuse("no request line");
  if (!request.http_1_0 && request.headers.count("host") == 0) refuse("the header Host is missing");
  if (!host.empty()) request.headers["host"] = host;
  return request;
}

}  // namespace serve
