#pragma once
// Named tensors in a file: the published safetensors format, read and written.
//
//   8 bytes   N, the length of the header, little-endian; at most kHeaderLimit
//   N bytes   JSON: {"__metadata__": {string: string}, NAME: {"dtype": "F32", "shape": [...],
//             "data_offsets": [begin, end]}, ...}; spaces may follow it
//   the rest  the tensors' bytes, little-endian, row-major; offsets count from here, cover every
//             byte once and leave no hole

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/hash.h"
#include "core/io.h"
#include "nn/base/torch.h"

namespace model {

inline constexpr std::uint64_t kHeaderLimit = 100'000'000;  ///< bytes, as the reference reader's

/// Tensors in the order to write them.
using NamedTensors = std::vector<std::pair<std::string, torch::Tensor>>;
using TensorMap = std::map<std::string, torch::Tensor>;
/// "__metadata__" of the header.
using Metadata = std::map<std::string, std::string>;

/// The metadata key under which write_safetensors puts the XXH3-128 of the tensors
/// (tensors_digest).
inline constexpr const char* kDigestKey = "xxh3_128";

/// The format's name of a dtype: "BF16"; empty: it has none.
std::string_view dtype_name(torch::Dtype dtype);

/// What tensors_digest hashes of one tensor.
void hash_tensor(core::Hasher& hasher, const std::string& name, const torch::Tensor& tensor);
/// XXH3-128 over each tensor's name, dtype, shape and bytes, in the order of the names.
core::Digest tensors_digest(const NamedTensors& tensors);

/// Writes the tensors (any device, any layout) one at a time, with "format": "pt" and their digest
/// added to `metadata`; returns the digest. Equal tensors give equal bytes. Throws Error{bug} for a
/// name taken twice or a dtype that the format lacks, Error{io}.
core::Digest write_safetensors(core::ByteSink& sink, const NamedTensors& tensors,
                               Metadata metadata = {});

/// A safetensors file opened for reading: its header is checked whole, its tensors are read when
/// asked for. Thread safe.
class SafetensorsReader {
 public:
  struct Entry {
    torch::Dtype dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t begin, end;  ///< bytes of the file
    std::int64_t elements() const;
  };

  /// Throws Error{no_input}, Error{io}, and Error{bad_data} for anything that is not as the format
  /// says: a header too long or no JSON, a wrong type, an unknown dtype, a shape that disagrees
  /// with the offsets, an overlap, a hole, a file cut short or with bytes behind it.
  explicit SafetensorsReader(const std::string& path);
  explicit SafetensorsReader(std::unique_ptr<core::RandomSource> source);

  const std::map<std::string, Entry>& entries() const { return entries_; }
  const Metadata& metadata() const { return metadata_; }
  const std::string& name() const { return source_->name(); }
  bool has(const std::string& tensor) const { return entries_.count(tensor) > 0; }
  /// Throws Error{bad_data} naming the tensor if it is not there.
  const Entry& entry(const std::string& tensor) const;
  /// Elements of all tensors together.
  std::int64_t elements() const;

  /// The tensor as it is stored, on the CPU. Throws Error{bad_data} if it is not there.
  torch::Tensor read(const std::string& tensor) const;
  /// Into `out`, which is contiguous, on the CPU and of the tensor's dtype and shape: else
  /// Error{bug}.
  void read_into(const std::string& tensor, torch::Tensor out) const;
  /// Throws Error{bad_data} if the metadata hold a digest that the tensors do not have. Reads all
  /// bytes.
  void verify() const;

 private:
  void parse();
  std::unique_ptr<core::RandomSource> source_;
  std::map<std::string, Entry> entries_;
  Metadata metadata_;
};

/// All tensors of a file, its digest checked where it has one. Throws as SafetensorsReader.
TensorMap read_safetensors(const std::string& path);

}  // namespace model
