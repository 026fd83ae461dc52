#include "task/comparison.h"

#include <numbers>

#include "core/hash.h"
#include "core/units.h"
#include "task/token_scores.h"

namespace task {
namespace {

// Few cosines are robust to dependence; many give a shorter interval. There is one for each 64
// tokens up to 12, and more than 12 if each can have 256 tokens, up to 60.
constexpr std::uint64_t kTokensACosine = 64, kTokensAFurtherCosine = 256;
constexpr std::uint64_t kFewCosines = 12, kMostCosines = 60;

struct Sums {
  std::vector<ScoreBlock> blocks;  // those that hold tokens
  ScoreBlock all;
  Comparison result;
};

Sums sums_of(const std::vector<ScoreBlock>& given) {
  Sums sums;
  for (const ScoreBlock& block : given) {
    if (block.tokens == 0) continue;
    sums.blocks.push_back(block);
    sums.all.a += block.a, sums.all.b += block.b, sums.all.tokens += block.tokens;
  }
  if (!std::isfinite(sums.all.a) || !std::isfinite(sums.all.b))
    core::bad_data(
        "a model gives a token probability 0, so its loss is infinite; such scores cannot be "
        "compared");
  const auto tokens = static_cast<double>(sums.all.tokens);
  Comparison& result = sums.result;
  result.loss_a = sums.all.a / tokens, result.loss_b = sums.all.b / tokens;
  result.difference = (sums.all.b - sums.all.a) / tokens;
  return sums;
}

// Returns a block's difference minus that of the same number of average tokens.
double residual(const ScoreBlock& block, double difference) {
  return block.b - block.a - difference * static_cast<double>(block.tokens);
}

Comparison with_error(Comparison result, double standard_error, double confidence) {
  const double reach =
      standard_error > 0 ? standard_error * t_quantile(confidence, result.freedom) : 0;
  result.standard_error = standard_error;
  result.low = result.difference - reach, result.high = result.difference + reach;
  if (result.difference == 0) result.p = 1;
  else
    result.p =
        standard_error > 0 ? t_two_sided(result.difference / standard_error, result.freedom) : 0;
  return result;
}

// The variance of a document of n tokens is token * n + document * n^2.
struct Variances {
  double token = 0, document = 0;
  double squares = 0;  // the estimate of their sum over the documents
};

// Estimates both variances by two moments, with each residual corrected for its document's share.
Variances variances_of(const Sums& sums) {
  const auto tokens = static_cast<double>(sums.all.tokens);
  const auto documents = static_cast<double>(sums.blocks.size());
  double squares = 0, per_token = 0, lengths = 0;
  for (const ScoreBlock& block : sums.blocks) {
    const auto length = static_cast<double>(block.tokens);
    const double rest = residual(block, sums.result.difference);
    const double square = rest * rest / (1 - length / tokens);
    squares += square, per_token += square / length, lengths += length * length;
  }
  const double token = lengths * per_token - tokens * squares;
  const double document = documents * squares - tokens * per_token;
  if (document <= 0) return {1, 0, squares};  // also if all lengths are equal: both are 0
  return {std::max(token, 0.0), document, squares};
}

// The estimate is a quadratic form. Returns the squared trace of its covariance over the trace of
// the square, in which each pair of documents has a term: Satterthwaite's degrees of freedom.
double freedom_of(const Sums& sums, const Variances& variances) {
  const auto tokens = static_cast<double>(sums.all.tokens);
  double all = 0;
  for (const ScoreBlock& block : sums.blocks) {
    const auto length = static_cast<double>(block.tokens);
    all += length * (variances.token + variances.document * length);
  }
  double trace = 0, diagonal = 0, shares = 0, squares = 0, crossed = 0;
  for (const ScoreBlock& block : sums.blocks) {
    const auto length = static_cast<double>(block.tokens);
    const double share = length / tokens, weight = 1 / (1 - share);
    const double variance = length * (variances.token + variances.document * length);
    const double common = weight * share * (share * all - 2 * variance);
    const double own = weight * variance + common;
    trace += own, diagonal += own * own - common * common;
    shares += weight * share * share, squares += weight * variance * variance;
    crossed += weight * share * variance;
  }
  const double pairs = 2 * shares * squares + shares * shares * all * all + 2 * crossed * crossed -
                       4 * all * crossed * shares;
  return trace * trace / (diagonal + pairs);
}

std::uint64_t cosines(std::uint64_t tokens, std::uint64_t blocks) {
  const std::uint64_t few = std::min(tokens / kTokensACosine, kFewCosines);
  const std::uint64_t many = std::min(tokens / kTokensAFurtherCosine, kMostCosines);
  return std::min(std::max(few, many), blocks - 1);
}

constexpr double kAsGoodAsNormal = 1e5;  // degrees of freedom
constexpr int kMostTerms = 10'000;

// The continued fraction of the incomplete beta function (Abramowitz & Stegun 26.5.8), evaluated
// from the front (Lentz's method).
double beta_fraction(double a, double b, double x) {
  constexpr double kTiny = 1e-300, kClose = 1e-15;
  const auto not_zero = [](double value) { return std::abs(value) < kTiny ? kTiny : value; };
  double c = 1, d = 1 / not_zero(1 - (a + b) * x / (a + 1)), value = d;
  for (int m = 1; m <= kMostTerms; ++m) {
    const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / not_zero(1 + even * d), c = not_zero(1 + even / c);
    value *= d * c;
    const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / not_zero(1 + odd * d), c = not_zero(1 + odd / c);
    value *= d * c;
    if (std::abs(d * c - 1) < kClose) break;
  }
  return value;
}

// Computes the regularised incomplete beta function I_x(a, b); y is 1 - x, exact even if x is near
// 1.
double incomplete_beta(double a, double b, double x, double y) {
  if (x <= 0) return 0;
  if (y <= 0) return 1;
  const double front = std::exp(
      std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) + a * std::log(x) + b * std::log(y));
  if (x < (a + 1) / (a + b + 2)) return front * beta_fraction(a, b, x) / a;
  return 1 - front * beta_fraction(b, a, y) / b;
}

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
    if (more && a.document != b.document)
      core::bad_data(
          "{}:{}: is of document {}, but {}:{} is of document {}; they split the text otherwise",
          first.reader.name(), first.reader.line(), a.document, other.reader.name(),
          other.reader.line(), b.document);
  }
  return more;
}

