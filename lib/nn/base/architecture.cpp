#include "nn/base/architecture.h"

#include <sstream>

namespace nn {
namespace {

constexpr ArchFacts kFacts[] = {
    // name, reads_source, product_keys, layer_memory, options
    {"transformer", false, true, false,
        "heads d-ff attention-dropout activation-dropout memory-key positions context norm "
        "final-norm activation bias norm-epsilon"},
    {"transformer-xl", false, true, true,
        "heads d-ff attention-dropout activation-dropout memory-key norm final-norm activation "
        "bias norm-epsilon layer-memory same-length clamp-length shared-biases"},
    {"lstm", false, false, false,
        "d-recurrent state-memory state-every state-segments state-levels"},
    {"gla", false, true, false,
        "heads d-ff activation-dropout memory-key activation bias norm-epsilon gla-update "
        "gla-decay gla-convolution delta-key-heads delta-value-heads delta-d-key delta-d-value "
        "state-memory state-every state-segments state-levels"},
    {"mamba2", false, false, false,
        "heads memory-key norm-epsilon gla-convolution state-size expand"},
    {"rwkv7", false, false, false, "heads d-ff memory-key bias norm-epsilon"},
    {"mamba", false, false, false, "memory-key norm-epsilon gla-convolution expand channel-state"},
    {"kda", false, true, false,
        "heads d-ff activation-dropout memory-key activation bias norm-epsilon "
        "gla-convolution"},
    {"window", false, true, false,
        "heads d-ff activation-dropout memory-key activation bias norm-epsilon mixer-window"},
    {"rwkv4", false, false, false, "d-ff memory-key bias norm-epsilon"},
    {"s4d", false, true, false,
        "d-ff activation-dropout memory-key activation bias norm-epsilon channel-state"},
    {"h3", false, true, false,
        "d-ff activation-dropout memory-key activation bias norm-epsilon gla-convolution "
        "channel-state"},
    {"hyena", false, true, false,
        "d-ff activation-dropout memory-key activation bias norm-epsilon gla-convolution "
        "filter-length"},
    {"hybrid", false, false, false, "mixer"},
    {"mosaic", false, false, false,
        "heads attention-dropout memory-key persistent-slots scale-output"},
    {"mosaic2", false, true, false,
        "heads d-ff attention-dropout activation-dropout memory-key short-term "
        "long-term-delay long-term-delay-most"},
    {"srupp", false, false, true,
        "heads attention-dropout memory-key norm-epsilon layer-memory same-length "
        "d-projection attention-every attention-last forget-bias highway-bias"},
    {"encoder-decoder", true, false, false,
        "heads d-ff attention-dropout activation-dropout memory-key positions context norm "
        "final-norm activation bias norm-epsilon"},
};

// The same of mixers that are no architecture, and those of TransformerOptions::own_fields() that a
// hybrid takes.
constexpr const char* kUsual =
    "heads d-ff activation-dropout memory-key activation bias norm-epsilon "
    "state-memory state-every state-segments state-levels";
constexpr std::pair<const char*, const char*> kMixerOptions[] = {
    {"delta",
        "heads d-ff activation-dropout memory-key activation bias norm-epsilon gla-convolution "
        "delta-key-heads delta-value-heads delta-d-key delta-d-value "
        "state-memory state-every state-segments state-levels"},
    {"hybrid", "norm-kind feed-forward "},
    {"gated-attention",
        "heads d-ff activation-dropout memory-key activation bias norm-epsilon kv-heads d-head "
        "rope-theta rope-partial-factor"},
    {"retnet", kUsual}, {"linear", kUsual}};

std::vector<std::string> words_of(std::string text, char separator = ' ') {
  std::vector<std::string> words;
  std::istringstream in(std::move(text));
  for (std::string word; std::getline(in, word, separator);) words.push_back(word);
  return words;
}

}  // namespace

std::vector<std::string> ModelOptions::layer_mixers() const {
  const auto names = words_of(arch == "hybrid" ? mixers.list : arch, ',');
  return core::generated(names.empty() ? 0 : shape.layers,
      [&](std::int64_t i) { return names[static_cast<std::size_t>(i) % names.size()]; });
}

Hidden Hidden::flatten() const { return {output.flatten(0, 1), key.flatten(0, 1)}; }

Hidden Hidden::slice(std::int64_t begin, std::int64_t end) const {
  return {output.slice(0, begin, end), key.slice(0, begin, end)};
}

Hidden Hidden::select(const torch::Tensor& index) const {
  return {output.index_select(0, index), key.index_select(0, index)};
}

Hidden Hidden::concatenate(const std::vector<Hidden>& pieces) {
  if (pieces.empty()) return {};
  if (pieces.size() == 1) return pieces[0];
  return {torch::cat(core::mapped(pieces, &Hidden::output)),
      torch::cat(core::mapped(pieces, &Hidden::key))};
}

void Architecture::set_reach(const LayerReach& reach) {
  if (reach.open()) return;
  core::bad_usage(
      "--layer-memory, --clamp-length, --same-length: this architecture has no memory of "
      "layers; leave them out");
}

void Architecture::bound_slots(const SlotBound& bound) {
  if (bound.slots == 0) return;
  core::bad_usage("--context-slots: requires arch mosaic");
}

const ArchFacts& arch_facts(const std::string& name) {
  if (const auto* facts = core::find_by(kFacts, name, &ArchFacts::name)) return *facts;
  core::bad_config(
      "arch: takes one of {1}, not '{0}'", name, fmt::join(architecture_names(), ", "));
}

std::vector<std::string> architecture_names() {
  return core::mapped<std::string>(kFacts, &ArchFacts::name);
}

std::set<std::string> used_options(const ModelOptions& options) {
  std::map<std::string, std::string> uses(std::begin(kMixerOptions), std::end(kMixerOptions));
  std::set<std::string> used;
  for (const auto& facts : kFacts) uses[facts.name] += facts.options;
  auto parts = options.layer_mixers();
  parts.push_back(options.arch);
  for (const auto& part : parts)
    for (const auto& name : words_of(uses[part])) used.insert(name);
  return used;
}

std::vector<std::string> unused_options(const ModelOptions& options) {
  std::set<std::string> known;
  for (const auto& facts : kFacts)
    for (const auto& name : words_of(facts.options)) known.insert(name);
  const auto used = used_options(options);
  auto names = core::changed(options);
  std::erase_if(
      names, [&](const auto& name) { return !known.contains(name) || used.contains(name); });
  return names;
}

}  // namespace nn
