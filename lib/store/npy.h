#pragma once
// Arrays in NumPy's .npy format (core/npy_header.h), little-endian, C order: read by mapping,
// written by appending rows.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/mapped_file.h"
#include "core/npy_header.h"

namespace store {

/// Reads what stands at the front of a file; nothing in it is trusted. Throws Error{bad_data}
/// naming `origin`, also for Fortran order, an element type other than <f2, <i4 and <i8, and a
/// shape whose bytes overflow 2^63.
core::NpyHeader parse_npy_header(std::span<const std::byte> front, const std::string& origin);
/// Of one or two dimensions; always kNpyHeaderBytes long, so that rows can be added in place.
std::string format_npy_header(std::string_view descr, const std::vector<std::uint64_t>& shape);
inline constexpr std::size_t kNpyHeaderBytes = 128;

/// (rows, width) elements, or (rows) of width 1, mapped.
class NpyArray {
 public:
  NpyArray() = default;
  /// Believes in `rows` rows; the file may have more (an addition that is not complete). Throws
  /// Error{no_input}, and Error{bad_data} if type or shape are others or the file is cut short.
  NpyArray(const std::string& path, std::string_view descr, std::uint64_t rows, std::uint64_t width,
           bool matrix);

  /// All elements, row after row. T is of the size of descr.
  template <class T>
  std::span<const T> values() const {
    return {reinterpret_cast<const T*>(file_.bytes().data() + offset_), elements_};
  }
  const core::MappedFile& file() const { return file_; }
  std::size_t data_offset() const { return offset_; }

 private:
  core::MappedFile file_;
  std::size_t offset_ = 0, elements_ = 0;
};

/// Writes an array row by row, from the front or behind rows that are there. What commit() has not
/// seen is cut off by the next writer.
class NpyWriter {
 public:
  /// `rows` that the file has and keeps; 0: a new file. Throws Error{cannot_create}, and
  /// Error{bad_data} if the file does not have them.
  NpyWriter(const std::string& path, std::string_view descr, std::uint64_t rows,
            std::uint64_t width, bool matrix);
  ~NpyWriter();
  NpyWriter(const NpyWriter&) = delete;
  NpyWriter& operator=(const NpyWriter&) = delete;

  /// Whole rows. Throws Error{io}.
  void write(std::span<const std::byte> rows);
  template <class T>
  void write(std::span<const T> rows) {
    write(std::as_bytes(rows));
  }
  /// Rows to disk, then the header that counts them.
  void commit();
  std::uint64_t rows() const { return rows_; }

 private:
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  void write_header();
  void sync();
  std::string name_, descr_;
  std::uint64_t rows_, width_, row_bytes_;
  bool matrix_;
  int fd_ = -1;
};

/// Bytes of one element of "<f2", "<i4" or "<i8"; 0 of any other.
std::size_t npy_element_bytes(std::string_view descr);

}  // namespace store
