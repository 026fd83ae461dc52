#include "nn/arch/model.h"

#include "nn/arch/lstm.h"
#include "nn/arch/mosaic.h"
#include "nn/arch/mosaic2.h"
#include "nn/arch/srupp.h"
#include "nn/arch/transformer.h"
#include "nn/arch/transformer_xl.h"
#include "nn/heads/softmax_heads.h"

namespace nn {
namespace {

void expect_of_transformer(ModelOptions& options) {
  const auto& memory = options.memory_layer;
  check_memory_layers(memory, options.shape);
  if (options.mixers.list != MixerOptions().list && options.arch != "hybrid")
    core::bad_config("mixer: requires arch hybrid, not {}", options.arch);
  if (options.arch == "transformer") return;
  if (memory.any() && !arch_facts(options.arch).product_keys)
    core::bad_config("memory-layer: not with arch {}; its layers have none", options.arch);
  if (memory.kind == "ngram")
    core::bad_config("memory-layer: ngram goes with arch transformer, not {}", options.arch);
  TransformerOptions defaults;
  core::FieldList asked, usual;
  options.transformer.own_fields(asked), defaults.own_fields(usual);
  const auto used = used_options(options);
  for (std::size_t i = 0; i < asked.all().size(); ++i) {
    const auto& field = asked.all()[i];
    if (!used.contains(field.name) && core::to_strings(field) != core::to_strings(usual.all()[i]))
      core::bad_config("{}: requires arch transformer, not {}", field.name, options.arch);
  }
  check_norm(options.transformer);
}

void check(ModelOptions options, std::int64_t vocabulary) {
  core::FieldList fields = core::list_fields(options);
  fields("vocabulary", vocabulary, "").between(1, 4e9);
  core::expect_within_bounds(fields);
  expect_of_transformer(options);
  const auto& shape = options.shape;
  if (shape.memory_key != "last-ffn-input" && shape.memory_key != "output")
    core::bad_config("memory-key: takes last-ffn-input or output, not '{}'", shape.memory_key);
}

std::shared_ptr<Head> make_head(const ModelOptions& options, std::int64_t vocabulary,
    const std::shared_ptr<Embedding>& embedding) {
  const auto& words = options.vocabulary;
  const auto tied = words.tied ? embedding : nullptr;
  const auto bands = make_bands(options, vocabulary);
  if (bands.count() > 1 && words.logit_softcap > 0)
    core::bad_config("logit-softcap: cannot be combined with --cutoffs");
  if (words.head_bias && words.logit_softcap > 0)
    core::bad_config("head-bias: cannot be combined with --logit-softcap");
  if (bands.count() > 1)
    return std::make_shared<AdaptiveHead>(
        bands, tied, words.tied_projections, words.adaptive_softmax_dropout, words.head_bias);
  if (tied) return std::make_shared<PlainHead>(tied, words.head_bias, words.logit_softcap);
  return std::make_shared<PlainHead>(
      vocabulary, options.shape.d_model, words.head_bias, words.logit_softcap);
}

}  // namespace

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
  return core::sum_of(named_weights(), [](const auto& named) { return named.second.numel(); });
}

bool is_hidden_matrix(const std::string& name, const torch::Tensor& weight) {
  if (weight.dim() != 2) return false;
  std::string last;
  for (std::size_t from = 0; from <= name.size(); from += last.size() + 1) {
    last = name.substr(from, std::min(name.find('.', from), name.size()) - from);
    if (last == "wte" || last == "wpe" || last == "lm_head" || last == "experts" ||
        last.find("convolution") != std::string::npos)
      return false;
  }
  return last.starts_with("weight");
}

std::int64_t parameter_count(const ModelOptions& options, std::int64_t vocabulary) {
  const ShapesOnly shapes;
  return Model(options, vocabulary).parameter_count();
}

std::int64_t Model::state_bytes(std::int64_t tokens) const {
  return carried_state(options).bytes(tokens);
}

namespace {

// Makers of all architectures but stacks of mixers. To add one, add its maker here, its facts in
// architecture.cpp and its options in model_options.h.
struct Maker {
  const char* name;
  std::shared_ptr<Architecture> (*make)(const ModelOptions& options, std::int64_t vocabulary);
  CarriedState (*carried_state)(const ModelOptions& options);
};

template <class A> constexpr Maker maker(const char* name) {
  return {name,
      [](const ModelOptions& options, std::int64_t vocabulary) -> std::shared_ptr<Architecture> {
        return std::make_shared<A>(options, vocabulary);
      },
      A::carried_state};
}

constexpr Maker kMakers[] = {maker<Transformer>("transformer"),
    maker<TransformerXl>("transformer-xl"), maker<Lstm>("lstm"), maker<Mosaic>("mosaic"),
    maker<Mosaic2>("mosaic2"), maker<Srupp>("srupp"), maker<EncoderDecoder>("encoder-decoder")};
constexpr Maker kStackMaker = maker<MixerStack>("");

const Maker& maker_of(const ModelOptions& options) {
  if (const auto* maker = core::find_by(kMakers, options.arch, &Maker::name)) return *maker;
  arch_facts(options.arch);  // throws if there is none
  return kStackMaker;
}

}  // namespace

std::shared_ptr<Architecture> make_architecture(
    const ModelOptions& options, std::int64_t vocabulary) {
  return maker_of(options).make(options, vocabulary);
}

CarriedState carried_state(const ModelOptions& options) {
  return maker_of(options).carried_state(options);
}

}  // namespace nn
