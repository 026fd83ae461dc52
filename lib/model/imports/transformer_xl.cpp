// Transformer-XL's model.pt (Dai et al. 2019, the PyTorch code): the pickled module.
//
// Its names: word_emb.emb_layers.I.weight (band, width), word_emb.emb_projs.I (d_model, width),
// r_w_bias, r_r_bias (heads, width), layers.I.dec_attn.{qkv_net, r_net, o_net, layer_norm},
// layers.I.pos_ff.{CoreNet.0, CoreNet.3, layer_norm}, crit.out_layers.I.{weight, bias},
// crit.out_projs.I, crit.cluster_weight (slots, width of band 0), crit.cluster_bias. The last slot
// belongs to the first band of rarer tokens. With div_val 1 all tokens are in one table.

#include "model/imports/import_map.h"
#include "nn/base/runtime.h"

namespace model {
namespace {

using torch::Tensor;

constexpr const char* kOurs = "transformer-xl.";

const PickleValue& without_wrapper(const PickleValue& root) {
  const auto* const inner = submodule(root, "module");  // DataParallel wraps the model
  return inner == nullptr ? root : *inner;
}

bool is_transformer_xl(const PickleValue& root) {
  return class_of(without_wrapper(root)).ends_with(" MemTransformerLM");
}

class Reader {
 public:
  explicit Reader(const TorchFile& file)
      : module_(without_wrapper(file.root())),
        weights_(file, weights_of_module(module_, file.name())), own_(settings(file, "")),
        embedding_(settings(file, "word_emb")), attention_(settings(file, "layers.0.dec_attn")) {}

  ImportedModel read();

 private:
  Settings settings(const TorchFile& file, const std::string& name) const {
    const auto* const part = name.empty() ? &module_ : submodule(module_, name);
    return {file.name(), part == nullptr ? nullptr : attributes_of(*part),
        name.empty() ? "MemTransformerLM" : name};
  }
  void shape();
  void bands();
  void layers();
  Tensor rows_of(const std::string& list, std::size_t band, const char* end);
  Tensor projection(const char* list, std::size_t band);
  Tensor identity();
  void input();
  void head();

  std::int64_t begin(std::size_t band) const { return band == 0 ? 0 : cutoffs_[band - 1]; }
  std::int64_t end(std::size_t band) const {
    return band < cutoffs_.size() ? cutoffs_[band] : model_.vocabulary;
  }
  bool one_table() const { return div_val_ == 1; }
  Tensor& out(const std::string& name) { return model_.weights[name]; }

