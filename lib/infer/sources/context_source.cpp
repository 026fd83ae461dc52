// Local and long memory: positions of the window and before it. They are joined with the head's
// softmax, or form a distribution of their own.

#include "core/units.h"
#include "infer/sources/plan_axes.h"
#include "infer/sources/ring_source.h"
#include "infer/sources/source_kinds.h"

namespace infer {
namespace {

using torch::Tensor;

constexpr const char* kDefaultReach = "4seg";
constexpr std::int64_t kMostReach = 1'000'000'000;

// Parses "12288" tokens, or "4seg" or "4segments" of `segment` tokens each.
std::int64_t reach_of(const std::string& text, std::int64_t segment) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string unit = text.substr(digits);
  try {
    const bool segments = unit == "seg" || unit == "segment" || unit == "segments";
    const std::int64_t n = core::parse_count(segments ? text.substr(0, digits) : text);
    const std::int64_t tokens = segments ? std::min(n, kMostReach) * segment : n;
    if (tokens > 0 && tokens <= kMostReach && n <= kMostReach) return tokens;
  } catch (const core::Error&) {}
  core::bad_usage("--long: '{}' is not a number of tokens (12288) or of segments (4seg)", text);
}

// Returns the requested memories, or those the model was trained with.
nn::MemoryRule asked_rule(const MemoryOptions& options, const model::TrainingFacts& facts) {
  if (options.memory.empty()) {
    nn::MemoryRule rule = nn::MemoryRule::parse(facts.memory);
    rule.ext = false;
    rule.far |= !options.long_reach.empty();
    return rule;
  }
  const nn::MemoryRule rule = nn::MemoryRule::parse(options.memory);
  if (rule.ext)
    core::bad_usage("--memory {}: ext is for training only; use --datastore", options.memory);
  return rule;
}

// Returns what the rule shows if blocks have no context of their own: local becomes a reach too.
nn::MemoryRule streamed(nn::MemoryRule rule, const StreamShape& shape) {
  if (!shape.streaming) return rule;
  rule.reach = std::max(rule.far ? rule.reach : 0, rule.local ? shape.window : 0);
  rule.far = true, rule.local = false;
  return rule;
}

std::optional<std::int64_t> ring_of(const nn::MemoryRule& rule) {
  return rule.far ? std::optional(rule.reach) : std::nullopt;
}

// Returns local and long, as far as the plan has them.
template <class Plan> auto parts_asked(Plan& plan) {
  std::vector<decltype(&plan.local)> parts;
  if (plan.rule.local) parts.push_back(&plan.local);
  if (plan.rule.far) parts.push_back(&plan.far);
  return parts;
}

class ContextSource : public RingSource {
 public:
  ContextSource(const MemoryPlan& plan, const StreamShape& shape, const Grid& grid)
      : RingSource(
            summed(plan, shape, grid), ring_of(streamed(plan.rule, shape)), false, shape.dtype),
        named_(apart(plan, shape, grid)), alone_(plan.interpolated()) {
    for (const auto* const part : parts_asked(plan))
      axes_.push_back(temperatures_of(*part, plan, grid).axis);
  }

  SourceScores score(const RecalledRows& rows) override {
    const auto& recalled = rows.recalled;
    SourceScores scores{axes_};
    const auto lay = [&](const Tensor& masses, std::size_t part) {  // an axis for each part
      return axes_.size() < 2 ? masses : masses.unsqueeze(part == 0 ? 1 : 0);
    };
    if (alone_) {
      scores.own = {lay(alone(recalled[1], recalled[0]), 0)};
    } else {
      for (std::size_t i = 0; i < parts().size(); ++i)
        scores.joined.push_back({lay(recalled[2 * i], i), lay(recalled[2 * i + 1], i)});
    }
    return scores;
  }

  SourceWords words(const WordRows& rows) override {
    SourceWords words;
    for (const Part& part : parts()) words.masses.push_back(word_masses(rows, part));
    if (!alone_) return words;
    words.own = {alone(words.masses[0])};
    words.masses.clear();
    return words;
  }

