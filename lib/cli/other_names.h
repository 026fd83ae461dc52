#pragma once
// Maps option names of other programs (transformers, nanoGPT, fairseq, llama.cpp, ...) to ours.

#include <string>
#include <vector>

namespace cli {

/// Returns a hint for an unknown option. If `flag`, in any case and with '_' for '-', is one of
/// `flags` or another program's name for one of them, the hint is "; did you mean --lr?". If it is
/// a name for input files and the program `takes_files`, the hint says that files need no option.
/// Otherwise the result is empty.
std::string hint_for_other_name(const std::string& flag, const std::vector<std::string>& flags,
                                bool takes_files);

}  // namespace cli
