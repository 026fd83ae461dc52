#include "store/care.h"

#include <doctest/doctest.h>

DOCTEST_TEST_CASE("a poor index is told, with what helps; a good one and exact search are not") {
  store::Manifest manifest;
  manifest.index = "IVF256,PQ8x4fs";
  manifest.recall = {1024, 32, 200, 0.46};
  const auto warning = store::recall_warning("books", manifest);
  for (const char* part : {"books", "IVF256,PQ8x4fs", "0.46", "--index exact", "--nprobe"})
    DOCTEST_CHECK(warning.find(part) != warning.npos);
  manifest.recall.recall = 0.9;
  DOCTEST_CHECK(store::recall_warning("books", manifest).empty());
  manifest.index = "exact";
  manifest.recall = {1024, 0, 0, 1};
  DOCTEST_CHECK(store::recall_warning("books", manifest).empty());
}
