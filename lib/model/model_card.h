#pragma once
// The README.md of an exported model: a model card with fields to fill in.

#include "model/folder.h"

namespace model {

/// Writes README.md in a folder that has no weights yet, but replaces none that another program or
/// a person wrote. It names the family, the build, hashes of the training's data, its settings
/// (`facts`), and the figures in the file `results`; empty: none. Throws Error{bad_data} if that
/// file is not JSON, and the errors of files.
void write_model_card(const std::string& folder, const Loaded& loaded,
    const core::OrderedJson& facts, const std::string& results);

}  // namespace model
