#include "train/validation.h"

#include <doctest/doctest.h>

#include <string>

#include "core/error.h"

namespace {

std::string failure_of(const std::string& command) {
  try {
    train::run_valid_command(command, "/a folder", nullptr);
  } catch (const core::Error& error) {
    DOCTEST_CHECK(error.code() == core::Code::bad_data);
    return error.what();
  }
  return "";
}

}  // namespace

DOCTEST_TEST_CASE("the last number of a text") {
  DOCTEST_CHECK(train::last_number("BLEU = 23.4 60.1/30.2 (BP = 0.98)") == 0.98);
  DOCTEST_CHECK(train::last_number("{\"score\": -1.5e-3,\n") == -1.5e-3);
  DOCTEST_CHECK(train::last_number("7") == 7);
  DOCTEST_CHECK(train::last_number("loss=3 version:2.6.0 of v2 nan inf") == 3);
  DOCTEST_CHECK_FALSE(train::last_number("").has_value());
  DOCTEST_CHECK_FALSE(train::last_number("v2 x86").has_value());
}

DOCTEST_TEST_CASE("a command gets the folder twice, and its last number is the score") {
  const auto score = train::run_valid_command(
      "test {} = \"$TESSERA_MODEL\" && test \"$TESSERA_MODEL\" = '/a folder' && echo 1 && echo 2.5",
      "/a folder", nullptr);
  DOCTEST_CHECK(score == 2.5);
  // More than a pipe can hold.
  DOCTEST_CHECK(train::run_valid_command("seq 1 100000", "/", nullptr) == 100000);
}

DOCTEST_TEST_CASE("a command that fails, dies or says nothing is an error that names it") {
  DOCTEST_CHECK(failure_of("echo 1; exit 3").find("status 3: echo 1") != std::string::npos);
  DOCTEST_CHECK(failure_of("kill -9 $$").find("signal 9") != std::string::npos);
  DOCTEST_CHECK(failure_of("echo none").find("printed no number: echo none") != std::string::npos);
  DOCTEST_CHECK(failure_of("/no/such/program").find("status 127") != std::string::npos);
}

DOCTEST_TEST_CASE("a stop ends the command and all it began, also one that closed its stdout") {
  for (const char* command : {"sleep 600 | cat", "exec >&-; sleep 600"}) {
    int asked = 0;
    const auto score = train::run_valid_command(command, "/", [&] { return ++asked > 1; });
    DOCTEST_CHECK_FALSE(score.has_value());
  }
}
