// Other models of an ensemble. Each is a distribution of its own, the softmax of a model that reads
// the same text.

#include "infer/sources/ensemble.h"
#include "infer/sources/kind_of.h"
#include "infer/sources/plan_axes.h"
#include "infer/windows/windows.h"

namespace infer {
namespace {

constexpr const char* kEnsembleTemperature = "ensemble-temperature";

// Returns the name of the axis of a model's temperature.
std::string temperature_axis(std::size_t i) {
  return i == 0 ? kEnsembleTemperature : fmt::format("{}-{}", kEnsembleTemperature, i + 1);
}

// Scores the data by a model, through its own windows, ahead of the caller. Keeps scores until the
// caller reads them, at most a few batches of windows.
class ModelWalk {
 public:
  // `data` must outlive it. `gated`: also computes the model's confidence.
  ModelWalk(std::shared_ptr<const EnsembleModel> member, const shard::Dataset& data,
      std::vector<double> temperatures, bool gated)
      : member_(std::move(member)), temperatures_(std::move(temperatures)), gated_(gated),
        model_(*member_->loaded.model), data_(data),
        windows_(plan_windows(member_->windows, model_, member_->loaded.facts, data)),
        batches_(windows_, data) {}

  // Returns log p of elements [first, first + n), (n, temperatures), followed by the confidence if
  // requested, float64 on the CPU; NaN for elements that the model's windows do not score. Calls
  // must ask for elements in order, beginning anywhere. Throws Error{bad_data} for a token outside
  // the model's vocabulary.
  Tensor at(std::uint64_t first, std::int64_t n) {
    if (!begun_) skip_to(first);
    const std::uint64_t end = first + static_cast<std::uint64_t>(n);
    const Tensor found =
        torch::full({n, std::ssize(temperatures_) + (gated_ ? std::ssize(kConfidence) : 0)}, NAN,
            torch::kFloat64);
    while (!done_ && (blocks_.empty() || blocks_.back().end() < end)) forward();
    for (const Block& block : blocks_) {
      const std::uint64_t from = std::max(first, block.first), to = std::min(end, block.end());
      if (from < to)
        found.slice(0, offset(first, from), offset(first, to))
            .copy_(block.rows.slice(0, offset(block.first, from), offset(block.first, to)));
    }
    while (!blocks_.empty() && blocks_.front().end() <= end) blocks_.pop_front();
    return found;
  }

 private:
  // Consecutive elements.
  struct Block {
    std::uint64_t first;
    Tensor rows;  // as returned by at()
    std::uint64_t end() const { return first + static_cast<std::uint64_t>(rows.size(0)); }
  };

  static std::int64_t offset(std::uint64_t from, std::uint64_t to) {
    return static_cast<std::int64_t>(to - from);
  }

  // Skips the batches before the one that scores `first`, except those whose State it needs.
  void skip_to(std::uint64_t first) {
    begun_ = true;
    std::int64_t number = 0, start = 0;
    for (WindowBatches all(windows_, data_); const auto batch = all.next(); ++number) {
      if (!windows_.carried || batch->spans[0].fresh) start = number;
      const Span& last = batch->spans.back();
      if (last.target + static_cast<std::uint64_t>(last.length) > first) break;
    }
    for (; start > 0; --start) batches_.next();
  }

  void forward() {
    const auto next = batches_.next();
    done_ = !next;
    if (done_) return;
    const auto& spans = next->spans;
    const Tensor weight = model_.head->weights().at(0);
    const auto host = batch_of(spans, data_, windows_, model_.vocabulary);
    const auto batch = host.to(weight.device());
    const auto hidden = forward_windows(model_, windows_, batch, spans[0], state_);
    const bool plain = temperatures_ == std::vector<double>{1};
    const auto rows = head_rows(*model_.head, scored_rows(hidden.output, spans),
        {scored_rows(batch.targets, spans), scored_rows(host.targets, spans)}, gated_,
        plain ? std::vector<double>{} : temperatures_);
    Tensor all = (plain ? rows.log_prob.unsqueeze(1) : rows.tempered).to(torch::kFloat64);
    if (gated_) all = torch::cat({all, rows.confidence}, 1);
    all = all.cpu();
    std::int64_t begin = 0;
    for (const Span& span : spans) {
      const std::int64_t n = span.length - span.first_scored;
      blocks_.push_back({span.target + static_cast<std::uint64_t>(span.first_scored),
          all.slice(0, begin, begin + n)});
      begin += n;
    }
  }

