#include "infer/sources/memory_plan.h"

#include "infer/sources/source_kinds.h"

namespace infer {
namespace {

// Copies the constants of fitted gates into the plan.
void give_constants(MemoryPlan& plan) {
  if (plan.gates.gate.rows.empty()) return;
  for (const auto& weight : plan.weights())
    if (const GateRow* const row = plan.gates.gate.find(weight.kind);
        weight.gated && row != nullptr)
      std::copy_n(row->constants.begin(), std::min(row->constants.size(), weight.values.size()),
          weight.values.begin());
}

// The sum to which default weights are reduced that would leave the model nothing.
constexpr double kMostOfDefaults = 0.9;

bool share_given(const MemoryOptions& o) {
  return !o.tuned_on.empty() ||
         std::ranges::any_of(source_kinds(), [&](auto* kind) { return kind->share_given(o); });
}

// Makes the weights sum to less than 1, or throws if one of them was given.
void bound_shares(const MemoryOptions& o, MemoryPlan& plan) {
  auto weights = plan.weights();
  std::erase_if(weights, [](const auto& weight) { return weight.by_bucket(); });
  double sum = 0;
  std::vector<std::string> flags;
  for (const auto& weight : weights) {
    sum += weight.values[0];
    if (std::ranges::count(flags, weight.flag) == 0) flags.push_back(weight.flag);
  }
  if (sum < 1) return;
  if (share_given(o))
    core::bad_usage(
        "{}: the weights must sum to less than 1, not {:.4g}", fmt::join(flags, ", "), sum);
  for (const auto& weight : weights) weight.values[0] *= kMostOfDefaults / sum;
}

// Returns whether weights are learned online. By default they are if no share is given or tuned and
// there is a source that the model was not trained with. Pairs of sentences are no stream to learn
// from.
bool learns(const MemoryOptions& o, const PlanContext& context) {
  const bool pairs = nn::arch_facts(context.model.options.arch).reads_source;
  if (o.weights == "online" && pairs)
    core::bad_usage("--memory-weights online: not supported for sentence pairs; give constant");
  if (o.weights != "auto" || pairs) return o.weights == "online";
  const auto asked = [&](const auto* kind) { return kind->asked(o, context); };
  return std::ranges::any_of(source_kinds(), asked) && !share_given(o);
}

MemoryPlan plan_of(const MemoryOptions& options, PlanContext context) {
  MemoryPlan plan;
  plan.online_asked = options.weights == "online";
  plan.weights_follow = options.weights_follow;
  const bool learned = learns(options, context),
             kept = options.in_parts && options.weights == "auto";
  context.online = learned && !kept;
  check_temperature("joint-temperature", options.joint_temperature);
  plan.gates.gate = parse_gate(options.gate);
  plan.tuned_on = options.tuned_on;
  for (const auto* const kind : source_kinds()) kind->plan(options, context, plan);
  if (plan.gates.any() && !plan.gates.gate.rows.empty()) plan.gates.expect_fitted();
  for (const auto* const kind : source_kinds()) kind->load(options, context, plan);
  expect_used({options.chosen.begin(), options.chosen.end()},
      [&](const SourceKind& kind) { return kind.any(plan) || kind.asked(options, context); });
  give_constants(plan);
  bound_shares(options, plan);
  plan.online = context.online && plan.any();
  plan.constant_for_parts = learned && kept && plan.any();
  if (plan.online && plan.gates.any())
    core::bad_usage("--memory-weights online: cannot be combined with a gate");
  if (plan.online && plan.released())
    core::bad_usage(
        "--memory-weights online: cannot be combined with {}, which gives no probabilities",
        plan.released_by);
  return plan;
}

// Returns the elements of `of` each kind, in order.
template <class Of> auto gathered(const std::vector<const SourceKind*>& kinds, const Of& of) {
  decltype(of(*kinds[0])) all;
  for (const auto* const kind : kinds) {
    const auto own = of(*kind);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

}  // namespace

const std::vector<const SourceKind*>& source_kinds() {
#define INFER_LIST_KIND(kind) &kind(),
  static const std::vector<const SourceKind*> kinds = {INFER_SOURCE_KINDS(INFER_LIST_KIND)};
#undef INFER_LIST_KIND
  return kinds;
}

std::vector<std::string> SourceKind::options() const {
  MemoryOptions listed;
  core::FieldList list;
  fields(listed, list);
  auto names = core::mapped(list.all(), &core::Field::name);
  std::erase(names, name());
  for (const auto& facts : axis_facts()) names.push_back("tune-" + facts.flag);
  return names;
}

void SourceKind::drop(MemoryOptions& options) const {
  MemoryOptions defaults;
  core::FieldList from, to;
  fields(defaults, from), fields(options, to);
  for (std::size_t i = 0; i < to.all().size(); ++i)
    std::visit([&](auto* target) { *target = *std::get<decltype(target)>(from.all()[i].target); },
        to.all()[i].target);
}

std::string flags_of_kinds(const std::function<bool(const SourceKind&)>& is) {
  std::vector<std::string> flags;
  for (const auto* const kind : source_kinds())
    if (is(*kind)) flags.push_back("--" + kind->name());
  return core::listed(flags, "or");
}

void expect_used(const std::vector<std::string>& names,
    const std::function<bool(const SourceKind&)>& takes_part) {
  for (const auto* const kind : source_kinds())
    for (const auto& name : kind->options()) {
      const auto uses = [&](const SourceKind& one) {
        return &one == kind || std::ranges::count(one.facts().borrows, name) > 0;
      };
      const auto serves = [&](const auto* one) { return uses(*one) && takes_part(*one); };
      if (core::contains(names, name) && std::ranges::none_of(source_kinds(), serves))
        core::bad_usage("--{}: requires {}", name, flags_of_kinds(uses));
    }
}

void MemoryOptions::choose(const std::set<std::string>& flags) {
  chosen = flags;
  if (tuned_on.empty())
    std::ranges::copy(core::changed(*this), std::inserter(chosen, chosen.end()));
}

void MemoryOptions::fields(core::FieldList& f) {
  for (const auto* const kind : source_kinds()) kind->fields(*this, f);
  const auto in_memories = f.group("Memories");
  f("memory-weights", weights,
      "interpolation weights: constant, or learned online from past tokens; auto: online unless "
      "weights are given or tuned",
      {"auto", "online", "constant"});
  f("gate", gate, "fitted gate from eval-ppl --tune, for a weight set to gate; may be repeated");
  f("tuned-on", tuned_on, "fingerprint of the tuning data, for the signature");
}

std::vector<const SourceKind*> MemoryPlan::kinds() const {
  return core::kept(source_kinds(), [&](const SourceKind* kind) { return kind->any(*this); });
}

std::vector<PlanWeight> MemoryPlan::weights() {
  std::vector<PlanWeight> all;
  for (const auto* const kind : kinds()) kind->weights(*this, all);
  return all;
}

std::vector<JointPart*> MemoryPlan::joint() {
  return gathered(kinds(), [&](const SourceKind& kind) { return kind.joint(*this); });
}

std::vector<JointPart> MemoryPlan::joint(const SourceKind& kind) const {
  return core::mapped(
      kind.joint(const_cast<MemoryPlan&>(*this)), [](const JointPart* part) { return *part; });
}

std::vector<PlanAxis> MemoryPlan::axes() {
  std::vector<PlanAxis> all, own;
  for (const auto* const kind : kinds()) {
    own.clear();
    kind->axes(*this, own);
    for (auto& axis : own) {
      const auto same = std::ranges::find(all, axis.name, &PlanAxis::name);
      if (same == all.end()) all.push_back(std::move(axis));
      else same->matters |= axis.matters;
    }
  }
  return all;
}

bool MemoryPlan::has(bool KindFacts::*fact) const {
  return std::ranges::any_of(kinds(), [&](const auto* kind) { return kind->facts().*fact; });
}

std::int64_t MemoryPlan::reach(std::int64_t streamed) const {
  return core::max_of(kinds(), [&](const auto* kind) { return kind->reach(*this, streamed); });
}

EnsembleModels MemoryPlan::models() const {
  return gathered(kinds(), [&](const SourceKind& kind) { return kind.models(*this); });
}

bool MemoryPlan::wants_more(std::span<const std::int64_t> read) const {
  return std::ranges::any_of(
      kinds(), [&](const auto* kind) { return kind->wants_more(*this, read); });
}

SearchPlan MemoryPlan::search() const {
  for (const auto* const kind : kinds())
    if (auto found = kind->search(*this); found.where != nullptr) return found;
  return {};
}

MemoryPlan MemoryPlan::without(const shard::Fingerprints& texts) const {
  MemoryPlan left = *this;
  for (const auto* const kind : kinds()) kind->leave_out(left, texts);
  return left;
}

std::vector<std::string> MemoryPlan::names() const {
  auto names = gathered(kinds(), [&](const SourceKind& kind) { return kind.names(*this); });
  names.insert(names.begin(), "vocabulary");
  return names;
}

std::vector<std::string> MemoryPlan::given_names() const {
  auto given = kinds();
  std::erase_if(given, [](const auto* kind) { return kind->facts().trained; });
  return gathered(given, [&](const SourceKind& kind) { return kind.names(*this); });
}

void MemoryPlan::sign(const SayFact& say) const {
  for (const auto* const kind : source_kinds())
    if (kind->facts().trained || kind->any(*this)) kind->sign(*this, say);
  for (const auto* const part : joint()) {
    if (part->temperature > 0)
      say((part->name + "-joint-temperature").c_str(), fmt::format("{}", part->temperature));
    if (part->bias != 0) say((part->name + "-joint-bias").c_str(), bias_text(part->bias));
  }
  if (gates.any()) {
    const auto texts = fmt::format("{}", fmt::join(to_texts(gates.gate), "\n"));
    say("gate", core::hash128(texts).hex().substr(0, 12));
    if (gates.threshold > 0) say("threshold", fmt::format("{}", gates.threshold));
  }
  if (online) say("weights", "online");
  if (!tuned_on.empty()) say("tuned-on", tuned_on);
}

void MemoryPlan::expect_probabilities() const {
  if (released())
    core::bad_usage("{}: gives scores, not probabilities; use another value", released_by);
}

void MemoryPlan::notes(
    const shard::Fingerprints& texts, const char* what, const SayLine& say) const {
  for (const auto* const kind : kinds()) kind->notes(*this, texts, what, say);
}

MemoryPlan plan_memory(const MemoryOptions& options, const WindowPlan& windows,
    const nn::Model& model, const model::TrainingFacts& facts, OpenMemories open) {
  return plan_of(options, {windows, model, facts, open});
}

MemoryPlan OpenMemories::plan(
    const MemoryOptions& options, const WindowPlan& windows, const model::Loaded& loaded) {
  return plan_of(options, {windows, *loaded.model, loaded.facts, *this, &loaded});
}

void check_retrieval(const RetrievePlan& retrieve, const MemoryPlan& memory) {
  if (retrieve.mix == 1) return;
  for (const auto* const kind : memory.kinds())
    if (const auto& facts = kind->facts(); !memory.joint(*kind).empty())
      core::bad_usage(
          "--retrieve-mix {}: {} cannot join the softmax of {} passages; give --combine "
          "interpolate{}",
          retrieve.mix,
          facts.trained ? fmt::format("--{} {}", facts.name, fmt::join(kind->names(memory), ","))
                        : "the " + facts.column,
          retrieve.mix, facts.trained ? fmt::format(", or --{} none", facts.name) : "");
  if (memory.gates.any())
    core::bad_usage(
        "--retrieve-mix {}: gates need one model's confidence, not {}; give constant weights",
        retrieve.mix, retrieve.mix);
}

MemoryOptions settled(MemoryOptions asked, const MemoryPlan& plan) {
  for (const auto* const kind : source_kinds()) kind->settle(plan, asked);
  asked.gate = plan.gates.any() ? to_texts(plan.gates.gate) : std::vector<std::string>{};
  asked.weights = plan.online ? "online" : "constant";
  asked.tuned_on = plan.tuned_on;
  return asked;
}

}  // namespace infer
