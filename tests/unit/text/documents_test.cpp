// Documents from files, and the way into a shard and back.

#include <unistd.h>

#include <filesystem>

#include "shard/reader.h"
#include "text/documents/decode_documents.h"
#include "text/tokenizer/split.h"
#include "text/tokenizer/utf8.h"
#include "unit/text/texts.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

using Texts = std::vector<std::string>;

// A temporary file.
class Temporary {
 public:
  explicit Temporary(const std::string& text) {
    static int n = 0;
    path_ = (std::filesystem::temp_directory_path() /
             ("documents_test." + std::to_string(::getpid()) + "." + std::to_string(n++)))
                .string();
    core::write_file(path_, text);
  }
  ~Temporary() { std::filesystem::remove(path_); }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Texts collect(text::DocumentReader& reader, const std::string& field = "text") {
  text::PartTexts texts(field);
  text::Batch batch;
  Texts documents;
  bool open = false;
  while (reader.next(batch)) {
    texts.each(batch, [&](const text::Batch::Part& part, std::string_view text) {
      if (!open) documents.emplace_back();
      documents.back() += text;
      open = !part.closes;
    });
  }
  DOCTEST_CHECK(!open);
  return documents;
}

Texts documents_of(const std::vector<std::string>& texts, text::DocumentOptions options) {
  std::vector<std::unique_ptr<Temporary>> files;
  std::vector<std::string> paths;
  for (const auto& text : texts) {
    files.push_back(std::make_unique<Temporary>(text));
    paths.push_back(files.back()->path());
  }
  const auto tokenizer = sample::tokenizer("bpe");
  return collect(
      *text::read_documents(paths, options,
          [&](const char* begin, const char* end) { return tokenizer->cut(begin, end); }),
      options.field);
}

Texts separated(const std::string& text, const std::string& separator) {
  return documents_of({text}, {text::Format::text, "text", separator});
}

std::string of_length(std::size_t n, const std::string& unit) {
  std::string text;
  while (text.size() < n) text += unit;
  return text;
}

// Returns the shard of the documents of one text, and the counts.
std::string shard_of(const std::string& text, const std::string& tokenizer_name,
    text::DocumentOptions options, text::EncodeOptions how, text::EncodeTotals* totals = nullptr) {
  const Temporary file(text);
  const auto tokenizer = sample::tokenizer(tokenizer_name);
  const auto reader = text::read_documents({file.path()}, options,
      [&](const char* begin, const char* end) { return tokenizer->cut(begin, end); });
  shard::Header header;
  header.vocabulary = tokenizer->size();
  header.dtype = shard::dtype_for(tokenizer->size());
  header.tokenizer = tokenizer->json();
  core::MemorySink sink;
  shard::Writer writer(sink, header, {}, how.jobs);
  const auto counted =
      text::encode_documents(*reader, tokenizer, how, writer, [](std::uint64_t) {});
  writer.finish();
  if (totals) *totals = counted;
  return std::string(sink.text());
}

}  // namespace

DOCTEST_TEST_CASE("text: a file is a document, an empty one is none") {
  DOCTEST_CHECK(documents_of({"one\n\ntwo", "", "three"}, {}) == Texts{"one\n\ntwo", "three"});
}

DOCTEST_TEST_CASE("separators: what stands between is a document, empty or not") {
  DOCTEST_CHECK(separated("a--b", "--") == Texts{"a", "b"});
  DOCTEST_CHECK(separated("a--b--", "--") == Texts{"a", "b"});
  DOCTEST_CHECK(separated("--a----b-", "--") == Texts{"", "a", "", "b-"});
  DOCTEST_CHECK(separated("", "--").empty());
}

DOCTEST_TEST_CASE("separators anywhere, also across the pieces in which a file is read") {
  for (const std::size_t first : {(1 << 20) - 7, (1 << 20) - 3, (1 << 20) - 1, 1 << 20, 2 << 20}) {
    Texts expected = {std::string(first, 'x'), of_length(1500000, "some words \n"), "", "end"};
    std::string text;
    for (const auto& document : expected) text += document + "<|sep|>";
    DOCTEST_CHECK(separated(text, "<|sep|>") == expected);
  }
}

