#pragma once
// Checkpoints of other programs as folders of Tessera's.

#include <cstdint>
#include <memory>
#include <string>

#include "core/options.h"
#include "model/imports/import_map.h"
#include "nn/arch/model.h"

namespace model {

struct ImportOptions {
  std::string tokenizer;  ///< tokenizer.json, or "bytes"; empty: the folder gets none
  void fields(core::FieldList& f);
};

struct ImportReport {
  std::string program;      ///< that wrote the checkpoint
  std::string arch;         ///< of the model
  std::int64_t parameters;  ///< of the model
  bool was_there = false;   ///< the folder held just this model before: nothing was written
};

/// A file's checkpoint, whose weights are those that its options make. Throws as import_model().
/// Time and memory are bounded by a multiple of the file's size.
ImportedModel read_checkpoint(const TorchFile& file);
/// The model itself; `origin` names the file.
std::shared_ptr<nn::Model> made_of(const ImportedModel& read, const std::string& origin);

/// Reads `given`, a GGUF file, a file of torch.save or a folder with ckpt.pt, checkpoint_best.pt or
/// checkpoint_last.pt, or one of transformers with pytorch_model.bin, and writes `folder` as
/// save_once() does. Nothing of the file is executed. Throws Error{no_input}; Error{bad_data} for a
/// file that is damaged, that no map of model/imports takes, or whose tensors are not those of its
/// options; Error{bad_config} for options that no model here has; Error{cannot_create} where
/// `folder` holds another model.
ImportReport import_model(const std::string& given, const ImportOptions& options,
                          const std::string& folder);

}  // namespace model
