#pragma once
// A model as one of a family of transformers, for transformers and for what reads its folders.

#include <memory>
#include <string>

#include "core/folder_lock.h"
#include "core/options.h"
#include "model/families/family.h"
#include "model/folder.h"
#include "nn/arch/model.h"

namespace model {

/// The same function in options that the family has. What it has no option for goes into weights:
/// the scale of embeddings, after which a softmax that shared them has a matrix of its own; biases
/// that are not there are zeros. The model itself where nothing is to be done. Throws
/// Error{bad_config} naming what else the family does not have; `name` is the model's, for
/// messages.
std::shared_ptr<const nn::Model> in_shape_of(const Family& family,
                                             const std::shared_ptr<const nn::Model>& model,
                                             const std::string& name);

/// The weights become numbers of the type `name` says: float32, bfloat16, float16; auto: those of
/// `stored`, where they hold the weights exactly, else float32. Throws Error{bad_data} for a weight
/// that is not finite in the type, naming it.
void set_type(const nn::Model& model, const std::string& name, torch::Dtype stored);

/// Which family, and which numbers.
struct ExportOptions {
  std::string family;  ///< empty: the one that the folder is, else the first that has its shape
  std::string dtype = "auto";
  std::string form = "transformers";  ///< or gguf, see export_gguf.h
  void fields(core::FieldList& f);
};

struct ExportReport {
  std::string family;
  bool was_there = false;  ///< the folder held just this model before: nothing was written
};

/// Writes the folder as save_once() does, with the facts of its training and what is carried of it.
/// The weights of `loaded` may get the type too. Throws as save_once(), in_shape_of(), set_type().
ExportReport export_model(const Loaded& loaded, const ExportOptions& options,
                          const std::string& folder);

/// The same of a model that an adapter changed: auto is the type of the model's files, to which the
/// weights are rounded.
ExportReport merge_model(const Loaded& loaded, const ExportOptions& options,
                         const std::string& folder);

/// Throws Error{cannot_create} where `folder` holds a model or tokenizer that no export or import
/// has written. For the start of a command: it reads no weights.
void expect_no_other_model(const std::string& folder);
/// save(), and false. If the folder holds exactly the files that save() writes, nothing is written:
/// true. So a command that was killed after its last step can be run again. Throws
/// Error{cannot_create} where the folder holds another model, and as save().
bool save_once(const std::string& folder, const nn::Model& model, const core::OrderedJson& facts,
               const std::string& tokenizer, const Carried& carried = {});

/// A folder for a model, made if need be and this process's alone until this goes; one that was
/// made and stayed empty goes too. Throws as expect_no_other_model(), also if another process
/// writes in it.
class NewModelFolder {
 public:
  explicit NewModelFolder(const std::string& folder);

 private:
  core::FolderLock lock_;
};

}  // namespace model
