#pragma once
// The model/ folder, as man/model.5 describes it: written by train, read by everything that needs a
// model.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/hash.h"
#include "core/json.h"
#include "model/carried.h"
#include "model/model_config.h"
#include "model/tensor_files.h"
#include "model/weights.h"
#include "nn/arch/model.h"
#include "nn/base/torch.h"
#include "shard/header.h"

namespace model {

inline constexpr std::size_t kConfigLimit = std::size_t{1} << 24;  ///< bytes of a config.json

/// A folder in memory.
struct Loaded {
  std::string folder;                ///< model_folder() of what was given
  std::string adapter;               ///< folder of the adapter that changed it; empty: none
  std::shared_ptr<nn::Model> model;  ///< in evaluation mode, on the device asked for
  std::string tokenizer;             ///< tokenizer.json in canonical form; empty: none there
  core::Json config;                 ///< config.json, whole
  std::string family;                ///< of transformers' models; empty: none of them
  core::Digest fingerprint;          ///< of weights and architecture; what a store names
  torch::Dtype stored_type = torch::kFloat32;  ///< stored_type() of its files
  TrainingFacts facts;
};

/// "float32", "bfloat16" or "float16", as transformers names a type of weights.
const char* name_of_type(torch::Dtype type);

/// Throws Error{no_input} if it is neither a GGUF file nor a model folder that is complete. (What a
/// path means that a user gives: model_path.h.)
void expect_model_folder(const std::string& folder);

/// config.json of a folder, or what it would be of a GGUF file.
struct StoredConfig {
  std::string path;
  core::Json json;  ///< whole
  Config config;
};

/// Throws Error{no_input} and Error{bad_config} as load().
StoredConfig read_config(const std::string& folder);
/// The same where the weights may be missing, or stand in files that load() does not read.
StoredConfig parse_config_of(const std::string& folder);
/// As read_tokenizer(); throws Error{bad_data} unless it is the one that was written with `facts`.
std::string read_own_tokenizer(const std::string& folder, const TrainingFacts& facts);
/// The fingerprint that stands in the files; empty: none does.
std::string written_fingerprint(const TensorFiles& files);
/// What is wrong where `found` is not the written one; empty: nothing.
std::string other_fingerprint(const std::string& config_path, const TensorFiles& files,
                              const core::Digest& found);

/// Reads the model_folder() of `path`: one of Tessera's or of transformers, of a family that
/// model/families has (names
/// with or without the base's prefix, one file or several, any float dtype; tokenizer.json, else
/// vocab.json and merges.txt, else no tokenizer), or a GGUF file of an architecture that model/gguf
/// has.
/// Weights become `dtype`; without one they are as they stand in the files, bfloat16 or float32.
/// Neither the folder nor torch's generator changes. Throws Error{no_input}
/// if it is no model folder or not complete yet, Error{bad_config} for a key of config.json that is
/// missing, unknown or wrong, Error{bad_data} naming the tensor that is missing, superfluous, of a
/// wrong shape or not finite, or when weights or tokenizer are not those that were written.
/// `adapter` (empty: none): the folder of an adapter (adapter.h) whose terms are added to the
/// weights; throws as Adapter too.
Loaded load(const std::string& path, torch::Device device = torch::kCPU,
            std::optional<torch::Dtype> dtype = torch::kFloat32, const std::string& adapter = {});

/// Gives a model whose folder has no tokenizer the one at `path` (tokenizer.json, or "bytes"); an
/// empty path gives none. Throws Error{bad_data} if it has another, and as text::load_tokenizer()
/// does.
void give_tokenizer(Loaded& loaded, const std::string& path);

/// Writes config.json, tokenizer.json (unless empty), the carried files, then model.safetensors
/// with numbers of the model's types; each whole or not at all, and the folder is complete when the
/// last has its name. `facts` stands in config.json:
/// "memory" (text) and "segment" (number) are known here, anything else is kept as it is. A model
/// that a family has is written so that transformers.AutoModelForCausalLM.from_pretrained reads it;
/// where several do, the fact "family" names the one. Throws
/// Error{cannot_create}, Error{io}.
void save(const std::string& folder, const nn::Model& model, const core::OrderedJson& facts,
          const std::string& tokenizer, const Carried& carried = {});

/// Whether the files that save() writes are there, with the bytes that it writes, and no
/// tokenizer.json or file to carry beside them that it does not write.
bool is_saved(const std::string& folder, const nn::Model& model, const core::OrderedJson& facts,
              const std::string& tokenizer, const Carried& carried = {});

/// config.json, tokenizer.json, model.safetensors, those of carried_names() and an adapter's two:
/// the names that save() and save_adapter() give.
bool is_model_file(std::string_view name);

/// XXH3-128 of a tokenizer's canonical JSON, hex; empty for none.
std::string tokenizer_fingerprint(const std::string& tokenizer);

/// Throws Error{bad_data} naming both fingerprints unless the shard's tokens are the model's. Where
/// the model or the shard has no tokenizer, the sizes of the vocabularies must be equal; where they
/// have the same, the model's may be larger. `name` is the shard's, for messages.
void check_tokenizer(const Loaded& loaded, const shard::Header& header, const std::string& name);

}  // namespace model
