#pragma once
// Python's pickles, protocols 2 to 5, read as data (pickletools has the format, an opcode a
// paragraph). Executes nothing and knows no class but OrderedDict, which becomes a dict.

#include <cstdint>

#include "core/io.h"
#include "model/pickle/pickle_value.h"

namespace model {

/// Bytes of one pickle, its values, entries of its memo and of its stack, looks at elements that it
/// gives to a dict: what no checkpoint comes near to.
inline constexpr std::uint64_t kMostPickleBytes = std::uint64_t{1} << 26;
inline constexpr std::size_t kMostPickleValues = std::size_t{1} << 20;

/// The pickle that begins at byte `begin` and stops before `end`. Time and what is allocated are
/// bounded by the bytes that are there. Throws Error{bad_data} naming the byte where it is cut
/// short, malformed or asks for what the limits or this reader do not have; Error{io}.
Pickle unpickle(const core::RandomSource& source, std::uint64_t begin, std::uint64_t end);

}  // namespace model
