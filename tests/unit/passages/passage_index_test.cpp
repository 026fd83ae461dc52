// Indices of passages: cuts, terms and hits compared with plain ones, and damaged bytes.

#include "passages/passage_index.h"
#include "passages/analysis.h"
#include "unit/text/sample_shard.h"
#include "unit/text/texts.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

// The bytes of an index, aligned like a mapping.
struct IndexBytes {
  explicit IndexBytes(const core::Bytes& bytes)
      : space((bytes.size() + 63) / 64 + 1), size(bytes.size()) {
    std::memcpy(space.data(), bytes.data(), size);
  }
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::byte& operator[](std::size_t i) { return space[i / 64].bytes[i % 64]; }
  passages::PassageIndex open(std::size_t n) const {
    return {std::span(space[0].bytes, n), "index"};
  }
  passages::PassageIndex open() const { return open(size); }
  std::vector<Line> space;
  std::size_t size;
};

core::Bytes build(
    const sample::Shard& shard, const passages::PassageOptions& options, int jobs = 1) {
  core::MemorySink sink;
  passages::write_passages(
      {shard.path}, options, jobs, [](std::uint64_t) {}, sink);
  return sink.bytes;
}

// Returns the terms of each passage as strings.
std::vector<std::map<std::string, double>> plain_passages(
    const std::vector<std::string>& documents, std::size_t length) {
  std::vector<std::map<std::string, double>> passages;
  passages::Analyzer analyzer;
  for (const auto& document : documents)
    for (std::size_t at = 0; at < document.size(); at += length == 0 ? document.size() : length) {
      std::vector<std::uint32_t> terms;
      analyzer.analyze(document.substr(at, length == 0 ? document.npos : length), terms);
      auto& own = passages.emplace_back();
      for (const auto term : terms) ++own[analyzer.term(term)];
    }
  return passages;
}

double plain_score(const std::vector<std::map<std::string, double>>& passages,
    const std::string& query, std::size_t passage, double k1, double b) {
  const auto length = [](const auto& terms) {
    double sum = 0;
    for (const auto& [term, count] : terms) sum += count;
    return sum;
  };
  const auto n = static_cast<double>(passages.size());
  double average = 0, score = 0;
  for (const auto& terms : passages) average += length(terms) / n;
  passages::Analyzer analyzer;
  std::vector<std::uint32_t> asked;
  analyzer.analyze(query, asked);
  for (const auto number : asked) {
    const auto& term = analyzer.term(number);
    double with = 0;
    for (const auto& terms : passages) with += terms.count(term) > 0 ? 1 : 0;
    const auto found = passages[passage].find(term);
    if (found == passages[passage].end()) continue;
    score += std::log(1 + (n - with + 0.5) / (with + 0.5)) * found->second /
             (found->second + k1 * (1 - b + b * length(passages[passage]) / average));
  }
  return score;
}

const std::vector<std::string> kDocuments = {"cats purr softly and cats sleep",
    "rockets launch loudly", "", "cats chase rockets, and rockets do not chase cats",
    "rockets launch loudly"};

std::string lines(const std::vector<std::string>& documents) {
  std::string text;
  for (const auto& document : documents) text += document + "\n";
  return text;
}

}  // namespace

DOCTEST_TEST_CASE("passages are windows of documents") {
  const std::vector<std::uint64_t> ends = {5, 5, 12, 16};
  const passages::PassageCuts cuts(ends, 4), whole(ends, 0);
  DOCTEST_CHECK(cuts.size() == 5);
  DOCTEST_CHECK(whole.size() == 3);
  std::vector<std::array<std::uint64_t, 3>> places;
  for (std::uint64_t i = 0; i < cuts.size(); ++i)
    places.push_back({cuts.place(i).document, cuts.place(i).begin, cuts.place(i).end});
  DOCTEST_CHECK(places == std::vector<std::array<std::uint64_t, 3>>{
                              {0, 0, 4}, {0, 4, 5}, {2, 5, 9}, {2, 9, 12}, {3, 12, 16}});
  DOCTEST_CHECK(whole.place(1).begin == 5);
  DOCTEST_CHECK(whole.place(1).end == 12);
  DOCTEST_CHECK(cuts.of(1) == std::pair<std::uint64_t, std::uint64_t>{2, 2});
  DOCTEST_CHECK(cuts.of(2) == std::pair<std::uint64_t, std::uint64_t>{2, 4});
}

