#include "infer/sources/ensemble.h"

#include "infer/windows/window_plan.h"

namespace infer {
namespace {

std::string tokenizer_of(const model::Loaded& loaded) {
  const std::string& written = loaded.facts.tokenizer_fingerprint;
  return written.empty() ? model::tokenizer_fingerprint(loaded.tokenizer) : written;
}

// Models without tokenizers match if their vocabularies have equal sizes.
void expect_same_tokens(const model::Loaded& with, const model::Loaded& loaded) {
  const std::string theirs = tokenizer_of(with), own = tokenizer_of(loaded);
  if (!own.empty() && !theirs.empty() && own != theirs)
    core::bad_data(
        "--ensemble {}: has tokenizer {}, but {} has {}; give a model with the same tokenizer",
        with.folder, theirs, loaded.folder, own);
  if ((own.empty() || theirs.empty()) && with.model->vocabulary != loaded.model->vocabulary)
    core::bad_data(
        "--ensemble {}: has a vocabulary of {}, but {} of {}; give a model with the same "
        "vocabulary",
        with.folder, with.model->vocabulary, loaded.folder, loaded.model->vocabulary);
}

// A protocol may leave out other tokens if windows have another length.
void expect_same_layout(
    const BesideModel& with, const model::Loaded& loaded, const WindowOptions& windows) {
  const auto theirs = plan_windows(with.windows, *with.loaded.model, with.loaded.facts);
  const auto own = plan_windows(windows, *loaded.model, loaded.facts);
  if ((own.layout.whole_only || own.layout.second_half) && theirs.window != own.window)
    core::bad_usage(
        "--ensemble {}: has windows of {}, but {} of {}, and --protocol {} then scores other "
        "tokens; give --window {}",
        with.loaded.folder, theirs.window, loaded.folder, own.window, own.protocol,
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

std::vector<double> EnsemblePlan::temperatures() const {
  std::vector<double> all;
  for (const auto& share : shares) all.push_back(share.temperature);
  return std::count(all.begin(), all.end(), 1) == std::ssize(all) ? std::vector<double>{} : all;
}

std::int64_t EnsemblePlan::gated() const {
  const auto found =
      std::find_if(shares.begin(), shares.end(), [](const auto& share) { return share.gated; });
  return found == shares.end() ? -1 : found - shares.begin();
}

std::vector<std::shared_ptr<const BesideModel>> open_beside(const MemoryOptions& options,
    const model::Loaded& loaded, const LayerReachOptions& reach, const WindowOptions& windows,
    torch::Device device, std::optional<torch::Dtype> dtype) {
  const auto reads_source = [](const model::Loaded& of) {
    return nn::arch_facts(of.model->options.arch).reads_source;
  };
  std::vector<std::shared_ptr<BesideModel>> opened;
  std::vector<nn::Model*> models = {loaded.model.get()};
  for (const auto& share : options.with.shares()) {
    auto with = std::make_shared<BesideModel>();
    with->loaded = model::load(share.folder, device, dtype);
    expect_same_tokens(with->loaded, loaded);
    if (reads_source(with->loaded) != reads_source(loaded))
      core::bad_usage(
          "--ensemble {}: only one of it and {} reads sentence pairs", share.folder, loaded.folder);
    with->loaded.model->eval();
    models.push_back(with->loaded.model.get());
    opened.push_back(std::move(with));
  }
  reach.apply(models);
  for (const auto& with : opened) {
    with->windows = windows_for(with->loaded, windows);
    if (!reads_source(loaded)) expect_same_layout(*with, loaded, windows);
  }
  return {opened.begin(), opened.end()};
}

}  // namespace infer
