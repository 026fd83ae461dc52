#pragma once
// Contents of a model folder for other programs, which derived folders keep unchanged.

#include "model/families/family.h"

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

}  // namespace model