DOCTEST_TEST_CASE("an index finds what a plain one finds") {
  std::vector<std::string> documents = kDocuments;
  std::string long_one;
  for (int i = 0; i < 400; ++i) long_one += sample::words(i % 7 + 2, i) + " ";
  documents.push_back(long_one);
  const sample::Shard shard(lines(documents));
  for (const std::size_t length : {0, 7, 40}) {
    passages::PassageOptions options;
    options.passage = static_cast<std::int64_t>(length);
    options.k1 = 1.2, options.b = 0.7;
    const IndexBytes bytes(build(shard, options));
    const auto index = bytes.open();
    const auto passages = plain_passages(documents, length);
    DOCTEST_REQUIRE(index.size() == passages.size());
    passages::PassageQueries queries(index);
    for (const std::string query : {"Cats cats!", "launching a rocket", "nothing of it", "",
             "do the rockets purr softly, or the cats?"}) {
      const auto terms = queries.terms_of(query);
      const passages::Bm25Query asked[] = {{terms}};
      const auto hits = index.search(asked, 3);
      std::vector<std::pair<double, std::uint32_t>> plain;
      for (std::uint32_t i = 0; i < passages.size(); ++i)
        if (const double score = plain_score(passages, query, i, 1.2, 0.7); score > 0)
          plain.emplace_back(-score, i);
      std::sort(plain.begin(), plain.end());
      DOCTEST_REQUIRE(hits.of(0).size() == std::min<std::size_t>(3, plain.size()));
      for (std::size_t rank = 0; rank < hits.of(0).size(); ++rank) {
        const auto& hit = hits.of(0)[rank];
        DOCTEST_CHECK(hit.score == doctest::Approx(-plain[rank].first).epsilon(1e-5));
        DOCTEST_CHECK(
            hit.score ==
            doctest::Approx(plain_score(passages, query, hit.unit, 1.2, 0.7)).epsilon(1e-5));
      }
    }
  }
}

DOCTEST_TEST_CASE("passages give back their text, and queries may be tokens") {
  const sample::Shard shard(lines(kDocuments));
  passages::PassageOptions options;
  options.passage = 12;
  const IndexBytes bytes(build(shard, options));
  const auto index = bytes.open();
  std::string all;
  for (std::uint32_t i = 0; i < index.size(); ++i) all += index.text(i);
  std::string expected;
  for (const auto& document : kDocuments) expected += document;
  DOCTEST_CHECK(all == expected);
  DOCTEST_CHECK(index.passage(0, 4) == std::vector<std::uint32_t>{'c', 'a', 't', 's'});
  passages::PassageQueries queries(index);
  const std::string query = "cats chase";
  const std::vector<std::uint32_t> ids(query.begin(), query.end());
  DOCTEST_CHECK(queries.terms_of(query).size() == 2);
  DOCTEST_CHECK(queries.terms_of(query) == queries.terms_of(std::span(ids)));
}

DOCTEST_TEST_CASE("passages of one's own document are no answer") {
  const sample::Shard shard(lines(kDocuments));
  passages::PassageOptions options;
  options.passage = 8;
  const IndexBytes bytes(build(shard, options));
  const auto index = bytes.open();
  const std::string& own = kDocuments[1];
  const std::vector<std::uint32_t> ids(own.begin(), own.end());
  const auto ranges = index.same_document(ids);
  DOCTEST_REQUIRE(ranges.size() == 2);  // of documents 1 and 4
  DOCTEST_CHECK(index.same_document(std::span(ids).first(5)).empty());
  passages::PassageQueries queries(index);
  const auto terms = queries.terms_of(std::string_view("rockets"));
  const passages::Bm25Query asked[] = {{terms}, {terms, ranges}};
  const auto hits = index.search(asked, 10);
  const auto documents = [&](std::uint32_t query) {
    std::vector<std::uint64_t> found;
    for (const auto& hit : hits.of(query)) found.push_back(index.cuts().place(hit.unit).document);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  };
  DOCTEST_CHECK(documents(0) == std::vector<std::uint64_t>{1, 3, 4});
  DOCTEST_CHECK(documents(1) == std::vector<std::uint64_t>{3});
}

DOCTEST_TEST_CASE("the same bytes whatever the number of threads") {
  std::string text;
  for (int i = 0; i < 300; ++i) text += sample::words(i % 30, i) + "\n";
  const sample::Shard shard(text);
  passages::PassageOptions options, little;
  options.passage = little.passage = 16;
  little.buffer_size = 1;
  DOCTEST_CHECK(build(shard, options, 1) == build(shard, options, 3));
  DOCTEST_CHECK(build(shard, options, 1) == build(shard, little, 2));
}

