#pragma once
// Interface of a file with named tensors, in any format.
// Tensors whose numbers stay in their file.

#include "core/base.h"
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

}  // namespace model
