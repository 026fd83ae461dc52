#include "task/score_pairs.h"

#include "core/units.h"
#include "task/token_scores.h"

namespace task {
namespace {

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

void add(ScoreBlock& block, double a, double b) { block.a += a, block.b += b, ++block.tokens; }

// One of the files that are read in parallel, and its last line.
struct ScoreFile {
  std::unique_ptr<core::ByteSource> source;
  TokenScoreReader reader;
  TokenScore row;
  explicit ScoreFile(const std::string& path) : source(core::open_source(path)), reader(*source) {}
};

// Reads the next line of each file; returns false at the end.
bool next_line(std::deque<ScoreFile>& files) {
  ScoreFile& first = files.front();
  const bool more = first.reader.next(first.row);
  for (std::size_t i = 1; i < files.size(); ++i) {
    ScoreFile& other = files[i];
    if (other.reader.next(other.row) != more) {
      const TokenScoreReader& ended = more ? other.reader : first.reader;
      core::bad_data("{} ends after line {}, but {} continues; they score different tokens",
          ended.name(), ended.line(), (more ? first : other).reader.name());
    }
    const TokenScore &a = first.row, &b = other.row;
    if (more && (a.position != b.position || a.token != b.token))
      core::bad_data(
          "{}:{}: has token {} at {}, but {}:{} has token {} at {}; they score different tokens",
          first.reader.name(), first.reader.line(), a.token, a.position, other.reader.name(),
          other.reader.line(), b.token, b.position);
  }
  return more;
}

// Adds a comparison's figures to a report, except those of the text or the seeds.
void add_figures(core::OrderedJson& report, const Comparison& found) {
  report["degrees_of_freedom"] = found.freedom;
  report["loss_a"] = found.loss_a;
  report["loss_b"] = found.loss_b;
  report["perplexity_a"] = std::exp(found.loss_a);
  report["perplexity_b"] = std::exp(found.loss_b);
  report["difference"] = found.difference;
  report["low"] = found.low;
  report["high"] = found.high;
  report["standard_error"] = found.standard_error;
  report["perplexity_ratio"] = std::exp(found.difference);
  report["ratio_low"] = std::exp(found.low);
  report["ratio_high"] = std::exp(found.high);
  report["p"] = found.p;
}

double deviation(const Comparison& found) {
  return found.standard_error * std::sqrt(found.freedom + 1);
}

constexpr const char* kOtherSeeds = "models of other seeds, on this text";

}  // namespace

std::uint64_t block_for(std::uint64_t tokens) {
  return std::clamp(tokens / kAutoBlocks, kLeastAutoBlock, kMostAutoBlock);
}

ScorePairs read_score_pairs(const std::vector<std::string>& paths_a,
    const std::vector<std::string>& paths_b, const BlockChoice& choice) {
  std::deque<ScoreFile> files;
  for (const auto& path : paths_a) files.emplace_back(path);
  for (const auto& path : paths_b) files.emplace_back(path);
  ScorePairs pairs;
  const std::size_t seeds = paths_b.size();
  pairs.by_seed.resize(seeds);
  const bool choose = choice.tokens == 0;
  pairs.block = choose ? 1 : static_cast<std::uint64_t>(choice.tokens);
  std::optional<std::uint64_t> document;
  while (next_line(files)) {
    if (document != files[0].row.document) pairs.by_document.emplace_back();
    document = files[0].row.document;
    if (pairs.tokens % pairs.block == 0) {
      if (choose && pairs.by_tokens.size() == kManyFineBlocks)
        join(pairs.by_tokens, 2), pairs.block *= 2;
      pairs.by_tokens.emplace_back();
    }
    double a = 0, b = 0;
    for (std::size_t i = 0; i < seeds; ++i) {
      const double nats_a = paths_a.empty() ? 0 : files[i].row.nats;
      const double nats_b = files[paths_a.size() + i].row.nats;
      add(pairs.by_seed[i], nats_a, nats_b);
      a += nats_a, b += nats_b;
    }
    const auto mean = 1 / static_cast<double>(seeds);
    add(pairs.by_document.back(), a * mean, b * mean);
    add(pairs.by_tokens.back(), a * mean, b * mean);
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
    core::bad_usage("--block: takes auto, document or a positive number of tokens");
  return choice;
}

Comparison compare(const ScorePairs& pairs, const BlockChoice& choice, double confidence) {
  if (choice.documents(pairs)) return compare_documents(pairs.by_document, confidence);
  Comparison found = compare_consecutive(pairs.by_tokens, confidence);
  if (choice.open && pairs.by_document.size() > 1)
    found.low = found.high = found.p = found.standard_error =
        std::numeric_limits<double>::quiet_NaN();
  return found;
}

std::string caution(const ScorePairs& pairs, const BlockChoice& choice) {
  const auto documents = pairs.by_document.size();
  const double effective = effective_documents(pairs.by_document);
  if (choice.documents(pairs) || documents < 2 || effective >= kManyEffectiveDocuments) return {};
  return fmt::format(
      "the text's {} documents count as {:.1f} of equal length: if one model is better on some of "
      "them and worse on others, {}{}",
      documents, effective, pairs.by_seed.size() > 1 ? "text_p " : "p ",
      choice.open ? "cannot be known; use a text of more documents, or --block N to assume that "
                    "none is"
                  : "is too small; --block document or a text of more documents allows for that");
}

core::OrderedJson figures(
    const Comparison& text, const ScorePairs& pairs, const BlockChoice& choice) {
  const bool documents = choice.documents(pairs);
  core::OrderedJson report;
  report["tokens"] = pairs.tokens;
  report["blocks"] = (documents ? pairs.by_document : pairs.by_tokens).size();
  report["block"] = documents ? "document" : std::to_string(pairs.block);
  report["method"] = documents ? "documents" : "cosines";
  add_figures(report, text);
  report["holds_for"] = "this pair of models";
  return report;
}

core::OrderedJson figures_over_seeds(const Comparison& seeds, const Comparison& text,
    const ScorePairs& pairs, const BlockChoice& choice) {
  core::OrderedJson report;
  report["tokens"] = pairs.tokens;
  report["seeds"] = pairs.by_seed.size();
  report["method"] = "seeds";
  add_figures(report, seeds);
  report["sd"] = deviation(seeds);
  report["holds_for"] = kOtherSeeds;
  const core::OrderedJson of_text = figures(text, pairs, choice);
  for (const std::string key :
      {"blocks", "block", "method", "degrees_of_freedom", "standard_error", "low", "high", "p"})
    report["text_" + key] = of_text[key];
  return report;
}

core::OrderedJson figures_alone(const Comparison& seeds, const ScorePairs& pairs) {
  core::OrderedJson report;
  report["tokens"] = pairs.tokens;
  report["seeds"] = pairs.by_seed.size();
  report["loss"] = seeds.difference;
  report["sd"] = deviation(seeds);
  report["low"] = seeds.low;
  report["high"] = seeds.high;
  report["perplexity"] = std::exp(seeds.difference);
  report["perplexity_low"] = std::exp(seeds.low);
  report["perplexity_high"] = std::exp(seeds.high);
  report["holds_for"] = kOtherSeeds;
  return report;
}

}  // namespace task
