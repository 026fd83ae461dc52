#include "infer/sources/context_source.h"

#include "infer/sources/kind_of.h"
#include "infer/sources/plan_axes.h"
#include "infer/sources/ring_source.h"

namespace infer {
namespace {

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
nn::MemoryRule asked_rule(const ContextOptions& options, const model::TrainingFacts& facts) {
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
  ContextSource(
      const ContextPlan& own, const MemoryPlan& plan, const StreamShape& shape, const Grid& grid)
      : RingSource(
            summed(plan, shape, grid), ring_of(streamed(own.rule, shape)), false, shape.dtype),
        named_(apart(plan, shape, grid)), alone_(own.interpolated()) {
    for (const auto* const part : parts_asked(own))
      axes_.push_back(temperatures_of(*part, plan, grid).axis);
  }

  SourceScores score(const RecalledRows& rows) override {
    const auto& recalled = rows.recalled;
    SourceScores scores{axes_};
    const auto lay = [&](const Tensor& masses, std::size_t part) {  // an axis for each part
      return axes_.size() < 2 ? masses : masses.unsqueeze(part == 0 ? 1 : 0);
    };
    if (alone_) {
      scores.separate = {lay(alone(recalled[1], recalled[0]), 0)};
    } else {
      for (std::size_t i = 0; i < parts().size(); ++i)
        scores.joined.push_back({lay(recalled[2 * i], i), lay(recalled[2 * i + 1], i)});
    }
    return scores;
  }

  VocabularyScores score_vocabulary(const VocabularyRows& rows) override {
    VocabularyScores scores;
    for (const Part& part : parts()) scores.masses.push_back(token_masses(rows, part));
    if (!alone_) return scores;
    scores.separate = {alone(scores.masses[0])};
    scores.masses.clear();
    return scores;
  }

  std::vector<Tensor> shares(const Window* window, std::int64_t begin, const Tensor& targets,
      const Tensor& log_prob, const RowWeights& weights) const override {
    if (window == nullptr) return std::vector<Tensor>(named_.size(), torch::zeros_like(log_prob));
    const std::int64_t end = begin + targets.size(0);
    const Tensor& weight = alone_ ? weights.separate[0] : weights.joint;
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
    const auto& own = plan.of<ContextPlan>();
    std::vector<Part> parts;
    for (const auto* const part : parts_asked(own)) {
      parts.push_back({own.rule, temperatures_of(*part, plan, grid).values});
      nn::MemoryRule& rule = parts.back().rule;
      const bool both = rule.local && rule.far;
      (part == &own.local ? rule.far : rule.local) = false;
      if (part == &own.local) {
        if (shape.streaming) rule.local = false, rule.far = true, rule.reach = shape.window;
      } else if (both && shape.streaming) {
        parts.back().beyond = shape.window;
        rule.reach -= shape.window;
        rule.far = rule.reach > 0;
      } else {
        rule.drop_own_segment = both;
      }
    }
    return parts;
  }

  static bool tried_apart(MemoryPlan plan, const Grid& grid) {
    std::vector<PlanAxis> axes;
    auto& own = plan.of<ContextPlan>();
    add_joint_axes(plan, own.local, axes), add_joint_axes(plan, own.far, axes);
    return std::ranges::any_of(
        axes, [&](const auto& axis) { return grid.find(axis.name) < grid.axes.size(); });
  }

  // Returns the parts that are summed separately. Local and long are one part if nothing
  // distinguishes them.
  static std::vector<Part> summed(
      const MemoryPlan& plan, const StreamShape& shape, const Grid& grid) {
    const auto& own = plan.of<ContextPlan>();
    const auto parts = parts_asked(own);
    const auto temperatures = temperatures_of(*parts[0], plan, grid);
    const bool one = own.interpolated() || parts.size() < 2 ||
                     (own.local.plain() && own.far.plain() && !tried_apart(plan, grid) &&
                         (!plan.online || own.local.trained == own.far.trained));
    if (!one) return apart(plan, shape, grid);
    return {{streamed(own.rule, shape), temperatures.values}};
  }

  std::vector<Part> named_;  // local and long, as requested
  bool alone_;
  std::vector<std::size_t> axes_;
};

class ContextKind : public KindOf<ContextOptions, ContextPlan, ContextSource> {
 public:
  ContextKind() : KindOf({.name = "memory", .remembers = true, .trained = true}) {}

