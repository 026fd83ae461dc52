#include "infer/sources/ensemble_models.h"

#include "infer/sources/source.h"
#include "infer/windows/window_plan.h"

namespace infer {
namespace {

std::string tokenizer_of(const model::Loaded& loaded) {
  const std::string& written = loaded.facts.tokenizer_fingerprint;
  return written.empty() ? model::tokenizer_fingerprint(loaded.tokenizer) : written;
}

// Models without tokenizers match if their vocabularies have equal sizes.
void expect_same_tokens(
    const std::string& kind, const model::Loaded& member, const model::Loaded& loaded) {
  const std::string theirs = tokenizer_of(member), own = tokenizer_of(loaded);
  if (!own.empty() && !theirs.empty() && own != theirs)
    core::bad_data("--{} {}: has tokenizer {}, but {} has {}; give a model with the same tokenizer",
        kind, member.folder, theirs, loaded.folder, own);
  if ((own.empty() || theirs.empty()) && member.model->vocabulary != loaded.model->vocabulary)
    core::bad_data(
        "--{} {}: has a vocabulary of {}, but {} of {}; give a model with the same vocabulary",
        kind, member.folder, member.model->vocabulary, loaded.folder, loaded.model->vocabulary);
}

// A protocol may leave out other tokens if windows have another length.
void expect_same_layout(const std::string& kind, const EnsembleModel& member,
    const model::Loaded& loaded, const WindowOptions& windows) {
  const auto theirs = plan_windows(member.windows, *member.loaded.model, member.loaded.facts);
  const auto own = plan_windows(windows, *loaded.model, loaded.facts);
  if ((own.layout.whole_only || own.layout.second_half) && theirs.window != own.window)
    core::bad_usage(
        "--{} {}: has windows of {}, but {} of {}, and --protocol {} then scores other tokens; "
        "give --window {}",
        kind, member.loaded.folder, theirs.window, loaded.folder, own.window, own.protocol,
        std::min(theirs.window, own.window));
}

// Adapts the options to a model: limits the window to the model's positions, and carries State only
// if the model supports it.
WindowOptions windows_for(const model::Loaded& loaded, WindowOptions options) {
  const auto& architecture = *loaded.model->architecture;
  const auto carry = architecture.carry();
  const auto positions = architecture.context().value_or(loaded.facts.positions);
  if (positions > 0 && options.window > positions && carry != nn::Carry::constant) {
    options.window = positions;
    options.stride = std::min(options.stride, positions);
  }
  if (options.carry == "on" && carry == nn::Carry::reencode) options.carry = "auto";
  return options;
}

}  // namespace

std::map<std::string, EnsembleModels> open_models(const MemoryOptions& options,
    const model::Loaded& loaded, const LayerReachOptions& reach, const WindowOptions& windows,
    torch::Device device, std::optional<torch::Dtype> dtype) {
  const auto reads_source = [](const model::Loaded& of) {
    return nn::arch_facts(of.model->options.arch).reads_source;
  };
  std::vector<std::pair<std::string, std::shared_ptr<EnsembleModel>>> opened;
  std::vector<nn::Model*> models = {loaded.model.get()};
  for (const auto* const kind : source_kinds())
    for (const auto& folder : kind->models(options)) {
      const auto& [name, member] =
          opened.emplace_back(kind->name(), std::make_shared<EnsembleModel>());
      member->loaded = model::load(folder, device, dtype);
      expect_same_tokens(name, member->loaded, loaded);
      if (reads_source(member->loaded) != reads_source(loaded))
        core::bad_usage(
            "--{} {}: only one of it and {} reads sentence pairs", name, folder, loaded.folder);
      member->loaded.model->eval();
      models.push_back(member->loaded.model.get());
    }
  reach.apply(models);
  std::map<std::string, EnsembleModels> by_kind;
  for (const auto& [name, member] : opened) {
    member->windows = windows_for(member->loaded, windows);
    if (!reads_source(loaded)) expect_same_layout(name, *member, loaded, windows);
    by_kind[name].push_back(member);
  }
  return by_kind;
}

}  // namespace infer
