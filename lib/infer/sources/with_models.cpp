#include "infer/sources/with_models.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "infer/sources/memory_options.h"
#include "infer/windows/window_plan.h"
#include "nn/base/arch_facts.h"

namespace infer {
namespace {

using core::Code;
using core::fail;

std::string tokenizer_of(const model::Loaded& loaded) {
  const std::string& written = loaded.facts.tokenizer_fingerprint;
  return written.empty() ? model::tokenizer_fingerprint(loaded.tokenizer) : written;
}

// Models without tokenizers match if their vocabularies have equal sizes.
void expect_same_tokens(const model::Loaded& with, const model::Loaded& loaded) {
  const std::string theirs = tokenizer_of(with), own = tokenizer_of(loaded);
  if (!own.empty() && !theirs.empty() && own != theirs)
    fail(Code::bad_data,
         "--ensemble {}: has tokenizer {}, but {} has {}; give a model with the same tokenizer",
         with.folder, theirs, loaded.folder, own);
  if ((own.empty() || theirs.empty()) && with.model->vocabulary != loaded.model->vocabulary)
    fail(Code::bad_data,
         "--ensemble {}: has a vocabulary of {}, but {} of {}; give a model with the same "
         "vocabulary",
         with.folder, with.model->vocabulary, loaded.folder, loaded.model->vocabulary);
}

// A protocol may leave out other tokens if windows have another length.
void expect_same_layout(const BesideModel& with, const model::Loaded& loaded,
                        const WindowOptions& windows) {
  const auto theirs = plan_windows(with.windows, *with.loaded.model, with.loaded.facts);
  const auto own = plan_windows(windows, *loaded.model, loaded.facts);
  if ((own.layout.whole_only || own.layout.second_half) && theirs.window != own.window)
    fail(Code::usage,
         "--ensemble {}: has windows of {}, but {} of {}, and --protocol {} then scores other "
         "tokens; give --window {}",
         with.loaded.folder, theirs.window, loaded.folder, own.window, own.protocol,
         std::min(theirs.window, own.window));
}

}  // namespace

double WithPlan::sum() const {
  double sum = 0;
  for (const auto& share : shares) sum += share.lambda;
  return sum;
}

std::int64_t WithPlan::gated() const {
  const auto found =
      std::find_if(shares.begin(), shares.end(), [](const auto& share) { return share.gated; });
  return found == shares.end() ? -1 : found - shares.begin();
}

torch::Tensor WithPlan::mix(const torch::Tensor& log_prob) const {
  std::vector<double> weights;
  for (const auto& share : shares) weights.push_back(share.lambda / sum());
  return torch::logsumexp(log_prob + torch::tensor(weights, torch::kFloat64).log().unsqueeze(1), 0);
}

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

std::vector<std::shared_ptr<const BesideModel>> open_beside(
    const MemoryOptions& options, const model::Loaded& loaded, const LayerReachOptions& reach,
    const WindowOptions& windows, torch::Device device, std::optional<torch::Dtype> dtype) {
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
      fail(Code::usage, "--ensemble {}: only one of it and {} reads sentence pairs", share.folder,
           loaded.folder);
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

torch::Tensor with_rows(const torch::Tensor& log_probs, std::int64_t words,
                        const torch::Tensor& like) {
  const torch::Tensor rows = log_probs.slice(1, 0, words).to(like.options());
  const std::int64_t missing = words - rows.size(1);
  return missing > 0 ? torch::constant_pad_nd(rows, {0, missing}, -HUGE_VAL) : rows;
}

}  // namespace infer
