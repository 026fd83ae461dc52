// An adaptive unigram: how often each token came in the text so far (Kuhn and De Mori 1990), where
// an occurrence may count less with its distance (Clarkson and Robinson 1997).

#include "infer/sources/kind_of.h"
#include "infer/sources/plan_axes.h"
#include "infer/sources/text_source.h"

namespace infer {
namespace {

constexpr const char* kHalfLife = "unigram-half-life";

struct UnigramOptions {
  bool on = false;
  double half_life = 0;  // tokens; 0: an occurrence counts 1 for ever
  MemoryWeight lambda;

  bool any() const { return on; }
};

struct UnigramPlan {
  bool on = false;
  double half_life = 0, lambda = 0;
  std::int64_t vocabulary = 0;

  bool any() const { return on; }
};

// Counts of a stream's tokens, of which one that came t tokens before the last counts
// 2^(-t / half-life). The probability of a token with the count c of n is
// (c + 1 / V) / (n + 1): one token more that may be any of the V.
class TokenCounts {
 public:
  TokenCounts(double half_life, std::int64_t vocabulary)
      : decay_(half_life > 0 ? 1 / half_life : 0), prior_(1 / static_cast<double>(vocabulary)),
        vocabulary_(vocabulary) {}

  void read(std::int64_t token) {
    ++read_;
    all_ = all_ * decayed(1) + 1;
    Count& count = counts_[token];
    count = {count.value * decayed(read_ - count.at) + 1, read_};
  }

  // NaN before the first token.
  double log_prob(std::int64_t token) const {
    const auto found = counts_.find(token);
    return log_prob_of(found == counts_.end() ? 0 : now(found->second));
  }
  // log p of all V tokens.
  void log_probs(double* of) const {
    std::fill_n(of, vocabulary_, log_prob_of(0));
    for (const auto& [token, count] : counts_)
      if (token < vocabulary_) of[token] = log_prob_of(now(count));
  }
  // For the gate: log of the number of tokens read; NaN if 0.
  double log_read() const { return read_ > 0 ? std::log(static_cast<double>(read_)) : NAN; }

 private:
  struct Count {
    double value = 0;     // when the token came last
    std::int64_t at = 0;  // as which token of the stream that was, from 1
  };
  double decayed(std::int64_t tokens) const {
    return std::exp2(-decay_ * static_cast<double>(tokens));
  }
  double now(const Count& count) const { return count.value * decayed(read_ - count.at); }
  double log_prob_of(double count) const {
    return read_ > 0 ? std::log((count + prior_) / (all_ + 1)) : NAN;
  }

  double decay_, prior_;
  std::int64_t vocabulary_, read_ = 0;
  double all_ = 0;  // sum of all counts
  std::unordered_map<std::int64_t, Count> counts_;
};

// The counts of one stream with each half-life.
struct CountsOfText {
  std::vector<TokenCounts> each;
  void push(std::uint32_t token) {
    for (auto& counts : each) counts.read(token);
  }
};

CountsOfText no_counts(const UnigramPlan& plan, const Grid& grid) {
  CountsOfText counts;
  for (const double half_life : grid.values(kHalfLife, plan.half_life))
    counts.each.emplace_back(half_life, plan.vocabulary);
  return counts;
}

class UnigramSource : public TextSource<CountsOfText> {
 public:
  UnigramSource(
      const UnigramPlan& own, const MemoryPlan& plan, const StreamShape& shape, const Grid& grid)
      : TextSource(no_counts(own, grid), shape.streams),
        gated_(plan.gates.any()), axes_{grid.find(kHalfLife)} {}

  // log p (half-lives, R) and the gate's feature (R).
  std::vector<Tensor> recall(const Window& window, const Tensor& targets) override {
    const std::int64_t n = targets.size(0);
    const Tensor log_prob = torch::empty({std::ssize(stream(0).each), n}, torch::kFloat64);
    const Tensor log_read = torch::empty({n}, torch::kFloat64);
    auto of = log_prob.accessor<double, 2>();
    each_target(window, targets, [&](std::int64_t i, std::int64_t token, CountsOfText& text) {
      for (std::size_t h = 0; h < text.each.size(); ++h)
        of[static_cast<std::int64_t>(h)][i] = text.each[h].log_prob(token);
      log_read.data_ptr<double>()[i] = text.each[0].log_read();
      text.push(static_cast<std::uint32_t>(token));
    });
    return {log_prob, log_read};
  }

  SourceScores score(const RecalledRows& rows) override {
    SourceScores scores{axes_};
    scores.separate = {rows.recalled[0]};
    if (gated_) scores.features = rows.recalled[1].view({1, rows.size(), 1});
    return scores;
  }

  VocabularyScores score_vocabulary(const VocabularyRows& rows) override {
    const std::int64_t n = rows.head.size(0);
    const Tensor log_prob = torch::empty({n, rows.vocabulary()}, torch::kFloat64);
    const Tensor log_read = torch::empty({n}, torch::kFloat64);
    each_row(rows, [&](std::int64_t i, const CountsOfText& text) {
      text.each[0].log_probs(log_prob[i].data_ptr<double>());
      log_read.data_ptr<double>()[i] = text.each[0].log_read();
    });
    VocabularyScores scores;
    scores.separate = {log_prob.to(rows.head.options())};
    if (gated_) scores.features = log_read.unsqueeze(1);
    return scores;
  }

 private:
  bool gated_;
  std::vector<std::size_t> axes_;
};

class UnigramKind : public WeightedKind<UnigramOptions, UnigramPlan, UnigramSource> {
 public:
  UnigramKind()
      : WeightedKind({.name = "unigram", .reads = true, .gate = {"--unigram-lambda", {"read"}}}) {}

  void fields(MemoryOptions& o, core::FieldList& f) const override {
    const auto in_memories = f.group("Memories");
    f("unigram", own(o).on, "mix in the frequencies of the tokens in the text so far");
    f(kHalfLife, own(o).half_life, "tokens after which an occurrence counts half; none: never")
        .none_or_above(0, kMostTuned);
    f("unigram-lambda", *own(o).lambda.target(),
        "interpolation weight of the unigram (0 to below 1), or gate");
  }

  void plan(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const override {
    own(plan) = {own(o).on, own(o).half_life,
        own(o).lambda.value("--unigram-lambda", context.open_share(0.05)),
        context.model.vocabulary};
    plan_gate(o, context, plan);
  }
  void settle(const MemoryPlan& plan, MemoryOptions& o) const override {
    own(o).half_life = own(plan).half_life;
    settle_weight(plan, o);
  }
  bool wants_more(const MemoryPlan&, std::span<const std::int64_t>) const override { return true; }

  std::vector<AxisFacts> axis_facts() const override {
    return {{kHalfLife, "unigram-half-lives", "half-lives of the unigram to try [125 to 16000]", 1,
        kMostTuned}};
  }
  void axes(MemoryPlan& plan, std::vector<PlanAxis>& axes) const override {
    axes.push_back({kHalfLife, &own(plan).half_life, {125, 250, 500, 1000, 2000, 4000, 16000},
        own(plan).lambda > 0});
  }

  void sign(const MemoryPlan& plan, const SayFact& say) const override {
    say(kHalfLife, fmt::format("{}", own(plan).half_life));
    sign_weight(plan, say);
  }
};

}  // namespace

const SourceKind& unigram_kind() { return only<UnigramKind>(); }

}  // namespace infer