  void fields(MemoryOptions& o, core::FieldList& f) const override {
    const auto in_memories = f.group("Memories");
    f("memory", own(o).memory,
        "local: tokens of the same segment; long: of earlier segments; several joined by commas, "
        "or none; see tessera-memories(7) [those of training]");
    f("long", own(o).long_reach, "reach of long in tokens (12288) or segments (4seg) [4seg]");
    f("combine", own(o).combine,
        "joint: memories join the model's softmax; interpolate: mix separate distributions; both: "
        "datastores do both",
        {"joint", "interpolate", "both"});
    f("joint-temperature", o.joint_temperature,
        "temperature of local, long and joint datastores; auto: the model's calibrated value")
        .auto_or(model::kLeastTemperature, 1e6);
    own(o).local.fields(f, "local", "entries of local");
    own(o).far.fields(f, "long", "entries of long");
    f("memory-lambda", *own(o).lambda.target(),
        "interpolation weight of local and long with --combine interpolate (0 to below 1)");
  }

  bool asked(const MemoryOptions& o, const PlanContext& context) const override {
    const auto rule = asked_rule(own(o), context.facts),
               trained = nn::MemoryRule::parse(context.facts.memory);
    return (rule.local && !trained.local) || (rule.far && !trained.far);
  }
  bool share_given(const MemoryOptions& o) const override { return !own(o).lambda.open(); }
  void plan(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const override {
    const ContextOptions& from = own(o);
    ContextPlan& to = own(plan);
    nn::MemoryRule& rule = to.rule = asked_rule(from, context.facts);
    if (!from.long_reach.empty() && !rule.far)
      core::bad_usage("--long {}: --memory {} does not include long", from.long_reach, from.memory);
    const auto& facts = context.facts;
    if (rule.far)
      rule.reach = reach_of(from.long_reach.empty() ? kDefaultReach : from.long_reach,
          facts.segment > 0 ? facts.segment : context.windows.window);
    const bool stores = store_kind().asked(o, context);
    if (from.combine == "both" && !stores) core::bad_usage("--combine both: requires --datastore");
    if (from.combine == "interpolate" && !rule.any() && !stores)
      core::bad_usage("--combine interpolate: requires --memory or --datastore");
    plan.joint_temperature =
        o.joint_temperature > 0 ? o.joint_temperature : model::test_temperature(facts);
    rule.gradient = false;
    to.combine = from.combine;
    const auto trained = nn::MemoryRule::parse(facts.memory);
    to.local.trained = trained.local, to.far.trained = trained.far;
    to.local.take(from.local), to.far.take(from.far);
    if (to.interpolated() && !(from.local.open() && from.far.open()))
      core::bad_usage(
          "--local-joint-*, --long-joint-*: cannot be combined with --combine interpolate");
    if (from.lambda.gated())
      core::bad_usage("--memory-lambda: takes 0 to below 1, or auto, not gate");
    to.lambda = from.lambda.value("--memory-lambda", context.open_share(0.25));
  }

  void settle(const MemoryPlan& plan, MemoryOptions& o) const override {
    const ContextPlan& from = own(plan);
    if (own(o).memory.empty()) own(o).memory = from.rule.name();
    o.joint_temperature = plan.joint_temperature;
    own(o).lambda = from.lambda;
    if (from.interpolated()) return;
    if (from.rule.local) from.local.settle(own(o).local);
    if (from.rule.far) from.far.settle(own(o).far);
  }

  std::int64_t reach(const MemoryPlan& plan, std::int64_t streamed) const override {
    const auto& rule = own(plan).rule;
    return std::max(rule.far ? rule.reach : 0, rule.local ? streamed : 0);
  }

  void weights(MemoryPlan& plan, std::vector<PlanWeight>& weights) const override {
    if (own(plan).interpolated())
      weights.push_back({name(), "--memory-lambda", {&own(plan).lambda, 1}, false, true});
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
    axes.back().matters = !own(plan).interpolated() || own(plan).lambda > 0;
    for (auto* const part : joint(plan)) add_joint_axes(plan, *part, axes);
  }

  std::vector<JointPart*> joint(MemoryPlan& plan) const override {
    return own(plan).interpolated() ? std::vector<JointPart*>{} : parts_asked(own(plan));
  }

  void sign(const MemoryPlan& plan, const SayFact& say) const override {
    const auto& rule = own(plan).rule;
    std::string names = rule.name();
    std::replace(names.begin(), names.end(), ',', '+');
    say("memory", names);
    if (rule.any()) {
      if (rule.far) say("long", fmt::format("{}", rule.reach));
      say("combine", own(plan).combine);
    }
    if (rule.any() || !plan.joint().empty())
      say("temperature", fmt::format("{}", plan.joint_temperature));
    if (own(plan).interpolated()) say("memory-lambda", fmt::format("{}", own(plan).lambda));
  }

  std::vector<std::string> names(const MemoryPlan& plan) const override {
    return core::mapped(parts_asked(own(plan)), [](const auto* part) { return part->name; });
  }
};

}  // namespace

const SourceKind& context_kind() { return only<ContextKind>(); }

}  // namespace infer
