#pragma once
// What a fuzz target of a format with checksums defines beside its own function, so that mutated
// inputs are not all refused at the door.

#include <cstddef>
#include <vector>

/// Makes the checksums in `bytes` right again, as whoever forges a file would; leaves alone what
/// it cannot find its way in. Throws nothing but core::Error, which leaves the rest as it is.
[[gnu::weak]] void repair(std::vector<std::byte>& bytes);
