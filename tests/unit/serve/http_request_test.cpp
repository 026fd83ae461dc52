#include "serve/http_request.h"

#include <doctest/doctest.h>

namespace {

// Returns the status of a refusal, or 0 for a valid request.
int refused_request(const std::string& head, std::size_t most = 1000) {
  try {
    serve::parse_head(head).body_bytes(most);
  } catch (const serve::HttpError& error) { return error.status(); }
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
  for (const char* head : {"", "\r\n\r\n", "GET /\r\n\r\n", "GET  HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET / HTTP/1.1\r\n\r\n", "G\x01T / HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET http://me@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET http://a/ HTTP/1.1\r\n\r\n", "GET http://a/ HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
           "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "GET /\xC3\xA4 HTTP/1.1\r\nHost: a\r\n\r\n",
           "GET / HTTP/1.1\nHost: a\n\n", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n",
           "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", "GET / HTTP/1.1\r\nHost : a\r\n\r\n"})
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
  DOCTEST_CHECK(refused_header("Content-Encoding: gzip\r\nContent-Length: 3") == 415);
  DOCTEST_CHECK(refused_header("Content-Encoding: Identity\r\nContent-Length: 3") == 0);
  DOCTEST_CHECK(refused_header("Transfer-Encoding: Chunked") == 0);
  DOCTEST_CHECK(refused_header("Transfer-Encoding: gzip, chunked") == 501);
  DOCTEST_CHECK(refused_header("Transfer-Encoding:") == 501);
  DOCTEST_CHECK(refused_header("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked") == 400);
  DOCTEST_CHECK(refused_header("Transfer-Encoding: chunked\r\nContent-Length: 3") == 400);
  DOCTEST_CHECK(refused_request("GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n") == 400);
  DOCTEST_CHECK(refused_request("POST / HTTP/1.1\r\nHost: a\r\n\r\n") == 411);
  std::string many;
  for (int i = 0; i < 99; ++i) many += "A" + std::to_string(i) + ": b\r\n";
  DOCTEST_CHECK(refused_header(many + "B: c") == 431);
  DOCTEST_CHECK(refused_header(many.substr(0, many.size() - 2)) == 0);
}

DOCTEST_TEST_CASE("an absolute target gives the path and the host; OPTIONS may ask about all") {
  struct Case {
    const char *target, *path, *host;
  };
  for (const Case& one : std::vector<Case>{{"http://a:8080/v1/models?x=1", "/v1/models", "a:8080"},
           {"HTTP://[::1]:80", "/", "[::1]:80"}, {"https://b?x/y", "/", "b"},
           {"/http://c/", "/http://c/", "proxy"}}) {
    const auto request =
        serve::parse_head(std::string("GET ") + one.target + " HTTP/1.1\r\nHost: proxy\r\n\r\n");
    DOCTEST_CHECK(request.path == one.path);
    DOCTEST_CHECK(request.header("host") == one.host);
  }
  DOCTEST_CHECK(serve::parse_head("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n").path == "*");
}

DOCTEST_TEST_CASE("chunked bodies, in pieces of any size; wrong framing is refused") {
  const std::string sent =
      "4\r\nab\r\n\r\n5;name=\"x\"\r\ncdefg\r\n0A \r\n0123456789\r\n0\r\nTrailer: x\r\n\r\nGET";
  for (std::size_t piece = 1; piece <= sent.size(); ++piece) {
    serve::ChunkedBody chunks(19);
    std::string received, body;
    bool done = false;
    for (std::size_t at = 0; at < sent.size(); at += piece) {
      received += sent.substr(at, piece);
      done = done || chunks.take(received, body);
    }
    DOCTEST_CHECK(done);
    DOCTEST_CHECK(body == "ab\r\ncdefg0123456789");
    DOCTEST_CHECK(received == "GET");  // the next request
  }
  const auto refused = [](std::string body) {
    try {
      std::string to;
      serve::ChunkedBody(18).take(body, to);
    } catch (const serve::HttpError& error) { return error.status(); }
    return 0;
  };
  DOCTEST_CHECK(refused("12\r\n012345678901234567\r\n0\r\n\r\n") == 0);
  DOCTEST_CHECK(refused("13\r\n") == 413);
  DOCTEST_CHECK(refused("fffffffffffffffffff\r\n") == 413);
  DOCTEST_CHECK(refused("12\r\n012345678901234567\r\n1\r\n") == 413);
  for (const char* wrong :
      {"\r\n", "x\r\n", "-1\r\n", "0x1\r\n", "1 1\r\n", " 1\r\n", "1\r\nab\r\n"})
    DOCTEST_CHECK_MESSAGE(refused(wrong) == 400, wrong);
  DOCTEST_CHECK(refused(std::string(5000, '0')) == 400);
  std::string trailers = "0\r\n";
  for (int i = 0; i < 20; ++i) trailers += std::string(1000, 'a') + "\r\n";
  DOCTEST_CHECK(refused(trailers) == 431);
}

DOCTEST_TEST_CASE(
    "escapes of lone surrogates in JSON are U+FFFD, pairs and other escapes are not") {
  const auto text = [](const std::string& escaped) {
    return serve::json_object("{\"a\": \"" + escaped + "\"}")["a"].get<std::string>();
  };
  DOCTEST_CHECK(text("x\\ud83dy") == "x\xEF\xBF\xBDy");
  DOCTEST_CHECK(text("\\uDE00") == "\xEF\xBF\xBD");
  DOCTEST_CHECK(text("\\ud83d\\ud83d\\ude00") == "\xEF\xBF\xBD\xF0\x9F\x98\x80");
  DOCTEST_CHECK(text("\\ud83d\\u0041") ==
                "\xEF\xBF\xBD"
                "A");
  DOCTEST_CHECK(text("\\\\ud83d") == "\\ud83d");
  DOCTEST_CHECK(text("\\n\\ud83d") == "\n\xEF\xBF\xBD");
}
