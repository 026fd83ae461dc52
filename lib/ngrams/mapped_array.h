#pragma once
// Reads and writes the arrays of an index: one-dimensional .npy files, written through core::Output
// and read by mapping.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/hash.h"
#include "core/io.h"
#include "core/mapped_file.h"

namespace ngrams {

/// A MappedArray is the elements of a file.
class MappedArray {
 public:
  /// Maps a file. Throws Error{no_input}, and Error{bad_data} unless it has exactly `elements`
  /// elements of this type.
  MappedArray(const std::string& path, std::string_view descr, std::uint64_t elements);

  std::span<const std::byte> bytes() const { return file_.bytes().subspan(offset_); }
  /// Returns the elements; the size of T is that of descr.
  template <class T>
  std::span<const T> values() const {
    return {reinterpret_cast<const T*>(bytes().data()), bytes().size() / sizeof(T)};
  }
  const std::string& name() const { return file_.name(); }
  /// Throws Error{bad_data} unless the elements have this XXH3-128 (hexadecimal).
  void expect(const std::string& hash) const;

 private:
  core::MappedFile file_;
  std::size_t offset_ = 0;
};

/// An ArrayWriter writes a file front to back.
class ArrayWriter {
 public:
  ArrayWriter(const std::string& path, std::string_view descr, std::uint64_t elements);
  void write(std::span<const std::byte> elements);
  template <class T>
  void write(std::span<const T> elements) {
    write(std::as_bytes(elements));
  }
  /// Completes the file under its name and returns the XXH3-128 of the elements in hexadecimal.
  std::string commit();

 private:
  core::Output out_;
  core::Hasher hash_;
};

/// Returns NumPy's name of the narrowest type for [0, types): |u1, <u2 or <u4. bytes_of() returns
/// its size.
std::string_view descr_of(std::uint64_t types);
std::size_t bytes_of(std::string_view descr);

}  // namespace ngrams
