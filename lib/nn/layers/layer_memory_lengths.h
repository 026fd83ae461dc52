#pragma once
// Parses the memory length of each layer.

#include <cstdint>
#include <string>
#include <vector>

namespace nn {

/// The memory length of each of `layers` layers, from the lowest to the highest, in tokens. Either
/// a list, one number a layer or one for all ("512", "128,128,2304", "none"), or words in any
/// order:
///
///   place=PLACE   which layers are long: all, none, first:N, last:N, middle:N, or interleaved:N,
///                 the last layer of each of N groups (layers (i + 1) L / N - 1, rounded down)
///   long=M        length of those [0]; short=M: of the others [0]
///   offset=K      interleaved: so many layers lower [0]
///
/// as in "long=2304 short=128 place=interleaved:4" (Rae & Razavi 2020, section 3; they draw the
/// interleaving, they do not define it). Lengths may end in K or M. Throws Error{bad_config} that
/// names layer-memory and the word it is about.
std::vector<std::int64_t> parse_layer_memory(const std::string& pattern, std::int64_t layers);

}  // namespace nn