DOCTEST_TEST_CASE("lines and JSON lines") {
  DOCTEST_CHECK(documents_of({"a\n\nb\n", "c"}, {text::Format::lines, "text", ""}) ==
                Texts{"a", "", "b", "c"});
  const std::string json =
      "{\"text\": \"a\\n\\u00e9\", \"n\": [1, {}]}\n \n{\"x\": "
      "1, \"text\": \"\"}\n{\"text\":\"end\"}";
  DOCTEST_CHECK(
      documents_of({json}, {text::Format::jsonl, "text", ""}) == Texts{"a\n\u00e9", "", "end"});
  const std::string longer = "{\"t\":\"" + std::string(5 << 20, 'y') + "\"}\n{\"t\":\"z\"}\n";
  DOCTEST_CHECK(documents_of({longer}, {text::Format::jsonl, "t", ""}) ==
                Texts{std::string(5 << 20, 'y'), "z"});
}

DOCTEST_TEST_CASE("a bad JSON line is named with file and line") {
  const std::string good = "{\"text\":\"a\"}\n";
  const auto error_of = [&](const std::string& bad) {
    return thrown([&] {
      documents_of({good + "\n" + good + bad}, {text::Format::jsonl, "text", ""});
    });
  };
  for (const std::string bad : {"{\"text\":", "[1]", "{\"other\":\"a\"}", "{\"text\":1}",
           "\"text\"", "{\"text\":\"\xff\"}", "{\"text\":\"a\"} x"}) {
    const auto error = error_of(bad);
    DOCTEST_CHECK(error.code == 65);
    DOCTEST_CHECK(error.names(":4: "));
  }
  DOCTEST_CHECK(error_of("{\"other\":\"a\"}").names("--field"));
}

DOCTEST_TEST_CASE("files say that they are JSON lines by their names, all or none") {
  const auto dir = std::filesystem::temp_directory_path() /
                   ("documents_test.names." + std::to_string(::getpid()));
  std::filesystem::create_directories(dir);
  const auto file = [&](const std::string& name, const std::string& text) {
    core::write_file((dir / name).string(), text);
    return (dir / name).string();
  };
  const auto a = file("a.jsonl", "\xEF\xBB\xBF\n {\"text\": \"a\"}\n"), b = file("b.ndjson", "{}"),
             prose = file("prose.jsonl", "It was { not\n"), text = file("c.txt", "{\"text\": 1}\n"),
             empty = file("empty.jsonl", "");
  DOCTEST_CHECK(text::are_json_lines({a}));
  DOCTEST_CHECK(text::are_json_lines({a, b, empty}));
  DOCTEST_CHECK(!text::are_json_lines({text}));
  const auto mixed = thrown([&] { text::are_json_lines({a, text}); });
  DOCTEST_CHECK(mixed.code == 64);
  DOCTEST_CHECK(mixed.names(a));
  DOCTEST_CHECK(mixed.names(text));
  for (const auto& files : {std::vector{prose}, std::vector{a, prose}}) {
    const auto refused = thrown([&] { text::are_json_lines(files); });
    DOCTEST_CHECK(refused.code == 65);
    DOCTEST_CHECK(refused.names(prose));
  }
  DOCTEST_CHECK(!text::are_json_lines({}));
  DOCTEST_CHECK(!text::are_json_lines({(dir / "absent.jsonl").string()}));
  std::filesystem::remove_all(dir);
}

DOCTEST_TEST_CASE("pairs: line by line; one file with more lines is an error that names both") {
  const Temporary source("a\nb c\n\n"), target("A\nB\nlast"), shorter("A\nB\n");
  const auto reader = text::read_pairs(source.path(), target.path());
  DOCTEST_CHECK(collect(*reader) == Texts{"a", "A", "b c", "B", "", "last"});
  DOCTEST_CHECK(reader->fingerprints() == std::vector{core::hash128(std::string_view("a\nb c\n\n")),
                                              core::hash128(std::string_view("A\nB\nlast"))});
  for (const bool swap : {false, true}) {
    const auto error = thrown([&] {
      collect(swap ? *text::read_pairs(shorter.path(), source.path())
                   : *text::read_pairs(source.path(), shorter.path()));
    });
    DOCTEST_CHECK(error.code == 65);
    DOCTEST_CHECK(error.names(source.path() + ":3"));
    DOCTEST_CHECK(error.names(shorter.path()));
  }
}

