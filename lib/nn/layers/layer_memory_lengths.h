#pragma once
// Parses the memory length of each layer.

#include <cstdint>
#include <string>
#include <vector>

namespace nn {

/// Parses the memory length of each of `layers` layers, from the lowest to the highest, in tokens.
/// The text is a list with a number per layer, or one number for all ("512", "128,128,2304",
/// "none"), or these settings in any order:
///
///   place=PLACE   which layers are long: all, none, first:N, last:N, middle:N, or interleaved:N,
///                 the last layer of each of N groups (layers (i + 1) L / N - 1, rounded down)
///   long=M        length of long layers [0]; short=M: length of the others [0]
///   offset=K      interleaved: moves the long layers down by K layers [0]
///
/// For example "long=2304 short=128 place=interleaved:4" (Rae & Razavi 2020, section 3, which shows
/// the interleaving in a figure and does not define it). Lengths may end in K or M. Throws
/// Error{bad_config} that names layer-memory and the invalid setting.
std::vector<std::int64_t> parse_layer_memory(const std::string& pattern, std::int64_t layers);

}  // namespace nn