  std::vector<Tensor> shares(const Window* window, std::int64_t begin, const Tensor& targets,
      const Tensor& log_prob, const RowWeights& weights) const override {
    if (window == nullptr) return std::vector<Tensor>(named_.size(), torch::zeros_like(log_prob));
    const std::int64_t end = begin + targets.size(0);
    const Tensor& weight = alone_ ? weights.own[0] : weights.joint;
    const Tensor all = alone_ ? masses_of(parts()[0], *window, begin, end).all : Tensor();
    std::vector<Tensor> shares;
    for (std::size_t i = 0; i < named_.size(); ++i) {
      const nn::Masses own = masses_of(named_[i], *window, begin, end);
      const Tensor& log_z = alone_ ? all : weights.log_z[std::min(i, weights.log_z.size() - 1)];
      shares.push_back(weight * part_of(own.positive, log_z) / log_prob.exp());
    }
    return shares;
  }

 private:
  // Returns local and long as disjoint parts: long has the positions that local does not show.
  static std::vector<Part> apart(
      const MemoryPlan& plan, const StreamShape& shape, const Grid& grid) {
    std::vector<Part> parts;
    for (const auto* const part : parts_asked(plan)) {
      parts.push_back({plan.rule, temperatures_of(*part, plan, grid).values});
      nn::MemoryRule& rule = parts.back().rule;
      const bool beside = rule.local && rule.far;
      (part == &plan.local ? rule.far : rule.local) = false;
      if (part == &plan.local) {
        if (shape.streaming) rule.local = false, rule.far = true, rule.reach = shape.window;
      } else if (beside && shape.streaming) {
        parts.back().beyond = shape.window;
        rule.reach -= shape.window;
        rule.far = rule.reach > 0;
      } else {
        rule.drop_own_segment = beside;
      }
    }
    return parts;
  }

  static bool tried_apart(MemoryPlan plan, const Grid& grid) {
    std::vector<PlanAxis> axes;
    add_joint_axes(plan, plan.local, axes), add_joint_axes(plan, plan.far, axes);
    return std::any_of(axes.begin(), axes.end(),
        [&](const PlanAxis& axis) { return grid.find(axis.name) < grid.axes.size(); });
  }

  // Returns the parts that are summed separately. Local and long are one part if nothing
  // distinguishes them.
  static std::vector<Part> summed(
      const MemoryPlan& plan, const StreamShape& shape, const Grid& grid) {
    const auto parts = parts_asked(plan);
    const auto temperatures = temperatures_of(*parts[0], plan, grid);
    const bool one = plan.interpolated() || parts.size() < 2 ||
                     (plan.local.plain() && plan.far.plain() && !tried_apart(plan, grid) &&
                         (!plan.online || plan.local.trained == plan.far.trained));
    if (!one) return apart(plan, shape, grid);
    return {{streamed(plan.rule, shape), temperatures.values}};
  }

  std::vector<Part> named_;  // local and long, as requested
  bool alone_;
  std::vector<std::size_t> axes_;
};

class ContextKind : public SourceKind {
 public:
  ContextKind() : SourceKind({.name = "memory", .remembers = true}) {}

  void fields(MemoryOptions& o, core::FieldList& f) const override {
    const auto in_memories = f.group("Memories");
    f("memory", o.memory,
        "local: tokens of the same segment; long: of earlier segments; several joined by commas, "
        "or none; see tessera-memories(7) [those of training]");
    f("long", o.long_reach, "reach of long in tokens (12288) or segments (4seg) [4seg]");
    f("combine", o.combine,
        "joint: memories join the model's softmax; interpolate: mix separate distributions; both: "
        "datastores do both",
        {"joint", "interpolate", "both"});
    f("joint-temperature", o.joint_temperature,
        "temperature of local, long and joint datastores; auto: the model's calibrated value")
        .between(model::kLeastTemperature, 1e6)
        .or_auto();
    o.local.fields(f, "local", "entries of local");
    o.far.fields(f, "long", "entries of long");
    f("memory-lambda", *o.memory_lambda.target(),
        "interpolation weight of local and long with --combine interpolate (0 to below 1)");
  }

