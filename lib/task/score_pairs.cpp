#include "task/score_pairs.h"

#include <cmath>
#include <optional>

#include "core/error.h"
#include "core/io.h"
#include "core/units.h"
#include "task/token_scores.h"

namespace task {
namespace {

using core::Code;
using core::fail;

constexpr std::size_t kEnoughDocuments = 50;

void add(std::vector<ScoreBlock>& blocks, double a, double b) {
  blocks.back().a += a, blocks.back().b += b, ++blocks.back().tokens;
}

}  // namespace

ScorePairs read_score_pairs(const std::string& path_a, const std::string& path_b,
                            std::uint64_t block) {
  const auto source_a = core::open_source(path_a), source_b = core::open_source(path_b);
  TokenScoreReader reader_a(*source_a), reader_b(*source_b);
  TokenScore a, b;
  ScorePairs pairs;
  std::optional<std::uint64_t> document;
  while (true) {
    const bool more_a = reader_a.next(a), more_b = reader_b.next(b);
    if (more_a != more_b)
      fail(Code::bad_data, "{} ends after line {}, {} goes on; they score different tokens",
           more_a ? reader_b.name() : reader_a.name(), more_a ? reader_b.line() : reader_a.line(),
           more_a ? reader_a.name() : reader_b.name());
    if (!more_a) return pairs;
    if (a.position != b.position || a.token != b.token)
      fail(Code::bad_data,
           "{}:{}: token {} at {}, but {}:{} has token {} at {}; they score different tokens",
           reader_a.name(), reader_a.line(), a.token, a.position, reader_b.name(), reader_b.line(),
           b.token, b.position);
    if (document != a.document) pairs.by_document.emplace_back();
    document = a.document;
    if (pairs.tokens % block == 0) pairs.by_tokens.emplace_back();
    add(pairs.by_document, a.nats, b.nats);
    add(pairs.by_tokens, a.nats, b.nats);
    ++pairs.tokens;
  }
}

bool BlockChoice::documents(const ScorePairs& pairs) const {
  return by_document || (open && pairs.by_document.size() >= kEnoughDocuments);
}

BlockChoice block_choice_of(const std::string& text) {
  BlockChoice choice;
  choice.open = text == "auto", choice.by_document = text == "document";
  if (!choice.open && !choice.by_document) choice.tokens = core::parse_count(text);
  if (choice.tokens < 1)
    fail(Code::usage, "--block: takes document or a positive number of tokens");
  return choice;
}

core::OrderedJson figures(const Comparison& found, const ScorePairs& pairs,
                          const BlockChoice& choice) {
  const bool documents = choice.documents(pairs);
  core::OrderedJson report;
  report["tokens"] = pairs.tokens;
  report["blocks"] = (documents ? pairs.by_document : pairs.by_tokens).size();
  report["block"] = documents ? "document" : std::to_string(choice.tokens);
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
