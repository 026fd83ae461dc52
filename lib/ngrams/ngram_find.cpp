#include "ngrams/ngram_find.h"

#include "core/error.h"
#include "text/formats/tokenizer_json.h"

namespace ngrams {

using core::Code;
using core::fail;

void IndexOptions::fields(core::FieldList& f) {
  f("ngrams", folders, "folder of an index of n-grams; may be repeated").short_name = 'i';
}

std::shared_ptr<const Index> IndexOptions::open() const {
  if (folders.empty()) fail(Code::usage, "--ngrams is missing; see --help");
  return std::make_shared<const Index>(folders);
}

void FindOptions::fields(core::FieldList& f) {
  f.positional("TEXT", texts, "texts to search for");
  index.fields(f);
  f("ids", ids, "TEXT is token ids separated by spaces");
  f("k", most, "occurrences shown per TEXT").between(0, 1e9);
  f("around", around, "tokens shown before and after each occurrence").between(0, 1e6);
}

namespace {

text::TokenizerPtr tokenizer_of(const Folder& first) {
  if (first.tokenizer().empty()) return nullptr;
  return text::parse_tokenizer(first.tokenizer(), first.name() + "/" + kTokenizerName);
}

}  // namespace

IndexText::IndexText(const Index& index)
    : TextOrIds(tokenizer_of(*index.folders()[0]), "the index") {}

std::vector<Finding> find(const Index& index, const FindOptions& options) {
  const IndexText words(index);
  std::vector<Finding> all;
  for (const auto& text : options.texts) {
    const auto tokens = words.encode(text, options.ids);
    const auto n = std::ssize(tokens);
    const Match match = index.find(tokens);
    const std::uint64_t count = Index::count(match);
    Finding& found = all.emplace_back();
    found.report = {{"text", text}, {"tokens", tokens.size()}, {"count", count}};
    const auto shown = std::min(count, static_cast<std::uint64_t>(options.most));
    for (std::uint64_t i = 0; i < shown; ++i) {
      const SuffixPosition place = index.place(match, i);
      found.places.push_back(
          {{"ngrams", index.folders()[place.folder]->name()},
           {"document", place.document},
           {"offset", place.offset},
           {"before", words.decode(index.around(match, i, -options.around, 0))},
           {"after", words.decode(index.around(match, i, n, n + options.around))}});
    }
  }
  return all;
}

}  // namespace ngrams
