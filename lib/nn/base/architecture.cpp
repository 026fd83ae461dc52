#include "nn/base/architecture.h"

#include <fmt/ranges.h>

namespace nn {
namespace {

constexpr ArchFacts kFacts[] = {
    // name, reads_source, product_keys, layer_memory
    {"transformer", false, true, false},
    {"transformer-xl", false, true, true},
    {"lstm", false, false, false},
    {"gla", false, true, false},
    {"mamba2", false, false, false},
    {"rwkv7", false, false, false},
    {"mamba", false, false, false},
    {"kda", false, true, false},
    {"window", false, true, false},
    {"rwkv4", false, false, false},
    {"s4d", false, true, false},
    {"h3", false, true, false},
    {"hyena", false, true, false},
    {"hybrid", false, false, false},
    {"mosaic", false, false, false},
    {"mosaic2", false, true, false},
    {"srupp", false, false, true},
    {"encoder-decoder", true, false, false},
};

}  // namespace

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
  std::vector<torch::Tensor> output, key;
  for (const auto& piece : pieces) output.push_back(piece.output), key.push_back(piece.key);
  return {torch::cat(output), torch::cat(key)};
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
  for (const auto& facts : kFacts)
    if (name == facts.name) return facts;
  core::bad_config(
      "arch: takes one of {1}, not '{0}'", name, fmt::join(architecture_names(), ", "));
}

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const auto& facts : kFacts) names.emplace_back(facts.name);
  return names;
}

}  // namespace nn
