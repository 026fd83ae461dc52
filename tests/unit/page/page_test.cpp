// Pages: no text of a document or store becomes markup, and the figures are those of the tokens.
#include "page/page_writer.h"

#include <doctest/doctest.h>

namespace {

using page::AnnotatedText;
using page::AnnotatedToken;

AnnotatedToken token_of(const std::string& text, double nats, double beside = page::kUnknown) {
  AnnotatedToken token;
  token.text = text;
  token.nats = nats;
  token.beside = beside;
  return token;
}

std::string page_of(const AnnotatedText& text) {
  core::MemorySink sink;
  page::write_page(sink, text);
  return std::string(sink.text());
}

std::size_t count(const std::string& text, const std::string& what) {
  std::size_t n = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

// Returns the JSON of an element as a browser would read it.
core::Json data_of(const std::string& html, const std::string& id) {
  const std::string start = "id=\"" + id + "\">";
  const auto begin = html.find(start) + start.size();
  return core::parse_json(html.substr(begin, html.find("</script>", begin) - begin), id);
}

const std::string kEvil = "</script><script>alert('&\"')</script><!--";

}  // namespace

DOCTEST_TEST_CASE("text is never markup") {
  DOCTEST_CHECK(page::escape("a<b>&\"'\n\t") == "a&lt;b&gt;&amp;&quot;&#39;\n\t");
  DOCTEST_CHECK(page::escape("\xC3\xA9 \xE2\x82\xAC") == "\xC3\xA9 \xE2\x82\xAC");
  DOCTEST_CHECK(
      page::escape(std::string("\xFF\0\x1B", 3)) == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  DOCTEST_CHECK(page::script_json({{"a", "</script>"}}) == R"({"a":"\u003c/script>"})");

  AnnotatedText text;
  text.title = text.model = text.beside = kEvil;
  text.sources = {"vocabulary", kEvil};
  auto token = token_of(kEvil, 1, 2);
  token.likely = {{kEvil, 0.5}};
  token.shares = {0.25, 0.75};
  token.contexts = {{kEvil, 1, 2, 0.75, kEvil}};
  text.tokens = {token, token};
  const auto html = page_of(text);
  DOCTEST_CHECK(count(html, "<script") == 3);  // two of data, one of the page
  DOCTEST_CHECK(count(html, "</script") == 3);
  DOCTEST_CHECK(count(html, "<!--") == 0);
  DOCTEST_CHECK(data_of(html, "tokens")[0][3][0][0] == kEvil);
  DOCTEST_CHECK(data_of(html, "tokens")[0][5][0][4] == kEvil);
  DOCTEST_CHECK(data_of(html, "names")["stores"][0] == kEvil);
}

DOCTEST_TEST_CASE("a page has its text, its figures and nothing of another place") {
  AnnotatedText text;
  text.title = "t";
  text.beside = "other.tsv";
  text.sources = {"vocabulary", "cache"};
  for (int i = 0; i < 40; ++i) {
    auto token = token_of(
        "w" + std::to_string(i), i == 0 ? page::kUnknown : 0.25 * i, i == 0 ? page::kUnknown : 5.);
    token.begins_document = i == 0 || i == 30;
    if (i > 0) token.shares = {i % 4 == 1 ? 0.2 : 0.9, i % 4 == 1 ? 0.8 : 0.1};
    text.tokens.push_back(token);
  }
  const auto html = page_of(text);
  DOCTEST_CHECK(count(html, "<span class=\"t") == 40);
  DOCTEST_CHECK(count(html, "<hr>") == 1);
  DOCTEST_CHECK(count(html, "://") == 0);
  DOCTEST_CHECK(count(html, " src=") + count(html, "@import") + count(html, "url(") == 0);
  DOCTEST_CHECK(data_of(html, "tokens").size() == 40);
  DOCTEST_CHECK(data_of(html, "tokens")[0].is_null());
  const auto means = page::means_of(text);
  DOCTEST_CHECK(means.tokens == 39);
  DOCTEST_CHECK(means.nats == doctest::Approx(5));  // 0.25 of the mean of 1 to 39
  DOCTEST_CHECK(means.beside == doctest::Approx(5));
  DOCTEST_CHECK(html.find("39 tokens, perplexity <b>148.41</b>") != std::string::npos);
  // Better by 4.75 at token 1, worse by 4.75 at token 39.
  const auto helps = html.find("helps most"), hurts = html.find("hurts most");
  DOCTEST_CHECK(html.find("data-go=\"1\"", helps) < hurts);
  DOCTEST_CHECK(html.find("data-go=\"39\"", hurts) < html.find("data-go=\"38\"", hurts));
  DOCTEST_CHECK(html.substr(hurts).find("data-go=\"1\"") == std::string::npos);
  // 10 of 39 tokens have most of their probability from the cache: 1, 5, ... 37.
  DOCTEST_CHECK(page::loss_by_source(text).find("25.6 %") != std::string::npos);
  DOCTEST_CHECK(page::loss_by_source(text).find(">4.75<") != std::string::npos);
  DOCTEST_CHECK(count(page::loss_by_position(text), "<polyline") == 2);
  text.beside.clear();
  DOCTEST_CHECK(count(page::loss_by_position(text), "<polyline") == 1);
  text.tokens.resize(1);
  DOCTEST_CHECK(page_of(text).find("0 tokens") != std::string::npos);
}

DOCTEST_TEST_CASE("a loss that is infinite is shown and does not break the page") {
  AnnotatedText text;
  text.sources = {"vocabulary"};
  for (int i = 0; i < 20; ++i) text.tokens.push_back(token_of("x", i == 7 ? HUGE_VAL : 1));
  const auto html = page_of(text);
  DOCTEST_CHECK(data_of(html, "tokens")[7][0] == "inf");
  DOCTEST_CHECK(html.find("nan") == std::string::npos);
  core::MemorySink sink;
  page::write_lines(sink, text);
}

DOCTEST_TEST_CASE("samples with citations become texts, others are refused") {
  AnnotatedText text;
  page::add_sample(text,
      R"({"prompt": "p", "text": "ab", "citations": [
                      {"token": 1, "text": "a", "log_prob": -0.5, "share": 0.75, "contexts": [
                       {"store": "s", "document": 3, "row": 4, "share": 0.5, "context": "before"}]},
                      {"token": 2, "text": "b", "log_prob": -2, "share": 0, "contexts": []}]})",
      "x:1");
  DOCTEST_REQUIRE(text.tokens.size() == 3);
  DOCTEST_CHECK(text.tokens[0].text == "p");
  DOCTEST_CHECK(!text.tokens[0].scored());
  DOCTEST_CHECK(text.tokens[1].nats == 0.5);
  DOCTEST_CHECK(text.tokens[1].shares == std::vector<double>{0.25, 0.75});
  DOCTEST_CHECK(text.tokens[1].contexts[0].text == "before");
  DOCTEST_CHECK(text.tokens[2].contexts.empty());
  for (const std::string bad :
      {"", "[]", "7", "{}", R"({"prompt": "p"})", R"({"prompt": 1, "citations": []})",
          R"({"prompt": "p", "citations": {}})", R"({"prompt": "p", "citations": [1]})",
          R"({"prompt": "p", "citations": [{"text": "a", "log_prob": "x", "share": 0, "contexts": []}]})",
          R"({"prompt": "p", "citations": [{"text": "a", "log_prob": 0, "share": 0, "contexts": [0]}]})"}) {
    DOCTEST_CAPTURE(bad);
    AnnotatedText other;
    DOCTEST_CHECK_THROWS_AS(page::add_sample(other, bad, "x:1"), core::Error);
    DOCTEST_CHECK(other.tokens.empty());
  }
}