DOCTEST_TEST_CASE("parts have the documents that begin in them, of all formats") {
  const Texts texts = {"ab\n\ncd ef\ng", "", "hi\n\n\nj" + of_length(2'000'000, "klm ") + "\nz\n"};
  std::vector<std::unique_ptr<Temporary>> files;
  std::vector<std::string> paths;
  for (const auto& text : texts) {
    files.push_back(std::make_unique<Temporary>(text));
    paths.push_back(files.back()->path());
  }
  const auto read = [&](text::DocumentOptions options) {
    return collect(*text::read_documents(paths, options, text::gpt2_cut));
  };
  // The beginning of each line, byte by byte, and of documents with another separator.
  Texts lines;
  std::vector<std::uint64_t> begins;
  std::uint64_t byte = 0;
  for (const auto& text : texts) {
    bool inside = false;
    for (const char c : text) {
      if (!inside) lines.emplace_back(), begins.push_back(byte);
      inside = c != '\n';
      if (inside) lines.back() += c;
      ++byte;
    }
  }
  DOCTEST_CHECK(read({text::Format::lines, "text", ""}) == lines);
  for (const std::int64_t count : {1, 2, 3, 7, 40}) {
    for (std::int64_t index = 0; index < count; ++index) {
      const auto range = text::range_of({index, count}, paths);
      Texts expected;
      for (std::size_t i = 0; i < lines.size(); ++i)
        if (range.has(begins[i])) expected.push_back(lines[i]);
      DOCTEST_CHECK(read({text::Format::lines, "text", "", range}) == expected);
      DOCTEST_CHECK(read({text::Format::text, "text", "\n", range}) == expected);
    }
  }
  const auto first = text::range_of({0, 2}, paths), second = text::range_of({1, 2}, paths);
  DOCTEST_CHECK(first.begin == 0);
  DOCTEST_CHECK(first.end == second.begin);
  DOCTEST_CHECK(second.end >= text::total_bytes(paths));
  DOCTEST_CHECK(read({text::Format::text, "text", "", first}) == Texts{texts[0], texts[2]});
  DOCTEST_CHECK(read({text::Format::text, "text", "", second}).empty());
  // Every part has read all files.
  const auto reader =
      text::read_documents(paths, {text::Format::lines, "text", "", first}, text::gpt2_cut);
  collect(*reader);
  DOCTEST_CHECK(reader->fingerprints().size() == 3);
}

DOCTEST_TEST_CASE("any threads give the same shard, of any text in any tokenizer") {
  DOCTEST_CHECK(rc::check([] {
    std::string text;
    const auto pieces = *rc::gen::container<Texts>(3, sample::text());
    for (int i = 0; i < 3; ++i)
      text += of_length(700000, pieces[static_cast<std::size_t>(i)] + "x");
    const auto name = *rc::gen::element<std::string>("bytes", "bpe", "word");
    const text::DocumentOptions options{
        *rc::gen::element(text::Format::text, text::Format::lines), "text", ""};
    text::EncodeTotals one, three;
    text::EncodeOptions how;
    const std::string first = shard_of(text, name, options, how, &one);
    how.jobs = 3;
    RC_ASSERT(shard_of(text, name, options, how, &three) == first);
    RC_ASSERT(one.tokens == three.tokens);
    if (options.format == text::Format::text) {
      RC_ASSERT(one.tokens == sample::tokenizer(name)->encode(text).size());
      RC_ASSERT(one.source_bytes == text.size());
    }
  }));
}

DOCTEST_TEST_CASE("bytes and words of each document, and its last token") {
  const auto tokenizer = sample::tokenizer("bpe");
  const auto read = [](const std::string& bytes) {
    core::MemorySource source(bytes);
    shard::Reader reader(source);
    std::vector<std::uint32_t> ids(1000);
    ids.resize(reader.read(std::span(ids)));
    std::vector<std::uint32_t> rest(1);
    DOCTEST_REQUIRE(reader.read(std::span(rest)) == 0);
    return std::pair(ids, reader.trailer().documents);
  };
  text::EncodeOptions how;
  how.end_of_document = tokenizer->end_of_document();
  const auto [ids, documents] =
      read(shard_of("two words\n\n so four ", "bpe", {text::Format::lines, "text", ""}, how));
  DOCTEST_CHECK(documents.bytes == std::vector<std::uint64_t>{9, 0, 9});
  DOCTEST_CHECK(documents.words == std::vector<std::uint64_t>{2, 0, 2});
  for (const std::uint64_t end : documents.end) DOCTEST_CHECK(ids[end - 1] == how.end_of_document);

  // A newline is a word for word tokenizers, and for others on request.
  how.end_of_document.reset();
  DOCTEST_CHECK(read(shard_of("a b\n\nc\n", "word", {}, how)).second.words[0] == 6);
  DOCTEST_CHECK(read(shard_of("a b\n\nc\n", "bpe", {}, how)).second.words[0] == 3);
  how.count_newlines = true;
  DOCTEST_CHECK(read(shard_of("a b\n\nc\n", "bpe", {}, how)).second.words[0] == 6);
}

