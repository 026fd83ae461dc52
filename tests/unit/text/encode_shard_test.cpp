// From files to a shard, and from files to a learned tokenizer.

#include "text/documents/encode_shard.h"

#include "shard/dataset.h"
#include "text/documents/decode_documents.h"
#include "text/learn/learn.h"
#include "unit/temporary_folder.h"
#include "unit/text/texts.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

text::EncodedShard encode(const std::vector<std::string>& files, const text::TokenizerPtr& with,
    const text::TextOptions& options, bool pairs, const std::string& out, int jobs = 1) {
  core::Output output(out);
  auto made = text::encode_shard(files, with, options, pairs, jobs, output, [](std::uint64_t) {});
  output.commit();
  return made;
}

}  // namespace

DOCTEST_TEST_CASE("a shard says what it holds, and by which options and inputs") {
  const TemporaryFolder folder;
  const auto text = folder.file("text", "one two\nthree\n"), out = (folder.path / "x").string();
  text::TextOptions options;
  options.format = "lines", options.end_of_document = "none";
  const auto made = encode({text}, sample::tokenizer("bytes"), options, false, out);
  DOCTEST_CHECK(made.totals.documents == 2);
  DOCTEST_CHECK(made.figures()["tokens"] == 12);
  DOCTEST_CHECK(made.figures()["words"] == 3);
  DOCTEST_CHECK(made.summary() == "2 documents, 12 tokens, 12 bytes, 3 words");
  const shard::Dataset data({out});
  DOCTEST_CHECK(data.header().kind == shard::Kind::tokens);
  DOCTEST_CHECK(data.header().vocabulary == made.vocabulary);
  DOCTEST_CHECK(data.fingerprint() == made.fingerprint);
  DOCTEST_REQUIRE(data.provenance().size() == 1);
  const auto& entry = data.provenance()[0];
  DOCTEST_CHECK(entry["program"] == "tokenize");
  DOCTEST_CHECK(core::dump(entry["options"]) == "{\"format\":\"lines\",\"end_of_document\":null}");
  DOCTEST_CHECK(entry["inputs"].size() == 1);
  // The shard contains the tokenizer; another one is refused.
  DOCTEST_CHECK(text::tokenizer_of(data)->json() == sample::tokenizer("bytes")->json());
  DOCTEST_CHECK(text::tokenizer_of(data, "bytes")->size() == made.vocabulary);
  const auto refused = thrown([&] { text::tokenizer_of(data, sample::kFolder + "word.json"); });
  DOCTEST_CHECK(refused.code == 65);
  DOCTEST_CHECK(refused.names("was encoded by another tokenizer"));
}

DOCTEST_TEST_CASE("pairs are two files; the bytes do not depend on the jobs") {
  const TemporaryFolder folder;
  const auto a = folder.file("a", "ein\nzwei\n"), b = folder.file("b", "one\ntwo\n");
  const std::string one = folder.path / "1", many = folder.path / "4";
  const auto tokenizer = sample::tokenizer("bpe");
  const auto made = encode({a, b}, tokenizer, {}, true, one);
  encode({a, b}, tokenizer, {}, true, many, 4);
  DOCTEST_CHECK(core::read_text(one) == core::read_text(many));
  DOCTEST_CHECK(made.totals.documents == 4);
  DOCTEST_CHECK(shard::Dataset({one}).header().kind == shard::Kind::pairs);
  DOCTEST_CHECK(thrown([&] { encode({a}, tokenizer, {}, true, one); }).code == 64);
  text::TextOptions unknown;
  unknown.end_of_document = "<none such>";
  DOCTEST_CHECK(thrown([&] { encode({a, b}, tokenizer, unknown, true, one); }).code == 64);
}

DOCTEST_TEST_CASE("files named .jsonl are JSON lines, unless a separator says text") {
  const TemporaryFolder folder;
  const auto lines = folder.file("x.jsonl", "{\"text\":\"a\"}\n");
  const auto plain = folder.file("x.txt", "a\n");
  text::TextOptions options;
  DOCTEST_CHECK(options.follow({plain}).empty());
  DOCTEST_CHECK(options.format == "auto");
  options.document_separator = "#";
  DOCTEST_CHECK(options.follow({lines}).empty());
  options.document_separator.clear();
  DOCTEST_CHECK(options.follow({lines}).find("x.jsonl: read as JSON lines") != std::string::npos);
  DOCTEST_CHECK(options.format == "jsonl");
}

