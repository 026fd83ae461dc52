// Counts, followers and places, compared with a scan of the text.
#include "ngrams/ngram_index.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include "ngrams/next_tokens.h"
#include "ngrams_folder.h"
#include "unit/thrown.h"

namespace {

using ngrams::TokenCount;
using ngrams_test::Documents;
using Tokens = std::vector<std::uint32_t>;

// All answers, by examining every place of every document.
struct Scan {
  std::uint64_t count = 0;
  std::map<std::uint32_t, std::uint64_t> next;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;  // document, offset
  Scan(const Documents& documents, std::span<const std::uint32_t> tokens) {
    for (std::size_t d = 0; d < documents.size(); ++d) {
      const auto& text = documents[d];
      for (std::size_t i = 0; i < text.size() && i + tokens.size() <= text.size(); ++i) {
        if (!std::equal(
                tokens.begin(), tokens.end(), text.begin() + static_cast<std::ptrdiff_t>(i)))
          continue;
        ++count;
        places.emplace_back(d, i);
        if (i + tokens.size() < text.size()) ++next[text[i + tokens.size()]];
      }
    }
  }
  std::vector<TokenCount> counts() const {
    std::vector<TokenCount> all;
    for (const auto& [token, n] : next) all.push_back({token, n});
    return all;
  }
};

void expect_as_scanned(const ngrams::Index& index, ngrams::NextTokens& next,
    const Documents& documents, std::span<const std::uint32_t> tokens) {
  const Scan scan(documents, tokens);
  const auto match = index.find(tokens);
  DOCTEST_CHECK(ngrams::Index::count(match) == scan.count);
  DOCTEST_CHECK(next.of(match) == scan.counts());
  const auto followers = index.followers(match);
  std::uint64_t sum = 0;
  for (const auto& [token, n] : scan.next) sum += n;
  DOCTEST_CHECK(followers.count == sum);
  DOCTEST_CHECK(followers.one == (scan.next.size() == 1));
  for (const std::uint32_t token : {0U, 1U, 2U, 3U}) {
    const auto found = scan.next.find(token);
    DOCTEST_CHECK(index.count(match, token) == (found == scan.next.end() ? 0 : found->second));
  }
  if (scan.count > 100) return;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
  for (std::uint64_t n = 0; n < scan.count; ++n) {
    const auto place = index.place(match, n);
    places.emplace_back(place.document, place.offset);
    if (tokens.empty()) continue;
    const auto there = index.around(match, n, 0, static_cast<std::int64_t>(tokens.size()));
    DOCTEST_CHECK(std::equal(there.begin(), there.end(), tokens.begin(), tokens.end()));
  }
  std::sort(places.begin(), places.end());
  DOCTEST_CHECK(places == scan.places);
}

}  // namespace

DOCTEST_TEST_CASE("an index of two shards without the one is a scan of the other") {
  const auto a = ngrams_test::documents_of({300, 0, 500}, 4, 1),
             b = ngrams_test::documents_of({700, 20}, 4, 2);
  const ngrams_test::Folder folder;
  folder.shard("a", a, 4);
  const auto of_b = folder.shard("b", b, 4).fingerprint().hex();
  const shard::Dataset both({folder.path / "a.shard.zst", folder.path / "b.shard.zst"});
  for (const std::uint64_t elements : {1 << 20, 400}) {
    const std::string path = folder.path / ("index" + std::to_string(elements));
    ngrams::build(both, path, {elements, 64}, 1);
    const auto index = std::make_shared<const ngrams::Index>(std::vector<std::string>{path});
    const auto of_a = index->without({of_b, "another"});
    DOCTEST_CHECK(index->holds({of_b}));
    DOCTEST_CHECK(!of_a->holds({of_b}));
    DOCTEST_CHECK(of_a->tokens() == 800);
    DOCTEST_CHECK(index->without(both.fingerprints())->tokens() == 0);
    ngrams::NextTokens next(of_a, 1000);
    core::Rng rng(5);
    for (const std::size_t length : {0, 1, 2, 3, 5, 9, 20})
      for (const auto* text : {&a[2], &b[0]}) {
        const auto from = static_cast<std::ptrdiff_t>(rng.below(text->size() - length));
        const Tokens tokens(
            text->begin() + from, text->begin() + from + static_cast<std::ptrdiff_t>(length));
        expect_as_scanned(*of_a, next, a, tokens);
      }
    const std::string alone = folder.path / ("alone" + std::to_string(elements));
    ngrams::build(shard::Dataset({folder.path / "b.shard.zst"}), alone, {elements, 64}, 1);
    DOCTEST_CHECK(thrown([&] { ngrams::Index({path, alone}); }).code == 64);
  }
}

