#include "text/learn/learn_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>

#include "text/documents/encode_shard.h"

namespace text {
namespace {

bool is_bpe(const LearnRequest& request) { return request.kind == "bpe"; }

}  // namespace

void LearnRequest::fields(core::FieldList& f) {
  f("learn", kind, "learn a tokenizer from the texts", {"word", "bpe"});
  f("vocab-size", vocab_size, "learn: vocabulary size; auto: 32768 for bpe, all words for word")
      .between(1, 4e9)
      .or_auto();
  f("min-count", min_count,
    "learn: minimum frequency of words (word) or pairs (bpe); auto: 1 for word, 2 for bpe")
      .between(1, 1e12)
      .or_auto();
}

LearnOptions LearnRequest::options() const {
  LearnOptions how;
  how.vocabulary_size = static_cast<std::size_t>(vocab_size);
  how.min_count = static_cast<std::uint64_t>(min_count);
  if (how.min_count == 0) how.min_count = is_bpe(*this) ? 2 : 1;
  if (how.vocabulary_size == 0 && is_bpe(*this)) how.vocabulary_size = 32768;
  return how;
}

TokenizerPtr learn_tokenizer(const std::vector<std::string>& files,
                             const DocumentOptions& documents, const LearnRequest& request,
                             int jobs, const LearnCallbacks& watch) {
  const auto kind = is_bpe(request) ? WordKind::gpt2 : WordKind::plain;
  const auto reader = read_documents(files, documents, cut_for(kind));
  LineFlaws flaws;
  const auto counts =
      count_words(*reader, kind, documents.field, jobs, watch.reading, documents.bad_lines, &flaws);
  if (watch.note)
    for (const auto& line : notes_of(*reader, documents, flaws)) watch.note(line);
  if (is_bpe(request)) return learn_bpe(counts, request.options(), watch.learning);
  return learn_words(counts, request.options());
}

TokenizerPtr learn_for_training(const std::vector<std::string>& files, int jobs,
                                const LearnCallbacks& watch) {
  TextOptions options;
  options.invalid = "error";
  options.follow(files);
  LearnRequest request;
  request.kind = "bpe";
  const auto hundreds = static_cast<std::int64_t>(total_bytes(files) / 25'000);
  request.vocab_size = std::clamp<std::int64_t>(hundreds * 100, 500, 16'000);
  auto tokenizer = learn_tokenizer(files, options.documents(false, jobs), request, jobs, watch);
  watch.note(
      fmt::format("no tokenizer was given: learned a byte-level BPE of {} tokens; -t uses another",
                  tokenizer->size()));
  return tokenizer;
}

std::string shortfall(const Tokenizer& tokenizer, const LearnRequest& request) {
  const LearnOptions how = request.options();
  if (tokenizer.size() >= how.vocabulary_size) return {};
  return fmt::format(
      "learned fewer tokens than --vocab-size {}: no further {} occur {} times; give more text{}",
      how.vocabulary_size, is_bpe(request) ? "pairs" : "words", how.min_count,
      how.min_count > 1 ? ", or a lower --min-count" : "");
}

}  // namespace text
