#pragma once
// Reads and writes the header of a NumPy array file (.npy), versions 1 to 3:
//
//   6 bytes   \x93NUMPY
//   2 bytes   version: major, minor
//   2 or 4    length in bytes of the text that follows (4 from version 2 on)
//   ...       a Python dict: {'descr': '<u2', 'fortran_order': False, 'shape': (N, d), },
//             spaces up to a multiple of 64 bytes, a newline
//   ...       the elements

#include "core/base.h"

namespace core {

struct NpyHeader {
  std::string descr;  ///< NumPy's name of the element type: "<u2", "|u1", "<f4", ...
  bool fortran_order = false;
  std::vector<std::uint64_t> shape;  ///< empty: a scalar, which is one element
  std::size_t data_offset = 0;       ///< offset in bytes of the first element

  /// Returns the number of elements. Throws Error{bad_data}, naming `origin`, if they take 2^63
  /// bytes or more.
  std::uint64_t elements(std::size_t element_bytes, const std::string& origin) const;
  bool operator==(const NpyHeader&) const = default;
};

/// The longest header that parse_npy_header() accepts, in bytes.
constexpr std::size_t kMaxNpyHeaderBytes = 12 + (64 << 10);

/// Returns true if the first bytes of a file say that it is an array file.
bool is_npy(std::span<const std::byte> start);
/// Parses a header. `start` is the first kMaxNpyHeaderBytes of the file, or all of a shorter file.
/// Throws Error{bad_data}.
NpyHeader parse_npy_header(std::span<const std::byte> start, const std::string& origin);
/// Writes a header of version 1 in C order. Its length is a multiple of 64 bytes.
std::string format_npy_header(std::string_view descr, std::span<const std::uint64_t> shape);

}  // namespace core
