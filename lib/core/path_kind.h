#pragma once
// Recognises what a path refers to, for use in messages. It looks at the path's name, the first
// bytes of a file and the names in a folder.

#include "core/base.h"

namespace core {

/// The names that trainers give their checkpoints, the preferred one first.
inline constexpr std::array kCheckpointNames = {
    "ckpt.pt", "checkpoint_best.pt", "checkpoint_last.pt", "model.pt"};

enum class PathKind {
  nothing,      ///< the path does not exist
  hub_id,       ///< does not exist and looks like a model ID of the Hugging Face hub: ORG/NAME
  broken_link,  ///< a symbolic link whose target does not exist
  // Files.
  empty,
  text,
  shard,
  gguf,
  safetensors,
  torch_file,  ///< written by torch.save: a zip archive with data.pkl, or a pickle
  sentencepiece,
  lfs_pointer,  ///< the text file that Git LFS leaves in place of a file
  config,       ///< named config.json
  tokenizer,    ///< named tokenizer.json
  passages,     ///< an index of passages, written by bm25-search
  other_file,
  unreadable,
  // Folders.
  model,             ///< contains config.json
  adapter,           ///< contains adapter_config.json and no weights of a model
  hub_model,         ///< a model in a hub's cache: models--ORG--NAME
  hub_cache,         ///< contains folders of kind hub_model
  datastore,         ///< contains store.json
  ngrams,            ///< contains ngrams.json
  tokenizer_folder,  ///< contains only the files of a tokenizer
  checkpoints,       ///< contains a file named in kCheckpointNames
  empty_folder,
  folder,
};

/// Returns the kind of a path. Never throws; does not open pipes or devices.
PathKind path_kind(const std::string& path);
/// Returns true for every kind of folder.
constexpr bool is_folder(PathKind kind) { return kind >= PathKind::model; }

/// Returns whether the file begins with these bytes. Throws Error{no_input}, Error{io}.
bool begins_with(const std::string& path, std::string_view bytes);

/// Returns what a message says after the path: "does not exist", "is a GGUF file", "is a
/// datastore".
std::string what_path_is(const std::string& path);

/// Throws Error{no_input} for a folder in place of a file; the text says what the folder is.
[[noreturn]] void refuse_folder(const std::string& path);

/// Returns `path` itself unless it is a hub_model. For a hub_model, returns the folder of the
/// snapshot that refs/main names or, without refs/main, of the only snapshot. Throws
/// Error{no_input} if there is none.
std::string followed_snapshot(const std::string& path);

/// Throws Error{no_input} for a model ID, because nothing is downloaded. The text names the model's
/// folder in the hub's cache ($HF_HUB_CACHE, $HF_HOME/hub, ~/.cache/huggingface/hub) if it is
/// there, else the command that downloads it.
[[noreturn]] void refuse_hub_id(const std::string& id);

}  // namespace core
