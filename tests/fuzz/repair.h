#pragma once
// Declares the function with which a fuzz target repairs checksums, so that mutated inputs are not
// all refused at once.

#include <cstddef>
#include <vector>

/// Repairs the checksums in `bytes`, as a forger would. Leaves alone what it cannot parse. Throws
/// only core::Error, which leaves the rest unchanged.
[[gnu::weak]] void repair(std::vector<std::byte>& bytes);
