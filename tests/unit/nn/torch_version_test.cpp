// A program refuses a LibTorch of another version than it was built for, and names both.

#include "nn/base/runtime.h"

#include <doctest/doctest.h>

#include "core/build_info.h"
#include "core/error.h"
#include "unit/thrown.h"

DOCTEST_TEST_CASE("the LibTorch that is loaded tells its version") {
  DOCTEST_CHECK(nn::loaded_torch() == core::build::kTorch);
  nn::expect_torch(core::build::kTorch, nn::loaded_torch());
}

DOCTEST_TEST_CASE("another LibTorch than the one that was built for is refused by name") {
  nn::expect_torch("2.13.0", "2.13.1");
  nn::expect_torch("2.8.0", "");
  for (const char* loaded : {"2.11.0", "2.14.0", "3.13.0", ""}) {
    const auto error = thrown([&] { nn::expect_torch("2.13.0", loaded); });
    DOCTEST_CHECK(error.code == static_cast<int>(core::Code::unavailable));
    DOCTEST_CHECK(error.text.find("built for LibTorch 2.13.0, but loaded ") == 0);
    DOCTEST_CHECK(error.names(*loaded == '\0' ? "an older one" : loaded));
  }
}
