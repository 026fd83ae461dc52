#pragma once
// Reads and writes Megatron-LM's indexed datasets, version 1. NAME.bin holds only the ids; NAME.idx
// holds the ends of sequences and documents. Numbers are little-endian; offsets are in bytes:
//
//    0  "MMIDIDX", 2 zeros
//    9  u64 version, 1
//   17  u8 type of an id: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 8 uint16 (6, 7: floats)
//   18  u64 sequences S
//   26  u64 document boundaries D: one more than the number of documents
//   34  S int32: number of ids of each sequence
//       S int64: byte offset of each sequence in NAME.bin
//       D int64: the first sequence of each document, then S
//
// Source: megatron/core/datasets/indexed_dataset.py of Megatron-LM.

#include "shard/array_file.h"

namespace shard {

/// MegatronFiles holds the paths of the two files.
struct MegatronFiles {
  std::string numbers, index;  ///< NAME.bin, NAME.idx
};
/// Returns the paths that NAME, NAME.bin or NAME.idx refers to.
MegatronFiles megatron_files(const std::string& path);
/// Returns the paths for an input of format megatron: either `format` says so or, without a format,
/// the file begins as an index. Returns nothing for another format. Throws Error{usage} for stdin,
/// and Error{bad_data} for an index whose name does not end in .idx.
std::optional<MegatronFiles> megatron_input(
    const std::string& path, std::optional<ArrayFormat> format);

/// A MegatronIndex reads an index; its memory use does not depend on the index's size. Not thread
/// safe.
class MegatronIndex {
 public:
  /// Checks the whole index. The source must outlive this object. Throws Error{bad_data} for
  /// another version, floats, sequence modes (multimodal data), a size other than the header
  /// declares, negative lengths, sequences that are not contiguous, and documents that do not cover
  /// all sequences in order.
  explicit MegatronIndex(const core::RandomSource& bytes);

  const ArrayReader::Type& type() const { return type_; }
  /// Returns the number of ids in all sequences.
  std::uint64_t elements() const { return elements_; }
  std::uint64_t sequences() const { return sequences_; }
  std::uint64_t documents() const { return boundaries_ - 1; }
  /// Returns the XXH3-128 of the file.
  core::Digest hash() const { return hash_; }

  /// Returns the number of ids of the next document, front to back; nothing after the last.
  std::optional<std::uint64_t> next_document();

 private:
  // A Column reads the numbers of one array, front to back.
  template <class T> class Column {
   public:
    Column() = default;
    Column(const core::RandomSource& bytes, std::uint64_t offset, std::uint64_t count)
        : bytes_(&bytes), offset_(offset), left_(count) {}
    T next();

   private:
    const core::RandomSource* bytes_ = nullptr;
    std::uint64_t offset_ = 0, left_ = 0;  // position and count of the numbers not yet in piece_
    std::vector<T> piece_;
    std::size_t at_ = 0;
  };

  void read_header();
  void rewind();

  const core::RandomSource& bytes_;
  ArrayReader::Type type_;
  std::uint64_t sequences_ = 0, boundaries_ = 0, elements_ = 0;
  core::Digest hash_;
  Column<std::int32_t> lengths_;
  Column<std::int64_t> begins_, starts_;
  std::uint64_t document_ = 0, sequence_ = 0, byte_ = 0;  // the next document, sequence and byte
};

/// The most ids of a sequence; a longer document becomes several sequences.
constexpr std::uint64_t kMegatronSequence = INT32_MAX;

/// Writes ids as the two files, in type uint8, uint16 or int32 after the shard's type. A document
/// is one sequence; a document without ids has none. `progress` receives the number of elements
/// done so far. Throws Error{usage} for vectors, orders and a vocabulary beyond 2^31.
void write_megatron(const Dataset& data, core::ByteSink& numbers, core::ByteSink& index,
    const std::function<void(std::uint64_t)>& progress, std::uint64_t sequence = kMegatronSequence);

/// Writes the two files by name. The old index is removed first and the new one appears last, so
/// that an index is never beside numbers of another data set.
void write_megatron(const Dataset& data, const MegatronFiles& files,
    const std::function<void(std::uint64_t)>& progress);

}  // namespace shard
