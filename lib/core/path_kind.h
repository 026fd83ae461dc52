#pragma once
// What a path is, for messages that say it: looked at by name, by a file's first bytes and by the
// names in a folder.

#include <array>
#include <string>
#include <string_view>

namespace core {

/// What trainers name their checkpoints, the one to take first.
inline constexpr std::array kCheckpointNames = {"ckpt.pt", "checkpoint_best.pt",
                                                "checkpoint_last.pt", "model.pt"};

enum class PathKind {
  nothing,      ///< nothing is there
  hub_id,       ///< nothing is there, and it looks like a model of the Hugging Face hub: ORG/NAME
  broken_link,  ///< a symbolic link to what is not there
  // Files.
  empty,
  text,
  shard,
  gguf,
  safetensors,
  torch_file,  ///< of torch.save: a zip archive with data.pkl, or a pickle
  sentencepiece,
  lfs_pointer,  ///< the text that Git LFS has in a file's place
  config,       ///< of the name config.json
  tokenizer,    ///< of the name tokenizer.json
  other_file,
  unreadable,
  // Folders.
  model,             ///< has config.json
  adapter,           ///< has adapter_config.json, and no model's weights
  hub_model,         ///< of a hub's cache: models--ORG--NAME
  hub_cache,         ///< folders of that kind are in it
  datastore,         ///< has store.json
  ngrams,            ///< has ngrams.json
  tokenizer_folder,  ///< has a tokenizer's files alone
  checkpoints,       ///< has one of kCheckpointNames
  empty_folder,
  folder,
};

/// Never throws; opens no pipe or device.
PathKind path_kind(const std::string& path);
/// A folder of whatever kind.
constexpr bool is_folder(PathKind kind) { return kind >= PathKind::model; }

/// "is not there", "is a GGUF file", "is a datastore": what a message says after the path.
std::string what_path_is(const std::string& path);

/// `path`, or the folder of the snapshot that refs/main names where it is a hub_model (where
/// nothing does, the only snapshot). Throws Error{no_input} where there is none.
std::string followed_snapshot(const std::string& path);

/// Throws Error{no_input}: nothing is downloaded; names the hub's cache ($HF_HUB_CACHE,
/// $HF_HOME/hub, ~/.cache/huggingface/hub) if the model is there, else the command that fetches it.
[[noreturn]] void refuse_hub_id(const std::string& id);

}  // namespace core
