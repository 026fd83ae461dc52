#include "model/model_check.h"

#include <memory>
#include <optional>

#include "core/error.h"
#include "core/printable.h"
#include "model/checkpoint.h"
#include "model/folder.h"
#include "model/gguf/gguf_file.h"
#include "model/model_path.h"
#include "model/tensor_files.h"
#include "model/tokenizer_file.h"
#include "model/weights.h"
#include "text/formats/tokenizer_json.h"

namespace model {
namespace {

using core::Code;

// Runs the parts of a check and records the errors that they throw.
class Check {
 public:
  explicit Check(ModelVerdict& verdict) : verdict_(verdict) {}

  template <class Part>
  void part(const Part& part) {
    try {
      part();
    } catch (const core::Error& error) {
      if (error.code() == Code::io) throw;
      found(error.what());
    }
  }
  void found(const std::string& fault) {
    if (!fault.empty()) verdict_.faults.push_back(fault);
  }

 private:
  ModelVerdict& verdict_;
};

void check_own_tokenizer(const std::string& folder, const Config& config) {
  const auto tokenizer = read_own_tokenizer(folder, config.facts);
  if (tokenizer.empty() && !config.facts.tokenizer_fingerprint.empty())
    core::fail(core::Code::bad_data, "{}: has no tokenizer.json, although config.json names it",
               folder);
  if (tokenizer.empty()) return;
  const auto path = tokenizer_path(folder);
  const auto tokens = text::parse_tokenizer(tokenizer, path)->size();
  if (tokens > static_cast<std::size_t>(config.vocabulary))
    core::fail(Code::bad_data, "{}: has {} tokens, but config.json says {}", path, tokens,
               config.vocabulary);
}

void check_weights(const StoredConfig& stored, const TensorFiles& files, Check& check,
                   ModelVerdict& verdict) {
  const StoredWeights weights(stored.config, stored.path, files);
  const auto found = [&](const std::string& fault) { check.found(fault); };
  weights.check(found);
  bool all_fit = true;
  for (std::size_t i = 0; i < weights.size(); ++i) all_fit = all_fit && weights.fits(i);
  if (all_fit) {
    verdict.fingerprint = fingerprint(stored.config, weights, found);
    check.found(other_fingerprint(stored.path, files, verdict.fingerprint));
  } else {
    for (std::size_t i = 0; i < weights.size(); ++i)
      if (weights.fits(i))
        weights.read_into(i, torch::empty(weights.shape(i), torch::kFloat32), found);
  }
  verdict.tensors = files.size();
  verdict.parameters = weights.parameter_count();
}

}  // namespace

core::OrderedJson ModelVerdict::json() const {
  core::OrderedJson json = {{"model", folder}, {"ok", ok()}};
  if (!ok()) {
    json["faults"] = faults;
    return json;
  }
  json["tensors"] = tensors;
  json["parameters"] = parameters;
  json["fingerprint"] = fingerprint.hex();
  return json;
}

std::string ModelVerdict::lines() const {
  if (ok())
    return fmt::format("{}: ok, {} tensors, {} parameters, fingerprint {}\n",
                       core::printable(folder), tensors, parameters, fingerprint.hex());
  std::string lines;
  for (const auto& fault : faults) lines += core::printable(fault) + "\n";
  return lines;
}

ModelVerdict check_model(const std::string& given) {
  const std::string folder = model_folder(given);
  expect_model_folder(folder);
  ModelVerdict verdict;
  verdict.folder = given;
  Check check(verdict);
  std::optional<StoredConfig> stored;
  check.part([&] { stored = read_config(folder); });
  check.part([&] {
    if (stored)
      check_own_tokenizer(folder, stored->config);
    else
      read_tokenizer(folder);
  });
  std::unique_ptr<TensorFiles> files;
  check.part([&] { files = std::make_unique<TensorFiles>(folder); });
  if (files)
    for (const auto& file : files->files()) check.part([&] { file->verify(); });
  if (stored && files) check.part([&] { check_weights(*stored, *files, check, verdict); });
  if (is_gguf(folder)) return verdict;
  for (const auto& checkpoint : checkpoints(folder))
    check.part([&] { load_checkpoint(checkpoint.path); });
  return verdict;
}

std::string check_models(const std::vector<std::string>& folders,
                         const std::function<void(const ModelVerdict&)>& found) {
  std::string first;
  std::size_t count = 0;
  for (const auto& folder : folders) {
    const ModelVerdict verdict = check_model(folder);
    if (!verdict.ok() && count == 0) first = verdict.faults[0];
    count += verdict.faults.size();
    found(verdict);
  }
  return count > 1 ? fmt::format("{} (and {} more)", first, count - 1) : first;
}

}  // namespace model
