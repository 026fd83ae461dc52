#pragma once
// Names that other programs (transformers, nanoGPT, fairseq, llama.cpp, ...) have for options of
// these.

#include <string>
#include <vector>

namespace cli {

/// For an option that a program does not have: "; did you mean --lr?" where `flag`, in whatever
/// case and with _ for -, is another program's name for one of `flags`, or one of them itself; that
/// files need no option where it is a name for those and the program `takes_files`; else empty.
std::string hint_for_other_name(const std::string& flag, const std::vector<std::string>& flags,
                                bool takes_files);

}  // namespace cli
