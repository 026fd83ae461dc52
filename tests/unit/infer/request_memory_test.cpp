#include "infer/serve/open_job.h"

#include <doctest/doctest.h>

#include "unit/infer/memories.h"

namespace {

std::string refused(const std::string& asked) {
  infer::MemoryOptions started;
  tiny::stores(started).folders = {"store"};
  try {
    infer::request_memory(started, asked);
  } catch (const core::Error& error) { return error.what(); }
  return {};
}

}  // namespace

DOCTEST_TEST_CASE("a request changes figures of memories, and leaves out what has files") {
  infer::MemoryOptions started;
  tiny::stores(started).folders = {"store"};
  tiny::cache(started).positions = 5;
  const auto same = infer::request_memory(started, "{}");
  DOCTEST_CHECK(tiny::stores(same).folders == tiny::stores(started).folders);
  DOCTEST_CHECK(tiny::cache(same).positions == 5);
  const auto other = infer::request_memory(
      started, R"({"cache": 100, "cache-lambda": 0.2, "k": 8, "rescore": true, "memory": "none",
                   "datastore": [], "memory_weights": "constant"})");
  DOCTEST_CHECK(tiny::cache(other).positions == 100);
  DOCTEST_CHECK(tiny::stores(other).k == 8);
  DOCTEST_CHECK(tiny::stores(other).rescore);
  DOCTEST_CHECK(tiny::context(other).memory == "none");
  DOCTEST_CHECK(tiny::stores(other).folders.empty());
  DOCTEST_CHECK(other.weights == "constant");
  DOCTEST_CHECK(tiny::cache(started).positions == 5);
}

DOCTEST_TEST_CASE("a request that leaves a source out leaves out what only the source supports") {
  infer::MemoryOptions started;
  tiny::stores(started).folders = {"store"};
  tiny::stores(started).k = 7;
  tiny::context(started).combine = "both";
  started.chosen = {"datastore", "k", "combine"};
  const auto without = infer::request_memory(started, R"({"datastore": []})");
  DOCTEST_CHECK(tiny::context(without).combine == "joint");
  DOCTEST_CHECK(tiny::stores(without).k == infer::StoreOptions().k);
  DOCTEST_CHECK(without.chosen == std::set<std::string>{"datastore"});
  tiny::context(started).combine = "interpolate";
  DOCTEST_CHECK(tiny::context(infer::request_memory(started, R"({"datastore": []})")).combine ==
                "interpolate");
  const auto asked = infer::request_memory(started, R"({"combine": "both", "datastore": []})");
  DOCTEST_CHECK(tiny::context(asked).combine == "both");  // plan_memory() refuses it
  tiny::ngrams(started).lambda = {0.3};
  DOCTEST_CHECK(
      !tiny::ngrams(infer::request_memory(started, R"({"datastore": []})")).lambda.open());
  DOCTEST_CHECK(tiny::ngrams(infer::request_memory(started, R"({"ngrams": []})")).lambda.open());
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
