// N-grams of other texts: a distribution of its own, whose weight depends on the length of the
// matched suffix.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "infer/sources/memory_plan.h"
#include "infer/sources/source_kinds.h"

namespace infer {
namespace {

using torch::Tensor;

class NgramSource : public Source {
 public:
  NgramSource(const NgramPlan& plan, std::int64_t streams) : plan_(plan), memory_(plan, streams) {}

  std::vector<Tensor> recall(const Window& window, const Tensor& targets) override {
    memory_.read(0, window.before);
    const NgramScores scores = memory_.score(targets);
    return {scores.log_prob, scores.bucket, scores.features};
  }

  SourceScores score(const Tensor& /*targets*/, const std::vector<Tensor>& recalled,
                     Found* /*found*/, std::int64_t /*offset*/, std::uint64_t /*first*/) override {
    SourceScores scores;
    scores.own = {recalled[0]};
    scores.bucket = recalled[1].to(torch::kInt64), scores.features = recalled[2];
    return scores;
  }

  SourceWords words(const WordRows& rows) override {
    contexts_.clear();
    const std::int64_t n = rows.head.size(0);
    if (rows.window == nullptr) {
      for (std::int64_t row = 0; row < n; ++row) contexts_.push_back(memory_.context(row));
    } else {
      const Window& window = *rows.window;
      if (rows.begin == window.first_scored) memory_.read(0, window.before);
      const Tensor targets =
          window.targets.slice(0, rows.begin, rows.end).to(torch::kCPU).contiguous();
      for (std::int64_t i = 0; i < n; ++i) {
        contexts_.push_back(memory_.context(0));
        memory_.read(0, {targets.const_data_ptr<std::int64_t>() + i, 1});
      }
    }
    SourceWords words;
    words.own = {memory_.words(contexts_, rows.words()).to(rows.head.options())};
    std::vector<double> features;
    std::vector<std::int64_t> buckets;
    for (const auto& context : contexts_) {
      const auto seen = gate_features_of(context);
      features.insert(features.end(), seen.begin(), seen.end());
      buckets.push_back(context.bucket);
    }
    words.bucket = torch::tensor(buckets, torch::kInt64);
    words.features = torch::tensor(features, torch::kFloat64).view({-1, 3});
    return words;
  }

  Evidence evidence(std::int64_t row, std::int64_t token, double log_prob,
                    const RowWeights& weights, std::int64_t most,
                    std::int64_t context_tokens) const override {
    Evidence evidence;
    const auto given = share(row, token, log_prob, weights);
    if (!given) return evidence;
    evidence.share = given->share;
    const std::uint64_t count = ngrams::Index::count(given->match);
    const auto before = static_cast<std::int64_t>(given->match.length) - 1;
    for (std::uint64_t n = 0; n < std::min(count, static_cast<std::uint64_t>(most)); ++n) {
      const auto place = plan_.index->place(given->match, n);
      const auto around = plan_.index->around(given->match, n, before - context_tokens, before);
      evidence.contexts.push_back({plan_.index->folders()[place.folder]->name(),
                                   static_cast<std::int64_t>(place.document),
                                   static_cast<std::int64_t>(place.element) + before,
                                   given->share / static_cast<double>(count),
                                   {around.begin(), around.end()},
                                   before});
    }
    return evidence;
  }

  std::vector<Tensor> shares(const Window& /*window*/, std::int64_t /*begin*/,
                             const Tensor& targets, const Tensor& log_prob,
                             const RowWeights& weights) const override {
    const Tensor of = torch::zeros_like(log_prob);
    for (std::int64_t i = 0; i < targets.size(0); ++i)
      if (const auto one =
              share(i, targets[i].item<std::int64_t>(), log_prob[i].item<double>(), weights))
        of[i] = one->share;
    return {of};
  }

  void read(std::int64_t row, std::span<const std::int64_t> tokens) override {
    memory_.read(row, tokens);
  }
  void select(const Tensor& rows) override { memory_.select(rows); }
  void clear() override { memory_.clear(); }

 private:
  std::optional<NgramShare> share(std::int64_t row, std::int64_t token, double log_prob,
                                  const RowWeights& weights) const {
    return memory_.share(contexts_[static_cast<std::size_t>(row)], token, log_prob,
                         weights.own[0][row].item<double>());
  }
  NgramPlan plan_;
  NgramMemory memory_;
  std::vector<NgramContext> contexts_;  // of the last call of words()
};

class NgramKind : public SourceKind {
 public:
  NgramKind()
      : SourceKind({.name = "ngrams",
                    .reads = true,
                    .cites = true,
                    .gate = {"--ngrams-lambda",
                             {"length", "one", "count"},
                             kNgramBuckets,
                             kNgramLengthBuckets}}) {}

  void fields(MemoryOptions& o, core::FieldList& f) const override { o.ngrams.fields(f); }

  bool asked(const MemoryOptions& o, const PlanContext&) const override { return o.ngrams.any(); }
  bool share_given(const MemoryOptions& o) const override { return !o.ngrams.lambda.open(); }
  void plan(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const override {
    plan.ngrams.lambda = o.ngrams.shares(context.open_share(0.1));
    if (o.ngrams.any() && o.ngrams.lambda.gated()) plan.gates.sources.push_back(name());
  }
  void load(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const override {
    if (context.loaded != nullptr)
      plan.ngrams.index =
          context.ngrams ? context.ngrams : open_ngrams(o.ngrams.folders, *context.loaded);
  }
  void settle(const MemoryPlan& plan, MemoryOptions& o) const override {
    if (o.ngrams.any() && !plan.gates.has(name())) o.ngrams.lambda = plan.ngrams.lambda;
  }

  bool any(const MemoryPlan& plan) const override { return plan.ngrams.any(); }
  bool wants_more(const MemoryPlan& plan, std::span<const std::int64_t> read) const override {
    NgramMemory look(plan.ngrams, 1);
    look.read(0, read);
    return look.wants_more(read.size());
  }
  void leave_out(MemoryPlan& plan, const shard::Fingerprints& texts) const override {
    plan.ngrams = plan.ngrams.without(texts);
  }
  void notes(const MemoryPlan& plan, const shard::Fingerprints& texts, const char* what,
             const SayLine& say) const override {
    if (plan.ngrams.index->holds(texts))
      say(fmt::format("an index of n-grams contains {}; its n-grams of this text are left out",
                      what));
  }

  std::unique_ptr<Source> open(const MemoryPlan& plan, const StreamShape& shape,
                               const Grid&) const override {
    return std::make_unique<NgramSource>(plan.ngrams, shape.streams);
  }

  void weights(MemoryPlan& plan, std::vector<PlanWeight>& weights) const override {
    weights.push_back({name(), "--ngrams-lambda", plan.ngrams.lambda, plan.gates.has(name())});
  }

  void sign(const MemoryPlan& plan, const SayFact& say) const override {
    if (!any(plan)) return;
    say("ngrams", plan.ngrams.index->signature());
    const auto& lambda = plan.ngrams.lambda;
    const bool one = std::count(lambda.begin(), lambda.end(), lambda[0]) == std::ssize(lambda);
    say("ngrams-lambda", plan.gates.has(name()) ? "gate"
                         : one                  ? fmt::format("{}", lambda[0])
                                                : fmt::format("{}", fmt::join(lambda, "+")));
  }

  std::vector<std::string> names(const MemoryPlan&) const override { return {"n-grams"}; }
};

}  // namespace

const SourceKind& ngram_kind() {
  static const NgramKind kind;
  return kind;
}

}  // namespace infer
