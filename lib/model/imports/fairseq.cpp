// fairseq's transformer_lm, as kNN-LM and TRIME released it: {"args": Namespace, or "cfg", "model":
// weights by name}. The embedding and the softmax are adaptive (tied or not) or plain. Norms are
// before each sub-layer. Positions begin at 2, after the padding's. Sinusoidal tables become
// learned ones.

#include "model/imports/import_map.h"
#include "nn/layers/positions.h"

namespace model {
namespace {

constexpr std::int64_t kFirstPosition = 2;
constexpr std::int64_t kUsualContext = 1024;
const std::string kTokens = "decoder.embed_tokens.";
const std::string kSoftmax = "decoder.adaptive_softmax.";

// Returns the options of the model: "args", or "model" in "cfg".
const PickleValue* settings_of(const PickleValue& root) {
  if (const auto* const args = root.find("args"); args != nullptr && args->kind != PickleKind::none)
    return args;
  const auto* const cfg = root.find("cfg");
  return cfg == nullptr ? nullptr : cfg->find("model");
}

bool is_fairseq(const PickleValue& root) {
  return root.find("model") != nullptr &&
         (root.find("args") != nullptr || root.find("cfg") != nullptr);
}

std::string activation_of(const Settings& args) {
  const auto name = args.text("activation_fn", "relu");
  if (name == "relu") return "relu";
  if (name == "gelu") return "gelu-exact";
  if (name == "gelu_accurate" || name == "gelu_fast") return "gelu";
  args.unsupported("activation_fn", name);
}

void expect_supported(const Settings& args, std::int64_t width) {
  for (const char* key : {"decoder_input_dim", "decoder_output_dim"})
    if (args.whole(key, width) != width)
      args.unsupported(key, "a value other than decoder_embed_dim");
  for (const char* key : {"character_embeddings", "layernorm_embedding"})
    if (args.truth(key, false)) args.unsupported(key, "True");
  if (!args.truth("decoder_normalize_before", true))
    args.unsupported("decoder_normalize_before", "False");
  const auto key = args.text("knn_keytype", "last_ffn_input");
  if (key != "last_ffn_input" && key != "model_output") args.unsupported("knn_keytype", key);
}

// Returns where fairseq stores a band: its vectors and their projection.
std::string band(std::int64_t i, const char* part) {
  return kTokens + "embeddings." + std::to_string(i) + "." + part + ".weight";
}
std::string tail(std::int64_t i, const char* part) {
  return kSoftmax + "tail." + std::to_string(i - 1) + "." + part + ".weight";
}

// Returns whether a matrix of the head is the embedding's. `own` receives the matrix.
bool shares(
    StateDict& weights, const std::string& name, const std::string& embedding, torch::Tensor& own) {
  own = weights.take(name);
  return weights.same(name, embedding);
}

void read_adaptive(StateDict& weights, std::int64_t bands, ImportedModel& model) {
  auto& out = model.weights;
  auto& words = model.options.vocabulary;
  for (std::int64_t i = 0; i < bands; ++i) {
    const auto number = std::to_string(i);
    out["transformer.wte.table_" + number] = weights.take(band(i, "0"));
    out["transformer.wte.projection_" + number] = weights.take(band(i, "1"));
  }
  torch::Tensor own;
  words.tied = weights.has(kSoftmax + "head.word_proj.weight");
  if (words.tied) {
    if (!shares(weights, kSoftmax + "head.word_proj.weight", band(0, "0"), own))
      core::bad_data("{}: the softmax shares only a part of the embedding", weights.origin());
    out["lm_head.slots"] = weights.take(kSoftmax + "head.class_proj.weight");
  } else {
    const auto head = weights.take(kSoftmax + "head.weight");
    const auto common = words.cutoffs[0];
    if (head.dim() != 2 || head.size(0) != common + bands - 1)
      core::bad_data("{}: {} does not have {} rows", weights.origin(), kSoftmax + "head.weight",
          common + bands - 1);
    out["lm_head.table_0"] = head.slice(0, 0, common);
    out["lm_head.slots"] = head.slice(0, common);
  }
  words.tied_projections = words.tied;
  for (std::int64_t i = 1; i < bands; ++i) {
    const auto number = std::to_string(i);
    const bool tied = shares(weights, tail(i, "2"), band(i, "0"), own);
    if (tied != words.tied)
      core::bad_data("{}: the softmax shares only a part of the embedding", weights.origin());
    if (!tied) out["lm_head.table_" + number] = own;
    if (words.tied && shares(weights, tail(i, "0"), band(i, "1"), own)) continue;
    words.tied_projections = false;
    if (!words.tied) own = weights.take(tail(i, "0"));
    if (own.dim() != 2) core::bad_data("{}: {} is not a matrix", weights.origin(), tail(i, "0"));
    out["lm_head.projection_" + number] = own.t();
  }
}

// A single band has no projection: the embedding is multiplied by it.
void read_one_band(StateDict& weights, ImportedModel& model) {
  const auto table = weights.take(band(0, "0")), projection = weights.take(band(0, "1"));
  model.weights["transformer.wte.weight"] = weights.product(table, projection, band(0, "0"));
  const bool shared = weights.has(kSoftmax + "head.word_proj.weight");
  model.weights["lm_head.weight"] =
      weights.take(kSoftmax + (shared ? "head.word_proj.weight" : "head.weight"));
  if (shared) weights.take(kSoftmax + "head.class_proj.weight");  // there are no classes
  model.options.vocabulary.tied = false;
}

void read_plain(StateDict& weights, ImportedModel& model) {
  const std::string name = kTokens + "weight";
  model.weights["transformer.wte.weight"] = weights.take(name);
  for (const std::string head : {"decoder.embed_out", "decoder.output_projection.weight"}) {
    if (!weights.has(head)) continue;
    const auto own = weights.take(head);
    model.options.vocabulary.tied = weights.same(head, name);
    if (!model.options.vocabulary.tied) model.weights["lm_head.weight"] = own;
  }
}

void read_vocabulary(StateDict& weights, const Settings& args, ImportedModel& model) {
  auto& words = model.options.vocabulary;
  words.scale_embedding = !args.truth("no_scale_embedding", false);
  if (weights.has(kTokens + "weight")) {
    if (args.has("adaptive_softmax_cutoff"))
      args.unsupported("adaptive_softmax_cutoff", "without adaptive_input");
    model.vocabulary = weights.shape(kTokens + "weight", 2)[0];
    return read_plain(weights, model);
  }
  std::int64_t bands = 0;
  for (; weights.has(band(bands, "0")); ++bands) {
    const auto rows = weights.shape(band(bands, "0"), 2)[0];
    if (rows == 0 || bands == kMostBands)
      core::bad_data(
          "{}: {} has no rows, or there is one band too many", weights.origin(), band(bands, "0"));
    if (bands > 0) words.cutoffs.push_back(model.vocabulary);
    model.vocabulary += rows;
  }
  words.factor = args.number("adaptive_input_factor", 4);
  if (args.number("adaptive_softmax_factor", words.factor) != words.factor)
    args.unsupported("adaptive_softmax_factor", "a value other than adaptive_input_factor");
  words.adaptive_softmax_dropout = args.number("adaptive_softmax_dropout", 0);
  if (bands == 0) core::bad_data("{}: has no tensor {}", weights.origin(), kTokens + "weight");
  if (bands == 1) return read_one_band(weights, model);
  read_adaptive(weights, bands, model);
}

void read_positions(StateDict& weights, const Settings& args, ImportedModel& model) {
  auto& options = model.options.transformer;
  const std::string name = "decoder.embed_positions.weight", ours = "transformer.wpe.weight";
  if (args.truth("no_token_positional_embeddings", false)) {
    options.positions = "none";
    return;
  }
  options.positions = "learned";
  if (weights.has(name)) {
    const auto table = weights.take(name);
    if (table.dim() != 2 || table.size(0) <= kFirstPosition)
      core::bad_data("{}: {} has no rows after that of the padding", weights.origin(), name);
    model.weights[ours] = table.slice(0, kFirstPosition).contiguous();
    options.context = model.weights[ours].size(0);
    return;
  }
  options.context =
      args.whole("max_target_positions", args.whole("tokens_per_sample", kUsualContext));
  expect_possible(model, weights.origin());
  const auto width = model.options.shape.d_model;
  weights.expect_makes(options.context, width, "the table of max_target_positions");
  model.weights[ours] =
      nn::sinusoids(torch::arange(options.context) + kFirstPosition, width).to(torch::kFloat32);
}

void read_layer(
    StateDict& weights, const std::string& theirs, const std::string& ours, ImportedModel& model) {
  auto& out = model.weights;
  for (const std::string kind : {"weight", "bias"}) {
    const auto one = [&](const char* to, const char* from) {
      out[ours + to + "." + kind] = weights.take(theirs + from + "." + kind);
    };
    one("ln_1", "self_attn_layer_norm");
    one("ln_2", "final_layer_norm");
    one("attn.c_proj", "self_attn.out_proj");
    one("mlp.c_fc", "fc1");
    one("mlp.c_proj", "fc2");
    const auto together = theirs + "self_attn.in_proj_" + kind;
    out[ours + "attn.c_attn." + kind] =
        weights.has(together)
            ? weights.take(together)
            : weights.take_rows({theirs + "self_attn.q_proj." + kind,
                  theirs + "self_attn.k_proj." + kind, theirs + "self_attn.v_proj." + kind});
  }
}

ImportedModel read_fairseq(const TorchFile& file) {
  const PickleValue& root = file.root();
  StateDict weights(file, *root.find("model"), {"module."});
  const Settings args(file.name(), settings_of(root), "args");
  ImportedModel model;
  auto& shape = model.options.shape;
  shape.d_model = args.whole("decoder_embed_dim");
  shape.layers = args.whole("decoder_layers");
  shape.heads = args.whole("decoder_attention_heads");
  shape.d_ff = args.whole("decoder_ffn_embed_dim");
  expect_possible(model, file.name());
  expect_supported(args, shape.d_model);
  if (shape.d_ff == 4 * shape.d_model) shape.d_ff = 0;
  shape.dropout = args.number("dropout", 0.1);
  shape.attention_dropout = args.number("attention_dropout", 0);
  shape.activation_dropout = args.number("activation_dropout", 0);
  if (args.text("knn_keytype", "") == "model_output") shape.memory_key = "output";
  auto& options = model.options.transformer;
  options.activation = activation_of(args);
  options.final_norm = weights.has("decoder.layer_norm.weight");
  read_vocabulary(weights, args, model);
  read_positions(weights, args, model);
  for (std::int64_t i = 0; i < shape.layers; ++i)
    read_layer(weights, "decoder.layers." + std::to_string(i) + ".",
        "transformer.h." + std::to_string(i) + ".", model);
  if (options.final_norm)
    for (const std::string kind : {"weight", "bias"})
      model.weights["transformer.ln_f." + kind] = weights.take("decoder.layer_norm." + kind);
  weights.ignore({".version", "._float_tensor", "embed_positions.weights"});
  weights.expect_none_left();
  model.facts = {
      {"segment", args.whole("tokens_per_sample", 0)}, {"imported", {{"program", "fairseq"}}}};
  return model;
}

}  // namespace

const ImportMap fairseq_map{"fairseq", is_fairseq, read_fairseq};

}  // namespace model
