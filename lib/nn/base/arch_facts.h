#pragma once
// What the programs must know of an architecture before they make one.

#include <string>
#include <vector>

namespace nn {

struct ArchFacts {
  const char* name;   ///< what --arch and config.json call it
  bool reads_source;  ///< forward reads batch.source: trained on pairs, all others on tokens
  bool layer_memory;  ///< its layers keep memories, which they learn to use where State is carried
};

/// One line an architecture; its maker stands in arch/registry.cpp. Throws Error{bad_config} for a
/// name that is none.
const ArchFacts& arch_facts(const std::string& name);
/// Names that --arch takes.
std::vector<std::string> architecture_names();

}  // namespace nn
