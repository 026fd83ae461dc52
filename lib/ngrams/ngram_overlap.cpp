#include "ngrams/ngram_overlap.h"

#include "core/parallel.h"
#include "ngrams/next_tokens.h"
#include "text/formats/tokenizer_json.h"

namespace ngrams {
namespace {

void expect_same_tokenizer(const Index& index, const shard::Dataset& data) {
  shard::expect_kind(data.header(), {shard::Kind::tokens}, data.name());
  const Folder& first = *index.folders()[0];
  const auto& own = data.header();
  const auto tokenizer = own.tokenizer.empty() ? "" : core::hash128(own.tokenizer).hex();
  if (own.vocabulary != first.manifest().vocabulary || tokenizer != first.manifest().tokenizer)
    core::bad_data("{} has tokenizer '{}' with {} tokens, but {} has '{}' with {}", data.name(),
        tokenizer, own.vocabulary, first.name(), first.manifest().tokenizer,
        first.manifest().vocabulary);
}

Overlap measure(const std::vector<Span>& spans, std::uint64_t tokens) {
  Overlap found{spans.empty() ? 0U : 1U, tokens, 0, spans.size(), 0};
  std::uint64_t end = 0;
  for (const Span& span : spans) {
    found.known += span.end - std::max(end, span.begin);
    end = span.end;
    found.longest = std::max(found.longest, span.end - span.begin);
  }
  return found;
}

void add(core::OrderedJson& row, const Overlap& found) {
  row["tokens"] = found.tokens, row["known"] = found.known;
  row["share"] = found.tokens == 0
                     ? 0.0
                     : static_cast<double>(found.known) / static_cast<double>(found.tokens);
  row["spans"] = found.spans, row["longest"] = found.longest;
}

text::TokenizerPtr tokenizer_of(const Folder& first) {
  if (first.tokenizer().empty()) return nullptr;
  return text::parse_tokenizer(first.tokenizer(), first.name() + "/" + kTokenizerName);
}

}  // namespace

void IndexOptions::fields(core::FieldList& f) {
  f("ngrams", folders, "folder of an index of n-grams; may be repeated").short_name = 'i';
}

std::shared_ptr<const Index> IndexOptions::open() const {
  if (folders.empty()) core::bad_usage("--ngrams is missing; see --help");
  return std::make_shared<const Index>(folders);
}

void FindOptions::fields(core::FieldList& f) {
  f.positional("TEXT", texts, "texts to search for");
  index.fields(f);
  f("ids", ids, "TEXT is token ids separated by spaces");
  f("k", most, "occurrences shown per TEXT").between(0, 1e9);
  f("around", around, "tokens shown before and after each occurrence").between(0, 1e6);
}

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
      found.places.push_back({{"ngrams", index.folders()[place.folder]->name()},
          {"document", place.document}, {"offset", place.offset},
          {"before", words.decode(index.around(match, i, -options.around, 0))},
          {"after", words.decode(index.around(match, i, n, n + options.around))}});
    }
  }
  return all;
}

void OverlapOptions::fields(core::FieldList& f) {
  f.positional("FILE", files, "shards of tokens; stdin if - or not given");
  index.fields(f);
  f("at-least", at_least, "minimum tokens of a reported span").between(1, 1e9);
  f("by-span", spans, "print one row per span instead of one per document");
}

std::vector<Span> spans_of(const std::shared_ptr<const Index>& index,
    std::span<const std::uint32_t> document, std::uint64_t at_least) {
  SuffixFollower follower(index, /*with_next=*/false);
  std::vector<Span> spans;
  Match before;
  for (std::size_t i = 0; i <= document.size(); ++i) {
    // A match that cannot be extended here ends a span.
    std::uint64_t length = 0;
    if (i < document.size()) {
      follower.push(document[i]);
      length = follower.length();
    }
    if (length != before.length + 1 && before.length >= at_least)
      spans.push_back({i - before.length, i, before});
    if (i < document.size()) before = follower.match();
  }
  return spans;
}

OverlapReport overlap(const std::shared_ptr<const Index>& index, const shard::Dataset& data,
    const OverlapOptions& options, std::int64_t jobs,
    const std::function<void(std::uint64_t)>& progress) {
  expect_same_tokenizer(*index, data);
  const IndexText words(*index);
  const auto& ends = data.documents().end;
  std::vector<std::vector<core::OrderedJson>> rows(ends.size());
  Overlap all;
  std::mutex mutex;
  core::parallel_for(static_cast<int>(jobs), ends.size(), [&] {
    return [&](std::uint64_t d) {
      const std::uint64_t begin = d == 0 ? 0 : ends[d - 1];
      std::vector<std::uint32_t> document(ends[d] - begin);
      data.read(begin, std::span(document));
      const auto spans = spans_of(index, document, static_cast<std::uint64_t>(options.at_least));
      const Overlap found = measure(spans, document.size());
      if (options.spans) {
        for (const Span& span : spans) {
          const SuffixPosition there = index->place(span.match, 0);
          rows[d].push_back({{"document", d}, {"offset", span.begin},
              {"tokens", span.end - span.begin}, {"count", Index::count(span.match)},
              {"text", words.decode(std::span(std::as_const(document))
                                        .subspan(span.begin, span.end - span.begin))},
              {"ngrams", index->folders()[there.folder]->name()}, {"there", there.document},
              {"there_offset", there.offset}});
        }
      } else if (!spans.empty()) {
        add(rows[d].emplace_back(core::OrderedJson{{"document", d}}), found);
      }
      const std::lock_guard guard(mutex);
      all.documents += found.documents, all.tokens += found.tokens, all.known += found.known;
      all.spans += found.spans, all.longest = std::max(all.longest, found.longest);
      if (progress) progress(all.tokens);
    };
  });
  OverlapReport report;
  report.all = {{"documents", ends.size()}, {"with_spans", all.documents}};
  add(report.all, all);
  for (auto& of : rows) std::ranges::move(of, std::back_inserter(report.rows));
  return report;
}

}  // namespace ngrams