// Adds a comparison's figures to a report, except those of the text or the seeds.
void add_figures(core::OrderedJson& report, const Comparison& found) {
  report.update({{"degrees_of_freedom", found.freedom}, {"loss_a", found.loss_a},
      {"loss_b", found.loss_b}, {"perplexity_a", std::exp(found.loss_a)},
      {"perplexity_b", std::exp(found.loss_b)}, {"difference", found.difference},
      {"low", found.low}, {"high", found.high}, {"standard_error", found.standard_error},
      {"perplexity_ratio", std::exp(found.difference)}, {"ratio_low", std::exp(found.low)},
      {"ratio_high", std::exp(found.high)}, {"p", found.p}});
}

double deviation(const Comparison& found) {
  return found.standard_error * std::sqrt(found.freedom + 1);
}

constexpr const char* kOtherSeeds = "models of other seeds, on this text";

}  // namespace

Comparison compare_consecutive(const std::vector<ScoreBlock>& given, double confidence) {
  Sums sums = sums_of(given);
  if (sums.all.tokens < kLeastTokens)
    core::bad_data(
        "the text has {} tokens, but blocks of tokens need at least {}; use a longer text, or "
        "--block document with at least {:.0f} documents of equal length",
        sums.all.tokens, kLeastTokens, kLeastEffectiveDocuments);
  // A shorter last block is a part of the sums, but no observation of its own.
  const std::uint64_t whole = sums.all.tokens / sums.blocks[0].tokens;
  if (whole < kLeastBlocks)
    core::bad_data(
        "a comparison needs at least {} whole blocks of tokens; there are {}; use a smaller "
        "--block or a longer text",
        kLeastBlocks, whole);
  const auto tokens = static_cast<double>(sums.all.tokens);
  const std::uint64_t n_cosines = cosines(sums.all.tokens, whole);
  std::vector<double> projections(n_cosines, 0);
  std::uint64_t before = 0;
  for (const ScoreBlock& block : sums.blocks) {
    const double rest = residual(block, sums.result.difference);
    const double middle =
        (static_cast<double>(before) + static_cast<double>(block.tokens) / 2) / tokens;
    for (std::size_t j = 0; j < n_cosines; ++j)
      projections[j] += rest * std::cos(std::numbers::pi * static_cast<double>(j + 1) * middle);
    before += block.tokens;
  }
  double squares = 0;
  for (const double projection : projections) squares += 2 * projection * projection;
  sums.result.freedom = static_cast<double>(n_cosines);
  return with_error(sums.result, std::sqrt(squares / sums.result.freedom) / tokens, confidence);
}

Comparison compare_documents(const std::vector<ScoreBlock>& given, double confidence) {
  Sums sums = sums_of(given);
  const double effective = effective_documents(sums.blocks);
  if (effective < kLeastEffectiveDocuments)
    core::bad_data(
        "--block document: the text has {} documents, which count as {:.1f} of equal length, but a "
        "comparison needs at least {:.0f}; use a longer text, or blocks of tokens (--block N)",
        sums.blocks.size(), std::min(effective, kLeastEffectiveDocuments - 0.1),
        kLeastEffectiveDocuments);
  const auto tokens = static_cast<double>(sums.all.tokens);
  const Variances found = variances_of(sums);
  sums.result.freedom = std::sqrt(freedom_of(sums, {.token = 1}) * freedom_of(sums, found));
  return with_error(sums.result, std::sqrt(found.squares) / tokens, confidence);
}

