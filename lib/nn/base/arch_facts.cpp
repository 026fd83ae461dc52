#include "nn/base/arch_facts.h"

#include <fmt/ranges.h>

#include "core/error.h"

namespace nn {
namespace {

constexpr ArchFacts kFacts[] = {
    // name, reads_source, layer_memory
    {"transformer", false, false}, {"transformer-xl", false, true},  {"lstm", false, false},
    {"gla", false, false},         {"mosaic", false, false},         {"mosaic2", false, false},
    {"srupp", false, true},        {"encoder-decoder", true, false},
};

}  // namespace

const ArchFacts& arch_facts(const std::string& name) {
  for (const auto& facts : kFacts)
    if (name == facts.name) return facts;
  core::fail(core::Code::bad_config, "arch: '{}' is none of {}", name,
             fmt::join(architecture_names(), ", "));
}

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const auto& facts : kFacts) names.emplace_back(facts.name);
  return names;
}

}  // namespace nn
