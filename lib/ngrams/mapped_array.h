#pragma once
// Arrays of an index: .npy files of one dimension, written whole or not at all, read by mapping.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/hash.h"
#include "core/io.h"
#include "core/mapped_file.h"

namespace ngrams {

/// Elements of a file.
class MappedArray {
 public:
  /// Throws Error{no_input}, and Error{bad_data} unless it has `elements` of this type and no more.
  MappedArray(const std::string& path, std::string_view descr, std::uint64_t elements);

  std::span<const std::byte> bytes() const { return file_.bytes().subspan(offset_); }
  /// T is of the size of descr.
  template <class T>
  std::span<const T> values() const {
    return {reinterpret_cast<const T*>(bytes().data()), bytes().size() / sizeof(T)};
  }
  const std::string& name() const { return file_.name(); }
  /// Throws Error{bad_data} unless the elements have this XXH3-128 (hex).
  void expect(const std::string& hash) const;

 private:
  core::MappedFile file_;
  std::size_t offset_ = 0;
};

/// Writes one, front to back.
class ArrayWriter {
 public:
  ArrayWriter(const std::string& path, std::string_view descr, std::uint64_t elements);
  void write(std::span<const std::byte> elements);
  template <class T>
  void write(std::span<const T> elements) {
    write(std::as_bytes(elements));
  }
  /// The file has its name from here on. Returns the XXH3-128 of the elements, hex.
  std::string commit();

 private:
  core::Output out_;
  core::Hasher hash_;
};

/// NumPy's name of the narrowest type of [0, types): |u1, <u2 or <u4; and its bytes.
std::string_view descr_of(std::uint64_t types);
std::size_t bytes_of(std::string_view descr);

}  // namespace ngrams
