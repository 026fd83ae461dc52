#pragma once
// Exports a model in the format of a transformers family.
// The README.md of an exported model: a model card with fields to fill in.
// Exports a model as a GGUF file for llama.cpp.

#include "core/temporary_file.h"
#include "model/folder.h"

namespace model {

/// Returns an equivalent model with options that the family supports. Folds unsupported options
/// into weights: a scale of embeddings (a tied softmax then gets its own matrix), and absent biases
/// as zeros. Returns the model itself if nothing changes. Throws Error{bad_config} that names any
/// other unsupported option; `name` is the model's, for messages.
std::shared_ptr<const nn::Model> in_shape_of(
    const Family& family, const std::shared_ptr<const nn::Model>& model, const std::string& name);

/// Rounds the weights to the type `name`: float32, bfloat16, float16; auto: `stored` if it
/// represents the weights exactly, else float32. Throws Error{bad_data} that names a weight which
/// is not finite in the type, and Error{usage} for another name.
void set_type(const nn::Model& model, const std::string& name, torch::Dtype stored);

/// Options that select the family and the number type.
struct ExportOptions {
  std::string family;  ///< empty: the folder's family, else the first one that supports the model
  std::string dtype = "auto";
  std::string form = "transformers";  ///< or gguf, see GgufExport; or rwkv, see rwkv_file.h
  std::string results = {};           ///< file of figures for README.md; empty: none
  void fields(core::FieldList& f);
};

struct ExportReport {
  std::string family;
  bool was_there = false;  ///< the folder already contained this model: nothing was written
};

/// Writes the folder as save_once() does, with the training facts and the carried contents, and a
/// README.md, which replaces none that another program or a person wrote. May round the weights of
/// `loaded`. Throws the errors of save_once(), in_shape_of(), set_type(), and Error{bad_data} if
/// the file of results is not JSON.
ExportReport export_model(
    const Loaded& loaded, const ExportOptions& options, const std::string& folder);

/// Exports a model changed by an adapter: auto rounds the weights to the type of the model's files.
ExportReport merge_model(
    const Loaded& loaded, const ExportOptions& options, const std::string& folder);

/// Calls save() and returns false, or returns true without writing if the folder contains exactly
/// the files that save() would write, so that a command killed after its last step can be rerun.
/// Throws Error{cannot_create} if the folder contains another model, and the errors of save().
bool save_once(const std::string& folder, const nn::Model& model, const core::OrderedJson& facts,
    const std::string& tokenizer, const Carried& carried = {});

/// Creates a folder for a model if needed and locks it for this process. Removes a folder that it
/// created and that is still empty. Throws Error{cannot_create} if it contains a model or tokenizer
/// that no export or import wrote, and if another process writes in it.
class NewModelFolder {
 public:
  explicit NewModelFolder(const std::string& folder);

 private:
  core::FolderLock lock_;
};

struct GgufExport {
  std::string architecture;
  /// Notes for the user, one line each: omitted parts, tensors of another type.
  std::vector<std::string> notes;
};

/// Writes the model to `path` with its tokenizer, chat template and end tokens. `family` as in
/// ExportOptions; `dtype`: auto (the type of the model's files), float32, bfloat16, float16, q8_0,
/// q4_0 or q4_1. Vectors remain float32; with the last three, matrices whose row length is no
/// multiple of 32 become float16. Reading the file gives the identical model and ids; otherwise
/// Error{bad_config} names what the format cannot represent. Throws Error{bad_data} for values
/// outside the type's range.
GgufExport export_gguf(const Loaded& loaded, const std::string& family, const std::string& dtype,
    const std::string& path);

}  // namespace model
