#include "serve/http_request.h"

#include <doctest/doctest.h>

namespace {

// Returns the status of a refusal, or 0 for a valid request.
int refused_request(const std::string& head, std::size_t most = 1000) {
  try {
    serve::parse_head(head).body_bytes(most);
  } catch (const serve::HttpError& error) {
    return error.status();
  }
  return 0;
}

int refused_header(const std::string& line) {
  return refused_request("GET / HTTP/1.1\r\nHost: a\r\n" + line + "\r\n\r\n");
}

}  // namespace

DOCTEST_TEST_CASE("a request's line and headers are read, names in small letters") {
  const auto request = serve::parse_head(
      "POST /v1/completions?x=/../y HTTP/1.1\r\nHOST: localhost:1\r\nContent-Length: 12\r\n"
      "X-A:\t 1 \r\nx-a: 2\r\nEmpty:\r\n\r\n");
  DOCTEST_CHECK(request.method == "POST");
  DOCTEST_CHECK(request.path == "/v1/completions");
  DOCTEST_CHECK(request.header("host") == "localhost:1");
  DOCTEST_CHECK(request.header("x-a") == "1, 2");
  DOCTEST_CHECK(request.header("empty").empty());
  DOCTEST_CHECK(request.body_bytes(12) == 12);
  DOCTEST_CHECK(request.keeps_alive());
  const auto old = serve::parse_head("GET / HTTP/1.0\r\n\r\n");
  DOCTEST_CHECK(old.http_1_0);
  DOCTEST_CHECK(!old.keeps_alive());
  DOCTEST_CHECK(
      serve::parse_head("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").keeps_alive());
  DOCTEST_CHECK(
      !serve::parse_head("GET / HTTP/1.1\r\nHost: a\r\nConnection: Close\r\n\r\n").keeps_alive());
}

DOCTEST_TEST_CASE("what is no request, or could be two, is refused") {
  DOCTEST_CHECK(refused_request("GET / HTTP/1.1\r\nHost: a\r\n\r\n") == 0);
  for (const char* head :
       {"", "\r\n\r\n", "GET /\r\n\r\n", "GET  HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\n\r\n", "G\x01T / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /\xC3\xA4 HTTP/1.1\r\nHost: a\r\n\r\n", "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : a\r\n\r\n"})
    DOCTEST_CHECK_MESSAGE(refused_request(head) == 400, head);
  DOCTEST_CHECK(refused_request("GET / HTTP/2.0\r\nHost: a\r\n\r\n") == 505);
  DOCTEST_CHECK(refused_header("Host: b") == 400);
  DOCTEST_CHECK(refused_header("A: b\x01") == 400);
  DOCTEST_CHECK(refused_header("Content-Length: 1\r\nContent-Length: 1") == 400);
  DOCTEST_CHECK(refused_header("Content-Length: 1, 1") == 400);
  for (const char* length : {"-1", "+1", "1 1", "0x1", "", "1a"})
    DOCTEST_CHECK_MESSAGE(refused_header(std::string("Content-Length: ") + length) == 400, length);
  DOCTEST_CHECK(refused_header("Content-Length: 1000") == 0);
  DOCTEST_CHECK(refused_header("Content-Length: 1001") == 413);
  DOCTEST_CHECK(refused_header("Content-Length: 99999999999999999999999999") == 413);
  DOCTEST_CHECK(refused_header("Transfer-Encoding: chunked") == 411);
  DOCTEST_CHECK(refused_request("POST / HTTP/1.1\r\nHost: a\r\n\r\n") == 411);
  std::string many;
  for (int i = 0; i < 99; ++i) many += "A" + std::to_string(i) + ": b\r\n";
  DOCTEST_CHECK(refused_header(many + "B: c") == 431);
  DOCTEST_CHECK(refused_header(many.substr(0, many.size() - 2)) == 0);
}
