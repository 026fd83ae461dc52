#pragma once
// Which architectures read a source beside their tokens.

#include <string>

namespace nn {

/// Whether forward reads batch.source: such a model is trained on pairs, all others on tokens.
inline bool reads_source(const std::string& arch) { return arch == "encoder-decoder"; }

}  // namespace nn
