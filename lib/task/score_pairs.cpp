#include "task/score_pairs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/io.h"
#include "core/units.h"
#include "task/token_scores.h"

namespace task {
namespace {

using core::Code;
using core::fail;

// Enough for their differences no longer to mislead blocks of tokens.
constexpr double kManyEffectiveDocuments = 60;
constexpr std::uint64_t kAutoBlocks = 64, kLeastAutoBlock = 8, kMostAutoBlock = 512;
constexpr std::size_t kManyFineBlocks = std::size_t{1} << 18;

// Joins every `times` neighbouring blocks into one.
void join(std::vector<ScoreBlock>& blocks, std::uint64_t times) {
  std::vector<ScoreBlock> joined((blocks.size() + times - 1) / times);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    ScoreBlock& to = joined[i / times];
    to.a += blocks[i].a, to.b += blocks[i].b, to.tokens += blocks[i].tokens;
  }
  blocks = std::move(joined);
}

// Joins blocks to the length that fits the text. The length was unknown when the finer blocks were
// counted.
void choose_blocks(ScorePairs& pairs) {
  const auto times = std::max<std::uint64_t>(1, block_for(pairs.tokens) / pairs.block);
  join(pairs.by_tokens, times);
  pairs.block *= times;
}

void add(std::vector<ScoreBlock>& blocks, double a, double b) {
  blocks.back().a += a, blocks.back().b += b, ++blocks.back().tokens;
}

}  // namespace

std::uint64_t block_for(std::uint64_t tokens) {
  return std::clamp(tokens / kAutoBlocks, kLeastAutoBlock, kMostAutoBlock);
}

ScorePairs read_score_pairs(const std::string& path_a, const std::string& path_b,
                            const BlockChoice& choice) {
  const auto source_a = core::open_source(path_a), source_b = core::open_source(path_b);
  TokenScoreReader reader_a(*source_a), reader_b(*source_b);
  TokenScore a, b;
  ScorePairs pairs;
  const bool choose = choice.tokens == 0;
  pairs.block = choose ? 1 : static_cast<std::uint64_t>(choice.tokens);
  std::optional<std::uint64_t> document;
  while (true) {
    const bool more_a = reader_a.next(a), more_b = reader_b.next(b);
    if (more_a != more_b)
      fail(Code::bad_data, "{} ends after line {}, but {} continues; they score different tokens",
           more_a ? reader_b.name() : reader_a.name(), more_a ? reader_b.line() : reader_a.line(),
           more_a ? reader_a.name() : reader_b.name());
    if (!more_a) break;
    if (a.position != b.position || a.token != b.token)
      fail(Code::bad_data,
           "{}:{}: has token {} at {}, but {}:{} has token {} at {}; they score different tokens",
           reader_a.name(), reader_a.line(), a.token, a.position, reader_b.name(), reader_b.line(),
           b.token, b.position);
    if (document != a.document) pairs.by_document.emplace_back();
    document = a.document;
    if (pairs.tokens % pairs.block == 0) {
      if (choose && pairs.by_tokens.size() == kManyFineBlocks)
        join(pairs.by_tokens, 2), pairs.block *= 2;
      pairs.by_tokens.emplace_back();
    }
    add(pairs.by_document, a.nats, b.nats);
    add(pairs.by_tokens, a.nats, b.nats);
    ++pairs.tokens;
  }
  if (choose) choose_blocks(pairs);
  return pairs;
}

bool BlockChoice::documents(const ScorePairs& pairs) const {
  return by_document ||
         (open && effective_documents(pairs.by_document) >= kLeastEffectiveDocuments);
}

BlockChoice block_choice_of(const std::string& text) {
  BlockChoice choice;
  choice.open = text == "auto", choice.by_document = text == "document";
  if (choice.open || choice.by_document) return choice;
  choice.tokens = core::parse_count(text);
  if (choice.tokens < 1)
    fail(Code::usage, "--block: takes auto, document or a positive number of tokens");
  return choice;
}

Comparison compare(const ScorePairs& pairs, const BlockChoice& choice, double confidence) {
  if (choice.documents(pairs)) return compare_documents(pairs.by_document, confidence);
  Comparison found = compare_consecutive(pairs.by_tokens, confidence);
  if (choice.open && pairs.by_document.size() > 1)
    found.low = found.high = found.p = std::numeric_limits<double>::quiet_NaN();
  return found;
}

std::string caution(const ScorePairs& pairs, const BlockChoice& choice) {
  const auto documents = pairs.by_document.size();
  const double effective = effective_documents(pairs.by_document);
  if (choice.documents(pairs) || documents < 2 || effective >= kManyEffectiveDocuments) return {};
  return fmt::format(
      "the text's {} documents count as {:.1f} of equal length: if one model is better on some of "
      "them and worse on others, {}",
      documents, effective,
      choice.open ? "p cannot be known; use a text of more documents, or --block N to assume that "
                    "none is"
                  : "p is too small; --block document or a text of more documents allows for that");
}

core::OrderedJson figures(const Comparison& found, const ScorePairs& pairs,
                          const BlockChoice& choice) {
  const bool documents = choice.documents(pairs);
  core::OrderedJson report;
  report["tokens"] = pairs.tokens;
  report["blocks"] = (documents ? pairs.by_document : pairs.by_tokens).size();
  report["block"] = documents ? "document" : std::to_string(pairs.block);
  report["method"] = documents ? "documents" : "cosines";
  report["degrees_of_freedom"] = found.freedom;
  report["loss_a"] = found.loss_a;
  report["loss_b"] = found.loss_b;
  report["perplexity_a"] = std::exp(found.loss_a);
  report["perplexity_b"] = std::exp(found.loss_b);
  report["difference"] = found.difference;
  report["low"] = found.low;
  report["high"] = found.high;
  report["perplexity_ratio"] = std::exp(found.difference);
  report["ratio_low"] = std::exp(found.low);
  report["ratio_high"] = std::exp(found.high);
  report["p"] = found.p;
  return report;
}

}  // namespace task
