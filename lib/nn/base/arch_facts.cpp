#include "nn/base/arch_facts.h"

#include <fmt/ranges.h>

#include "core/error.h"

namespace nn {
namespace {

constexpr ArchFacts kFacts[] = {
    // name, reads_source, product_keys, layer_memory
    {"transformer", false, true, false}, {"transformer-xl", false, true, true},
    {"lstm", false, false, false},       {"gla", false, true, false},
    {"mosaic", false, false, false},     {"mosaic2", false, true, false},
    {"srupp", false, false, true},       {"encoder-decoder", true, false, false},
};

}  // namespace

const ArchFacts& arch_facts(const std::string& name) {
  for (const auto& facts : kFacts)
    if (name == facts.name) return facts;
  core::fail(core::Code::bad_config, "arch: takes one of {1}, not '{0}'", name,
             fmt::join(architecture_names(), ", "));
}

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const auto& facts : kFacts) names.emplace_back(facts.name);
  return names;
}

}  // namespace nn
