#include "infer/sources/ngram_source.h"

#include "infer/sources/kind_of.h"
#include "infer/sources/text_source.h"
#include "ngrams/next_tokens.h"

namespace infer {
namespace {

double log_ratio(std::uint64_t count, std::uint64_t all) {
  return std::log(static_cast<double>(count) / static_cast<double>(all));
}

// Match of a context in the index.
struct NgramContext {
  ngrams::Match match;
  ngrams::Followers followers;
  std::int64_t bucket = -1;  // -1: no continuation (the index is empty)

  // For the gate: log(1 + suffix length), whether only one token followed the suffix, and the log
  // of its count; NaN if there is no continuation.
  std::array<double, 3> features() const {
    if (bucket < 0) return {NAN, NAN, NAN};
    return {std::log1p(static_cast<double>(match.length)), followers.one ? 1.0 : 0.0,
        std::log(static_cast<double>(followers.count))};
  }
};

class NgramSource : public TextSource<ngrams::SuffixFollower> {
 public:
  NgramSource(const NgramPlan& own, const MemoryPlan&, const StreamShape& shape, const Grid&)
      : TextSource(ngrams::SuffixFollower(own.index), shape.streams), index_(own.index),
        next_(own.index) {}

  // log p (R) by the counts, -inf if p is 0 and NaN if there is no continuation; the context's
  // bucket (R); the gate's features (R, 3).
  std::vector<Tensor> recall(const Window& window, const Tensor& targets) override {
    const std::int64_t n = targets.size(0);
    const Tensor log_prob = torch::full({n}, NAN, torch::kFloat64);
    const Tensor bucket = torch::full({n}, -1, torch::kInt64);
    const Tensor features = torch::full({n, 3}, NAN, torch::kFloat64);
    each_target(window, targets, [&](std::int64_t i, std::int64_t token, auto& follower) {
      const NgramContext known = context(follower);
      const auto count = follower.push(static_cast<std::uint32_t>(token));
      if (known.bucket < 0) return;
      log_prob.data_ptr<double>()[i] = log_ratio(count, known.followers.count);
      bucket.data_ptr<std::int64_t>()[i] = known.bucket;
      std::ranges::copy(known.features(), features.data_ptr<double>() + 3 * i);
    });
    return {log_prob, bucket, features};
  }

  SourceScores score(const RecalledRows& rows) override {
    return {.separate = {rows.recalled[0]},
        .bucket = rows.recalled[1].to(torch::kInt64),
        .features = rows.recalled[2]};
  }

  VocabularyScores score_vocabulary(const VocabularyRows& rows) override {
    contexts_.clear();
    each_row(
        rows, [&](std::int64_t, const auto& follower) { contexts_.push_back(context(follower)); });
    VocabularyScores scores;
    scores.separate = {log_probs(rows.vocabulary()).to(rows.head.options())};
    std::vector<double> features;
    std::vector<std::int64_t> buckets;
    for (const auto& context : contexts_) {
      const auto seen = context.features();
      features.insert(features.end(), seen.begin(), seen.end());
      buckets.push_back(context.bucket);
    }
    scores.bucket = torch::tensor(buckets, torch::kInt64);
    scores.features = torch::tensor(features, torch::kFloat64).view({-1, 3});
    return scores;
  }

  Evidence evidence(const RowToken& of, const RowWeights& weights, std::int64_t most,
      std::int64_t context_tokens) const override {
    const auto given = share(of, weights);
    if (!given) return {};
    const auto& [match, whole] = *given;
    Evidence evidence{whole};
    const std::uint64_t count = ngrams::Index::count(match);
    const auto before = static_cast<std::int64_t>(match.length) - 1;
    for (std::uint64_t n = 0; n < std::min(count, static_cast<std::uint64_t>(most)); ++n) {
      const auto place = index_->place(match, n);
      const auto around = index_->around(match, n, before - context_tokens, before);
      evidence.contexts.push_back(
          {index_->folders()[place.folder]->name(), static_cast<std::int64_t>(place.document),
              static_cast<std::int64_t>(place.element) + before, whole / static_cast<double>(count),
              {around.begin(), around.end()}, before});
      auto& cited = evidence.contexts.back();
      cited.name = index_->folders()[place.folder]->name_of(place.document);
      if (cited.name.empty()) continue;
      const auto offset = static_cast<std::int64_t>(place.offset);
      const auto all = index_->around(match, n, -offset, before);
      if (std::ssize(all) == offset + before)  // else the document was cut
        cited.since_start.emplace(all.begin(), all.end());
    }
    return evidence;
  }

 private:
  NgramContext context(const ngrams::SuffixFollower& follower) const {
    NgramContext context;
    context.match = follower.match();
    context.followers = index_->followers(context.match);
    if (context.followers.count > 0)
      context.bucket = ngram_bucket(context.match.length, context.followers.one);
    return context;
  }

  // Returns log p of every token after contexts_, (R, V) float64, as in recall().
  Tensor log_probs(std::int64_t vocabulary) {
    const Tensor log_prob =
        torch::full({std::ssize(contexts_), vocabulary}, -HUGE_VAL, torch::kFloat64);
    auto* row = log_prob.data_ptr<double>();
    for (const NgramContext& context : contexts_) {
      if (context.bucket < 0) std::fill_n(row, vocabulary, NAN);
      if (context.bucket >= 0)
        for (const auto& [token, count] : next_.of(context.match))
          if (token < vocabulary) row[token] = log_ratio(count, context.followers.count);
      row += vocabulary;
    }
    return log_prob;
  }

