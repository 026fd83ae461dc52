#include "text/learn/learn.h"

#include "core/parallel.h"
#include "text/documents/encode_shard.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/utf8.h"
#include "text/tokenizer/word_level.h"

namespace text {
namespace {

constexpr std::uint32_t kFree = 0xFFFFFFFF;

std::uint64_t hash_of(std::uint64_t pair) {
  const std::uint64_t mixed = (pair * 0x9E3779B97F4A7C15u ^ pair >> 32) * 0xD6E8FEB86659FD93u;
  return mixed ^ mixed >> 32;
}

void count_plain(std::string_view text, WordCounts& counts) {
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    if (*p == ' ' || *p == '\n') {
      ++p;
      continue;
    }
    const char* const stop = plain_word_end(p, end);
    counts.add({p, static_cast<std::size_t>(stop - p)});
    p = stop;
  }
}

void count_gpt2(std::string_view text, WordCounts& counts) {
  const char* const end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const char* const stop = gpt2_pretoken_end_quick(p, end);
    counts.add({p, static_cast<std::size_t>(stop - p)});
    p = stop;
  }
}

bool is_bpe(const LearnRequest& request) { return request.kind == "bpe"; }

}  // namespace

void BpeLearner::add(std::span<const std::uint32_t> symbols, std::uint64_t count) {
  words_.push_back({symbols_.size(), static_cast<std::uint32_t>(symbols.size()),
      static_cast<std::int64_t>(count)});
  symbols_.insert(symbols_.end(), symbols.begin(), symbols.end());
}

void BpeLearner::grow() {
  slots_.assign(std::max<std::size_t>(slots_.size() * 2, 1 << 12), kFree);
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    std::size_t at = hash_of(entries_[i].pair) & mask;
    while (slots_[at] != kFree) at = (at + 1) & mask;
    slots_[at] = i;
  }
}

std::uint32_t BpeLearner::entry_of(std::uint64_t pair) {
  if (entries_.size() * 2 >= slots_.size()) grow();
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = hash_of(pair) & mask;
  while (slots_[at] != kFree && entries_[slots_[at]].pair != pair) at = (at + 1) & mask;
  if (slots_[at] == kFree) {
    slots_[at] = static_cast<std::uint32_t>(entries_.size());
    entries_.emplace_back();
    entries_.back().pair = pair;
  }
  return slots_[at];
}

void BpeLearner::change(
    std::uint32_t left, std::uint32_t right, std::int64_t by, std::uint32_t word) {
  const std::uint32_t number = entry_of(pair_of(left, right));
  Entry& entry = entries_[number];
  entry.count += by;
  if (by < 0) return;
  if (entry.words.empty() || entry.words.back() != word) entry.words.push_back(word);
  if (entry.touched) return;
  entry.touched = true;
  touched_.push_back(number);
}

void BpeLearner::count_all() {
  counted_ = true;
  for (std::uint32_t w = 0; w < words_.size(); ++w) {
    const Word& word = words_[w];
    const std::uint32_t* s = symbols_.data() + word.begin;
    for (std::uint32_t i = 0; i + 1 < word.size; ++i) change(s[i], s[i + 1], word.count, w);
  }
  for (const std::uint32_t number : touched_) {
    entries_[number].touched = false;
    heap_.push_back({entries_[number].count, entries_[number].pair});
  }
  touched_.clear();
  std::make_heap(heap_.begin(), heap_.end());
}

std::optional<BpeLearner::Pair> BpeLearner::best() {
  if (!counted_) count_all();
  while (!heap_.empty()) {
    const Candidate top = heap_.front();
    const std::int64_t count = entries_[entry_of(top.pair)].count;
    if (count == top.count && count > 0)
      return Pair{
          static_cast<std::uint32_t>(top.pair >> 32), static_cast<std::uint32_t>(top.pair), count};
    // A count that has grown since then has its own candidate.
    std::pop_heap(heap_.begin(), heap_.end());
    heap_.pop_back();
    if (count > 0 && count < top.count) {
      heap_.push_back({count, top.pair});
      std::push_heap(heap_.begin(), heap_.end());
    }
  }
  return std::nullopt;
}

void BpeLearner::merge(std::uint32_t left, std::uint32_t right, std::uint32_t result) {
  const std::uint32_t merged = entry_of(pair_of(left, right));
  const std::vector<std::uint32_t> words = std::move(entries_[merged].words);
  entries_[merged].words = {};
  for (const std::uint32_t w : words) {
    Word& word = words_[w];
    std::uint32_t* const s = symbols_.data() + word.begin;
    std::uint32_t n = 0;  // number of symbols written
    for (std::uint32_t i = 0; i < word.size;) {
      if (i + 1 == word.size || s[i] != left || s[i + 1] != right) {
        s[n++] = s[i++];
        continue;
      }
      // s[n - 1] is the previous symbol after the merges so far. s[i + 2] is the next symbol.
      change(left, right, -word.count, w);
      if (n > 0) {
        change(s[n - 1], left, -word.count, w);
        change(s[n - 1], result, word.count, w);
      }
      if (i + 2 < word.size) {
        change(right, s[i + 2], -word.count, w);
        change(result, s[i + 2], word.count, w);
      }
      s[n++] = result;
      i += 2;
    }
    word.size = n;
  }
  for (const std::uint32_t number : touched_) {
    Entry& entry = entries_[number];
    entry.touched = false;
    if (entry.count <= 0) continue;
    heap_.push_back({entry.count, entry.pair});
    std::push_heap(heap_.begin(), heap_.end());
  }
  touched_.clear();
}

