#pragma once
// The tensors of a GGUF file as weights of a family of transformers (model/gguf).

#include <map>
#include <string>

#include "model/gguf/gguf_file.h"
#include "model/gguf/gguf_model.h"
#include "model/tensor_reader.h"

namespace model {

/// All are float32, whatever type they have in the file. Its bytes are read when a tensor is.
class GgufTensors : public TensorReader {
 public:
  /// Throws as GgufFile and gguf_weights().
  explicit GgufTensors(const std::string& path);
  /// Bytes in memory, which outlive it.
  GgufTensors(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const override { return file_.name(); }
  const GgufFile& file() const { return file_; }
  std::string type_of(const std::string& tensor) const override;
  /// The format has no digest.
  void verify() const override {}

 private:
  explicit GgufTensors(GgufFile file);
  void fill(const std::string& tensor, const torch::Tensor& out) const override;

  GgufFile file_;
  std::map<std::string, GgufWeight> weights_;
};

}  // namespace model
