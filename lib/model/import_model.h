#pragma once
// Imports checkpoints of other programs as Tessera folders.
// Reads transformers folders with pickled weights: pytorch_model.bin, or the files named in
// pytorch_model.bin.index.json.

#include "model/folder.h"
#include "model/imports/import_map.h"

namespace model {

struct ImportOptions {
  std::string tokenizer;  ///< tokenizer.json or "bytes"; empty: no tokenizer
  void fields(core::FieldList& f);
};

struct ImportReport {
  std::string program;      ///< program that wrote the checkpoint
  std::string arch;         ///< of the model
  std::int64_t parameters;  ///< of the model
  bool was_there = false;   ///< the folder already contained this model: nothing was written
};

/// Reads a checkpoint and checks its weights against its options. Throws the errors of
/// import_model(). Time and memory are bounded by a multiple of the file's size.
ImportedModel read_checkpoint(const TorchFile& file);
/// Creates the model; `origin` names the file.
std::shared_ptr<nn::Model> made_of(const ImportedModel& read, const std::string& origin);

/// Imports `given`: a GGUF file; a file of torch.save; a file of RWKV-LM, also in safetensors; a
/// folder with ckpt.pt, checkpoint_best.pt or checkpoint_last.pt; or a transformers folder with
/// pytorch_model.bin. Writes `folder` as save_once() does. Executes nothing from the file. Throws
/// Error{no_input}; Error{bad_data} for a file that is corrupt, that no map of model/imports
/// accepts, or whose tensors contradict its options; Error{bad_config} for unsupported options;
/// Error{cannot_create} if `folder` contains another model.
ImportReport import_model(
    const std::string& given, const ImportOptions& options, const std::string& folder);

/// Loads the model as load() does; memory contains the model and the folder's tensors as float32.
/// Throws the errors of load(), and Error{bad_data} for a tensor in two files.
Loaded load_pickled(const std::string& folder);

}  // namespace model