Comparison compare_seeds(const std::vector<ScoreBlock>& pairs, double confidence) {
  Sums sums = sums_of(pairs);
  double squares = 0;
  bool differ = sums.result.difference == 0;
  for (const ScoreBlock& pair : sums.blocks) {
    const double rest = residual(pair, sums.result.difference);
    squares += rest * rest;
    differ = differ || std::abs(rest) > 1e-12 * (std::abs(pair.a) + std::abs(pair.b));
  }
  if (!differ)
    core::bad_data("the {} seeds have the same losses; give one file of each seed", pairs.size());
  const auto seeds = static_cast<double>(pairs.size());
  sums.result.freedom = seeds - 1;
  const double error = std::sqrt(squares / (seeds * (seeds - 1)));
  return with_error(sums.result, error * seeds / static_cast<double>(sums.all.tokens), confidence);
}

double effective_documents(const std::vector<ScoreBlock>& documents) {
  double sum = 0, squares = 0;
  for (const ScoreBlock& document : documents) {
    const auto length = static_cast<double>(document.tokens);
    sum += length, squares += length * length;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

double t_two_sided(double t, double freedom) {
  if (freedom > kAsGoodAsNormal) return std::erfc(std::abs(t) / std::sqrt(2.0));
  if (std::isinf(t)) return 0;
  const double sum = freedom + t * t;
  return incomplete_beta(freedom / 2, 0.5, freedom / sum, t * t / sum);
}

double t_quantile(double confidence, double freedom) {
  double low = 0, high = 1;
  while (t_two_sided(high, freedom) > 1 - confidence && high < 1e300) low = high, high *= 2;
  for (int i = 0; i < 200; ++i) {
    const double middle = low + (high - low) / 2;
    (t_two_sided(middle, freedom) > 1 - confidence ? low : high) = middle;
  }
  return high;
}

std::uint64_t block_for(std::uint64_t tokens) {
  return std::clamp(tokens / kAutoBlocks, kLeastAutoBlock, kMostAutoBlock);
}

// Refuses files of one side of which some, but not all, have the same scores: a file counts as one
// seed. All are the same where a side is one model.
void expect_seeds(const std::vector<std::string>& paths, std::span<const core::Hasher> scores) {
  const auto same = [&](std::size_t i, std::size_t k) {
    return scores[i].digest() == scores[k].digest();
  };
  bool all_same = true;
  for (std::size_t i = 1; i < paths.size(); ++i) all_same = all_same && same(i, 0);
  if (all_same) return;
  for (std::size_t i = 0; i < paths.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (same(i, k))
        core::bad_data("{}: has the scores of {}, and is no further seed", paths[i], paths[k]);
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
  std::vector<core::Hasher> scores(files.size());
  while (next_line(files)) {
    for (std::size_t i = 0; i < scores.size(); ++i)
      scores[i].update(std::as_bytes(std::span(&files[i].row.nats, 1)));
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
  const std::span<const core::Hasher> all(scores);
  expect_seeds(paths_a, all.first(paths_a.size()));
  expect_seeds(paths_b, all.subspan(paths_a.size()));
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
  try {
    choice.tokens = core::parse_count(text);
  } catch (const core::Error&) {
    choice.tokens = 0;  // the message below names the option
  }
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
  core::OrderedJson report{{"tokens", pairs.tokens},
      {"blocks", (documents ? pairs.by_document : pairs.by_tokens).size()},
      {"block", documents ? "document" : std::to_string(pairs.block)},
      {"method", documents ? "documents" : "cosines"}};
  add_figures(report, text);
  report["holds_for"] = "this pair of models";
  return report;
}

core::OrderedJson figures_over_seeds(const Comparison& seeds, const Comparison& text,
    const ScorePairs& pairs, const BlockChoice& choice) {
  core::OrderedJson report{
      {"tokens", pairs.tokens}, {"seeds", pairs.by_seed.size()}, {"method", "seeds"}};
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
  return {{"tokens", pairs.tokens}, {"seeds", pairs.by_seed.size()}, {"loss", seeds.difference},
      {"sd", deviation(seeds)}, {"low", seeds.low}, {"high", seeds.high},
      {"perplexity", std::exp(seeds.difference)}, {"perplexity_low", std::exp(seeds.low)},
      {"perplexity_high", std::exp(seeds.high)}, {"holds_for", kOtherSeeds}};
}

}  // namespace task
