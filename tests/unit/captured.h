#pragma once
// Clang 14 and 15 capture no structured binding in a lambda, as doctest's messages do. They capture
// a message's text.

#include <doctest/doctest.h>

#include <string>

/// Joins what doctest's messages take: a << b, and a, b.
struct CapturedText {
  std::string text;
  template <class Part> CapturedText& operator*(const Part& part) {
    text += doctest::toString(part).c_str();
    return *this;
  }
  template <class Part> CapturedText& operator<<(const Part& part) { return *this * part; }
  template <class Part> CapturedText& operator,(const Part& part) { return *this * part; }
};

#define TESSERA_TEXT(name, ...)                                 \
  const std::string name = (CapturedText() * __VA_ARGS__).text; \
  DOCTEST_INFO(name)

#undef DOCTEST_CAPTURE
#define DOCTEST_CAPTURE(x) TESSERA_TEXT(DOCTEST_ANONYMOUS(captured_), #x " := ", x)

#undef DOCTEST_CHECK_MESSAGE
#define DOCTEST_CHECK_MESSAGE(condition, ...)                \
  do {                                                       \
    TESSERA_TEXT(DOCTEST_ANONYMOUS(captured_), __VA_ARGS__); \
    DOCTEST_CHECK(condition);                                \
  } while (false)