  std::shared_ptr<const EnsembleModel> member_;
  std::vector<double> temperatures_;
  bool gated_;
  nn::Model& model_;
  const shard::Dataset& data_;
  WindowPlan windows_;
  WindowBatches batches_;
  nn::State state_;
  std::deque<Block> blocks_;  // in order
  bool begun_ = false, done_ = false;
};

// Converts log-probabilities (R, V) to a head of `vocabulary` tokens, with the type and device of
// `like`; tokens outside the model's vocabulary get probability 0.
Tensor with_rows(const Tensor& log_probs, std::int64_t vocabulary, const Tensor& like) {
  const Tensor rows = log_probs.slice(1, 0, vocabulary).to(like.options());
  const std::int64_t missing = vocabulary - rows.size(1);
  return missing > 0 ? torch::constant_pad_nd(rows, {0, missing}, -HUGE_VAL) : rows;
}

class ModelSource : public Source {
 public:
  ModelSource(const EnsemblePlan& own, const MemoryPlan&, const StreamShape&, const Grid& grid)
      : plan_(own), gated_(own.gated()) {
    for (std::size_t i = 0; i < plan_.shares.size(); ++i) {
      axes_.push_back(grid.find(temperature_axis(i)));
      temperatures_.push_back(grid.values(temperature_axis(i), plan_.shares[i].temperature));
    }
  }

  void announce(const shard::Dataset& data) override {
    walks_.clear();
    for (std::size_t i = 0; i < plan_.models.size(); ++i)
      walks_.push_back(std::make_unique<ModelWalk>(
          plan_.models[i], data, temperatures_[i], static_cast<std::int64_t>(i) == gated_));
  }

  SourceScores score(const RecalledRows& asked) override {
    const torch::NoGradGuard no_gradient;
    SourceScores scores{axes_};
    const std::int64_t n = asked.size();
    for (std::size_t i = 0; i < walks_.size(); ++i) {
      const Tensor rows = walks_[i]->at(asked.first, n);
      std::vector<std::int64_t> sizes(axes_.size(), 1);  // of the axes
      if (static_cast<std::int64_t>(i) == gated_) {
        auto featured = sizes;
        featured.insert(featured.end(), {n, std::ssize(kConfidence)});
        scores.features = rows.slice(1, -std::ssize(kConfidence)).reshape(featured);
      }
      sizes[i] = std::ssize(temperatures_[i]);
      sizes.push_back(n);
      scores.separate.push_back(rows.slice(1, 0, sizes[i]).t().reshape(sizes).contiguous());
    }
    return scores;
  }

  VocabularyScores score_vocabulary(const VocabularyRows& rows) override {
    VocabularyScores scores;
    for (std::size_t i = 0; i < rows.ensemble.size(); ++i)
      scores.separate.push_back(with_rows(
          at_temperature(rows.ensemble[i], temperatures_[i][0]), rows.vocabulary(), rows.head));
    if (gated_ >= 0)
      scores.features =
          confidence_of(rows.ensemble[static_cast<std::size_t>(gated_)]).to(torch::kCPU);
    log_probs_ = scores.separate;
    return scores;
  }

  Evidence evidence(const RowToken& of, const RowWeights& weights, std::int64_t /*most*/,
      std::int64_t /*context_tokens*/) const override {
    Evidence evidence;
    for (std::size_t i = 0; i < log_probs_.size(); ++i) {
      const auto log_p = log_probs_[i][of.row][of.token].item<double>();
      evidence.models.push_back({plan_.shares[i].folder,
          weights.separate[i][of.row].item<double>() * std::exp(log_p - of.log_prob)});
    }
    return evidence;
  }

