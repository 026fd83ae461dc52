#pragma once
// Tensors of a model: model.safetensors, the files named in model.safetensors.index.json, or a GGUF
// file.
// Tensors of a GGUF file as weights of a transformers family (model/gguf).

#include "model/gguf/gguf_model.h"
#include "model/safetensors.h"

namespace model {

/// Parses an index {"weight_map": {TENSOR: FILE, ...}} and returns the file of each tensor. Throws
/// Error{bad_data} for any other content, and for a name that is no file in the index's folder.
std::map<std::string, std::string> parse_tensor_index(
    const core::Json& index, const std::string& origin);

/// Several tensor files read as one. Thread safe.
class TensorFiles {
 public:
  /// Opens a folder or a GGUF file. Throws Error{no_input} if the folder has neither
  /// model.safetensors nor the index; Error{bad_data} unless each tensor is in exactly the file
  /// named by the index; and the errors of SafetensorsReader and GgufTensors.
  explicit TensorFiles(const std::string& folder);
  explicit TensorFiles(std::unique_ptr<TensorReader> file);

  /// Returns the name of the file or of the index.
  const std::string& name() const { return name_; }
  /// Returns the name of the file that contains the tensor.
  const std::string& file_of(const std::string& tensor) const { return reader(tensor).name(); }
  std::size_t size() const { return where_.size(); }
  const std::vector<std::unique_ptr<TensorReader>>& files() const { return files_; }
  std::vector<std::string> tensors() const;
  bool has(const std::string& tensor) const { return where_.count(tensor) > 0; }
  /// Both functions throw Error{bad_data} that names a missing tensor.
  const TensorEntry& entry(const std::string& tensor) const;
  torch::Tensor read(const std::string& tensor) const { return reader(tensor).read(tensor); }
  void read_into(const std::string& tensor, const torch::Tensor& out) const {
    reader(tensor).read_into(tensor, out);
  }
  void read_rows_into(
      const std::string& tensor, std::int64_t first, const torch::Tensor& out) const {
    reader(tensor).read_rows_into(tensor, first, out);
  }
  torch::Tensor map(const std::string& tensor) const { return reader(tensor).map(tensor); }
  /// Returns the rows of a matrix of a GGUF file; nullopt for any other tensor.
  std::optional<GgufRows> blocks(const std::string& tensor) const;
  /// Returns the metadata of a single file; empty for several files.
  const Metadata& metadata() const;
  std::string type_of(const std::string& tensor) const { return reader(tensor).type_of(tensor); }
  /// Calls TensorReader::verify for all files.
  void verify() const;

 private:
  const TensorReader& reader(const std::string& tensor) const;
  void add(std::unique_ptr<TensorReader> file);

  std::string name_;
  std::vector<std::unique_ptr<TensorReader>> files_;
  std::map<std::string, const TensorReader*> where_;
};

/// Reads all tensors as float32, from any supported type, on demand.
class GgufTensors : public TensorReader {
 public:
  /// Opens a file. Throws the errors of GgufFile and gguf_weights().
  explicit GgufTensors(const std::string& path);
  /// Reads from memory; `bytes` must outlive the object.
  GgufTensors(std::span<const std::byte> bytes, std::string name);

  const std::string& name() const override { return file_->name(); }
  const GgufFile& file() const { return *file_; }
  std::optional<GgufRows> blocks(const std::string& tensor) const;
  std::string type_of(const std::string& tensor) const override;
  /// Does nothing: the format has no digest.
  void verify() const override {}

 private:
  explicit GgufTensors(GgufFile file);
  void fill(const std::string& tensor, std::int64_t first, const torch::Tensor& out) const override;

  std::shared_ptr<const GgufFile> file_;
  std::map<std::string, GgufWeight> weights_;
};

}  // namespace model