  const PickleValue& module_;
  StateDict weights_;
  Settings own_, embedding_, attention_;
  ImportedModel model_;
  std::vector<std::int64_t> cutoffs_;     // bounds of bands, as in Tessera
  std::map<std::string, Tensor> tables_;  // tensors that several bands share, taken once
  std::int64_t div_val_ = 1;
};

void Reader::shape() {
  if (const auto type = own_.whole("attn_type", 0); type != 0)
    own_.unsupported("attn_type", std::to_string(type));
  auto& options = model_.options;
  options.arch = "transformer-xl";
  auto& shape = options.shape;
  shape.layers = own_.whole("n_layer");
  shape.d_model = own_.whole("d_model");
  shape.heads = own_.whole("n_head");
  expect_possible(model_, weights_.origin());
  if (shape.d_model % shape.heads != 0 || own_.whole("d_head") != shape.d_model / shape.heads)
    own_.unsupported("d_head", std::to_string(own_.whole("d_head")));
  const auto wide = weights_.shape("layers.0.pos_ff.CoreNet.0.weight", 2);
  if (wide[1] != shape.d_model)
    core::bad_data("{}: its layers do not have width {}", weights_.origin(), shape.d_model);
  shape.d_ff = wide[0];
  options.transformer.norm = attention_.truth("pre_lnorm", false) ? "pre" : "post";
  options.transformer.final_norm = false;
  options.transformer.activation = "relu";
  options.layer_memory.layer_memory = std::to_string(own_.whole("mem_len"));
  options.layer_memory.same_length = own_.truth("same_length", false) ? "on" : "off";
  options.transformer_xl.clamp_length = std::max<std::int64_t>(own_.whole("clamp_len", -1), 0);
}

void Reader::bands() {
  model_.vocabulary = embedding_.whole("n_token");
  cutoffs_ = embedding_.numbers("cutoffs");
  if (!cutoffs_.empty()) cutoffs_.pop_back();  // it is the vocabulary's size
  div_val_ = embedding_.whole("div_val", 1);
  auto& words = model_.options.vocabulary;
  words.cutoffs = cutoffs_;
  words.factor = static_cast<double>(div_val_);
  words.d_embedding = cutoffs_.empty() ? 0 : embedding_.whole("d_embed");
  words.head_bias = true;
  expect_possible(model_, weights_.origin());
  std::int64_t last = 0;
  for (const auto cutoff : cutoffs_) {
    if (cutoff <= last || cutoff >= model_.vocabulary || std::ssize(cutoffs_) >= kMostBands)
      core::bad_data("{}: the cutoffs of its {} tokens are inconsistent", weights_.origin(),
          model_.vocabulary);
    last = cutoff;
  }
}

// Returns a band's rows of a list of layers. The list has one layer if all bands have one width.
Tensor Reader::rows_of(const std::string& list, std::size_t band, const char* end) {
  if (!one_table()) return weights_.take(list + "." + std::to_string(band) + end);
  auto& all = tables_[list + end];
  if (!all.defined()) all = weights_.take(list + ".0" + end);
  if (all.dim() == 0 || all.size(0) != model_.vocabulary)
    core::bad_data("{}: tensor {}.0{} does not have {} tokens", weights_.origin(), list, end,
        model_.vocabulary);
  return all.narrow(0, begin(band), this->end(band) - begin(band));
}

// Returns the projection of a band, or the common one. Undefined if the band is as wide as the
// model.
Tensor Reader::projection(const char* list, std::size_t band) {
  const auto name = [&](std::size_t i) { return std::string(list) + "." + std::to_string(i); };
  const auto found = weights_.has(name(band)) ? band : 0;
  if (!weights_.has(name(found)) || (found != band && !one_table())) return {};
  auto& matrix = tables_[name(found)];
  if (!matrix.defined()) matrix = weights_.take(name(found));
  if (found != band) weights_.expect_makes(matrix.numel(), 1, name(found));  // a copy of its own
  return matrix;
}

Tensor Reader::identity() {
  auto& matrix = tables_["identity"];
  const auto width = model_.options.shape.d_model;
  weights_.expect_makes(width, width, "a band's projection");  // each band gets one
  if (!matrix.defined()) matrix = torch::eye(width);
  return matrix;
}

void Reader::input() {
  for (std::size_t band = 0; band <= cutoffs_.size(); ++band) {
    const auto number = std::to_string(band);
    const auto table = rows_of("word_emb.emb_layers", band, ".weight");
    auto wider = projection("word_emb.emb_projs", band);
    if (cutoffs_.empty()) {  // Tessera has no projection here: apply it
      out(std::string(kOurs) + "wte.weight") =
          wider.defined() ? weights_.product(table, wider, "word_emb.emb_layers") : table;
      return;
    }
    if (!wider.defined()) wider = identity();
    out(kOurs + ("wte.table_" + number)) = table;
    out(kOurs + ("wte.projection_" + number)) = wider;
  }
}

// Tessera has a projection for band 0 only if the band is narrow. Otherwise the table is multiplied
// by the projection.
void Reader::head() {
  auto& words = model_.options.vocabulary;
  words.tied = words.tied_projections = false;
  std::vector<Tensor> biases;
  for (std::size_t band = 0; band <= cutoffs_.size(); ++band) {
    const auto number = std::to_string(band);
    auto table = rows_of("crit.out_layers", band, ".weight");
    auto narrower = projection("crit.out_projs", band);
    biases.push_back(rows_of("crit.out_layers", band, ".bias"));
    Tensor slots;
    if (band == 0 && !cutoffs_.empty())  // the last slot is band 1's
      slots = weights_.take("crit.cluster_weight").flip(0);
    const bool narrow = words.d_embedding != 0 && words.d_embedding != model_.options.shape.d_model;
    if (band == 0 && !narrow && narrower.defined()) {
      table = weights_.product(table, narrower, "crit.out_layers");
      if (slots.defined()) slots = weights_.product(slots, narrower, "crit.cluster_weight");
      narrower = Tensor();
    }
    if (cutoffs_.empty()) {
      out("lm_head.weight") = table;
      out("lm_head.bias") = biases[0];
      return;
    }
    if (slots.defined()) out("lm_head.slots") = slots;
    out("lm_head.table_" + number) = table;
    if (band > 0 && !narrower.defined()) narrower = identity();
    if (narrower.defined()) out("lm_head.projection_" + number) = narrower;
  }
  out("lm_head.bias") = torch::cat(biases);
  out("lm_head.slot_bias") = weights_.take("crit.cluster_bias").flip(0);
}

void Reader::layers() {
  const std::string ours = kOurs;
  out(ours + "biases.content") = weights_.take("r_w_bias");
  out(ours + "biases.position") = weights_.take("r_r_bias");
  for (std::int64_t i = 0; i < model_.options.shape.layers; ++i) {
    const auto theirs = "layers." + std::to_string(i) + ".",
               layer = ours + "h." + std::to_string(i);
    const auto take = [&](const char* name, const char* from) {
      out(layer + name) = weights_.take(theirs + from);
    };
    for (const char* part : {".weight", ".bias"}) {
      const std::string end = part;
      take((".ln_1" + end).c_str(), ("dec_attn.layer_norm" + end).c_str());
      take((".ln_2" + end).c_str(), ("pos_ff.layer_norm" + end).c_str());
      take((".mlp.c_fc" + end).c_str(), ("pos_ff.CoreNet.0" + end).c_str());
      take((".mlp.c_proj" + end).c_str(), ("pos_ff.CoreNet.3" + end).c_str());
    }
    take(".attn.c_attn.weight", "dec_attn.qkv_net.weight");
    take(".attn.c_position.weight", "dec_attn.r_net.weight");
    take(".attn.c_proj.weight", "dec_attn.o_net.weight");
  }
}

ImportedModel Reader::read() {
  shape();
  bands();
  input();
  head();
  layers();
  weights_.ignore({"pos_emb.inv_freq", ".r_w_bias", ".r_r_bias"});  // the layers' are the model's
  weights_.expect_none_left();
  model_.facts = {
      {"segment", own_.whole("tgt_len")}, {"imported", {{"program", "Transformer-XL"}}}};
  return std::move(model_);
}

ImportedModel read_transformer_xl(const TorchFile& file) {
  try {
    return Reader(file).read();
  } catch (const c10::Error& error) {
    if (nn::is_out_of_memory(error)) throw;
    core::bad_data("{}: its tensor shapes are inconsistent with a Transformer-XL", file.name());
  }
}

}  // namespace

const ImportMap transformer_xl_map{"Transformer-XL", is_transformer_xl, read_transformer_xl};

}  // namespace model
