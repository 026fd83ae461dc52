#pragma once
// Maps one part of an index: a text and its sorted suffixes.
// Reads and writes the arrays of an index: one-dimensional .npy files, written through core::Output
// and read by mapping.

#include "core/hash.h"
#include "core/io.h"
#include "core/mapped_file.h"
#include "ngrams/ngrams_manifest.h"

namespace ngrams {

/// A MappedArray is the elements of a file.
class MappedArray {
 public:
  /// Maps a file. Throws Error{no_input}, and Error{bad_data} unless it has exactly `elements`
  /// elements of this type.
  MappedArray(const std::string& path, std::string_view descr, std::uint64_t elements);

  std::span<const std::byte> bytes() const { return file_.bytes().subspan(offset_); }
  /// Returns the elements; the size of T is that of descr.
  template <class T> std::span<const T> values() const {
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
  template <class T> void write(std::span<const T> elements) { write(std::as_bytes(elements)); }
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

/// Ranks is a range [begin, end) of ranks in a part's sorted suffixes: the suffixes with a common
/// prefix.
struct Ranks {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t size() const { return end - begin; }
  bool empty() const { return begin >= end; }
  bool operator==(const Ranks&) const = default;
};

/// A SortedPart is one mapped part. Corrupt bytes can give wrong answers, but never access outside
/// the text. Thread safe.
class SortedPart {
 public:
  /// Maps a part. Throws as MappedArray does, and Error{bad_data} for impossible counts of first
  /// tokens.
  SortedPart(const std::string& folder, std::size_t number, const PartFacts& facts,
      std::uint64_t vocabulary);

  const PartFacts& facts() const { return facts_; }
  std::uint32_t mark() const { return mark_; }
  /// Returns the token at a position of the text; beyond the end it is the mark.
  std::uint32_t token(std::uint64_t place) const {
    if (place >= text_size_) return mark_;
    switch (width_) {
      case 1: return std::to_integer<std::uint32_t>(text_[place]);
      case 2: return load<std::uint16_t>(place);
      default: return load<std::uint32_t>(place);
    }
  }
  std::uint64_t text_size() const { return text_size_; }
  /// Returns the position at which the suffix of this rank begins.
  std::uint64_t place(std::uint64_t rank) const { return suffixes_[rank]; }
  /// Returns the token at offset `depth` of the suffix of this rank.
  std::uint32_t token_of(std::uint64_t rank, std::uint64_t depth) const {
    return token(suffixes_[rank] + depth);
  }

  /// Returns the ranks of all suffixes.
  Ranks all() const { return {0, suffixes_.size()}; }
  /// Returns the ranks of the suffixes that begin with this token.
  Ranks first(std::uint32_t token) const;
  /// Returns the ranks of the suffixes that begin with these tokens.
  Ranks find(std::span<const std::uint32_t> tokens) const;
  /// Returns the subrange of `ranks`, whose suffixes agree in `depth` tokens, in which `token` is
  /// next.
  Ranks extend(Ranks ranks, std::uint64_t depth, std::uint32_t token) const;
  /// Returns the end of the run at ranks.begin: the ranks with equal tokens at offset `depth`.
  std::uint64_t run_end(Ranks ranks, std::uint64_t depth) const;
  /// Returns how many suffixes of `ranks` continue after `depth` tokens within their document.
  std::uint64_t followers(Ranks ranks, std::uint64_t depth) const;
  /// Returns true if the first suffix of `ranks` continues after `depth` tokens within its
  /// document.
  bool goes_on(Ranks ranks, std::uint64_t depth) const {
    return !ranks.empty() && token_of(ranks.begin, depth) != mark_;
  }

  /// Checks every byte against the hashes. Throws Error{bad_data}.
  void verify() const;

 private:
  template <class T> std::uint32_t load(std::uint64_t place) const {
    T value;
    std::memcpy(&value, text_ + place * sizeof(T), sizeof(T));
    return value;
  }
  PartFacts facts_;
  std::uint32_t mark_;
  std::size_t width_;
  MappedArray text_file_, suffixes_file_, firsts_file_;
  const std::byte* text_;
  std::uint64_t text_size_;
  std::span<const std::uint32_t> suffixes_, firsts_;
};

}  // namespace ngrams
