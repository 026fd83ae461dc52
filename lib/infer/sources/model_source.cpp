// Other models of an ensemble. Each is a distribution of its own, the softmax of a model that reads
// the same text.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <optional>

#include "infer/sources/gate_features.h"
#include "infer/sources/memory_plan.h"
#include "infer/sources/source_kinds.h"
#include "infer/sources/with_scores.h"
#include "nn/base/arch_facts.h"

namespace infer {
namespace {

using torch::Tensor;

class ModelSource : public Source {
 public:
  explicit ModelSource(const MemoryPlan& plan) : plan_(plan.with), gated_(plan.with.gated()) {}

  void read_beside(const shard::Dataset& data) override { scores_.emplace(plan_, data); }

  SourceScores score(const Tensor& targets, const std::vector<Tensor>& /*recalled*/,
                     Found* /*found*/, std::int64_t /*offset*/, std::uint64_t first) override {
    const Tensor all = scores_->at(first, targets.size(0));
    SourceScores scores;
    for (std::int64_t i = 0; i < all.size(0); ++i) scores.own.push_back(all[i]);
    scores.features = scores_->confidence();
    return scores;
  }

  SourceWords words(const WordRows& rows) override {
    SourceWords words;
    for (const Tensor& own : rows.beside)
      words.own.push_back(with_rows(own, rows.words(), rows.head));
    if (gated_ >= 0)
      words.features = confidence_of(rows.beside[static_cast<std::size_t>(gated_)]).to(torch::kCPU);
    words_ = words.own;
    return words;
  }

  Evidence evidence(std::int64_t row, std::int64_t token, double log_prob,
                    const RowWeights& weights, std::int64_t /*most*/,
                    std::int64_t /*context_tokens*/) const override {
    Evidence evidence;
    for (std::size_t i = 0; i < words_.size(); ++i)
      evidence.models.push_back({plan_.shares[i].folder, share(i, row, token, log_prob, weights)});
    return evidence;
  }

  std::vector<Tensor> shares(const Window& /*window*/, std::int64_t /*begin*/,
                             const Tensor& targets, const Tensor& log_prob,
                             const RowWeights& weights) const override {
    std::vector<Tensor> shares;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      shares.push_back(torch::zeros_like(log_prob));
      for (std::int64_t row = 0; row < targets.size(0); ++row)
        shares[i][row] =
            share(i, row, targets[row].item<std::int64_t>(), log_prob[row].item<double>(), weights);
    }
    return shares;
  }

 private:
  double share(std::size_t i, std::int64_t row, std::int64_t token, double log_prob,
               const RowWeights& weights) const {
    return weights.own[i][row].item<double>() *
           std::exp(words_[i][row][token].item<double>() - log_prob);
  }
  WithPlan plan_;
  std::int64_t gated_;
  std::optional<WithScores> scores_;
  std::vector<Tensor> words_;  // of the last call of words()
};

class ModelKind : public SourceKind {
 public:
  ModelKind()
      : SourceKind({.name = "ensemble",
                    .in_order = true,
                    .cites = true,
                    .gate = {"--ensemble", {"own-entropy", "own-top", "own-log-top"}}}) {}

  void fields(MemoryOptions& o, core::FieldList& f) const override { o.with.fields(f); }

  bool asked(const MemoryOptions& o, const PlanContext&) const override { return o.with.any(); }
  bool share_given(const MemoryOptions& o) const override { return !o.with.open(); }
  void plan(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const override {
    plan.with.shares = o.with.shares();
    if (context.online && o.with.open())
      for (auto& share : plan.with.shares) share.lambda = context.open_share(share.lambda);
    if (plan.with.gated() >= 0) plan.gates.sources.push_back(name());
  }
  void settle(const MemoryPlan& plan, MemoryOptions& o) const override {
    o.with.models = with_texts(plan.with.shares);
  }

  bool any(const MemoryPlan& plan) const override { return plan.with.any(); }
  std::vector<std::shared_ptr<const BesideModel>> beside(const MemoryPlan& plan) const override {
    return plan.with.models;
  }

  std::unique_ptr<Source> open(const MemoryPlan& plan, const StreamShape&,
                               const Grid&) const override {
    return std::make_unique<ModelSource>(plan);
  }

  void weights(MemoryPlan& plan, std::vector<PlanWeight>& weights) const override {
    for (auto& share : plan.with.shares)
      weights.push_back({name(), "--ensemble", std::span(&share.lambda, 1), share.gated});
  }

  void sign(const MemoryPlan& plan, const SayFact& say) const override {
    if (!any(plan)) return;
    std::vector<std::string> models, shares;
    for (const auto& with : plan.with.models) {
      const auto windows = plan_windows(with->windows, *with->loaded.model, with->loaded.facts);
      const std::string model = with->loaded.fingerprint.hex().substr(0, 12);
      models.push_back(nn::arch_facts(with->loaded.model->options.arch).reads_source
                           ? model
                           : fmt::format("{}@{}/{}{}", model, windows.window, windows.stride,
                                         windows.carried ? "/carry" : ""));
    }
    for (const auto& share : plan.with.shares)
      shares.push_back(share.gated ? "gate" : fmt::format("{}", share.lambda));
    say("ensemble", fmt::format("{}", fmt::join(models, "+")));
    say("ensemble-lambda", fmt::format("{}", fmt::join(shares, "+")));
  }

  std::vector<std::string> names(const MemoryPlan& plan) const override {
    std::vector<std::string> names;
    for (const auto& model : plan.with.models) names.push_back(model->loaded.folder);
    return names;
  }
};

}  // namespace

const SourceKind& model_kind() {
  static const ModelKind kind;
  return kind;
}

}  // namespace infer
