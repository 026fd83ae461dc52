// Shards written in the past are read unchanged. This test wrote tests/golden/shard with
// TESSERA_WRITE_GOLDEN=1; it changes only with the format's version.

#include <cstdlib>

#include "sample.h"

#include <doctest/doctest.h>

DOCTEST_TEST_CASE("stored shards read as they were written") {
  for (const auto& [kind, fresh] : sample::of_each_kind()) {
    DOCTEST_CAPTURE(kind);
    const std::string path = "tests/golden/shard/" + kind + ".shard.zst";
    if (std::getenv("TESSERA_WRITE_GOLDEN")) {
      core::Output out(path);
      out.write(fresh);
      out.commit();
    }
    const shard::File stored(path);
    const auto expected = sample::open(fresh);
    DOCTEST_CHECK(stored.header() == expected.header());
    DOCTEST_CHECK(stored.trailer().documents == expected.trailer().documents);
    DOCTEST_CHECK(stored.trailer().fingerprint == expected.trailer().fingerprint);
    DOCTEST_CHECK(stored.trailer().provenance.size() == 1);
    core::Bytes a(stored.size() * shard::size_of(stored.header().dtype)), b(a.size());
    stored.read(0, std::span(a));
    expected.read(0, std::span(b));
    DOCTEST_CHECK(a == b);
  }
}
