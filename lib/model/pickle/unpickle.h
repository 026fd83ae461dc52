#pragma once
// Reads Python pickles, protocols 2 to 5, as data (pickletools documents the opcodes). Executes
// nothing and supports no class but OrderedDict, which becomes a dict.

#include "core/io.h"
#include "model/pickle/pickle_value.h"

namespace model {

/// Limits on the bytes of a pickle, and on its values, memo and stack entries and dict elements,
/// far above any checkpoint's.
inline constexpr std::uint64_t kMostPickleBytes = std::uint64_t{1} << 26;
inline constexpr std::size_t kMostPickleValues = std::size_t{1} << 20;

/// Reads the pickle that begins at byte `begin` and stops before `end`. Time and memory are bounded
/// by the present bytes. Throws Error{bad_data} that names the byte at which the pickle is
/// truncated, malformed, unsupported or beyond the limits; Error{io}.
Pickle unpickle(const core::RandomSource& source, std::uint64_t begin, std::uint64_t end);

}  // namespace model
