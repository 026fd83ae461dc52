#include "model/model_config.h"

#include "folder_of_test.h"
#include "small_models.h"

namespace {

using core::Code;

core::Json config_of(const nn::ModelOptions& options) {
  return core::parse_json(
      core::dump(model::make_config(options, 64, {{"memory", "local"}, {"note", 1}}, "", 7)), "c");
}

template <class Change>
void refused(const std::string& part, const nn::ModelOptions& options, const Change& change) {
  auto json = config_of(options);
  change(json);
  expect_error(Code::bad_config, part, [&] { model::parse_config(json, "config.json"); });
}

}  // namespace

DOCTEST_TEST_CASE(
    "config.json holds every option, and transformers' keys where the shape is GPT-2's") {
  const auto json = config_of(small_gpt2());
  const auto config = model::parse_config(json, "config.json");
  DOCTEST_CHECK(core::to_json(config.options) == core::to_json(small_gpt2()));
  DOCTEST_CHECK(config.vocabulary == 64);
  DOCTEST_REQUIRE(config.family != nullptr);
  DOCTEST_CHECK(config.family->type == "gpt2");
  DOCTEST_CHECK(config.facts.memory == "local");
  DOCTEST_CHECK(config.facts.all == core::Json({{"memory", "local"}, {"note", 1}}));
  const core::Json expected = {{"model_type", "gpt2"}, {"n_layer", 2}, {"n_embd", 16},
      {"n_head", 2}, {"n_inner", 64}, {"n_positions", 24}, {"vocab_size", 64},
      {"activation_function", "gelu_new"}, {"eos_token_id", 7}, {"tie_word_embeddings", true}};
  for (const auto& [key, value] : expected.items()) DOCTEST_CHECK_MESSAGE(json[key] == value, key);

  for (const auto& other : {small_adaptive()}) {
    const auto own = config_of(other);
    DOCTEST_CHECK(own.size() == 1);
    DOCTEST_CHECK(
        core::to_json(model::parse_config(own, "config.json").options) == core::to_json(other));
  }
}

DOCTEST_TEST_CASE("a wrong config.json is refused by key") {
  const auto own = small_adaptive();
  refused("not a JSON object", own, [](auto& c) { c = core::Json::array(); });
  refused("neither", own, [](auto& c) { c.erase("tessera"); });
  refused("version", own, [](auto& c) { c["tessera"] = 3; });
  refused("model version 2 is not supported; this program reads version 1", own,
      [](auto& c) { c["tessera"]["version"] = 2; });
  refused("no \"model\"", own, [](auto& c) { c["tessera"].erase("model"); });
  refused("no \"arch\"", own, [](auto& c) { c["tessera"]["model"].erase("arch"); });
  refused("no \"heads\"", own, [](auto& c) { c["tessera"]["model"].erase("heads"); });
  refused("unknown key \"colour\"", own, [](auto& c) { c["tessera"]["model"]["colour"] = 1; });
  refused("'perceptron' is not one of", own,
      [](auto& c) { c["tessera"]["model"]["arch"] = "perceptron"; });
  refused("--layers", own, [](auto& c) { c["tessera"]["model"]["layers"] = "many"; });
  refused("--layers: takes 1 to 10K, not -1", own,
      [](auto& c) { c["tessera"]["model"]["layers"] = -1; });
  refused("--d-model: takes 1 to 16M, not 1099511627776", own,
      [](auto& c) { c["tessera"]["model"]["d_model"] = std::int64_t{1} << 40; });
  refused("--cutoffs: takes 1 to 4G, not 1099511627776", own,
      [](auto& c) { c["tessera"]["model"]["cutoffs"] = {std::int64_t{1} << 40}; });
  refused("--norm-epsilon: 'nan' is not a number", own,
      [](auto& c) { c["tessera"]["model"]["norm_epsilon"] = "nan"; });
  refused("\"vocabulary_size\" has the wrong type", own,
      [](auto& c) { c["tessera"]["vocabulary_size"] = "64"; });
  refused("vocabulary-size: takes 0 to 4G, not -3", own,
      [](auto& c) { c["tessera"]["vocabulary_size"] = -3; });
  refused("\"memory\"", own, [](auto& c) { c["tessera"]["memory"] = "elephant"; });
  for (const double wrong : {0.0, -1.0, 1e7})
    for (const std::string key : {"memory_temperature", "joint_temperature"})
      refused(key + ": takes 1e-06 to 1M, not", own, [&](auto& c) { c["tessera"][key] = wrong; });
  refused("\"segment\" has the wrong type", own, [](auto& c) { c["tessera"]["segment"] = .5; });
  refused("\"bert\" is not supported; supported: gpt2, llama,", own,
      [](auto& c) { c["model_type"] = "bert"; });
  refused("is gpt2, but in \"tessera\" cutoffs is not empty", own,
      [](auto& c) { c["model_type"] = "gpt2"; });
}

DOCTEST_TEST_CASE("transformers' keys are refused by name, and may not contradict Tessera's") {
  const auto theirs = [](const std::string& part, const auto& change) {
    refused(part, small_gpt2(), [&](auto& c) {
      c.erase("tessera");
      change(c);
    });
  };
  theirs("no \"n_layer\"", [](auto& c) { c.erase("n_layer"); });
  theirs("\"n_head\" has the wrong type", [](auto& c) { c["n_head"] = "2"; });
  theirs("\"mish\" is not supported", [](auto& c) { c["activation_function"] = "mish"; });
  theirs("scale_attn_by_inverse_layer_idx",
      [](auto& c) { c["scale_attn_by_inverse_layer_idx"] = true; });
  theirs("scale_attn_weights", [](auto& c) { c["scale_attn_weights"] = false; });
  refused(
      "\"n_head\" is 4, but \"tessera\" says 2", small_gpt2(), [](auto& c) { c["n_head"] = 4; });
  auto json = config_of(small_gpt2());
  json.erase("tessera");
  json.erase("n_inner");
  const auto config = model::parse_config(json, "config.json");
  DOCTEST_CHECK(
      (model::options_digest(config.options, 64) == model::options_digest(small_gpt2(), 64)));
}
