#pragma once
// Named tensors in a file: the published safetensors format, read and written.
//
//   8 bytes   N, the length of the header, little-endian; at most kHeaderLimit
//   N bytes   JSON: {"__metadata__": {string: string}, NAME: {"dtype": "F32", "shape": [...],
//             "data_offsets": [begin, end]}, ...}; spaces may follow it
//   the rest  the tensors' bytes, little-endian, row-major; offsets count from here, cover every
//             byte once and leave no hole
// Interface of a file with named tensors, in any format.
// Tensors whose numbers stay in their file.

#include "core/hash.h"
#include "core/io.h"
#include "nn/base/torch.h"

namespace model {

/// Text metadata beside the tensors.
using Metadata = std::map<std::string, std::string>;

/// A tensor of a file.
struct TensorEntry {
  torch::Dtype dtype;  ///< type that read() returns
  std::vector<std::int64_t> shape;
  std::uint64_t begin, end;  ///< byte range in the file
  std::int64_t elements() const;
};

/// An open file with a fully checked header. Tensors are read on demand. Thread safe.
class TensorReader {
 public:
  TensorReader() = default;
  TensorReader(TensorReader&&) = delete;
  virtual ~TensorReader() = default;

  virtual const std::string& name() const = 0;
  const std::map<std::string, TensorEntry>& entries() const { return entries_; }
  const Metadata& metadata() const { return metadata_; }
  bool has(const std::string& tensor) const { return entries_.count(tensor) > 0; }
  /// Throws Error{bad_data} that names a missing tensor.
  const TensorEntry& entry(const std::string& tensor) const;
  /// Returns the number of elements of all tensors.
  std::int64_t elements() const;
  /// Returns the tensor's type in the file, such as "BF16" or "Q4_K".
  virtual std::string type_of(const std::string& tensor) const = 0;

  /// Reads a tensor to the CPU. Throws Error{bad_data} if it is missing.
  torch::Tensor read(const std::string& tensor) const;
  /// Reads into `out`, which must be contiguous, on the CPU and of the tensor's dtype and shape:
  /// otherwise throws Error{bug}.
  void read_into(const std::string& tensor, const torch::Tensor& out) const;
  /// Reads rows [first, first + out.size(0)) of a tensor of two or more dimensions into `out`,
  /// which must be as in read_into(), with these rows.
  void read_rows_into(
      const std::string& tensor, std::int64_t first, const torch::Tensor& out) const;
  /// Maps a tensor as map_tensor() does; undefined if the format or the source has no such bytes.
  virtual torch::Tensor map(const std::string& /*tensor*/) const { return {}; }
  /// Throws Error{bad_data} if the tensors do not match the file's digest. Reads all bytes.
  virtual void verify() const = 0;

 protected:
  std::map<std::string, TensorEntry> entries_;
  Metadata metadata_;

 private:
  /// Fills `out` with rows from `first` on, as many as it has; all from row 0 for one dimension.
  virtual void fill(
      const std::string& tensor, std::int64_t first, const torch::Tensor& out) const = 0;
};

/// Maps a tensor of the file `path` into memory: its pages are read when they are first touched,
/// and the system may drop them again. Writing to the tensor changes private copies of the pages,
/// never the file. The file may be replaced meanwhile (by renaming), but not cut. Returns an
/// undefined tensor if the tensor is empty or not aligned in the file; throws Error{no_input} and
/// Error{io}.
torch::Tensor map_tensor(const std::string& path, const TensorEntry& entry);

inline constexpr std::uint64_t kHeaderLimit = 100'000'000;  ///< bytes; the reference reader's limit

/// Tensors in the order of writing.
using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;
using TensorMap = std::map<std::string, torch::Tensor>;

/// Returns what a map by the names of tensors has for one. Throws Error{bad_data} if it has none.
template <class Map>
auto& named_tensor(Map& map, const std::string& name, const std::string& origin) {
  const auto found = map.find(name);
  if (found == map.end()) core::bad_data("{}: has no tensor {}", origin, name);
  return found->second;
}

/// Metadata key for the XXH3-128 of the tensors (tensors_digest), written by write_safetensors.
inline constexpr const char* kDigestKey = "xxh3_128";

/// Returns the format's name of a dtype, such as "BF16"; empty: unsupported.
std::string_view dtype_name(torch::Dtype dtype);

/// Adds one tensor to the hash of tensors_digest.
void hash_tensor(core::Hasher& hasher, const std::string& name, const torch::Tensor& tensor);
/// Does the same a part at a time; calls `after` with each part's rows, which are contiguous, when
/// they have been read. `tensor` is contiguous and on the CPU, and is hashed as float32.
void hash_rows(core::Hasher& hasher, const std::string& name, const torch::Tensor& tensor,
    const std::function<void(const torch::Tensor& rows)>& after);
/// Hashes a float32 tensor's name and shape, which precede its numbers.
void hash_name(core::Hasher& hasher, const std::string& name, torch::IntArrayRef sizes);
/// Hashes a part of a tensor's numbers, contiguous and on the CPU.
void hash_numbers(core::Hasher& hasher, const torch::Tensor& part);
/// Returns the XXH3-128 over each tensor's name, dtype, shape and bytes, in the order of the names.
core::Digest tensors_digest(const NamedTensors& tensors);

/// Writes the tensors (any device, any layout) one at a time and adds "format": "pt" and their
/// digest to `metadata`; returns the digest. Equal tensors give equal bytes. Throws Error{bug} for
/// a duplicate name or an unsupported dtype, Error{io}.
core::Digest write_safetensors(
    core::ByteSink& sink, const NamedTensors& tensors, Metadata metadata = {});

/// A safetensors file opened for reading. metadata() is "__metadata__" of the header.
class SafetensorsReader : public TensorReader {
 public:
  using Entry = TensorEntry;

  /// Opens a file. Throws Error{no_input}, Error{io}, and Error{bad_data} for any violation of the
  /// format: a header that is too long or not JSON, a wrong type, an unknown dtype, a shape that
  /// contradicts the offsets, an overlap, a hole, a truncated file or trailing bytes.
  explicit SafetensorsReader(const std::string& path);
  explicit SafetensorsReader(std::unique_ptr<core::RandomSource> source);

  const std::string& name() const override { return source_->name(); }
  std::string type_of(const std::string& tensor) const override;
  torch::Tensor map(const std::string& tensor) const override;
  void verify() const override;
  /// Reads the numbers from `begin` on, in row-major order, into `out` (n), which must be
  /// contiguous, on the CPU and of the tensor's dtype. Throws Error{bug} if it is not, or if the
  /// tensor has fewer numbers.
  void read_range(const std::string& tensor, std::int64_t begin, const torch::Tensor& out) const;

 private:
  void parse();
  void fill(const std::string& tensor, std::int64_t first, const torch::Tensor& out) const override;
  std::unique_ptr<core::RandomSource> source_;
  std::string path_;  // empty: not a file
};

/// Reads all tensors of a file and verifies its digest, if present. Throws the errors of
/// SafetensorsReader.
TensorMap read_safetensors(const std::string& path);

}  // namespace model
