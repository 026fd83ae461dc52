#pragma once
// Token files of other programs, front to back: bare numbers, no documents, no checksums.
//
//   llm.c     256 int32: magic, version, how many ids, zeros; then the ids. Magic 20240520, version
//             1: u16 (GPT-2's); magic 20240801, version 7: u32 (Llama 3's)
//   nanogpt   u16 ids and nothing else
//   npy       NumPy's array file (core/npy_header.h): ids of any integer type, shape (N,) or, a
//             document a row, (N, length); or vectors, float16 or float32 of shape (N, width)

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/hash.h"
#include "core/io.h"
#include "core/options.h"
#include "shard/dataset.h"
#include "shard/input.h"

namespace shard {

enum class ArrayFormat { llmc, nanogpt, npy, megatron };
/// "llm.c", "nanogpt", "npy", "megatron".
std::string_view name_of(ArrayFormat format);
/// Throws Error{usage}.
ArrayFormat array_format_of(std::string_view name);

/// What to write, as a flag says it.
struct ArrayOptions {
  std::string format = "npy";
  void fields(core::FieldList& f);
};

/// Reads one file. What it announces is believed only as far as it is there. Not thread safe.
class ArrayReader {
 public:
  /// Without a format the file's first bytes say it; nanogpt has none and must be asked for. The
  /// source must outlive the reader. Throws Error{bad_data}.
  ArrayReader(core::ByteSource& source, std::optional<ArrayFormat> format);

  /// How a number lies in the file.
  struct Type {
    std::size_t bytes = 2;
    bool is_float = false, is_signed = false;
  };
  /// The bare numbers of a file that an index describes: so many, of this type.
  ArrayReader(core::ByteSource& source, const Type& type, std::uint64_t numbers)
      : in_(source), format_(ArrayFormat::megatron), type_(type), announced_(numbers) {}

  ArrayFormat format() const { return format_; }
  /// Vectors, not ids.
  bool is_float() const { return type_.is_float; }
  /// Numbers a row of a two-dimensional array; 0 if it has one dimension.
  std::uint64_t row() const { return row_; }

  /// Fills `out` from the front, returns how many; less than out.size() only at the end. Throws
  /// Error{bad_data} for a negative id, a vector's number that is not finite, a file that is cut
  /// short or goes on behind its end; Error{bug} if the numbers are of the other sort.
  std::size_t read(std::span<std::uint64_t> out);
  std::size_t read(std::span<float> out);

  /// XXH3-128 of the bytes read: of the whole file once read() gave less than was asked for.
  core::Digest hash() const { return in_.hash(); }
  const std::string& name() const { return in_.name(); }

 private:
  void start_llmc();
  void start_npy();
  template <class T, class Decode>
  std::size_t read_as(std::span<T> out, Decode decode);

  Input in_;
  ArrayFormat format_ = ArrayFormat::nanogpt;
  Type type_;
  std::uint64_t row_ = 0, done_ = 0;
  std::optional<std::uint64_t> announced_;  // numbers; none: to the end of the file
};

/// Writes the elements of `data` as they are, little-endian.
void write_elements(const Dataset& data, core::ByteSink& out,
                    const std::function<void(std::uint64_t)>& progress);

/// Writes the elements of `data` in `format`, which is not megatron, a type of its own each: llm.c
/// and nanogpt u16 of u8 and u16, llm.c u32 of u32; npy that of the shard, vectors in two
/// dimensions. Where documents end is lost. `progress` is told the elements done so far. Throws
/// Error{usage} for what the format cannot hold: vectors (llm.c, nanogpt), wider ids, 2^31 ids and
/// more (llm.c).
void write_array(const Dataset& data, ArrayFormat format, core::ByteSink& out,
                 const std::function<void(std::uint64_t)>& progress);

}  // namespace shard