DOCTEST_TEST_CASE("words are counted right where a document is cut") {
  const std::string text = of_length(3 << 20, "w12w34 5.x\t");
  text::EncodeTotals totals;
  shard_of(text, "bpe", {}, {}, &totals);
  bool in_word = false;
  DOCTEST_CHECK(totals.source_words == text::count_words(text, in_word));
}

DOCTEST_TEST_CASE("an error in one of several threads ends all, in the order of the input") {
  std::string json;
  for (int i = 0; i < 300000; ++i) json += "{\"text\":\"some text\"}\n";
  json += "{\"text\":1}\n";
  for (int i = 0; i < 300000; ++i) json += "{}\n";
  text::EncodeOptions how;
  how.jobs = 4;
  const auto error = thrown([&] { shard_of(json, "bpe", {text::Format::jsonl, "text", ""}, how); });
  DOCTEST_CHECK(error.code == 65);
  DOCTEST_CHECK(error.names(":300001: "));
}

DOCTEST_TEST_CASE("the end-of-document token by name") {
  const auto bpe = sample::tokenizer("bpe"), word = sample::tokenizer("word");
  DOCTEST_CHECK(text::end_of_document_id(*bpe, "") == bpe->id_of("<|endoftext|>"));
  DOCTEST_CHECK(!text::end_of_document_id(*bpe, "none"));
  DOCTEST_CHECK(!text::end_of_document_id(*word, ""));
  DOCTEST_CHECK(text::end_of_document_id(*word, "<eos>") == 1u);
  const auto error = thrown([&] { text::end_of_document_id(*word, "</s>"); });
  DOCTEST_CHECK(error.code == 64);
  DOCTEST_CHECK(error.names("</s>"));
}

DOCTEST_TEST_CASE("decode: documents as text, lines, JSON lines, with separators") {
  text::EncodeOptions how;
  const auto tokenizer = sample::tokenizer("bpe");
  how.end_of_document = tokenizer->end_of_document();
  const std::string text = "first one\n\nthird\n";
  const Temporary file(shard_of(text, "bpe", {text::Format::lines, "text", ""}, how));
  const shard::Dataset data({file.path()});
  const auto decoded = [&](text::DocumentOptions options, std::optional<std::uint32_t> mark) {
    core::MemorySink sink;
    text::decode_documents(data, tokenizer, options, mark, sink, [](std::uint64_t) {});
    return std::string(sink.text());
  };
  const auto mark = text::end_of_document_of(data, *tokenizer);
  DOCTEST_CHECK(decoded({text::Format::lines, "text", ""}, mark) == text);
  DOCTEST_CHECK(decoded({}, mark) == "first onethird");
  DOCTEST_CHECK(decoded({text::Format::text, "text", "--"}, mark) == "first one----third--");
  DOCTEST_CHECK(decoded({text::Format::jsonl, "t", ""}, mark) ==
                "{\"t\":\"first one\"}\n{\"t\":\"\"}\n{\"t\":\"third\"}\n");
  DOCTEST_CHECK(
      decoded({}, std::nullopt) == "first one<|endoftext|><|endoftext|>third<|endoftext|>");

  text::TextOptions options;  // the shard has its own tokenizer and mark
  const auto printed = [&](const std::string& given) {
    const text::ShardText shard({file.path()}, given, options);
    DOCTEST_CHECK(shard.tokens() == data.size());
    core::MemorySink sink;
    shard.write(sink, [](std::uint64_t) {});
    return std::string(sink.text());
  };
  options.format = "lines";
  DOCTEST_CHECK(printed("") == text);
  options.format = "text", options.end_of_document = "none";
  DOCTEST_CHECK(printed("") == "first one<|endoftext|><|endoftext|>third<|endoftext|>");
  DOCTEST_CHECK(thrown([&] { printed("bytes"); }).code == 65);
}
