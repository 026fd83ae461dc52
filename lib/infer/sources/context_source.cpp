// Local and long: positions of the window, and those before it, joined with the head's softmax or
// a distribution of their own.

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/units.h"
#include "infer/sources/memory_plan.h"
#include "infer/sources/plan_axes.h"
#include "infer/sources/ring_source.h"
#include "infer/sources/source_kinds.h"
#include "model/test_temperature.h"

namespace infer {
namespace {

using core::Code;
using core::fail;
using torch::Tensor;

constexpr const char* kDefaultReach = "4seg";
constexpr std::int64_t kMostReach = 1'000'000'000;

// "12288" tokens, or "4seg", "4segments" of so many tokens.
std::int64_t reach_of(const std::string& text, std::int64_t segment) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string unit = text.substr(digits);
  try {
    const bool segments = unit == "seg" || unit == "segment" || unit == "segments";
    const std::int64_t n = core::parse_count(segments ? text.substr(0, digits) : text);
    const std::int64_t tokens = segments ? std::min(n, kMostReach) * segment : n;
    if (tokens > 0 && tokens <= kMostReach && n <= kMostReach) return tokens;
  } catch (const core::Error&) {
  }
  fail(Code::usage, "--long: '{}' is no number of tokens (12288) or segments (4seg)", text);
}

// Which of local and long: as asked for, else as the model was trained with.
nn::MemoryRule asked_rule(const MemoryOptions& options, const model::TrainingFacts& facts) {
  if (options.memory.empty()) {
    nn::MemoryRule rule = nn::MemoryRule::parse(facts.memory);
    rule.ext = false;
    rule.far |= !options.long_reach.empty();
    return rule;
  }
  const nn::MemoryRule rule = nn::MemoryRule::parse(options.memory);
  if (rule.ext)
    fail(Code::usage, "--memory {}: ext is for training; at test it is a datastore",
         options.memory);
  return rule;
}

// What the rule shows where blocks have no context of their own: local is a reach too.
nn::MemoryRule streamed(nn::MemoryRule rule, const StreamShape& shape) {
  if (!shape.streaming) return rule;
  rule.reach = std::max(rule.far ? rule.reach : 0, rule.local ? shape.window : 0);
  rule.far = true, rule.local = false;
  return rule;
}

std::optional<std::int64_t> ring_of(const nn::MemoryRule& rule) {
  return rule.far ? std::optional(rule.reach) : std::nullopt;
}

class ContextSource : public RingSource {
 public:
  ContextSource(const MemoryPlan& plan, const StreamShape& shape, const Grid& grid)
      : RingSource(streamed(plan.rule, shape), ring_of(streamed(plan.rule, shape)),
                   grid.values("temperature", plan.rule.temperature), false, shape.dtype),
        asked_(plan.rule),
        local_(rule()),
        alone_(plan.interpolated()),
        axes_{grid.find("temperature")} {
    if (shape.streaming) {
      local_.reach = shape.window;
    } else {
      local_.far = false;
    }
  }

  SourceScores score(const Tensor& /*targets*/, const std::vector<Tensor>& recalled,
                     Found* /*found*/, std::int64_t /*offset*/, std::uint64_t /*first*/) override {
    SourceScores scores{axes_};
    if (alone_) {
      scores.own = {alone(recalled[1], recalled[0])};
    } else {
      scores.all = recalled[0], scores.positive = recalled[1];
    }
    return scores;
  }

  SourceWords words(const WordRows& rows) override {
    SourceWords words;
    const Tensor masses = word_masses(rows);
    if (alone_) {
      words.own = {alone(masses)};
    } else {
      words.masses = masses;
    }
    return words;
  }

  std::vector<Tensor> shares(const Window& window, std::int64_t begin, const Tensor& targets,
                             const Tensor& log_prob, const RowWeights& weights) const override {
    const std::int64_t end = begin + targets.size(0);
    const Masses all = masses_of(rule(), window, begin, end);
    const Tensor& weight = alone_ ? weights.own[0] : weights.joint;
    const auto share = [&](const Tensor& mass) {
      return weight * part_of(mass, alone_ ? all.all : weights.log_z) / log_prob.exp();
    };
    const Tensor both = share(all.positive);
    std::vector<Tensor> shares;
    if (asked_.local)
      shares.push_back(share(masses_of(local_, window, begin, end).positive).minimum(both));
    if (asked_.far) shares.push_back(asked_.local ? both - shares[0] : both);
    return shares;
  }

