// The progress line.
#include "cli/progress.h"

#include <doctest/doctest.h>

DOCTEST_TEST_CASE(
    "a rate and the time left are of what was made here, not of what was there before") {
  DOCTEST_CHECK(cli::progress_line("training", "steps", {300, 1000, 100, 10}, "loss 3.21") ==
                "training: 300 steps (30 %), 10.0 steps/s, 1:10 left, loss 3.21");
  DOCTEST_CHECK(
      cli::progress_line("training", "steps", {300, 1000, 0, 0}) == "training: 300 steps (30 %)");
  DOCTEST_CHECK(
      cli::progress_line("reading", "bytes", {2048, 0, 2048, 2}) == "reading: 2.0 KiB, 1.0 KiB/s");
  DOCTEST_CHECK(cli::progress_line("reading", "tokens", {50, 50, 50, 2}) ==
                "reading: 50 tokens (100 %), 25.0 tokens/s");
}
