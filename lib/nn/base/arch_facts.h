#pragma once
// Facts about an architecture that the programs need before they construct it.

#include <string>
#include <vector>

namespace nn {

struct ArchFacts {
  const char* name;   ///< name in --arch and in config.json
  bool reads_source;  ///< forward reads batch.source: trains on pairs; all others train on tokens
  bool product_keys;  ///< memories with product keys may replace feed-forward networks
  bool layer_memory;  ///< layers keep memories, which they learn to use if State is carried
};

/// Returns the facts of the architecture `name`. The table has one line for each architecture;
/// arch/registry.cpp holds the constructors. Throws Error{bad_config} for an unknown name.
const ArchFacts& arch_facts(const std::string& name);
/// Returns the names that --arch accepts.
std::vector<std::string> architecture_names();

}  // namespace nn
