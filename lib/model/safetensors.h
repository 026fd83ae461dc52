#pragma once
// Named tensors in a file: the published safetensors format, read and written.
//
//   8 bytes   N, the length of the header, little-endian; at most kHeaderLimit
//   N bytes   JSON: {"__metadata__": {string: string}, NAME: {"dtype": "F32", "shape": [...],
//             "data_offsets": [begin, end]}, ...}; spaces may follow it
//   the rest  the tensors' bytes, little-endian, row-major; offsets count from here, cover every
//             byte once and leave no hole

#include "core/hash.h"
#include "core/io.h"
#include "model/tensor_reader.h"

namespace model {

inline constexpr std::uint64_t kHeaderLimit = 100'000'000;  ///< bytes; the reference reader's limit

/// Tensors in the order of writing.
using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;
using TensorMap = std::map<std::string, torch::Tensor>;

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
