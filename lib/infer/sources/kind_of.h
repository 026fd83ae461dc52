#pragma once
// Bases of the kinds of sources: what most of them do alike.

#include "infer/sources/memory_plan.h"
#include "infer/sources/source_kinds.h"

namespace infer {

/// A kind with Options among the options, a Plan in the plan, and sources Used(Plan, MemoryPlan,
/// StreamShape, Grid). Plan::any() returns whether the source takes part.
template <class Options, class Plan, class Used> class KindOf : public SourceKind {
 public:
  using SourceKind::SourceKind;

  bool any(const MemoryPlan& plan) const override { return own(plan).any(); }
  std::unique_ptr<Source> open(
      const MemoryPlan& plan, const StreamShape& shape, const Grid& grid) const override {
    return std::make_unique<Used>(own(plan), plan, shape, grid);
  }

 protected:
  static Options& own(MemoryOptions& o) { return o.of<Options>(); }
  static const Options& own(const MemoryOptions& o) { return o.of<Options>(); }
  static Plan& own(MemoryPlan& plan) { return plan.of<Plan>(); }
  static const Plan& own(const MemoryPlan& plan) { return plan.of<Plan>(); }
};

/// A kind that Options::any() asks for, with one weight, `lambda` of its options and of its plan,
/// which --NAME-lambda gives.
template <class Options, class Plan, class Used>
class WeightedKind : public KindOf<Options, Plan, Used> {
 public:
  using KindOf<Options, Plan, Used>::KindOf;
  using KindOf<Options, Plan, Used>::own;

  bool asked(const MemoryOptions& o, const PlanContext&) const override { return own(o).any(); }
  bool share_given(const MemoryOptions& o) const override { return !own(o).lambda.open(); }
  void settle(const MemoryPlan& plan, MemoryOptions& o) const override {
    if (own(o).any()) settle_weight(plan, o);
  }
  void weights(MemoryPlan& plan, std::vector<PlanWeight>& weights) const override {
    weights.push_back({this->name(), flag(), values(own(plan).lambda), gated(plan)});
  }

 protected:
  std::string flag() const { return "--" + this->name() + "-lambda"; }
  bool gated(const MemoryPlan& plan) const { return plan.gates.has(this->name()); }
  /// Gives the source a gate if the options ask for one.
  void plan_gate(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const {
    if (this->asked(o, context) && own(o).lambda.gated())
      plan.gates.sources.push_back(this->name());
  }
  void settle_weight(const MemoryPlan& plan, MemoryOptions& o) const {
    if (!gated(plan)) own(o).lambda = own(plan).lambda;
  }
  void sign_weight(const MemoryPlan& plan, const SayFact& say) const {
    say(flag().c_str() + 2, gated(plan) ? "gate" : weight_text(values(own(plan).lambda)));
  }

 private:
  static std::span<const double> values(const double& value) { return {&value, 1}; }
  static std::span<double> values(double& value) { return {&value, 1}; }
  template <class Values> static auto values(Values& values) { return std::span(values); }
};

}  // namespace infer
