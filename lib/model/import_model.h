#pragma once
// Checkpoints of other programs as folders of Tessera's.

#include <cstdint>
#include <string>

#include "core/options.h"

namespace model {

struct ImportOptions {
  std::string tokenizer;  ///< tokenizer.json, or "bytes"; empty: the folder gets none
  void fields(core::FieldList& f);
};

struct ImportReport {
  std::string program;      ///< that wrote the checkpoint
  std::string arch;         ///< of the model
  std::int64_t parameters;  ///< of the model
};

/// Reads `given`, a file of torch.save or a folder with ckpt.pt, checkpoint_best.pt or
/// checkpoint_last.pt, or one of transformers with pytorch_model.bin, and writes `folder` as save() does. Nothing of the file is
/// executed. Throws Error{no_input}; Error{bad_data} for a file that is damaged, that no map of
/// model/imports takes, or whose tensors are not those of its options; Error{bad_config} for
/// options that no model here has; Error{cannot_create} where `folder` holds a model.
ImportReport import_model(const std::string& given, const ImportOptions& options,
                          const std::string& folder);

}  // namespace model
