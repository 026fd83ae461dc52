#pragma once
// Reads and writes token files of other programs, front to back: bare numbers without document
// boundaries or checksums.
//
//   llm.c     256 int32: magic, version, number of ids, zeros; then the ids. Magic 20240520,
//             version 1: u16 (GPT-2's); magic 20240801, version 7: u32 (Llama 3's)
//   nanogpt   u16 ids and nothing else
//   npy       NumPy's array file (core/npy_header.h): ids of any integer type, shape (N,) or, with
//             one document per row, (N, length); or vectors, float16 or float32, shape (N, width)

#include "core/options.h"
#include "shard/dataset.h"
#include "shard/reader.h"

namespace shard {

/// ArrayFormat lists the formats; megatron has an index file (megatron_file.h).
enum class ArrayFormat { llmc, nanogpt, npy, megatron };
/// Returns the format's name: "llm.c", "nanogpt", "npy", "megatron".
std::string_view name_of(ArrayFormat format);
/// Returns the format of a name. Throws Error{usage} for an unknown name.
ArrayFormat array_format_of(std::string_view name);

/// ArrayOptions is the flag that selects the output format.
struct ArrayOptions {
  std::string format = "npy";
  void fields(core::FieldList& f);
};

/// An ArrayReader reads one file. Its memory use depends on the data present, not on the sizes that
/// the header declares. Not thread safe.
class ArrayReader {
 public:
  /// Opens a file. Without a `format`, the first bytes determine it; nanogpt has no header and must
  /// be given. The source must outlive the reader. Throws Error{bad_data}.
  ArrayReader(core::ByteSource& source, std::optional<ArrayFormat> format);

  /// A Type is the representation of a number in the file.
  struct Type {
    std::size_t bytes = 2;
    bool is_float = false, is_signed = false;
  };
  /// Reads `numbers` bare numbers of `type`; an index file gives both.
  ArrayReader(core::ByteSource& source, const Type& type, std::uint64_t numbers)
      : in_(source), format_(ArrayFormat::megatron), type_(type), announced_(numbers) {}

  ArrayFormat format() const { return format_; }
  /// Returns true if the numbers are coordinates of vectors, not ids.
  bool is_float() const { return type_.is_float; }
  /// Returns the row length of a two-dimensional array; 0 for one dimension.
  std::uint64_t row() const { return row_; }

  /// Fills `out` from the front and returns the count, which is less than out.size() only at the
  /// end. Throws Error{bad_data} for a negative id, a coordinate that is not finite, a truncated
  /// file, and a file with bytes after its end. Throws Error{bug} for the overload of the other
  /// type: floats for ids, integers for vectors.
  std::size_t read(std::span<std::uint64_t> out);
  std::size_t read(std::span<float> out);

  /// Returns the XXH3-128 of the bytes read so far, which are the whole file once read() has
  /// returned less than out.size().
  core::Digest hash() const { return in_.hash(); }
  const std::string& name() const { return in_.name(); }

 private:
  void start_llmc();
  void start_npy();
  template <class T, class Decode> std::size_t read_as(std::span<T> out, Decode decode);

  Input in_;
  ArrayFormat format_ = ArrayFormat::nanogpt;
  Type type_;
  std::uint64_t row_ = 0, done_ = 0;
  std::optional<std::uint64_t> announced_;  // numbers in the file; unset: up to the end of the file
};

/// Writes the elements of `data` unchanged, little-endian.
void write_elements(
    const Dataset& data, core::ByteSink& out, const std::function<void(std::uint64_t)>& progress);

/// Writes the elements of `data` in `format`, which is not megatron. llm.c and nanogpt write u16
/// for u8 and u16 shards; llm.c writes u32 for u32 shards; npy keeps the shard's type and writes
/// vectors in two dimensions. Document boundaries are lost. `progress` receives the number of
/// elements done so far. Throws Error{usage} for data that the format cannot hold: vectors (llm.c,
/// nanogpt), wider ids, 2^31 or more ids (llm.c).
void write_array(const Dataset& data, ArrayFormat format, core::ByteSink& out,
    const std::function<void(std::uint64_t)>& progress);

}  // namespace shard