DOCTEST_TEST_CASE("a tokenizer is learned of files as of their counts, and says what it lacks") {
  const TemporaryFolder folder;
  const auto text = folder.file("text", "low low lower lowest low\nnew newer\n");
  for (const char* kind : {"word", "bpe"}) {
    text::LearnRequest request;
    request.kind = kind;
    const bool bpe = request.kind == "bpe";
    DOCTEST_CHECK(request.options().vocabulary_size == (bpe ? 32768 : 0));
    DOCTEST_CHECK(request.options().min_count == (bpe ? 2 : 1));
    const text::LearnCallbacks watch{[](std::uint64_t) {}, [](std::uint64_t) {}};
    const auto learned = text::learn_tokenizer({text}, {}, request, 2, watch);
    const auto word_kind = bpe ? text::WordKind::gpt2 : text::WordKind::plain;
    const auto reader = text::read_documents({text}, {}, text::cut_for(word_kind));
    const auto counts = text::count_words(*reader, word_kind, "text", 1, [](std::uint64_t) {});
    const auto plain = bpe ? text::learn_bpe(counts, request.options(), [](std::uint64_t) {})
                           : text::learn_words(counts, request.options());
    DOCTEST_CHECK(learned->json() == plain->json());
    DOCTEST_CHECK(text::shortfall(*learned, request).empty() == !bpe);
    request.vocab_size = 20'000, request.min_count = 3;
    const auto why = text::shortfall(*learned, request);
    DOCTEST_CHECK(why.find("learned fewer tokens than --vocab-size 20000") == 0);
    DOCTEST_CHECK(
        why.find(bpe ? "no further pairs occur 3" : "no further words occur 3") != why.npos);
    DOCTEST_CHECK(why.find("--min-count") != why.npos);
  }
}

DOCTEST_TEST_CASE("documents that are learned in part: pieces, marks, and what is counted") {
  const TemporaryFolder folder;
  const auto lines = folder.file("lines",
      "{\"prompt\": \"what? \", \"completion\": \"this\"}\n"
      "{\"completion\": \"\", \"prompt\": \"none\", \"other\": [1]}\n");
  const auto segments = folder.file("segments",
      "{\"segments\": [{\"text\": \"a b\", \"label\": true}, {\"text\": \"c\", \"label\": true}, "
      "{\"text\": \"de\", \"label\": false}, {\"text\": \"f\", \"label\": true}]}\n");
  text::TextOptions options;
  options.format = "jsonl", options.end_of_document = "none";
  options.loss_on = "completion", options.pieces = text::completion_pieces();
  for (const int jobs : {1, 3}) {
    const auto out = (folder.path / std::to_string(jobs)).string();
    const auto made = encode({lines}, sample::tokenizer("bytes"), options, false, out, jobs);
    DOCTEST_CHECK(made.figures()["marked"] == 4);
    DOCTEST_CHECK(made.figures()["words"] == 3);
    const shard::Dataset data({out});
    DOCTEST_CHECK(data.header().marked);
    DOCTEST_CHECK(data.documents().end == std::vector<std::uint64_t>{10, 14});
    DOCTEST_CHECK(data.documents().marks == std::vector<shard::Span>{{6, 10}});
    DOCTEST_CHECK(data.provenance()[0]["options"]["loss_on"] == "completion");
  }
  options.loss_on = "segments", options.pieces = text::segment_pieces();
  const auto out = (folder.path / "x").string();
  encode({segments}, sample::tokenizer("bytes"), options, false, out);
  DOCTEST_CHECK(
      shard::Dataset({out}).documents().marks == std::vector<shard::Span>{{0, 4}, {6, 7}});
  const auto refused = [&](const std::string& line) {
    const auto bad = folder.file("bad", line + "\n");
    core::MemorySink sink;
    return thrown([&] {
      text::encode_shard(
          {bad}, sample::tokenizer("bytes"), options, false, 1, sink, [](std::uint64_t) {});
    }).text.substr(bad.size());
  };
  DOCTEST_CHECK(refused("{}") == ":1: has no \"segments\"");
  DOCTEST_CHECK(refused("{\"segments\": 1}") == ":1: \"segments\" is not a list");
  DOCTEST_CHECK(refused("{\"segments\": [{\"text\": \"a\"}]}") == ":1: segments: has no \"label\"");
  DOCTEST_CHECK(refused("{\"segments\": [{\"text\": 1, \"label\": true}]}") ==
                ":1: segments: \"text\" is not a string");
}
