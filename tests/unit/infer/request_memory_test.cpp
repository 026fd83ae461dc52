#include "infer/serve/open_job.h"

#include <doctest/doctest.h>

namespace {

std::string refused(const std::string& asked) {
  infer::MemoryOptions started;
  started.stores.folders = {"store"};
  try {
    infer::request_memory(started, asked);
  } catch (const core::Error& error) { return error.what(); }
  return {};
}

}  // namespace

DOCTEST_TEST_CASE("a request changes figures of memories, and leaves out what has files") {
  infer::MemoryOptions started;
  started.stores.folders = {"store"};
  started.cache = 5;
  const auto same = infer::request_memory(started, "{}");
  DOCTEST_CHECK(same.stores.folders == started.stores.folders);
  DOCTEST_CHECK(same.cache == 5);
  const auto other = infer::request_memory(
      started, R"({"cache": 100, "cache-lambda": 0.2, "k": 8, "rescore": true, "memory": "none",
                   "datastore": [], "memory_weights": "constant"})");
  DOCTEST_CHECK(other.cache == 100);
  DOCTEST_CHECK(other.stores.k == 8);
  DOCTEST_CHECK(other.stores.rescore);
  DOCTEST_CHECK(other.memory == "none");
  DOCTEST_CHECK(other.stores.folders.empty());
  DOCTEST_CHECK(other.weights == "constant");
  DOCTEST_CHECK(started.cache == 5);
}

DOCTEST_TEST_CASE("a request that leaves a source out leaves out what only the source supports") {
  infer::MemoryOptions started;
  started.stores.folders = {"store"};
  started.stores.k = 7;
  started.combine = "both";
  started.flags = {"datastore", "k", "combine"};
  const auto without = infer::request_memory(started, R"({"datastore": []})");
  DOCTEST_CHECK(without.combine == "joint");
  DOCTEST_CHECK(without.stores.k == infer::MemoryOptions().stores.k);
  DOCTEST_CHECK(without.flags == std::set<std::string>{"datastore"});
  started.combine = "interpolate";
  DOCTEST_CHECK(infer::request_memory(started, R"({"datastore": []})").combine == "interpolate");
  const auto asked = infer::request_memory(started, R"({"combine": "both", "datastore": []})");
  DOCTEST_CHECK(asked.combine == "both");  // plan_memory() refuses it
  started.ngrams.lambda = {0.3};
  DOCTEST_CHECK(!infer::request_memory(started, R"({"datastore": []})").ngrams.lambda.open());
  DOCTEST_CHECK(infer::request_memory(started, R"({"ngrams": []})").ngrams.lambda.open());
}

DOCTEST_TEST_CASE("no request names a file, and what is wrong is named") {
  for (const auto* const files : {R"({"datastore": ["/etc"]})", R"({"ngrams": "/etc"})",
           R"({"ensemble": ["/etc"]})", R"({"gate": ["x"]})"})
    DOCTEST_CHECK_MESSAGE(
        refused(files).find("is set when the server starts") != std::string::npos, files);
  DOCTEST_CHECK(
      refused(R"({"tuned_on": "x"})").find("tuned_on: is not an option") != std::string::npos);
  DOCTEST_CHECK(
      refused(R"({"model": "/etc"})").find("model: is not an option") != std::string::npos);
  DOCTEST_CHECK(refused(R"({"cache": -1})").find("cache") != std::string::npos);
  DOCTEST_CHECK(
      refused(R"({"cache": {"a": 1}})").find("cache: takes a number") != std::string::npos);
  DOCTEST_CHECK(refused(R"({"combine": "all"})").find("combine") != std::string::npos);
}
