#include "infer/sources/cache_source.h"

#include "infer/sources/kind_of.h"
#include "infer/sources/plan_axes.h"
#include "infer/sources/ring_source.h"

namespace infer {
namespace {

nn::MemoryRule cache_rule(const CachePlan& plan) {
  nn::MemoryRule rule;
  rule.far = true, rule.reach = plan.positions;
  rule.scale_by_width = rule.gradient = false;
  return rule;
}

class CacheSource : public RingSource {
 public:
  CacheSource(
      const CachePlan& own, const MemoryPlan& plan, const StreamShape& shape, const Grid& grid)
      : RingSource({{cache_rule(own), core::mapped(grid.values("theta", own.theta),
                                          [](double theta) { return 1 / theta; })}},
            own.positions, true, shape.dtype),
        gated_(plan.gates.any()), axes_{grid.find("theta")} {}

  SourceScores score(const RecalledRows& rows) override {
    SourceScores scores{axes_};
    scores.separate = {alone(rows.recalled[1], rows.recalled[0])};
    if (gated_) scores.features = mass_of(rows.recalled[0]).unsqueeze(-1);
    return scores;
  }

  VocabularyScores score_vocabulary(const VocabularyRows& rows) override {
    const Tensor masses = token_masses(rows, parts()[0]);
    VocabularyScores scores;
    scores.separate = {alone(masses)};
    if (gated_)
      scores.features =
          mass_of(masses.logsumexp(1, /*keepdim=*/true).to(torch::kCPU, torch::kFloat64));
    return scores;
  }

 private:
  static Tensor mass_of(const Tensor& all) { return all.masked_fill(all < nn::kUnseen / 2, NAN); }
  bool gated_;
  std::vector<std::size_t> axes_;
};

class CacheKind : public WeightedKind<CacheOptions, CachePlan, CacheSource> {
 public:
  CacheKind()
      : WeightedKind({.name = "cache", .remembers = true, .gate = {"--cache-lambda", {"mass"}}}) {}

  void fields(MemoryOptions& o, core::FieldList& f) const override {
    const auto in_memories = f.group("Memories");
    f("cache", own(o).positions, "entries of the continuous cache, the last hidden states")
        .between(0, 1e9);
    f("cache-theta", own(o).theta,
        "flatness of the cache: scores are theta times the dot product of hidden states; auto: "
        "1/sqrt(d-model)")
        .auto_or_above(0, 1e6);
    f("cache-lambda", *own(o).lambda.target(),
        "interpolation weight of the cache (0 to below 1), or gate");
  }

  void plan(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const override {
    const auto& from = own(o);
    const double unit = 1 / std::sqrt(static_cast<double>(context.model.architecture->d_model()));
    own(plan) = {from.positions, from.theta > 0 ? from.theta : unit,
        from.lambda.value("--cache-lambda", context.open_share(0.1)), unit};
    plan_gate(o, context, plan);
  }
  void settle(const MemoryPlan& plan, MemoryOptions& o) const override {
    own(o).theta = own(plan).theta;
    settle_weight(plan, o);
  }
  std::int64_t reach(const MemoryPlan& p, std::int64_t) const override { return own(p).positions; }

  std::vector<AxisFacts> axis_facts() const override {
    return {{"theta", "thetas", "thetas of the cache to try [1/8 to 8, divided by sqrt(d-model)]",
        0, kMostTuned}};
  }
  void axes(MemoryPlan& plan, std::vector<PlanAxis>& axes) const override {
    auto& [positions, theta, lambda, unit] = own(plan);
    axes.push_back({"theta", &theta, steps_of(kThetaSteps, unit), lambda > 0});
  }

  void sign(const MemoryPlan& plan, const SayFact& say) const override {
    say("cache", fmt::format("{}", own(plan).positions));
    say("theta", fmt::format("{}", own(plan).theta));
    sign_weight(plan, say);
  }
};

}  // namespace

const SourceKind& cache_kind() { return only<CacheKind>(); }

}  // namespace infer