DOCTEST_TEST_CASE("more passages than a block holds") {
  std::string text;
  for (int i = 0; i < 17000; ++i) text += i == 16900 ? "zebra\n" : "cats\n";
  const sample::Shard shard(text);
  const IndexBytes bytes(build(shard, {}));
  const auto index = bytes.open();
  DOCTEST_REQUIRE(index.blocks().size() == 2);
  passages::PassageQueries queries(index);
  const auto terms = queries.terms_of(std::string_view("zebras"));
  const passages::Bm25Query asked[] = {{terms}};
  const auto hits = index.search(asked, 5);
  DOCTEST_REQUIRE(hits.of(0).size() == 1);
  DOCTEST_CHECK(hits.of(0)[0].unit == 16900);
}

DOCTEST_TEST_CASE("damaged bytes are refused, or change nothing") {
  const sample::Shard shard(lines(kDocuments));
  passages::PassageOptions options;
  options.passage = 16;
  const core::Bytes bytes = build(shard, options);
  IndexBytes damaged(bytes);
  const auto ask = [](const passages::PassageIndex& index) {
    passages::PassageQueries queries(index);
    const auto terms = queries.terms_of(std::string_view("cats launch rockets"));
    const passages::Bm25Query asked[] = {{terms}};
    const auto hits = index.search(asked, 10);
    return std::vector<passages::Hit>(hits.of(0).begin(), hits.of(0).end());
  };
  const auto whole = ask(damaged.open());
  std::size_t refused = 0, flipped = 0;
  for (std::size_t at = 0; at < bytes.size(); at += at < bytes.size() - 3000 ? 13 : 1, ++flipped) {
    damaged[at] ^= std::byte{0x10};
    bool same = true;
    const auto error = thrown([&] { same = ask(damaged.open()) == whole; });
    damaged[at] ^= std::byte{0x10};
    refused += error.code == 65 ? 1 : 0;
    DOCTEST_CHECK(same);
    DOCTEST_CHECK((error.code == 0 || error.code == 65));
  }
  DOCTEST_CHECK(refused > flipped * 9 / 10);
  for (std::size_t size = 0; size < bytes.size(); size += 11) {
    const IndexBytes cut(
        core::Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)));
    DOCTEST_CHECK(thrown([&] { cut.open(); }).code == 65);
  }
}

DOCTEST_TEST_CASE("hits as lines") {
  const sample::Shard shard(lines(kDocuments));
  const IndexBytes bytes(build(shard, {}));
  const auto index = bytes.open();
  const std::string file = shard.folder / "queries";
  passages::FindOptions options;
  options.files = {file};
  options.top = 2;
  const auto find = [&](const std::string& queries) {
    core::write_file(file, queries);
    core::MemorySink sink;
    const auto n = passages::find_passages(index, options, 1, sink, [](std::uint64_t) {});
    std::vector<core::Json> found;
    std::size_t begin = 0;
    const std::string text(sink.text());
    for (auto end = text.find('\n'); end != text.npos; end = text.find('\n', begin = end + 1))
      found.push_back(core::parse_json(text.substr(begin, end - begin), "line"));
    DOCTEST_CHECK(n == static_cast<std::uint64_t>(std::ranges::count(queries, '\n')));
    return found;
  };
  const auto found = find("purr\n\nloudly\n");
  DOCTEST_REQUIRE(found.size() == 3);
  DOCTEST_CHECK(found[0]["query"] == 0);
  DOCTEST_CHECK(found[0]["text"] == kDocuments[0]);
  DOCTEST_CHECK(found[0]["document"] == 0);
  DOCTEST_CHECK(found[2]["query"] == 2);
  DOCTEST_CHECK(found[2]["rank"] == 2);
  DOCTEST_CHECK(found[2]["document"] == 4);
  DOCTEST_CHECK(found[2]["passage"] == 3);
  DOCTEST_CHECK(found[2]["length"] == 21);
  options.ids = true;
  DOCTEST_CHECK(find("112 117 114 114\n")[0]["text"] == kDocuments[0]);
  const auto wrong = thrown([&] { find("112\n12 cats\n"); });
  DOCTEST_CHECK(wrong.code == 65);
  DOCTEST_CHECK(wrong.names("queries:2"));
}