 private:
  EnsemblePlan plan_;
  std::int64_t gated_;
  std::vector<std::size_t> axes_;                  // of each model's temperature
  std::vector<std::vector<double>> temperatures_;  // of each model
  std::vector<std::unique_ptr<ModelWalk>> walks_;  // of each model
  std::vector<Tensor> log_probs_;                  // of the last call of score_vocabulary()
};

class ModelKind : public KindOf<EnsembleOptions, EnsemblePlan, ModelSource> {
 public:
  ModelKind()
      : KindOf({.name = "ensemble",
            .in_order = true,
            .cites = true,
            .gate = {"--ensemble", {"own-entropy", "own-top", "own-log-top"}}}) {}

  void fields(MemoryOptions& o, core::FieldList& f) const override {
    const auto in_further_models = f.group("Further models");
    f("ensemble", own(o).models,
        "MODEL[:weight]: mix in another model with the same tokenizer (ensemble); :auto: equal "
        "weights; :gate: weight by a gate; may be repeated");
    f(kEnsembleTemperature, own(o).temperatures,
        "temperature of the further models' softmax: one for all, or one for each [1]")
        .between(model::kLeastTemperature, kMostTuned);
  }

  bool asked(const MemoryOptions& o, const PlanContext&) const override { return own(o).any(); }
  bool share_given(const MemoryOptions& o) const override { return !own(o).open(); }
  void plan(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const override {
    own(plan).shares = own(o).shares();
    if (context.online && own(o).open())
      for (auto& share : own(plan).shares) share.lambda = context.open_share(share.lambda);
    if (own(plan).gated() >= 0) plan.gates.sources.push_back(name());
  }
  void load(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const override {
    if (own(o).any()) own(plan).models = context.open.models[name()];
  }
  void settle(const MemoryPlan& plan, MemoryOptions& o) const override {
    own(o) = {ensemble_texts(own(plan).shares), own(plan).temperatures()};
  }

  std::vector<std::string> models(const MemoryOptions& o) const override {
    return core::mapped(own(o).shares(), &EnsembleWeight::folder);
  }
  EnsembleModels models(const MemoryPlan& plan) const override { return own(plan).models; }

  void weights(MemoryPlan& plan, std::vector<PlanWeight>& weights) const override {
    for (auto& share : own(plan).shares)
      weights.push_back({name(), "--ensemble", std::span(&share.lambda, 1), share.gated});
  }

  std::vector<AxisFacts> axis_facts() const override {
    return {{kEnsembleTemperature, "ensemble-temperatures",
        "temperatures of each further model to try [0.5 to 2 times --ensemble-temperature]",
        model::kLeastTemperature, kMostTuned}};
  }
  void axes(MemoryPlan& plan, std::vector<PlanAxis>& axes) const override {
    auto& shares = own(plan).shares;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      auto& share = shares[i];
      PlanAxis axis{temperature_axis(i), &share.temperature,
          steps_of(kModelTemperatureSteps, share.temperature), share.lambda > 0};
      axis.alone = true, axis.facts = kEnsembleTemperature;
      axes.push_back(std::move(axis));
    }
  }

  void sign(const MemoryPlan& plan, const SayFact& say) const override {
    std::vector<std::string> models, shares;
    for (const auto& member : own(plan).models) {
      const auto windows =
          plan_windows(member->windows, *member->loaded.model, member->loaded.facts);
      const std::string model = member->loaded.fingerprint.hex().substr(0, 12);
      models.push_back(nn::arch_facts(member->loaded.model->options.arch).reads_source
                           ? model
                           : fmt::format("{}@{}/{}{}", model, windows.window, windows.stride,
                                 windows.carried ? "/carry" : ""));
    }
    for (const auto& share : own(plan).shares)
      shares.push_back(share.gated ? "gate" : fmt::format("{}", share.lambda));
    say("ensemble", fmt::format("{}", fmt::join(models, "+")));
    say("ensemble-lambda", fmt::format("{}", fmt::join(shares, "+")));
    if (const auto all = own(plan).temperatures(); !all.empty())
      say(kEnsembleTemperature, fmt::format("{}", fmt::join(all, "+")));
  }

  std::vector<std::string> names(const MemoryPlan& plan) const override {
    return core::mapped(own(plan).models, [](const auto& model) { return model->loaded.folder; });
  }
};

}  // namespace

const SourceKind& model_kind() { return only<ModelKind>(); }

}  // namespace infer
