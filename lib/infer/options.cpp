#include "infer/options.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/units.h"

namespace infer {
namespace {

using core::Code;
using core::fail;

constexpr std::int64_t kDefaultWindow = 512;
constexpr const char* kDefaultReach = "4seg";

// "12288" tokens, or "4seg", "4segments" of so many tokens.
std::int64_t reach_of(const std::string& text, std::int64_t segment) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::string unit = text.substr(digits);
  try {
    const bool segments = unit == "seg" || unit == "segment" || unit == "segments";
    const std::int64_t n = core::parse_size(segments ? text.substr(0, digits) : text);
    const std::int64_t tokens = segments ? n * segment : n;
    if (tokens > 0 && n < (std::int64_t{1} << 40)) return tokens;
  } catch (const core::Error&) {
  }
  fail(Code::usage, "--long: '{}' is no number of tokens (12288) or segments (4seg)", text);
}

std::string add_name(const std::string& names, const std::string& name) {
  return names == "none" ? name : names + "," + name;
}

void resolve_windows(WindowOptions& windows, const nn::Model& model,
                     const model::TrainingFacts& facts) {
  const auto& architecture = *model.architecture;
  const auto context = architecture.context();
  if (windows.window == 0) {
    windows.window = facts.segment > 0 ? facts.segment : context.value_or(kDefaultWindow);
    if (context) windows.window = std::min(windows.window, *context);
  }
  if (windows.carry == "auto")
    windows.carry = architecture.carry() == nn::Carry::constant ? "on" : "off";
  if (windows.carry == "on" && architecture.carry() == nn::Carry::reencode)
    fail(Code::usage,
         "--carry on: the positions of this model are absolute, so its State cannot go on past a "
         "window; use --carry off with a smaller --stride");
  if (windows.stride == 0) {
    // A State that forgets keeps window - stride tokens: with stride = window it would keep none.
    const bool forgets = windows.carry == "on" && architecture.carry() == nn::Carry::forget;
    windows.stride = forgets ? std::max<std::int64_t>(1, windows.window / 2) : windows.window;
  }
  if (windows.window < 1) fail(Code::usage, "--window: takes a positive number of tokens");
  if (context && windows.window > *context && architecture.carry() != nn::Carry::constant)
    fail(Code::usage, "--window {}: the model has positions for {} tokens", windows.window,
         *context);
  if (windows.stride < 1 || windows.stride > windows.window)
    fail(Code::usage, "--stride {}: takes 1 to the window, {}", windows.stride, windows.window);
  if (windows.restart != "none" && windows.restart != "document")
    fail(Code::usage, "--restart: '{}' is neither none nor document", windows.restart);
  if (windows.batch_tokens < 1) fail(Code::usage, "--batch-tokens: takes a positive number");
}

void check_shares(const MemoryOptions& memory) {
  if (!(memory.joint_temperature > 0) || !std::isfinite(memory.joint_temperature))
    fail(Code::usage, "--joint-temperature: takes a number above 0");
  const double l_m = memory.interpolated() ? memory.memory_lambda : 0;
  const double l_c = memory.cache > 0 ? memory.cache_lambda : 0;
  const double l_s = memory.stores.interpolated() ? memory.stores.lambda : 0;
  if (!(l_m >= 0 && l_c >= 0 && l_s >= 0 && l_m + l_c + l_s < 1))
    fail(Code::usage,
         "--memory-lambda, --cache-lambda, --datastore-lambda: take shares from 0 on, below 1 "
         "together");
  if (!(memory.cache_theta >= 0) || !std::isfinite(memory.cache_theta))
    fail(Code::usage, "--cache-theta: takes a number from 0 on");
  if (memory.cache < 0 || memory.cache > (std::int64_t{1} << 40))
    fail(Code::usage, "--cache: takes a number of positions");
}

}  // namespace

void WindowOptions::fields(core::FieldList& f) {
  f.group("Windows");
  f("window", window, "tokens fed at once; 0: the segment the model was trained with");
  f("stride", stride,
    "tokens by which a window advances; it scores those that are new; 0: the window");
  f("restart", restart, "forget all before each document, or never", {"none", "document"});
  f("carry", carry,
    "carry the State on instead of encoding a window's context again; auto: if it does not grow",
    {"auto", "on", "off"});
  f("batch-tokens", batch_tokens, "tokens that go through the model together");
}

void MemoryOptions::fields(core::FieldList& f) {
  f.group("Memories");
  f("memory", memory,
    "none, or a sum of local and long [local and long as the model was trained with]");
  f("long", long_reach, "how far long reaches back: 12288 (tokens) or 4seg (segments) [4seg]");
  f("combine", combine,
    "memories in the head's softmax, as distributions of their own, or (stores) as both",
    {"joint", "interpolate", "both"});
  f("joint-temperature", joint_temperature,
    "divides the scores of local, long and joined stores; 0: as the model was trained");
  f("memory-lambda", memory_lambda, "share of local and long with --combine interpolate");
  f("cache", cache, "positions of the continuous cache; 0: none");
  f("cache-theta", cache_theta, "its scores are theta f.f; 0: 1/sqrt(width of f)");
  f("cache-lambda", cache_lambda, "its share");
  stores.fields(f);
  f.group("Memories");
  f("tuned-on", tuned_on, "fingerprint of the data these were tuned on, for the signature");
}

nn::MemoryRule MemoryOptions::rule() const {
  nn::MemoryRule rule = nn::MemoryRule::parse(memory.empty() ? "none" : memory);
  if (rule.ext)
    fail(Code::usage, "--memory {}: ext is for training; at test it is a datastore", memory);
  rule.temperature = joint_temperature;
  rule.reach = long_tokens;
  rule.gradient = false;
  return rule;
}

void resolve(WindowOptions& windows, MemoryOptions& memory, const nn::Model& model,
             const model::TrainingFacts& facts) {
  resolve_windows(windows, model, facts);
  if (memory.memory.empty()) {
    nn::MemoryRule trained = nn::MemoryRule::parse(facts.memory);
    trained.ext = false;
    memory.memory = trained.name();
    if (!memory.long_reach.empty() && !trained.far) memory.memory = add_name(memory.memory, "long");
  }
  const nn::MemoryRule rule = memory.rule();
  if (!memory.long_reach.empty() && !rule.far)
    fail(Code::usage, "--long {}: --memory {} has no long", memory.long_reach, memory.memory);
  if (rule.far && memory.long_tokens == 0)
    memory.long_tokens = reach_of(memory.long_reach.empty() ? kDefaultReach : memory.long_reach,
                                  facts.segment > 0 ? facts.segment : windows.window);
  if (memory.combine != "joint" && memory.combine != "interpolate" && memory.combine != "both")
    fail(Code::usage, "--combine: '{}' is not joint, interpolate or both", memory.combine);
  if (memory.combine == "both" && !memory.stores.any())
    fail(Code::usage, "--combine both: it is for stores; add --datastore");
  if (memory.combine == "interpolate" && !rule.any() && !memory.stores.any())
    fail(Code::usage,
         "--combine interpolate: there is nothing to interpolate; add --memory or --datastore");
  resolve(memory.stores, memory.combine, model.architecture->d_key());
  if (memory.joint_temperature == 0) memory.joint_temperature = facts.memory_temperature;
  if (memory.cache_theta == 0)
    memory.cache_theta = 1 / std::sqrt(static_cast<double>(model.architecture->d_model()));
  check_shares(memory);
}

}  // namespace infer