 private:
  nn::MemoryRule asked_, local_;  // of what is seen, what is local
  bool alone_;
  std::vector<std::size_t> axes_;
};

class ContextKind : public SourceKind {
 public:
  std::string name() const override { return "memory"; }
  std::string column() const override { return "memory"; }

  void fields(MemoryOptions& o, core::FieldList& f) const override {
    const auto in_memories = f.group("Memories");
    f("memory", o.memory,
      "none, or a sum of local and long [local and long as the model was trained with]");
    f("long", o.long_reach, "how far long reaches back: 12288 (tokens) or 4seg (segments) [4seg]");
    f("combine", o.combine,
      "memories in the head's softmax, as distributions of their own, or (stores) as both",
      {"joint", "interpolate", "both"});
    f("joint-temperature", o.joint_temperature,
      "divides the scores of local, long and joined stores; 0: as the model was calibrated")
        .between(0, 1e6);
    f("memory-lambda", *o.memory_lambda.target(),
      "share of local and long with --combine interpolate (0 to below 1)");
  }

  bool asked(const MemoryOptions& o, const PlanContext& context) const override {
    return !o.memory.empty() && nn::MemoryRule::parse(o.memory).any() &&
           !nn::MemoryRule::parse(context.facts.memory).any();
  }
  bool share_given(const MemoryOptions& o) const override { return !o.memory_lambda.open(); }
  void plan(const MemoryOptions& o, const PlanContext& context, MemoryPlan& plan) const override {
    nn::MemoryRule& rule = plan.rule = asked_rule(o, context.facts);
    if (!o.long_reach.empty() && !rule.far)
      fail(Code::usage, "--long {}: --memory {} has no long", o.long_reach, o.memory);
    const auto& facts = context.facts;
    if (rule.far)
      rule.reach = reach_of(o.long_reach.empty() ? kDefaultReach : o.long_reach,
                            facts.segment > 0 ? facts.segment : context.windows.window);
    const bool stores = o.stores.any() || context.opened != nullptr;
    if (o.combine == "both" && !stores)
      fail(Code::usage, "--combine both: it is for stores; add --datastore");
    if (o.combine == "interpolate" && !rule.any() && !stores)
      fail(Code::usage,
           "--combine interpolate: there is nothing to interpolate; add --memory or --datastore");
    rule.temperature =
        o.joint_temperature > 0 ? o.joint_temperature : model::test_temperature(facts);
    rule.gradient = false;
    plan.combine = o.combine;
    if (o.memory_lambda.gated())
      fail(Code::usage, "--memory-lambda: takes 0 to below 1, or auto, not gate");
    plan.memory_lambda = o.memory_lambda.value("--memory-lambda", context.open_share(0.25));
  }

  void settle(const MemoryPlan& plan, MemoryOptions& o) const override {
    if (o.memory.empty()) o.memory = plan.rule.name();
    o.joint_temperature = plan.rule.temperature;
    o.memory_lambda = plan.memory_lambda;
  }

  bool any(const MemoryPlan& plan) const override { return plan.rule.any(); }
  bool remembers(const MemoryPlan&) const override { return true; }
  std::int64_t reach(const MemoryPlan& plan, std::int64_t streamed) const override {
    return std::max(plan.rule.far ? plan.rule.reach : 0, plan.rule.local ? streamed : 0);
  }

  std::unique_ptr<Source> open(const MemoryPlan& plan, const StreamShape& shape,
                               const Grid& grid) const override {
    return std::make_unique<ContextSource>(plan, shape, grid);
  }

  void weights(MemoryPlan& plan, std::vector<PlanWeight>& weights) const override {
    if (plan.interpolated())
      weights.push_back({name(), "--memory-lambda", std::span(&plan.memory_lambda, 1)});
  }

  std::vector<AxisFacts> axis_facts() const override {
    return {{"temperature", "temperatures",
             "joint temperatures to try [0.5 to 3 times --joint-temperature]",
             model::kLeastTemperature, kMostTuned}};
  }
  void axes(MemoryPlan& plan, std::vector<PlanAxis>& axes) const override {
    axes.push_back(joint_temperature_axis(plan));
    axes.back().matters = !plan.interpolated() || plan.memory_lambda > 0;
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

const SourceKind& context_kind() {
  static const ContextKind kind;
  return kind;
}

}  // namespace infer
