// Hits in files: what was written is read, and damage or another search is detected.

#include "passages/hits_file.h"

#include <algorithm>

#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

const passages::SearchOf kSearch{"0123", "segment", 64, 5, 2, 0.9, 0.4};

// Unit u itself and, except for the last unit, the next one.
passages::Hits hits_of(const core::Part& part) {
  const auto begin = part.begin(kSearch.units), end = part.end(kSearch.units);
  passages::Hits hits(static_cast<std::uint32_t>(end - begin), kSearch.top);
  for (auto unit = begin; unit < end; ++unit) {
    const auto own = static_cast<std::uint32_t>(unit);
    std::vector<passages::Hit> best{{own, 2.5F}};
    if (own + 1 < kSearch.units) best.push_back({own + 1, 1.0F / 3});
    hits.set(static_cast<std::uint32_t>(unit - begin), best);
  }
  return hits;
}

core::Bytes file_of(const core::Part& part, const passages::SearchOf& of = kSearch) {
  core::MemorySink sink;
  passages::write_hits(of, part, hits_of(part), sink);
  return sink.bytes;
}

core::Part read(std::span<const std::byte> bytes, passages::Hits& all) {
  core::MemorySource source(bytes, "hits");
  return passages::read_hits(source, kSearch, all);
}

Thrown refused(std::span<const std::byte> bytes) {
  passages::Hits all(kSearch.units, kSearch.top);
  return thrown([&] { read(bytes, all); });
}

}  // namespace

DOCTEST_TEST_CASE("the hits of all parts, read, are those of all units") {
  const passages::Hits whole = hits_of({});
  for (const std::int64_t count : {1, 2, 3, 5, 9}) {
    passages::Hits all(kSearch.units, kSearch.top);
    for (std::int64_t index = count; index-- > 0;) {
      const core::Part part = read(file_of({index, count}), all);
      DOCTEST_CHECK(part.index == index);
      DOCTEST_CHECK(part.count == count);
    }
    for (std::uint32_t unit = 0; unit < kSearch.units; ++unit)
      DOCTEST_CHECK(std::ranges::equal(all.of(unit), whole.of(unit)));
  }
}

DOCTEST_TEST_CASE("every byte that is another, and every end that is missing, is told") {
  const core::Bytes whole = file_of({1, 2});
  for (std::size_t at = 0; at < whole.size(); ++at) {
    auto bytes = whole;
    bytes[at] ^= std::byte{4};
    const int code = refused(bytes).code;
    DOCTEST_CHECK_MESSAGE((code == 65 || code == 64), "byte ", at);
    DOCTEST_CHECK(refused(std::span(whole).first(at)).code == 65);
  }
  auto longer = whole;
  longer.push_back({});
  DOCTEST_CHECK(refused(longer).text == "hits: has data after its end");
}

DOCTEST_TEST_CASE("hits of another search name what is other") {
  const auto said = [](auto change) {
    passages::SearchOf other = kSearch;
    change(other);
    return refused(file_of({}, other)).text;
  };
  const std::string is = "hits: contains the hits of another search: ";
  DOCTEST_CHECK(said([](auto& of) { of.data = "4567"; }) == is + "data \"4567\", now \"0123\"");
  DOCTEST_CHECK(said([](auto& of) { of.unit_length = 32; }) == is + "segment 32, now 64");
  DOCTEST_CHECK(said([](auto& of) { of.unit = "pair"; }) == is + "unit \"pair\", now \"segment\"");
  DOCTEST_CHECK(said([](auto& of) { of.k1 = 1.5; }) == is + "k1 1.5, now 0.9");
  DOCTEST_CHECK(said([](auto& of) { of.b = 0; }) == is + "b 0.0, now 0.4");
  DOCTEST_CHECK(said([](auto& of) { of.top = 3; }) == is + "k 3, now 2");
  DOCTEST_CHECK(
      said([](auto& of) { of.other_documents = true; }) == is + "other_documents true, now false");
  DOCTEST_CHECK(said([](auto& of) { of.units = 6; }) == is + "units 6, now 5");
}
