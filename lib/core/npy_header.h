#pragma once
// What stands before the elements of a NumPy array file (.npy), versions 1 to 3:
//
//   6 bytes   \x93NUMPY
//   2 bytes   version: major, minor
//   2 or 4    bytes of the text that follows (4 from version 2 on)
//   ...       a Python dict: {'descr': '<u2', 'fortran_order': False, 'shape': (N, d), },
//             spaces up to a multiple of 64 bytes, a newline
//   ...       the elements

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace core {

struct NpyHeader {
  std::string descr;  ///< NumPy's name of the element type: "<u2", "|u1", "<f4", ...
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;  ///< empty: one element
  std::size_t data_offset = 0;       ///< of the first element in the file

  /// Throws Error{bad_data} naming `origin` if the elements take 2^63 bytes or more.
  std::uint64_t elements(std::size_t element_bytes, const std::string& origin) const;
  bool operator==(const NpyHeader&) const = default;
};

/// As many of a file's first bytes always suffice.
constexpr std::size_t kMaxNpyHeaderBytes = 12 + (64 << 10);

/// True if a file that begins so is meant to be an array file.
bool is_npy(std::span<const std::byte> start);
/// `start`: the first kMaxNpyHeaderBytes of a file, or all there are. Throws Error{bad_data}.
NpyHeader parse_npy_header(std::span<const std::byte> start, const std::string& origin);
/// In version 1, C order; a multiple of 64 bytes.
std::string format_npy_header(std::string_view descr, std::span<const std::uint64_t> shape);

}  // namespace core
