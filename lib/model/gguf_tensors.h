#pragma once
// Tensors of a GGUF file as weights of a transformers family (model/gguf).

#include <map>
#include <string>

#include "model/gguf/gguf_file.h"
#include "model/gguf/gguf_model.h"
#include "model/tensor_reader.h"

namespace model {

/// Reads all tensors as float32, from any supported type, on demand.
class GgufTensors : public TensorReader {
 public:
  /// Opens a file. Throws the errors of GgufFile and gguf_weights().
  explicit GgufTensors(const std::string& path);
  /// Reads from memory; `bytes` must outlive the object.
  GgufTensors(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const override { return file_.name(); }
  const GgufFile& file() const { return file_; }
  std::string type_of(const std::string& tensor) const override;
  /// Does nothing: the format has no digest.
  void verify() const override {}

 private:
  explicit GgufTensors(GgufFile file);
  void fill(const std::string& tensor, std::int64_t first, const torch::Tensor& out) const override;

  GgufFile file_;
  std::map<std::string, GgufWeight> weights_;
};

}  // namespace model