DOCTEST_TEST_CASE(
    "counts of every length are those of a scan of 100,000 tokens, in several parts") {
  const std::vector<std::size_t> lengths = {20000, 0, 1, 7000, 43000, 12, 0, 0, 29000, 988, 0};
  const auto documents = ngrams_test::documents_of(lengths, 50);
  const ngrams_test::Folder folder;
  // Parts that hold some documents, and parts into which the longest are cut.
  const auto path = folder.index("index", documents, 50, {16000, 200}, 2);
  const ngrams::Index index(std::vector<std::string>{path});
  DOCTEST_CHECK(index.parts().size() > 5);
  DOCTEST_CHECK(index.tokens() == 100001);
  auto shared = std::make_shared<const ngrams::Index>(std::vector<std::string>{path});
  ngrams::NextTokens next(shared, 1000);
  for (const Tokens& tokens : {Tokens{}, Tokens{0}, Tokens{0, 0}, Tokens{}, Tokens{0}})
    expect_as_scanned(index, next, documents, tokens);  // they begin at one rank
  core::Rng rng(5);
  for (const std::size_t length : {1, 2, 3, 4, 5, 7, 9, 12, 17, 25, 33, 64, 150, 200})
    for (int i = 0; i < 8; ++i) {
      const auto& text = documents[i % 2 == 0 ? 4 : 8];
      const auto from = rng.below(text.size() - length);
      Tokens tokens(text.begin() + static_cast<std::ptrdiff_t>(from),
          text.begin() + static_cast<std::ptrdiff_t>(from + length));
      if (i >= 6) tokens[rng.below(length)] = static_cast<std::uint32_t>(rng.below(50));
      expect_as_scanned(index, next, documents, tokens);
    }
  // Ends of documents, and n-grams that would cross them.
  for (const std::size_t d : {0, 3, 4}) {
    const auto& text = documents[d];
    for (const std::size_t length : {1, 2, 10})
      expect_as_scanned(index, next, documents, std::span(text).last(length));
    Tokens across(text.end() - 3, text.end());
    across.push_back(documents[d + 1].empty() ? documents[8][0] : documents[d + 1][0]);
    expect_as_scanned(index, next, documents, across);
  }
  // No token of the text: the mark, and numbers beyond it.
  for (const std::uint32_t token : {50U, 51U, 70000U}) {
    DOCTEST_CHECK(ngrams::Index::count(index.find(Tokens{token})) == 0);
    DOCTEST_CHECK(ngrams::Index::count(index.find(Tokens{documents[0].back(), token})) == 0);
    DOCTEST_CHECK(index.count(index.find(Tokens{documents[0].back()}), token) == 0);
  }
}

DOCTEST_TEST_CASE("the number of parts, and of folders, changes no count") {
  const auto documents = ngrams_test::documents_of({500, 400, 300, 900}, 7);
  const ngrams_test::Folder folder;
  const auto whole = folder.index("whole", documents, 7);
  const Documents front(documents.begin(), documents.begin() + 2);
  const Documents back(documents.begin() + 2, documents.end());
  const auto a = folder.index("a", front, 7), b = folder.index("b", back, 7, {250, 60});
  const auto one = std::make_shared<const ngrams::Index>(std::vector<std::string>{whole});
  const auto two = std::make_shared<const ngrams::Index>(std::vector<std::string>{a, b});
  DOCTEST_CHECK(one->parts().size() == 1);
  DOCTEST_CHECK(two->parts().size() > 4);
  ngrams::NextTokens of_one(one), of_two(two);
  for (const auto& document : documents)
    for (std::size_t length = 0; length < 30; ++length) {
      const auto tokens = std::span(document).subspan(100, length);
      const auto match = one->find(tokens), other = two->find(tokens);
      DOCTEST_CHECK(ngrams::Index::count(match) == ngrams::Index::count(other));
      DOCTEST_CHECK(of_one.of(match) == of_two.of(other));
    }
}

DOCTEST_TEST_CASE("types that take one to four bytes") {
  for (const std::uint64_t vocabulary :
      {3ULL, 255ULL, 256ULL, 65535ULL, 65536ULL, 70000ULL, 17000000ULL}) {
    auto documents = ngrams_test::documents_of({300, 200}, vocabulary, 9);
    documents[0][17] = static_cast<std::uint32_t>(vocabulary - 1);
    const ngrams_test::Folder folder;
    const auto path = folder.index("index", documents, vocabulary, {250, 20});
    const auto index = std::make_shared<const ngrams::Index>(std::vector<std::string>{path});
    ngrams::NextTokens next(index);
    for (const std::size_t at : {0, 17, 60})
      for (std::size_t length = 1; length < 5; ++length)
        expect_as_scanned(*index, next, documents, std::span(documents[0]).subspan(at, length));
  }
}

DOCTEST_TEST_CASE("the longest suffix with something behind it, at every place of a text") {
  const auto documents = ngrams_test::documents_of({3000, 10, 2000}, 6);
  const ngrams_test::Folder folder;
  const auto path = folder.index("index", documents, 6, {1500, 300});
  const auto index = std::make_shared<const ngrams::Index>(std::vector<std::string>{path});
  // Some of it occurs there, also at ends of documents; some of it is new, and one token is
  // unknown.
  auto text = ngrams_test::documents_of({400}, 6, 77)[0];
  text.insert(text.end(), documents[0].begin() + 1000, documents[0].begin() + 1290);
  text.insert(text.end(), documents[2].end() - 30, documents[2].end());
  text.insert(text.end(), {1, 2, 3, 6, 1});
  text.insert(text.end(), documents[0].end() - 20, documents[0].end());
  ngrams::SuffixFollower follower(index);
  DOCTEST_CHECK(follower.length() == 0);
  std::uint64_t longest = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto before = index->count(follower.match(), text[i]);
    DOCTEST_CHECK(follower.push(text[i]) == before);
    const auto match = follower.match();
    longest = std::max(longest, match.length);
    const auto context = std::span(std::as_const(text)).first(i + 1);
    DOCTEST_REQUIRE(match.length <= context.size());
    const auto suffix = context.last(match.length);
    const Scan scan(documents, suffix);
    DOCTEST_CHECK(!scan.next.empty());
    DOCTEST_CHECK(ngrams::NextTokens(index).of(match) == scan.counts());
    if (match.length < context.size())
      DOCTEST_CHECK(Scan(documents, context.last(match.length + 1)).next.empty());
  }
  DOCTEST_CHECK(longest >= 289);
  follower.clear();
  DOCTEST_CHECK(follower.match().length == 0);
}
