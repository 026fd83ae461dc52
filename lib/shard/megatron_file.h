#pragma once
// Megatron-LM's indexed datasets, version 1: NAME.bin has the ids one after the other and nothing
// else, NAME.idx says where sequences and documents end. Little-endian; offsets in bytes:
//
//    0  "MMIDIDX", 2 zeros
//    9  u64 version, 1
//   17  u8 type of an id: 1 uint8, 2 int8, 3 int16, 4 int32, 5 int64, 8 uint16 (6, 7: floats)
//   18  u64 sequences S
//   26  u64 boundaries D of documents: one more than there are documents
//   34  S int32: ids of each sequence
//       S int64: at which byte of NAME.bin it begins
//       D int64: the first sequence of each document, then S
//
// Source: megatron/core/datasets/indexed_dataset.py of Megatron-LM.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/hash.h"
#include "core/io.h"
#include "shard/array_file.h"
#include "shard/dataset.h"

namespace shard {

/// Paths of the two files.
struct MegatronFiles {
  std::string numbers, index;  ///< NAME.bin, NAME.idx
};
/// Those that a path names: NAME, NAME.bin or NAME.idx.
MegatronFiles megatron_files(const std::string& path);
/// The same for an input whose format was given, or, without one, is said by how a file begins:
/// as an index. None for another format's file. Throws Error{usage} for stdin, Error{bad_data} for
/// an index whose name does not end in .idx.
std::optional<MegatronFiles> megatron_input(const std::string& path,
                                            std::optional<ArrayFormat> format);

/// Reads an index; memory does not depend on its size. Not thread safe.
class MegatronIndex {
 public:
  /// Checks all of it. The source must outlive this. Throws Error{bad_data}: another version,
  /// floats, modes of sequences (multimodal), a size that is not what the header announces,
  /// negative lengths, sequences that do not lie one behind the other, documents that do not
  /// cover them all in order.
  explicit MegatronIndex(const core::RandomSource& bytes);

  const ArrayReader::Type& type() const { return type_; }
  /// Ids of all sequences.
  std::uint64_t elements() const { return elements_; }
  std::uint64_t sequences() const { return sequences_; }
  std::uint64_t documents() const { return boundaries_ - 1; }
  /// XXH3-128 of the file.
  core::Digest hash() const { return hash_; }

  /// The ids of the next document, front to back; none behind the last.
  std::optional<std::uint64_t> next_document();

 private:
  // Numbers of one array, front to back.
  template <class T>
  class Column {
   public:
    Column() = default;
    Column(const core::RandomSource& bytes, std::uint64_t offset, std::uint64_t count)
        : bytes_(&bytes), offset_(offset), left_(count) {}
    T next();

   private:
    const core::RandomSource* bytes_ = nullptr;
    std::uint64_t offset_ = 0, left_ = 0;  // of what is not in piece_
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
  std::uint64_t document_ = 0, sequence_ = 0, byte_ = 0;  // of what comes next
};

/// Ids of a sequence at most: a longer document is several sequences.
constexpr std::uint64_t kMegatronSequence = INT32_MAX;

/// Writes ids as a pair: of type uint8, uint16 or int32, as the shard's; a document is a sequence,
/// one without ids none. `progress` is told the elements done so far. Throws Error{usage} for
/// vectors, orders, and a vocabulary beyond 2^31.
void write_megatron(const Dataset& data, core::ByteSink& numbers, core::ByteSink& index,
                    const std::function<void(std::uint64_t)>& progress,
                    std::uint64_t sequence = kMegatronSequence);

/// The same into files. The index appears last; an older one vanishes first, so that it is never
/// beside other numbers.
void write_megatron(const Dataset& data, const MegatronFiles& files,
                    const std::function<void(std::uint64_t)>& progress);

}  // namespace shard
