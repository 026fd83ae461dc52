// Fingerprints: what they depend on, and how they compose.

#include <rapidcheck.h>

#include "sample.h"
#include "shard/header.h"

#include <doctest/doctest.h>

namespace {

core::Digest of(const core::Bytes& bytes) { return sample::open(bytes).trailer().fingerprint; }

}  // namespace

DOCTEST_TEST_CASE("elements, documents, sources, kind, vocabulary and tokenizer count") {
  const sample::Data data{sample::ids(300), sample::numbers(500, 300), {100, 200}};
  const auto print = of(sample::write(data));
  const auto differs = [&](const auto& change) {
    auto other = data;
    change(other);
    return of(sample::write(other)) != print;
  };
  DOCTEST_CHECK(differs([](auto& d) { d.elements[7] ^= 1; }));
  DOCTEST_CHECK(differs([](auto& d) { std::swap(d.elements[0], d.elements[499]); }));
  DOCTEST_CHECK(differs([](auto& d) { d.lengths[0] = 101; }));
  DOCTEST_CHECK(differs([](auto& d) { d.lengths.push_back(0); }));
  DOCTEST_CHECK(differs([](auto& d) { d.elements.pop_back(); }));
  DOCTEST_CHECK(differs([](auto& d) { d.header.vocabulary = 301; }));
  DOCTEST_CHECK(differs([](auto& d) { d.header.tokenizer = "{}"; }));
  DOCTEST_CHECK(differs([](auto& d) { d.header.kind = shard::Kind::pairs, d.lengths = {100}; }));

  core::MemorySink sink;
  shard::Writer writer(sink, data.header, sample::made_by("another program"));
  writer.write(std::span(data.elements).first(100));
  writer.end_document(400, 50);
  writer.write(std::span(data.elements).subspan(100, 200));
  writer.end_document(800, 100);
  writer.write(std::span(data.elements).subspan(300));
  writer.finish();
  DOCTEST_CHECK(writer.fingerprint() == print);  // it does not depend on provenance
  DOCTEST_CHECK(of(sink.bytes) == print);
}

DOCTEST_TEST_CASE("the digest of a sequence composes") {
  DOCTEST_CHECK(rc::check([] {
    const auto pairs = *rc::gen::container<std::vector<std::pair<std::uint64_t, std::uint64_t>>>(
        rc::gen::arbitrary<std::pair<std::uint64_t, std::uint64_t>>());
    const auto cut = *rc::gen::inRange<std::size_t>(0, pairs.size() + 1);
    shard::Chain whole, first, second;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const core::Digest digest{pairs[i].first, pairs[i].second};
      whole.append(digest);
      (i < cut ? first : second).append(digest);
    }
    first.append_chain(second, pairs.size() - cut);
    RC_ASSERT(first == whole);
  }));
}

DOCTEST_TEST_CASE("digests of stored numbers: the formulas do not drift") {
  shard::Chain chain;
  chain.append({1, 2});
  chain.append({0xffffffffffffffff, 0xffffffffffffffff});
  chain.append({3, 4});
  DOCTEST_CHECK(chain.value().hex() == "4ae19df112922a64b74a00f37affc6bd");
  const auto bytes = sample::write({sample::ids(300), sample::numbers(500, 300), {100, 200}});
  DOCTEST_CHECK(of(bytes).hex() == "c1fc3bdcf65e0b7feff8cb6f1f8bc3c1");
}

DOCTEST_TEST_CASE("the digest of a file's JSON comes back; what is none is said of the file") {
  shard::Chain chain;
  chain.append({1, 2});
  DOCTEST_CHECK(shard::Chain::read({{"digest", chain.value().hex()}}, "store.json") == chain);
  const auto error = thrown([] { shard::Chain::read({{"digest", "0"}}, "store.json"); });
  DOCTEST_CHECK(error.code == 65);
  DOCTEST_CHECK(error.names("store.json: \"digest\": '0' is not a fingerprint"));
}
