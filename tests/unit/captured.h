#pragma once
// Clang 14 and 15 capture no structured binding in a lambda, as DOCTEST_CAPTURE does. They capture
// a reference to it.

#include <doctest/doctest.h>

#undef DOCTEST_CAPTURE
#define DOCTEST_CAPTURE(x) TESSERA_CAPTURE(x, DOCTEST_ANONYMOUS(captured_))
#define TESSERA_CAPTURE(x, name) \
  const auto& name = x;          \
  DOCTEST_INFO(#x " := ", name)
