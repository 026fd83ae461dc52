#pragma once
// Reads and writes model folders (see man/model.5).
// Contents of a model folder for other programs, which derived folders keep unchanged.

#include <future>

#include "model/weights.h"
#include "shard/header.h"

namespace model {

struct Loaded;

/// Files and keys of config.json that Tessera does not use, or that say more than Tessera
/// represents.
struct Carried {
  struct File {
    std::string name, bytes;
  };
  std::vector<File> files;
  std::string family;  ///< family of the source, which defines defaults of absent keys; empty: no
                       ///< source
  core::Json ids = core::Json::object();  ///< bos_token_id, eos_token_id, pad_token_id, if present
  /// Those that are null in a folder without a tokenizer; the written folder's tokenizer defines
  /// them.
  std::set<std::string> unknown;
  std::string type_key;  ///< key of the weights' type, "dtype" or "torch_dtype"; empty: absent

  /// Replaces the ids of family_config() by these; removes an id that the source leaves to its
  /// family's default.
  void set_ids(core::OrderedJson& config, const Family& written) const;
};

/// Returns the contents to keep from `loaded`. Throws Error{bad_data} for a file larger than 64
/// MiB, Error{no_input}.
Carried carried_of(const Loaded& loaded);

/// Returns the file names: tokenizer_config.json, chat_template.jinja, generation_config.json, ...
const std::vector<std::string_view>& carried_names();
bool is_carried(std::string_view name);

inline constexpr std::size_t kConfigLimit = std::size_t{1} << 24;  ///< maximum bytes of a
                                                                   ///< config.json

/// A digest that is computed when it is first asked for, once for all copies. Thread safe.
class LateDigest {
 public:
  explicit LateDigest(std::function<core::Digest()> compute)
      : digest_(std::async(std::launch::deferred, std::move(compute)).share()) {}
  explicit LateDigest(const core::Digest& known = {}) : LateDigest([known] { return known; }) {}
  operator const core::Digest&() const { return digest_.get(); }
  std::string hex() const { return digest_.get().hex(); }
  bool operator==(const LateDigest& other) const { return digest_.get() == other.digest_.get(); }

 private:
  std::shared_future<core::Digest> digest_;
};

/// A loaded model folder.
struct Loaded {
  std::string folder;                ///< model_folder() of the given path
  std::string adapter;               ///< folder of the applied adapter; empty: none
  std::shared_ptr<nn::Model> model;  ///< in evaluation mode, on the requested device
  std::string tokenizer;             ///< canonical tokenizer.json; empty: none
  core::Json config;                 ///< complete config.json
  std::string family;                ///< transformers family; empty: none
  /// Of weights and architecture; recorded in datastores. If `taker` has blocks of the files, these
  /// are read when it is first asked for.
  LateDigest fingerprint;
  torch::Dtype stored_type = torch::kFloat32;  ///< stored_type() of the files
  TrainingFacts facts;
  std::shared_ptr<WeightTaker> taker;  ///< may have some of the weights' numbers; null: none
};

/// Returns "float32", "bfloat16" or "float16", as transformers names a type of weights.
const char* name_of_type(torch::Dtype type);

/// Throws Error{no_input} unless the path is a GGUF file or a complete model folder. (model_path.h
/// resolves paths that users give.)
void expect_model_folder(const std::string& folder);

/// config.json of a folder, or its equivalent for a GGUF file.
struct StoredConfig {
  std::string path;
  core::Json json;  ///< whole
  Config config;
};

/// Reads the configuration. Throws Error{no_input} and Error{bad_config} as load().
StoredConfig read_config(const std::string& folder);
/// Reads the configuration of a folder whose weights may be absent or in a format that load() does
/// not read.
StoredConfig parse_config_of(const std::string& folder);
/// Reads the tokenizer. Throws Error{bad_data} unless it is the tokenizer recorded in `facts`, and
/// the errors of read_tokenizer().
std::string read_own_tokenizer(const std::string& folder, const TrainingFacts& facts);
/// Returns the fingerprint recorded in the files; empty: none.
std::string written_fingerprint(const TensorFiles& files);
/// Returns an error text if `found` differs from the recorded fingerprint; else empty.
std::string other_fingerprint(
    const std::string& config_path, const TensorFiles& files, const core::Digest& found);

/// Loads the model_folder() of `path`: a Tessera folder, a transformers folder of a family in
/// model/families (names with or without the base's prefix, one file or several, any float dtype;
/// tokenizer.json, else vocab.json and merges.txt, else no tokenizer), or a GGUF file of an
/// architecture in model/gguf. Converts weights to `dtype`; without it, keeps the files' type,
/// bfloat16 or float32. Does not change the folder or torch's generator. `adapter` (empty: none) is
/// a folder (adapter.h) whose terms are added to the weights. `taker` (null: none): see
/// read_model(); a folder whose training has not finished gives it nothing.
///
/// Throws Error{no_input} for a path that is no model folder or is incomplete; Error{bad_config}
/// for a config.json key that is missing, unknown or wrong; Error{bad_data} that names a tensor
/// which is missing, superfluous, of a wrong shape or not finite, and for weights or a tokenizer
/// that differ from the recorded fingerprints; and the errors of Adapter.
Loaded load(const std::string& path, torch::Device device = torch::kCPU,
    std::optional<torch::Dtype> dtype = torch::kFloat32, const std::string& adapter = {},
    std::shared_ptr<WeightTaker> taker = nullptr);

/// Sets the tokenizer of a model without one, from `path` (tokenizer.json or "bytes"); an empty
/// path has no effect. Throws Error{bad_data} if the model has a different tokenizer, and the
/// errors of text::load_tokenizer().
void give_tokenizer(Loaded& loaded, const std::string& path);
/// Lists --tokenizer, the path for give_tokenizer().
void tokenizer_field(core::FieldList& f, std::string& path);

/// Writes config.json, tokenizer.json (unless empty), the carried files, then model.safetensors in
/// the model's types; each file is written atomically, and the folder is complete once the last has
/// its name. config.json contains `facts`: "memory" (text) and "segment" (number) are interpreted
/// here, others are stored unchanged. A model of a supported family is written for
/// transformers.AutoModelForCausalLM.from_pretrained; the fact "family" selects among several.
/// Throws Error{cannot_create}, Error{io}.
void save(const std::string& folder, const nn::Model& model, const core::OrderedJson& facts,
    const std::string& tokenizer, const Carried& carried = {});

/// Returns whether the folder contains exactly the bytes of the files that save() would write, and
/// no other tokenizer.json or carried files.
bool is_saved(const std::string& folder, const nn::Model& model, const core::OrderedJson& facts,
    const std::string& tokenizer, const Carried& carried = {});

/// Returns whether save() or save_adapter() writes files of this name: config.json, tokenizer.json,
/// model.safetensors, carried_names() and an adapter's two.
bool is_model_file(std::string_view name);

/// Returns the XXH3-128 of a tokenizer's canonical JSON, hex; empty for none.
std::string tokenizer_fingerprint(const std::string& tokenizer);

/// Throws Error{bad_data} with both fingerprints unless the shard's tokenizer is the model's. If
/// either has no tokenizer, the vocabulary sizes must be equal; if the tokenizers agree, the
/// model's vocabulary may be larger. `name` is the shard's, for messages.
void check_tokenizer(const Loaded& loaded, const shard::Header& header, const std::string& name);

}  // namespace model
