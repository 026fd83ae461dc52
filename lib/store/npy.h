#pragma once
// Reads arrays in NumPy's .npy format (core/npy_header.h), little-endian and in C order, by
// mapping, and writes them by appending rows.

#include "core/mapped_file.h"
#include "core/npy_header.h"
#include "core/temporary_file.h"

namespace store {

/// Parses the header of an untrusted file. Throws Error{bad_data}, naming `origin`, also for
/// Fortran order, an element type other than <f2, <i4 and <i8, and a shape whose size overflows
/// 2^63 bytes.
core::NpyHeader parse_npy_header(std::span<const std::byte> front, const std::string& origin);
/// Writes a header for one or two dimensions. It always has kNpyHeaderBytes, so that rows can be
/// added in place.
std::string format_npy_header(std::string_view descr, const std::vector<std::uint64_t>& shape);
inline constexpr std::size_t kNpyHeaderBytes = 128;

/// An NpyArray is a mapped array of shape (rows, width), or (rows) for width 1.
class NpyArray {
 public:
  NpyArray() = default;
  /// Maps the first `rows` rows; the file may have more (an unfinished addition). Throws
  /// Error{no_input}, and Error{bad_data} for another type or shape and for a truncated file.
  NpyArray(const std::string& path, std::string_view descr, std::uint64_t rows, std::uint64_t width,
      bool matrix);

  /// Returns all elements in row-major order. The size of T is that of descr.
  template <class T> std::span<const T> values() const {
    return {reinterpret_cast<const T*>(file_.bytes().data() + offset_), elements_};
  }
  const core::MappedFile& file() const { return file_; }
  std::size_t data_offset() const { return offset_; }

 private:
  core::MappedFile file_;
  std::size_t offset_ = 0, elements_ = 0;
};

/// An NpyWriter writes an array row by row, from the start or after existing rows. Rows that were
/// not committed are truncated by the next writer.
class NpyWriter {
 public:
  /// Opens a file and keeps its first `rows` rows; 0 creates a new file. Throws
  /// Error{cannot_create}, and Error{bad_data} if the file has fewer rows.
  NpyWriter(const std::string& path, std::string_view descr, std::uint64_t rows,
      std::uint64_t width, bool matrix);

  /// Writes whole rows. Throws Error{io}.
  void write(std::span<const std::byte> rows);
  template <class T> void write(std::span<const T> rows) { write(std::as_bytes(rows)); }
  /// Syncs the rows to disk, then writes the header that counts them.
  void commit();
  std::uint64_t rows() const { return rows_; }

 private:
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  void write_header();
  void sync();
  std::string name_, descr_;
  std::uint64_t rows_, width_, row_bytes_;
  bool matrix_;
  core::Descriptor fd_;
};

}  // namespace store
