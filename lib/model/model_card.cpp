#include "model/model_card.h"

#include <filesystem>

#include "core/build_info.h"
#include "core/plain_text.h"

namespace model {
namespace {

constexpr const char* kCardHead =
    "---\n# Written by model export. Fill in or delete empty fields.\n";
constexpr std::size_t kMostResultBytes = std::size_t{1} << 20;

std::string block(const core::OrderedJson& json) {
  return "```\n" + core::dump_pretty(json) + "\n```\n";
}

std::string card_text(const std::string& name, const Loaded& loaded, const core::OrderedJson& facts,
    const std::string& results) {
  std::string text = kCardHead;
  text +=
      "license:\nbase_model:\ndatasets:\nlanguage:\nlibrary_name: transformers\n"
      "pipeline_tag: text-generation\n---\n\n";
  text += fmt::format(
      "# {}\n\nA model of the family {} with {} parameters, written by Tessera {} (git {}).\n"
      "Fingerprint of the model that it was written from: {}\n\n",
      core::printable(name), facts["family"].get<std::string>(), loaded.model->parameter_count(),
      core::build::kVersion, core::build::kGit, loaded.fingerprint.hex());
  if (!loaded.adapter.empty()) text += "It contains the terms of a LoRA adapter.\n\n";
  text +=
      "## Data\n\nFingerprints (XXH3-128) of what the training read; add names and licences.\n\n";
  const auto training = facts.find("training");
  for (const auto& [key, what] : {std::pair{"data", "training data"}, {"valid", "validation data"},
           {"tokenizer", "tokenizer"}, {"order", "order of the batches"},
           {"targets", "targets of a teacher"}, {"from", "base model"}})
    if (training != facts.end() && training->is_object() && training->contains(key))
      if (const auto hash = (*training)[key]; hash.is_string() && !hash.get<std::string>().empty())
        text += fmt::format("- {}: {}\n", what, hash.get<std::string>());
  text += "\n## Training\n\n" + block(facts);
  if (!results.empty())
    text += "\n## Results\n\n" +
            block(core::parse_ordered_json(core::read_text(results, kMostResultBytes), results));
  return text;
}

}  // namespace

void write_model_card(const std::string& folder, const Loaded& loaded,
    const core::OrderedJson& facts, const std::string& results) {
  const std::string path = folder + "/README.md";
  // Before the weights, a card of ours is one of an interrupted export.
  if (core::exists(folder + "/model.safetensors")) return;
  if (core::exists(path) && !core::read_text(path).starts_with(kCardHead)) return;
  const auto absolute = std::filesystem::absolute(folder).lexically_normal();
  const auto name = absolute.has_filename() ? absolute : absolute.parent_path();
  core::write_file(path, card_text(name.filename(), loaded, facts, results));
}

}  // namespace model
