#pragma once
// config.json: Tessera's object "tessera", and beside it the keys of a family of transformers' that
// has this shape.

#include <cstdint>
#include <string>

#include "core/hash.h"
#include "core/json.h"
#include "model/families/family.h"
#include "nn/base/model_options.h"

namespace model {

/// What a model was trained with, as far as its folder says (a folder of transformers says
/// nothing).
struct TrainingFacts {
  std::string memory = "none";            ///< nn::MemoryRule::parse takes it
  double memory_temperature = 1;          ///< divided the memory's scores
  std::int64_t segment = 0;               ///< tokens a segment; 0: unknown
  std::int64_t positions = 0;             ///< most tokens a row, as config.json says; 0: unknown
  std::string tokenizer_fingerprint;      ///< hex; empty: trained on vectors, or unknown
  core::Json all = core::Json::object();  ///< every fact that save() was given
};

/// A config.json, understood.
struct Config {
  nn::ModelOptions options;
  std::int64_t vocabulary = 0;
  const Family* family = nullptr;       ///< whose layout the weights have; null: their own
  std::vector<WeightFactor> factors{};  ///< of the weights in the files
  /// Whether the model is one part of several in the files (text_config), whose other parts are
  /// left out.
  bool part = false;
  TrainingFacts facts;
};

/// The config.json of the text's part of a model of several (Gemma 3's with images), with the
/// defaults of that family; null: `json` is no such model's.
core::Json text_config(const core::Json& json);

/// Throws Error{bad_config} naming origin and key for whatever is missing, unknown, of a wrong type
/// or out of range, and where "tessera" and the keys of transformers contradict each other.
Config parse_config(const core::Json& json, const std::string& origin);

/// config.json of a model, in the order people read it. `facts` go into "tessera"; of them "family"
/// names the family that it should be written as, if that has its shape. `end_of_document`: the
/// token's id, or -1.
core::OrderedJson make_config(const nn::ModelOptions& options, std::int64_t vocabulary,
                              const core::OrderedJson& facts,
                              const std::string& tokenizer_fingerprint,
                              std::int64_t end_of_document);

/// The family that make_config writes it as; null: none has its shape.
const Family* written_family(const nn::ModelOptions& options, const core::OrderedJson& facts);

/// XXH3-128 of the options that a model's function depends on and that are not the defaults, and of
/// the vocabulary's size. Dropouts and the initialisation do not count, so that a later option
/// leaves older models their fingerprint.
core::Digest options_digest(const nn::ModelOptions& options, std::int64_t vocabulary);

}  // namespace model
