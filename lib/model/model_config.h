#pragma once
// config.json: Tessera's object "tessera", beside the keys of a transformers family that supports
// the model.
// Temperature of the memories at test time.

#include "core/hash.h"
#include "model/families/family.h"

namespace model {

/// Training facts recorded in a model folder (a transformers folder has none).
struct TrainingFacts {
  std::string memory = "none";            ///< accepted by nn::MemoryRule::parse
  double memory_temperature = 1;          ///< divisor of the memory's scores
  std::int64_t segment = 0;               ///< tokens in a segment; 0: unknown
  std::int64_t positions = 0;             ///< maximum tokens in a row by config.json; 0: unknown
  std::string tokenizer_fingerprint;      ///< hex; empty: unknown, or trained on vectors
  core::Json all = core::Json::object();  ///< all facts passed to save()
};

/// A parsed config.json.
struct Config {
  nn::ModelOptions options;
  std::int64_t vocabulary = 0;
  const Family* family = nullptr;       ///< family whose weight layout the files have; null: the
                                        ///< model's own
  std::vector<WeightFactor> factors{};  ///< of weights in the files
  /// Whether the model is one part of a multimodal model (text_config), whose other parts are
  /// ignored.
  bool part = false;
  /// Whether the head, which the files tie to the embedding, is a matrix of its own in the model.
  bool untied = false;
  /// Keys with a value that other classes of transformers compute and this family's ignores.
  std::vector<std::string> ignored{};
  /// What determines the shapes of the weights, for messages.
  const char* read_from = "config.json";
  TrainingFacts facts;
};

/// Returns the text model's config.json from a multimodal one (Gemma 3, Qwen 3.5), with the
/// family's defaults; null if `json` is not multimodal.
core::Json text_config(const core::Json& json);

/// Parses a config.json. Throws Error{bad_config} with origin and key for keys that are missing,
/// unknown, of a wrong type or out of range, and for contradictions between "tessera" and the
/// transformers keys.
Config parse_config(const core::Json& json, const std::string& origin);

/// Returns a model's config.json, in reading order. `facts` become part of "tessera"; the fact
/// "family" selects the family to write, if it supports the model. `end_of_document`: the token's
/// id, or -1.
core::OrderedJson make_config(const nn::ModelOptions& options, std::int64_t vocabulary,
    const core::OrderedJson& facts, const std::string& tokenizer_fingerprint,
    std::int64_t end_of_document);

/// Returns the family that make_config uses; null: none supports the model.
const Family* written_family(const nn::ModelOptions& options, const core::OrderedJson& facts);

/// Returns the XXH3-128 of the vocabulary size and of those options that affect the model's
/// function and differ from their defaults. Dropouts and initialisation do not count. New options
/// therefore do not change the fingerprints of older models.
core::Digest options_digest(const nn::ModelOptions& options, std::int64_t vocabulary);

/// Minimum temperature of a memory: below it, float32 cannot hold the scores.
constexpr double kLeastTemperature = 1e-6;

/// Returns joint_temperature of config.json, the calibrated value; without it, the temperature in
/// training.
double test_temperature(const TrainingFacts& facts);

}  // namespace model