  bool asked(const MemoryOptions& o, const PlanContext& context) const override {
    const auto rule = asked_rule(o, context.facts),
               own = nn::MemoryRule::parse(context.facts.memory);
    return (rule.local && !own.local) || (rule.far && !own.far);
  }
  bool share_given(const MemoryOptions& o) const override { return !o.memory_lambda.open(); }
  void plan(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const override {
    nn::MemoryRule& rule = plan.rule = asked_rule(o, context.facts);
    if (!o.long_reach.empty() && !rule.far)
      core::bad_usage("--long {}: --memory {} does not include long", o.long_reach, o.memory);
    const auto& facts = context.facts;
    if (rule.far)
      rule.reach = reach_of(o.long_reach.empty() ? kDefaultReach : o.long_reach,
          facts.segment > 0 ? facts.segment : context.windows.window);
    const bool stores = o.stores.any() || context.opened != nullptr;
    if (o.combine == "both" && !stores) core::bad_usage("--combine both: requires --datastore");
    if (o.combine == "interpolate" && !rule.any() && !stores)
      core::bad_usage("--combine interpolate: requires --memory or --datastore");
    rule.temperature =
        o.joint_temperature > 0 ? o.joint_temperature : model::test_temperature(facts);
    rule.gradient = false;
    plan.combine = o.combine;
    const auto own = nn::MemoryRule::parse(facts.memory);
    plan.local.trained = own.local, plan.far.trained = own.far;
    plan.local.take(o.local), plan.far.take(o.far);
    if (plan.interpolated() && !(o.local.open() && o.far.open()))
      core::bad_usage(
          "--local-joint-*, --long-joint-*: cannot be combined with --combine interpolate");
    if (o.memory_lambda.gated())
      core::bad_usage("--memory-lambda: takes 0 to below 1, or auto, not gate");
    plan.memory_lambda = o.memory_lambda.value("--memory-lambda", context.open_share(0.25));
  }

  void settle(const MemoryPlan& plan, MemoryOptions& o) const override {
    if (o.memory.empty()) o.memory = plan.rule.name();
    o.joint_temperature = plan.rule.temperature;
    o.memory_lambda = plan.memory_lambda;
    if (plan.interpolated()) return;
    if (plan.rule.local) plan.local.settle(o.local);
    if (plan.rule.far) plan.far.settle(o.far);
  }

  bool any(const MemoryPlan& plan) const override { return plan.rule.any(); }
  std::int64_t reach(const MemoryPlan& plan, std::int64_t streamed) const override {
    return std::max(plan.rule.far ? plan.rule.reach : 0, plan.rule.local ? streamed : 0);
  }

  std::unique_ptr<Source> open(
      const MemoryPlan& plan, const StreamShape& shape, const Grid& grid) const override {
    return std::make_unique<ContextSource>(plan, shape, grid);
  }

  void weights(MemoryPlan& plan, std::vector<PlanWeight>& weights) const override {
    if (plan.interpolated())
      weights.push_back({name(), "--memory-lambda", std::span(&plan.memory_lambda, 1)});
  }

  std::vector<AxisFacts> axis_facts() const override {
    std::vector<AxisFacts> all = {{"temperature", "temperatures",
        "joint temperatures to try, the same for all sources [tuned per source]",
        model::kLeastTemperature, kMostTuned}};
    for (const char* const name : {"local", "long"})
      for (auto& facts : joint_part_facts(name, fmt::format("entries of {}", name)))
        all.push_back(std::move(facts));
    return all;
  }
  void axes(MemoryPlan& plan, std::vector<PlanAxis>& axes) const override {
    axes.push_back(joint_temperature_axis(plan));
    axes.back().matters = !plan.interpolated() || plan.memory_lambda > 0;
    for (auto* const part : joint(plan)) add_joint_axes(plan, *part, axes);
  }

  std::vector<JointPart*> joint(MemoryPlan& plan) const override {
    return plan.interpolated() ? std::vector<JointPart*>{} : parts_asked(plan);
  }

  void sign(const MemoryPlan& plan, const SayFact& say) const override {
    std::string names = plan.rule.name();
    std::replace(names.begin(), names.end(), ',', '+');
    say("memory", names);
    if (plan.rule.any()) {
      if (plan.rule.far) say("long", fmt::format("{}", plan.rule.reach));
      say("combine", plan.combine);
    }
    if (plan.rule.any() || plan.stores.joined())
      say("temperature", fmt::format("{}", plan.rule.temperature));
    if (plan.interpolated()) say("memory-lambda", fmt::format("{}", plan.memory_lambda));
  }

  std::vector<std::string> names(const MemoryPlan& plan) const override {
    std::vector<std::string> names;
    if (plan.rule.local) names.emplace_back("local");
    if (plan.rule.far) names.emplace_back("long");
    return names;
  }
};

}  // namespace

const SourceKind& context_kind() { return only<ContextKind>(); }

}  // namespace infer
