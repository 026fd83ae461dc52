// The checkpoint ckpt.pt of nanoGPT and of nanoMosaics: {"model": weights by name, "model_args":
// options, "iter_num": steps, ...}.

#include "model/imports/import_map.h"

namespace model {
namespace {

constexpr const char* kGpt = "transformer.";
constexpr const char* kMosaic = "mosaic.";
constexpr const char* kHead = "lm_head.weight";
// Both programs multiply a key by at most e^5. For the keys of persistent units nanoMosaics bounds
// the squared scale, and Tessera the scale itself. Numbers per head are stored divided by 10.
constexpr double kMostPersistentScale = 0.25;

bool is_nanogpt(const PickleValue& root) {
  return root.find("model") != nullptr && root.find("model_args") != nullptr;
}

// Reads the options common to both programs.
nn::ModelOptions shape_of(const Settings& args) {
  nn::ModelOptions options;
  options.shape.layers = args.whole("n_layer");
  options.shape.heads = args.whole("n_head");
  options.shape.d_model = args.whole("n_embd");
  options.shape.dropout = options.shape.attention_dropout = args.number("dropout", 0);
  options.shape.init = "gpt2";
  options.vocabulary.scale_embedding = false;
  return options;
}

void take_head(StateDict& weights, const std::string& embedding, ImportedModel& model) {
  model.weights[embedding] = weights.take(embedding);
  auto& tied = model.options.vocabulary.tied;
  tied = !weights.has(kHead) || weights.same(kHead, embedding);
  if (!weights.has(kHead)) return;
  const auto head = weights.take(kHead);
  tied = tied || head.equal(model.weights[embedding]);
  if (!tied) model.weights[kHead] = head;
}

// nn::Transformer's modules have the same names.
void read_gpt(StateDict& weights, const Settings& args, ImportedModel& model) {
  auto& options = model.options;
  options.arch = "transformer";
  options.transformer.context = args.whole("block_size");
  options.transformer.activation = "gelu-exact";
  options.transformer.bias = args.truth("bias", true);
  take_head(weights, "transformer.wte.weight", model);
  weights.ignore({".attn.bias", ".attn.masked_bias"});
  for (const auto& name : weights.left())
    if (name.starts_with(kGpt)) model.weights[name] = weights.take(name);
}

// Returns a number per head, from any shape.
torch::Tensor per_head(StateDict& weights, const std::string& name) {
  return weights.take(name).flatten();
}

void read_unit(
    StateDict& weights, const std::string& theirs, const std::string& ours, ImportedModel& model) {
  auto& out = model.weights;
  out[ours + ".decay"] = per_head(weights, theirs + ".k_featurizer.leaky_avg.leaky_key_beta");
  out[ours + ".key_scale"] = per_head(weights, theirs + ".k_featurizer.key_scale");
  out[ours + ".c_proj.weight"] = weights.take(theirs + ".c_proj.weight");
}

// Returns a unit's pairs. Two leading dimensions of size 1 are for units and rows.
torch::Tensor pairs(StateDict& weights, const std::string& name) {
  const auto tensor = weights.take(name);
  if (tensor.dim() != 5 || tensor.size(0) != 1 || tensor.size(1) != 1)
    core::bad_data("{}: tensor {} is not (1, 1, heads, pairs, width)", weights.origin(), name);
  return tensor[0][0];
}

void read_mosaic(StateDict& weights, const Settings& args, ImportedModel& model) {
  auto& options = model.options;
  options.arch = "mosaic";
  options.mosaic.persistent_slots = args.whole("pmem_size", 2688);
  options.mosaic.scale_output = false;
  if (args.truth("bias", true)) args.unsupported("bias", "True");
  if (const auto count = args.whole("pmem_count", 1); count != 1)
    args.unsupported("pmem_count", std::to_string(count));
  take_head(weights, "mosaic.wte.weight", model);
  auto& out = model.weights;
  out["mosaic.ln_f.weight"] = weights.take("mosaic.ln_f.weight");
  for (std::int64_t i = 0; i < options.shape.layers; ++i) {
    const std::string layer = "mosaic.h." + std::to_string(i) + ".";
    const std::string attn = layer + "attn", mlp = layer + "mlp";
    const std::string contextual = layer + "contextual", persistent = layer + "persistent";
    for (const char* norm : {"ln_1.weight", "ln_2.weight"})
      out[layer + norm] = weights.take(layer + norm);
    read_unit(weights, attn, contextual, model);
    out[contextual + ".maps.weight"] =
        weights.take_rows({attn + ".k_featurizer.W_k.weight", attn + ".v_featurizer.W_v.weight"});
    out[contextual + ".mix"] = per_head(weights, attn + ".v_featurizer.coef");
    out[contextual + ".value_scale"] = per_head(weights, attn + ".v_featurizer.val_scale");
    read_unit(weights, mlp, persistent, model);
    out[persistent + ".key_scale"].clamp_max_(kMostPersistentScale);
    out[persistent + ".map.weight"] = weights.take(mlp + ".k_featurizer.W_k.weight");
    out[persistent + ".value_scale"] = per_head(weights, mlp + ".out_scale");
    out[persistent + ".memory_keys"] = pairs(weights, mlp + ".P_k");
    out[persistent + ".memory_values"] = pairs(weights, mlp + ".P_v");
  }
  weights.ignore({".leaky_avg.coef", ".attn.bias"});
}

ImportedModel read_nanogpt(const TorchFile& file) {
  const PickleValue& root = file.root();
  StateDict weights(file, *root.find("model"), {"_orig_mod.", "module."});
  const Settings args(file.name(), root.find("model_args"), "model_args");
  const Settings top(file.name(), &root, "checkpoint");
  ImportedModel model;
  model.options = shape_of(args);
  model.vocabulary = args.whole("vocab_size");
  expect_possible(model, file.name());
  const bool mosaic = weights.has_any(kMosaic);
  if (mosaic) read_mosaic(weights, args, model);
  else read_gpt(weights, args, model);
  weights.expect_none_left();
  model.facts = {{"segment", args.whole("block_size")},
      {"imported",
          {{"program", mosaic ? "nanoMosaics" : "nanoGPT"}, {"steps", top.whole("iter_num", 0)}}}};
  return model;
}

}  // namespace

const ImportMap nanogpt_map{"nanoGPT", is_nanogpt, read_nanogpt};

}  // namespace model