  // Returns the positions that contributed to a token's probability, as a match that includes the
  // token as its last one, and their share; nullopt if the token never followed.
  std::optional<std::pair<ngrams::Match, double>> share(
      const RowToken& of, const RowWeights& weights) const {
    const NgramContext& context = contexts_[static_cast<std::size_t>(of.row)];
    if (context.bucket < 0) return std::nullopt;
    ngrams::Match match{context.match.length + 1, {}};
    const auto& parts = index_->parts();
    for (std::size_t i = 0; i < parts.size(); ++i)
      match.ranks.push_back(parts[i]->extend(
          context.match.ranks[i], context.match.length, static_cast<std::uint32_t>(of.token)));
    const auto count = ngrams::Index::count(match);
    if (count == 0) return std::nullopt;
    const double log_p = log_ratio(count, context.followers.count);
    return std::pair{std::move(match),
        weights.separate[0][of.row].item<double>() * std::exp(log_p - of.log_prob)};
  }

  std::shared_ptr<const ngrams::Index> index_;
  ngrams::NextTokens next_;
  std::vector<NgramContext> contexts_;  // of the last call of score_vocabulary()
};

using OpenNgrams = std::shared_ptr<const ngrams::Index>;  // null: none

// Opens the folders for the model.
std::shared_ptr<const ngrams::Index> open_ngrams(
    const std::vector<std::string>& folders, const model::Loaded& loaded) {
  auto index = std::make_shared<const ngrams::Index>(folders);
  const auto& first = *index->folders()[0];
  shard::Header header;
  header.vocabulary = first.manifest().vocabulary;
  header.tokenizer = first.tokenizer();
  model::check_tokenizer(loaded, header, first.name());
  return index;
}

// Default weights of texts that are generated: of the lengths with several next tokens, then of
// those with one. sample(1) says how they were chosen.
constexpr std::array<double, kNgramBuckets> kAnswerShares = {0, 0, 0.05, 0.2, 0.3, 0.4, 0.5, 0.5,
    0.5, 0.5,  // several
    0, 0, 0.05, 0.4, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9};

class NgramKind : public WeightedKind<NgramOptions, NgramPlan, NgramSource> {
 public:
  NgramKind()
      : WeightedKind({.name = "ngrams",
            .reads = true,
            .cites = true,
            .gate = {"--ngrams-lambda", {"length", "one", "count"}, kNgramBuckets,
                kNgramLengthBuckets}}) {}

  void fields(MemoryOptions& o, core::FieldList& f) const override {
    const auto in_ngrams = f.group("N-grams");
    f("ngrams", own(o).folders,
        "folder of an index of n-grams (build-ngrams); may be repeated; see tessera-memories(7)");
    f("ngrams-lambda", *own(o).lambda.target(),
        "interpolation weight of the n-grams: one value; 20 (from --tune), by the length of the "
        "matched suffix and by whether only one token follows it; or gate");
  }

  bool share_given(const MemoryOptions& o) const override {
    return WeightedKind::share_given(o) || answers(o);
  }
  void plan(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const override {
    own(plan).lambda =
        answers(o) ? std::vector(kAnswerShares.begin(), kAnswerShares.end())
                   : ngram_weights(own(o).lambda, "--ngrams-lambda", context.open_share(0.1));
    plan_gate(o, context, plan);
  }
  void load(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const override {
    if (context.loaded == nullptr || !own(o).any()) return;
    auto& open = context.open.of<OpenNgrams>();
    if (open == nullptr) open = open_ngrams(own(o).folders, *context.loaded);
    own(plan).index = open;
  }

  bool wants_more(const MemoryPlan& plan, std::span<const std::int64_t> read) const override {
    ngrams::SuffixFollower look(own(plan).index);
    for (const std::int64_t token : read) look.push(static_cast<std::uint32_t>(token));
    return look.length() >= read.size();
  }
  void leave_out(MemoryPlan& plan, const shard::Fingerprints& texts) const override {
    auto& index = own(plan).index;
    if (index->holds(texts)) index = index->without(texts);
  }
  void notes(const MemoryPlan& plan, const shard::Fingerprints& texts, const char* what,
      const SayLine& say) const override {
    if (own(plan).index->holds(texts))
      say(fmt::format(
          "an index of n-grams contains {}; its n-grams of this text are left out", what));
  }

  void sign(const MemoryPlan& plan, const SayFact& say) const override {
    say("ngrams", own(plan).index->signature());
    sign_weight(plan, say);
  }

  std::vector<std::string> names(const MemoryPlan&) const override { return {"n-grams"}; }

 private:
  static bool answers(const MemoryOptions& o) {
    return o.answers && own(o).any() && own(o).lambda.open() && o.weights != "online";
  }
};

}  // namespace

std::int64_t ngram_bucket(std::uint64_t length, bool one) {
  const auto* const at = std::find_if(std::begin(kNgramLengths), std::end(kNgramLengths),
      [&](std::int64_t most) { return length <= static_cast<std::uint64_t>(most); });
  return (at - std::begin(kNgramLengths)) + (one ? kNgramLengthBuckets : 0);
}

std::vector<double> ngram_weights(const MemoryWeights& lambda, const char* flag, double otherwise) {
  if (lambda.gated()) return std::vector<double>(kNgramBuckets, 0);
  auto shares = lambda.values(flag, otherwise);
  if (shares.size() == 1) shares.resize(kNgramBuckets, shares[0]);
  if (shares.size() != static_cast<std::size_t>(kNgramBuckets))
    core::bad_usage("{}: takes 1 or {} weights, not {}", flag, kNgramBuckets, shares.size());
  return shares;
}

const SourceKind& ngram_kind() { return only<NgramKind>(); }

}  // namespace infer
