#pragma once
// The tensors of a model: of its folder model.safetensors, or the files that
// model.safetensors.index.json names; or a GGUF file.

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/json.h"
#include "model/tensor_reader.h"

namespace model {

/// The file of each tensor, as the index says: {"weight_map": {TENSOR: FILE, ...}}. Throws
/// Error{bad_data} for anything else, and for a name that is no file of the index's own folder.
std::map<std::string, std::string> parse_tensor_index(const core::Json& index,
                                                      const std::string& origin);

/// Several files of tensors read as one. Thread safe.
class TensorFiles {
 public:
  /// A folder, or a GGUF file. Throws Error{no_input} where the folder has neither of the two, and
  /// as SafetensorsReader and GgufTensors; Error{bad_data} unless each tensor stands in exactly the
  /// file that the index names.
  explicit TensorFiles(const std::string& folder);
  explicit TensorFiles(std::unique_ptr<TensorReader> file);

  /// Of the file, or of the index.
  const std::string& name() const { return name_; }
  /// Of the file that holds it.
  const std::string& file_of(const std::string& tensor) const { return reader(tensor).name(); }
  std::size_t size() const { return where_.size(); }
  const std::vector<std::unique_ptr<TensorReader>>& files() const { return files_; }
  std::vector<std::string> tensors() const;
  bool has(const std::string& tensor) const { return where_.count(tensor) > 0; }
  /// These two throw Error{bad_data} naming the tensor if it is not there.
  const TensorEntry& entry(const std::string& tensor) const;
  torch::Tensor read(const std::string& tensor) const { return reader(tensor).read(tensor); }
  void read_into(const std::string& tensor, const torch::Tensor& out) const {
    reader(tensor).read_into(tensor, out);
  }
  /// Of the only file; of several: empty.
  const Metadata& metadata() const;
  std::string type_of(const std::string& tensor) const { return reader(tensor).type_of(tensor); }
  /// As TensorReader's, of all files.
  void verify() const;

 private:
  const TensorReader& reader(const std::string& tensor) const;
  void add(std::unique_ptr<TensorReader> file);

  std::string name_;
  std::vector<std::unique_ptr<TensorReader>> files_;
  std::map<std::string, const TensorReader*> where_;
};

}  // namespace model
