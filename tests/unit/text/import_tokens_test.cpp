#include "text/documents/import_tokens.h"

#include <rapidcheck.h>

#include "shard/dataset.h"
#include "text/formats/tokenizer_json.h"
#include "text/tokenizer/utf8.h"
#include "texts.h"
#include "unit/temporary_folder.h"
#include "unit/thrown.h"

#include <doctest/doctest.h>

namespace {

using Ids16 = std::vector<std::uint16_t>;

struct Folder : TemporaryFolder {
  std::string file(const std::string& name, const Ids16& ids) const {
    core::write_file(path / name, {reinterpret_cast<const char*>(ids.data()), ids.size() * 2});
    return path / name;
  }
};

text::ImportTokensOptions nanogpt() {
  text::ImportTokensOptions options;
  options.format = shard::ArrayFormat::nanogpt;
  options.vocabulary = 1000;
  return options;
}

shard::Dataset import(const Folder& folder, const std::vector<std::string>& paths,
    const text::ImportTokensOptions& options) {
  const std::string path = folder / "out.shard.zst";
  core::Output out(path);
  text::import_tokens(paths, options, out, [](std::uint64_t) {});
  out.commit();
  return shard::Dataset({path});
}

using Ends = std::vector<std::uint64_t>;

}  // namespace

DOCTEST_TEST_CASE("without a mark a file is a document") {
  const Folder folder;
  const auto data = import(folder, {folder.file("a", {1, 2, 3}), folder.file("b", {4})}, nanogpt());
  DOCTEST_CHECK(data.documents().end == Ends{3, 4});
  DOCTEST_CHECK(data.documents().bytes == Ends{0, 0});
  std::vector<std::uint32_t> ids(4);
  data.read(0, std::span(ids));
  DOCTEST_CHECK(ids == std::vector<std::uint32_t>{1, 2, 3, 4});
  DOCTEST_CHECK(import(folder, {folder.file("none", {})}, nanogpt()).size() == 0);
}

DOCTEST_TEST_CASE("a mark parts documents, across files, where the data put it") {
  const Folder folder;
  auto options = nanogpt();
  options.mark = 9;
  const auto last = {folder.file("a", {1, 2, 9, 3}), folder.file("b", {4, 9, 9, 5})};
  DOCTEST_CHECK(import(folder, last, options).documents().end == Ends{3, 6, 7, 8});
  const auto first = {folder.file("c", {9, 1, 9, 2}), folder.file("d", {3, 9, 9})};
  DOCTEST_CHECK(import(folder, first, options).documents().end == Ends{2, 5, 6, 7});
  // A part of such data that begins within a document is reported.
  options.mark_at = text::MarkAt::first;
  DOCTEST_CHECK(import(folder, last, options).documents().end == Ends{2, 5, 6, 8});
  options.mark_at = text::MarkAt::last;
  DOCTEST_CHECK(import(folder, first, options).documents().end == Ends{1, 3, 6, 7});
}

DOCTEST_TEST_CASE("documents, bytes and words are those that tokenize counts") {
  const Folder folder;
  const auto tokenizer = text::load_tokenizer(sample::kFolder + "bpe.json");
  const auto mark = *tokenizer->end_of_document();
  DOCTEST_CHECK(rc::check([&] {
    const auto texts = *rc::gen::nonEmpty(rc::gen::container<std::vector<std::string>>(
        rc::gen::map(sample::text(), [](std::string text) { return "x" + text; })));
    Ids16 ids;
    Ends ends, bytes;
    for (const auto& text : texts) {
      for (const auto id : tokenizer->encode(text)) ids.push_back(std::uint16_t(id));
      ids.push_back(std::uint16_t(mark));
      ends.push_back(ids.size());
      bytes.push_back(text.size());
    }
    text::ImportTokensOptions options;
    options.format = shard::ArrayFormat::nanogpt;
    options.tokenizer = tokenizer;
    options.mark = mark;
    const auto data = import(folder, {folder.file("x", ids)}, options);
    RC_ASSERT(data.documents().end == ends);
    RC_ASSERT(data.documents().bytes == bytes);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      bool in_word = false;
      RC_ASSERT(data.documents().words[i] == text::count_words(texts[i], in_word));
    }
    RC_ASSERT(data.header().tokenizer == tokenizer->json());
  }));
}

DOCTEST_TEST_CASE("an id beyond the vocabulary is named with its file and place") {
  const Folder folder;
  const auto path = folder.file("x", {1, 2, 1000});
  const auto error = thrown([&] { import(folder, {path}, nanogpt()); });
  DOCTEST_CHECK(error.code == 65);
  DOCTEST_CHECK(error.names(path + ": id 1000 at position 2"));
  auto options = nanogpt();
  options.vocabulary = 0;
  DOCTEST_CHECK(thrown([&] { import(folder, {path}, options); }).code == 64);
}
