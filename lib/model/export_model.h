#pragma once
// A model as one of a family of transformers, for transformers and for what reads its folders.

#include <memory>
#include <string>

#include "core/options.h"
#include "model/families/family.h"
#include "model/folder.h"
#include "nn/arch/model.h"

namespace model {

/// The same function in options that the family has. What it has no option for goes into weights:
/// the scale of embeddings, after which a softmax that shared them has a matrix of its own; biases
/// that are not there are zeros. The model itself where nothing is to be done. Throws
/// Error{bad_config} naming what else the family does not have; `name` is the model's, for messages.
std::shared_ptr<const nn::Model> in_shape_of(const Family& family,
                                             const std::shared_ptr<const nn::Model>& model,
                                             const std::string& name);

/// Which family.
struct ExportOptions {
  std::string family;  ///< empty: the one that the folder is, else the first that has its shape
  void fields(core::FieldList& f);
};

/// Writes the folder as save() does, float32, with the facts of its training; returns the
/// family. Throws Error{cannot_create} where `folder` holds a model, and as in_shape_of().
std::string export_model(const Loaded& loaded, const ExportOptions& options,
                         const std::string& folder);
/// Throws Error{cannot_create} where `folder` holds a model.
void expect_no_model(const std::string& folder);

}  // namespace model