std::vector<std::uint32_t> WordCounts::by_count(std::uint64_t min_count) const {
  std::vector<std::uint32_t> order(size());
  std::iota(order.begin(), order.end(), 0u);
  std::erase_if(order, [&](std::uint32_t i) { return counts_[i] < min_count; });
  std::ranges::sort(order, [this](std::uint32_t a, std::uint32_t b) {
    return counts_[a] != counts_[b] ? counts_[a] > counts_[b] : word(a) < word(b);
  });
  return order;
}

CutFunction cut_for(WordKind kind) { return kind == WordKind::gpt2 ? gpt2_cut : plain_word_cut; }

WordCounts count_words(DocumentReader& reader, WordKind kind, const std::string& field, int jobs,
    const std::function<void(std::uint64_t)>& progress, BadLines bad, LineFlaws* flaws) {
  struct Worker {
    Worker(const std::string& field, BadLines bad) : texts(field, bad) {}
    WordCounts counts;
    PartTexts texts;
  };
  struct Counted {
    std::uint64_t bytes = 0;
    LineFlaws flaws;
  };
  std::deque<Worker> workers;
  std::mutex mutex;
  core::work_in_order<Batch, Counted>(
      jobs, [&](Batch& batch) { return reader.next(batch); },
      [&]() -> std::function<void(Batch&, Counted&)> {
        const std::lock_guard lock(mutex);
        Worker* worker = &workers.emplace_back(field, bad);
        return [worker, kind](Batch& batch, Counted& done) {
          done.bytes = batch.source_bytes;
          done.flaws = worker->texts.each(batch, [&](const Batch::Part&, std::string_view text) {
            kind == WordKind::gpt2 ? count_gpt2(text, worker->counts)
                                   : count_plain(text, worker->counts);
          });
        };
      },
      [&](Counted& done) {
        if (flaws != nullptr) flaws->add(done.flaws);
        progress(done.bytes);
      });
  WordCounts total;
  for (auto& worker : workers) {
    if (total.size() == 0) {
      total = std::move(worker.counts);
    } else {
      total.add(worker.counts);
    }
  }
  return total;
}

TokenizerPtr learn_words(const WordCounts& counts, const LearnOptions& options) {
  WordLevel::Options names;
  Vocabulary vocabulary;
  vocabulary.add(names.unknown);
  vocabulary.add(names.newline);
  if (options.vocabulary_size == 1)
    core::bad_usage("--vocab-size is 1; it takes 2 or more: {} and {} are tokens", names.unknown,
        names.newline);
  for (const std::uint32_t i : counts.by_count(options.min_count)) {
    if (vocabulary.size() == options.vocabulary_size) break;
    if (is_valid_utf8(counts.word(i))) vocabulary.add(counts.word(i));
  }
  return std::make_shared<WordLevel>(std::move(vocabulary), std::move(names));
}

TokenizerPtr learn_bpe(const WordCounts& counts, const LearnOptions& options,
    const std::function<void(std::uint64_t)>& progress) {
  constexpr std::string_view kMark = "<|endoftext|>";
  if (options.vocabulary_size != 0 && options.vocabulary_size < 257)
    core::bad_usage("--vocab-size is {}; it takes 257 or more: 256 bytes and {} are tokens",
        options.vocabulary_size, kMark);
  Vocabulary vocabulary;
  std::uint32_t id_of_byte[256];
  for (const std::uint8_t byte : bytes_in_alphabet_order()) {
    const char c = static_cast<char>(byte);
    id_of_byte[byte] = vocabulary.add({&c, 1});
  }
  const std::size_t limit = options.vocabulary_size == 0 ? SIZE_MAX : options.vocabulary_size - 1;

  BpeLearner learner;
  std::vector<std::uint32_t> symbols;
  for (const std::uint32_t i : counts.by_count(1)) {
    symbols.clear();
    for (const char c : counts.word(i))
      symbols.push_back(id_of_byte[static_cast<unsigned char>(c)]);
    learner.add(symbols, counts.count(i));
  }
  std::vector<Merge> merges;
  std::string joint;
  while (vocabulary.size() < limit) {
    const auto best = learner.best();
    if (!best || best->count < static_cast<std::int64_t>(options.min_count)) break;
    joint.assign(vocabulary.token(best->left)).append(vocabulary.token(best->right));
    // Two merges may result in one token.
    const std::uint32_t result = vocabulary.add(joint);
    merges.push_back({best->left, best->right, result});
    learner.merge(best->left, best->right, result);
    progress(vocabulary.size());
  }
  const std::uint32_t mark = vocabulary.add(kMark);
  return std::make_shared<ByteLevel>(std::move(vocabulary), std::move(merges),
      ByteLevel::Parts{.special = {{mark, std::string(kMark)}}});
}

void LearnRequest::fields(core::FieldList& f) {
  f("learn", kind, "learn a tokenizer from the texts", {"word", "bpe"});
  f("vocab-size", vocab_size, "learn: vocabulary size; auto: 32768 for bpe, all words for word")
      .auto_or(1, 4e9);
  f("min-count", min_count,
      "learn: minimum frequency of words (word) or pairs (bpe); auto: 1 for word, 2 for bpe")
      .auto_or(1, 1e12);
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
    const DocumentOptions& documents, const LearnRequest& request, int jobs,
    const LearnCallbacks& watch) {
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

TokenizerPtr learn_for_training(
    const std::vector<std::string>& files, int jobs, const LearnCallbacks& watch) {
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
