#pragma once
// What a model's folder holds for other programs: a folder made of it keeps that as it is.

#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "model/families/family.h"

namespace model {

struct Loaded;

/// Files and keys of config.json that Tessera does not need, or that say more than it knows.
struct Carried {
  struct File {
    std::string name, bytes;
  };
  std::vector<File> files;
  std::string family;  ///< of the source: what a key means that is absent; empty: no source
  core::Json ids = core::Json::object();  ///< bos_token_id, eos_token_id, pad_token_id, where given
  std::string type_key;  ///< of the weights' type, "dtype" or "torch_dtype"; empty: there was none

  /// Puts the ids in place of those of family_config(); takes away one that the source leaves to
  /// its family's default.
  void set_ids(core::OrderedJson& config, const Family& written) const;
};

/// What a folder made of `loaded` is to hold. Throws Error{bad_data} for a file of more than 64
/// MiB, Error{no_input}.
Carried carried_of(const Loaded& loaded);

/// Names of the files: tokenizer_config.json, chat_template.jinja, generation_config.json, ...
const std::vector<std::string_view>& carried_names();
bool is_carried(std::string_view name);

}  // namespace model
