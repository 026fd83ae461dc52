// The continuous cache: a softmax of theta f.f over the last positions (Grave et al. 2017).

#include "infer/sources/plan_axes.h"
#include "infer/sources/ring_source.h"
#include "infer/sources/source_kinds.h"

namespace infer {
namespace {

using torch::Tensor;

nn::MemoryRule cache_rule(const MemoryPlan& plan) {
  nn::MemoryRule rule;
  rule.far = true;
  rule.reach = plan.cache;
  rule.scale_by_width = rule.gradient = false;
  return rule;
}

std::vector<double> inverse(std::vector<double> values) {
  for (double& value : values) value = 1 / value;
  return values;
}

class CacheSource : public RingSource {
 public:
  CacheSource(const MemoryPlan& plan, const StreamShape& shape, const Grid& grid)
      : RingSource({{cache_rule(plan), inverse(grid.values("theta", plan.cache_theta))}},
            plan.cache, true, shape.dtype),
        gated_(plan.gates.any()), axes_{grid.find("theta")} {}

  SourceScores score(const RecalledRows& rows) override {
    SourceScores scores{axes_};
    scores.own = {alone(rows.recalled[1], rows.recalled[0])};
    if (gated_) scores.features = mass_of(rows.recalled[0]).unsqueeze(-1);
    return scores;
  }

  SourceWords words(const WordRows& rows) override {
    const Tensor masses = word_masses(rows, parts()[0]);
    SourceWords words;
    words.own = {alone(masses)};
    if (gated_)
      words.features =
          mass_of(masses.logsumexp(1, /*keepdim=*/true).to(torch::kCPU, torch::kFloat64));
    return words;
  }

 private:
  static Tensor mass_of(const Tensor& all) { return all.masked_fill(all < nn::kUnseen / 2, NAN); }
  bool gated_;
  std::vector<std::size_t> axes_;
};

class CacheKind : public SourceKind {
 public:
  CacheKind()
      : SourceKind({.name = "cache", .remembers = true, .gate = {"--cache-lambda", {"mass"}}}) {}

  void fields(MemoryOptions& o, core::FieldList& f) const override {
    const auto in_memories = f.group("Memories");
    f("cache", o.cache, "entries of the continuous cache, the last hidden states").between(0, 1e9);
    f("cache-theta", o.cache_theta,
        "flatness of the cache: scores are theta times the dot product of hidden states; auto: "
        "1/sqrt(d-model)")
        .above(0, 1e6)
        .or_auto();
    f("cache-lambda", *o.cache_lambda.target(),
        "interpolation weight of the cache (0 to below 1), or gate");
  }

  bool asked(const MemoryOptions& o, const PlanContext&) const override { return o.cache > 0; }
  bool share_given(const MemoryOptions& o) const override { return !o.cache_lambda.open(); }
  void plan(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const override {
    plan.cache = o.cache;
    plan.cache_unit = unit(context.model);
    plan.cache_theta = o.cache_theta > 0 ? o.cache_theta : plan.cache_unit;
    plan.cache_lambda = o.cache_lambda.value("--cache-lambda", context.open_share(0.1));
    if (o.cache > 0 && o.cache_lambda.gated()) plan.gates.sources.push_back(name());
  }

  void settle(const MemoryPlan& plan, MemoryOptions& o) const override {
    o.cache_theta = plan.cache_theta;
    if (!plan.gates.has(name())) o.cache_lambda = plan.cache_lambda;
  }

  bool any(const MemoryPlan& plan) const override { return plan.cache > 0; }
  std::int64_t reach(const MemoryPlan& plan, std::int64_t) const override { return plan.cache; }

  std::unique_ptr<Source> open(
      const MemoryPlan& plan, const StreamShape& shape, const Grid& grid) const override {
    return std::make_unique<CacheSource>(plan, shape, grid);
  }

  void weights(MemoryPlan& plan, std::vector<PlanWeight>& weights) const override {
    weights.push_back(
        {name(), "--cache-lambda", std::span(&plan.cache_lambda, 1), plan.gates.has(name())});
  }

  std::vector<AxisFacts> axis_facts() const override {
    return {{"theta", "thetas", "thetas of the cache to try [1/8 to 8, divided by sqrt(d-model)]",
        0, kMostTuned}};
  }
  void axes(MemoryPlan& plan, std::vector<PlanAxis>& axes) const override {
    axes.push_back({"theta", &plan.cache_theta, steps_of(kThetaSteps, plan.cache_unit),
        plan.cache_lambda > 0});
  }

  void sign(const MemoryPlan& plan, const SayFact& say) const override {
    if (!any(plan)) return;
    say("cache", fmt::format("{}", plan.cache));
    say("theta", fmt::format("{}", plan.cache_theta));
    say("cache-lambda", plan.gates.has(name()) ? "gate" : fmt::format("{}", plan.cache_lambda));
  }

 private:
  static double unit(const nn::Model& model) {
    return 1 / std::sqrt(static_cast<double>(model.architecture->d_model()));
  }
};

}  // namespace

const SourceKind& cache_kind() { return only<CacheKind>(); }

}  // namespace infer
