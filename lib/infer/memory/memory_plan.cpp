#include "infer/memory/memory_plan.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/units.h"
#include "infer/stores/stores.h"
#include "model/test_temperature.h"

namespace infer {
namespace {

using core::Code;
using core::fail;

constexpr const char* kDefaultReach = "4seg";
constexpr std::int64_t kMostTokens = 1'000'000'000;

// "12288" tokens, or "4seg", "4segments" of so many tokens.
std::int64_t reach_of(const std::string& text, std::int64_t segment) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string unit = text.substr(digits);
  try {
    const bool segments = unit == "seg" || unit == "segment" || unit == "segments";
    const std::int64_t n = core::parse_count(segments ? text.substr(0, digits) : text);
    const std::int64_t tokens = segments ? std::min(n, kMostTokens) * segment : n;
    if (tokens > 0 && tokens <= kMostTokens && n <= kMostTokens) return tokens;
  } catch (const core::Error&) {
  }
  fail(Code::usage, "--long: '{}' is no number of tokens (12288) or segments (4seg)", text);
}

// Which of local and long: as asked for, else as the model was trained with.
nn::MemoryRule rule_of(const MemoryOptions& options, const model::TrainingFacts& facts) {
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

void check_temperature(const char* flag, double temperature) {
  if (temperature != 0 && temperature < model::kLeastTemperature)
    fail(Code::usage, "--{}: takes 0, or {} to 1M, not {}", flag, model::kLeastTemperature,
         temperature);
}

void check_shares(const MemoryPlan& plan, bool with_stores) {
  const std::string& combine = plan.stores.combine;
  const double l_m = plan.interpolated() ? plan.memory_lambda : 0;
  const double l_c = plan.cache > 0 ? plan.cache_lambda : 0;
  const double l_s =
      with_stores && (combine == "interpolate" || combine == "both") ? plan.stores.lambda : 0;
  if (l_m + l_c + l_s + plan.with.sum() >= 1)
    fail(Code::usage,
         "--memory-lambda, --cache-lambda, --datastore-lambda{}: are shares, below 1 together",
         plan.with.any() ? ", --with" : "");
}

// Which sources have gates, and the constants of those that are fitted.
void plan_gates(MemoryPlan& plan, const MemoryOptions& options, bool with_stores) {
  GatePlan& gates = plan.gates;
  gates.gate = parse_gate(options.gate);
  gates.threshold = options.stores.threshold;
  if (plan.cache > 0 && options.cache_lambda.gated()) gates.sources.push_back("cache");
  if (with_stores && options.stores.lambda.gated()) {
    if (plan.stores.combine != "interpolate")
      fail(Code::usage,
           "--datastore-lambda gate: the share of joined stores is their mass; "
           "add --datastore-combine interpolate");
    gates.sources.push_back("datastore");
  }
  if (options.ngrams.any() && options.ngrams.lambda.gated()) gates.sources.push_back("ngrams");
  const std::int64_t with = plan.with.gated();
  if (with >= 0) gates.sources.push_back("with");
  if (gates.threshold > 0 && with_stores && !gates.has("datastore"))
    fail(Code::usage, "--datastore-threshold: it asks a gate; add --datastore-lambda gate");
  if (gates.gate.rows.empty()) return;
  if (gates.any()) gates.expect_fitted();
  if (gates.has("cache")) plan.cache_lambda = gates.gate.find("cache")->constants[0];
  if (gates.has("datastore")) plan.stores.lambda = gates.gate.find("datastore")->constants[0];
  if (gates.has("with"))
    plan.with.shares[static_cast<std::size_t>(with)].lambda = gates.gate.find("with")->constants[0];
  if (gates.has("ngrams")) plan.ngrams.lambda = gates.gate.find("ngrams")->constants;
}

// All but the stores that are opened.
MemoryPlan plan_unopened(const MemoryOptions& options, const WindowPlan& windows,
                         const nn::Model& model, const model::TrainingFacts& facts,
                         bool with_stores) {
  MemoryPlan plan;
  nn::MemoryRule& rule = plan.rule = rule_of(options, facts);
  if (!options.long_reach.empty() && !rule.far)
    fail(Code::usage, "--long {}: --memory {} has no long", options.long_reach, options.memory);
  if (rule.far)
    rule.reach = reach_of(options.long_reach.empty() ? kDefaultReach : options.long_reach,
                          facts.segment > 0 ? facts.segment : windows.window);
  if (options.combine == "both" && !with_stores)
    fail(Code::usage, "--combine both: it is for stores; add --datastore");
  if (options.combine == "interpolate" && !rule.any() && !with_stores)
    fail(Code::usage,
         "--combine interpolate: there is nothing to interpolate; add --memory or --datastore");
  const auto root = [](std::int64_t width) { return std::sqrt(static_cast<double>(width)); };
  check_temperature("joint-temperature", options.joint_temperature);
  check_temperature("datastore-temperature", options.stores.temperature);
  rule.temperature =
      options.joint_temperature > 0 ? options.joint_temperature : model::test_temperature(facts);
  rule.gradient = false;
  plan.combine = options.combine;
  plan.memory_lambda = options.memory_lambda;
  plan.cache = options.cache;
  plan.cache_theta =
      options.cache_theta > 0 ? options.cache_theta : 1 / root(model.architecture->d_model());
  plan.cache_lambda = options.cache_lambda.value("--cache-lambda");
  const StoreOptions& stores = options.stores;
  plan.stores.combine = stores.combine == "auto" ? options.combine : stores.combine;
  plan.stores.k = stores.k, plan.stores.nprobe = stores.nprobe;
  plan.stores.rescore = stores.rescore;
  plan.stores.follow = stores.follow;
  plan.stores.lambda = stores.lambda.value("--datastore-lambda");
  plan.stores.temperature =
      stores.temperature > 0 ? stores.temperature : root(model.architecture->d_key());
  plan.ngrams.lambda = options.ngrams.shares();
  plan.with.shares = options.with.shares();
  plan.tuned_on = options.tuned_on;
  plan_gates(plan, options, with_stores);
  check_shares(plan, with_stores);
  return plan;
}

void give_stores(MemoryPlan& plan, std::shared_ptr<const Stores> opened) {
  plan.stores.opened = std::move(opened);
  if (plan.stores.any() && plan.stores.follow > 0) plan.stores.opened->expect_followable();
}

}  // namespace

MemoryPlan plan_memory(const MemoryOptions& options, const WindowPlan& windows,
                       const nn::Model& model, const model::TrainingFacts& facts,
                       std::shared_ptr<const Stores> opened) {
  if (options.stores.any() && !opened)
    fail(Code::bug, "the stores of {} are not open", options.stores.folders[0]);
  MemoryPlan plan = plan_unopened(options, windows, model, facts, opened != nullptr);
  give_stores(plan, std::move(opened));
  return plan;
}

MemoryPlan plan_memory(const MemoryOptions& options, const WindowPlan& windows,
                       const model::Loaded& loaded, const StoreOpener& open) {
  MemoryPlan plan =
      plan_unopened(options, windows, *loaded.model, loaded.facts, options.stores.any());
  const auto& folders = options.stores.folders;
  give_stores(plan, open ? open(folders, loaded) : open_stores(folders, loaded));
  plan.ngrams.index = open_ngrams(options.ngrams.folders, loaded);
  return plan;
}

void check_retrieval(const RetrievePlan& retrieve, const MemoryPlan& memory) {
  if (retrieve.mix == 1) return;
  const bool joined = memory.rule.any() && !memory.interpolated();
  if (joined || memory.stores.joined())
    fail(Code::usage,
         "--retrieve-mix {}: {} would join the softmax of {} heads; give --combine interpolate{}",
         retrieve.mix, joined ? "--memory " + memory.rule.name() : "the stores", retrieve.mix,
         joined ? ", or --memory none" : "");
  if (memory.gates.any())
    fail(Code::usage, "--retrieve-mix {}: gates ask one model how sure it is, not {}; give shares",
         retrieve.mix, retrieve.mix);
}

MemoryOptions settled(MemoryOptions asked, const MemoryPlan& plan) {
  if (asked.memory.empty()) asked.memory = plan.rule.name();
  asked.joint_temperature = plan.rule.temperature;
  asked.memory_lambda = plan.memory_lambda;
  const GatePlan& gates = plan.gates;
  asked.cache_theta = plan.cache_theta;
  if (!gates.has("cache")) asked.cache_lambda = plan.cache_lambda;
  asked.stores.combine = plan.stores.combine;
  asked.stores.nprobe = plan.stores.nprobe;
  if (!gates.has("datastore")) asked.stores.lambda = plan.stores.lambda;
  asked.stores.temperature = plan.stores.temperature;
  if (asked.ngrams.any() && !gates.has("ngrams")) asked.ngrams.lambda = plan.ngrams.lambda;
  asked.with.models = with_texts(plan.with.shares);
  asked.gate = gates.any() ? to_texts(gates.gate) : std::vector<std::string>{};
  asked.tuned_on = plan.tuned_on;
  return asked;
}

}  // namespace infer
