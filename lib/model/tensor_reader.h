#pragma once
// A file of named tensors, whatever its format is.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "nn/base/torch.h"

namespace model {

/// Texts beside the tensors.
using Metadata = std::map<std::string, std::string>;

/// A tensor of a file.
struct TensorEntry {
  torch::Dtype dtype;  ///< that read() gives
  std::vector<std::int64_t> shape;
  std::uint64_t begin, end;  ///< bytes of the file
  std::int64_t elements() const;
};

/// An open file, its header checked whole. Tensors are read when they are asked for. Thread safe.
class TensorReader {
 public:
  TensorReader() = default;
  TensorReader(const TensorReader&) = delete;
  TensorReader& operator=(const TensorReader&) = delete;
  virtual ~TensorReader() = default;

  virtual const std::string& name() const = 0;
  const std::map<std::string, TensorEntry>& entries() const { return entries_; }
  const Metadata& metadata() const { return metadata_; }
  bool has(const std::string& tensor) const { return entries_.count(tensor) > 0; }
  /// Throws Error{bad_data} naming the tensor if it is not there.
  const TensorEntry& entry(const std::string& tensor) const;
  /// Elements of all tensors together.
  std::int64_t elements() const;
  /// How the file holds the tensor: "BF16", "Q4_K".
  virtual std::string type_of(const std::string& tensor) const = 0;

  /// The tensor on the CPU. Throws Error{bad_data} if it is not there.
  torch::Tensor read(const std::string& tensor) const;
  /// Into `out`, which is contiguous, on the CPU and of the tensor's dtype and shape: else
  /// Error{bug}.
  void read_into(const std::string& tensor, const torch::Tensor& out) const;
  /// Throws Error{bad_data} if the file holds a digest that its tensors do not have. Reads all
  /// bytes.
  virtual void verify() const = 0;

 protected:
  std::map<std::string, TensorEntry> entries_;
  Metadata metadata_;

 private:
  virtual void fill(const std::string& tensor, const torch::Tensor& out) const = 0;
};

}  // namespace model
