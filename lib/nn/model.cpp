#include "nn/model.h"

#include <cmath>
#include <set>

#include "core/error.h"
#include "nn/adaptive_head.h"
#include "nn/init.h"
#include "nn/layers.h"
#include "nn/plain_head.h"

namespace nn {
namespace {

// More than any machine holds; their products stay within 63 bits.
constexpr std::int64_t kMostLayers = 1 << 16, kMostWidth = 1 << 24;

void check_probability(const char* name, double p) {
  if (!(p >= 0 && p < 1)) core::fail(core::Code::bad_config, "{}: {} is not in [0, 1)", name, p);
}

void check(const ModelOptions& options, std::int64_t vocabulary) {
  const auto& shape = options.shape;
  const auto within = [](const char* name, std::int64_t value, std::int64_t least,
                         std::int64_t most) {
    if (value < least)
      core::fail(core::Code::bad_config, "{}: {} is {}", name, value,
                 least == 0 ? "negative" : "not positive");
    if (value > most)
      core::fail(core::Code::bad_config, "{}: {} is more than {}", name, value, most);
  };
  within("vocabulary", vocabulary, 1, std::int64_t{1} << 32);
  within("layers", shape.layers, 1, kMostLayers);
  within("d-model", shape.d_model, 1, kMostWidth);
  within("d-ff", shape.d_ff, 0, kMostWidth);
  check_probability("dropout", shape.dropout);
  check_probability("attention-dropout", shape.attention_dropout);
  check_probability("activation-dropout", shape.activation_dropout);
  check_probability("head-dropout", shape.head_dropout);
  check_probability("tail-dropout", options.vocabulary.tail_dropout);
  if (shape.memory_key != "last-ffn-input" && shape.memory_key != "output")
    core::fail(core::Code::bad_config, "memory-key: '{}' is none of last-ffn-input, output",
               shape.memory_key);
}

std::shared_ptr<Head> make_head(const ModelOptions& options, std::int64_t vocabulary,
                                const std::shared_ptr<Embedding>& embedding) {
  const auto& words = options.vocabulary;
  const auto tied = words.tied ? embedding : nullptr;
  const auto bands = make_bands(options, vocabulary);
  if (bands.count() > 1)
    return std::make_shared<AdaptiveHead>(bands, tied, words.tied_projections, words.tail_dropout);
  if (tied) return std::make_shared<PlainHead>(tied);
  return std::make_shared<PlainHead>(vocabulary, options.shape.d_model);
}

}  // namespace

Bands make_bands(const ModelOptions& options, std::int64_t vocabulary) {
  const auto& words = options.vocabulary;
  std::int64_t last = 0;
  for (const auto cutoff : words.cutoffs) {
    if (cutoff <= last)
      core::fail(core::Code::bad_config, "cutoffs: {} does not follow {} upwards", cutoff, last);
    last = cutoff;
  }
  if (last >= vocabulary) {
    core::fail(core::Code::bad_config,
               "cutoffs: {} is not below the vocabulary's size, {}; leave it out", last,
               vocabulary);
  }
  if (!(words.factor >= 1))
    core::fail(core::Code::bad_config, "factor: {} is below 1", words.factor);
  if (words.d_embedding < 0 || words.d_embedding > kMostWidth)
    core::fail(core::Code::bad_config, "d-embedding: {} is not a width", words.d_embedding);
  if (words.d_embedding > 0 && words.cutoffs.empty())
    core::fail(core::Code::bad_config, "d-embedding: goes with cutoffs");
  return {vocabulary, options.shape.d_model, words.cutoffs, words.factor, words.d_embedding};
}

std::shared_ptr<Embedding> make_embedding(const ModelOptions& options, std::int64_t vocabulary) {
  const bool scaled = options.vocabulary.scale_embedding;
  return std::make_shared<Embedding>(
      make_bands(options, vocabulary),
      scaled ? std::sqrt(static_cast<double>(options.shape.d_model)) : 1.0);
}

Model::Model(const ModelOptions& chosen, std::int64_t words) : options(chosen), vocabulary(words) {
  check(options, vocabulary);
  architecture = register_module(options.arch, make_architecture(options, vocabulary));
  head = register_module("lm_head", make_head(options, vocabulary, architecture->embedding()));
  initialise(*this, options.shape.init, options.shape.layers);
}

std::vector<std::pair<std::string, torch::Tensor>> Model::named_weights() const {
  std::vector<std::pair<std::string, torch::Tensor>> weights;
  std::set<const torch::TensorImpl*> seen;
  for (const auto& item : named_parameters())
    if (seen.insert(item.value().unsafeGetTensorImpl()).second)
      weights.emplace_back(item.key(), item.value());
  return weights;
}

std::int64_t Model::parameter_count() const {
  std::int64_t count = 0;
  for (const auto& [name, weight] : named_weights()) count += weight.numel();
  return count;
}

std::int64_t parameter_count(const ModelOptions& options, std::int64_t vocabulary) {
  const ShapesOnly shapes;
  return Model(options, vocabulary).parameter_count();
}

}  // namespace nn
