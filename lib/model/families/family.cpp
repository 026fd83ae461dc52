#include "model/families/family.h"

#include "model/families/rwkv7.h"
#include "nn/base/architecture.h"
#include "nn/layers/positions.h"

namespace model {
namespace {

constexpr std::int64_t kPaddingRows = 2;

// In the order in which family_of() tries them.
const std::vector<Family>& families() {
  static const std::vector<Family> all = {{"gpt2", gpt2_keys}, {"llama", gated_keys},
      {"mistral", gated_keys}, {"qwen2", qwen2_keys}, {"qwen3", qwen3_keys}, {"olmo2", olmo_keys},
      {"phi3", phi3_keys}, {"olmo3", olmo_keys}, {"smollm3", smollm3_keys},
      {"granite", granite_keys, granite_factors}, {"ministral3", ministral3_keys},
      {"gpt_neox", neox_keys}, {"opt", opt_keys}, {"gpt_neo", neo_keys}, {"gemma", gemma1_keys},
      {"gemma2", gemma2_keys}, {"gemma3_text", gemma3_keys}, {"phi", phi_keys},
      {"mixtral", mixtral_keys}, {"qwen3_moe", qwen3_moe_keys}, {"olmoe", olmoe_keys},
      {"mamba", mamba_keys}, {"mamba2", mamba2_keys}, {"rwkv7", rwkv7_keys},
      {"qwen3_5_text", qwen3_5_keys}};
  return all;
}

// Resets what has no effect: the keys of other scalings, the last layers' turns, the scale and the
// local angles that are the usual ones.
void normalise(nn::TransformerOptions& options, const nn::HeadShape& heads, std::int64_t layers) {
  const nn::RopeOptions usual;
  auto& windows = options.attention_window;
  const auto pattern = windows;
  windows.resize(pattern.empty() ? 0 : static_cast<std::size_t>(layers));
  for (std::size_t i = 0; i < windows.size(); ++i) windows[i] = pattern[i % pattern.size()];
  if (widest(windows) == 0) windows.clear();
  const double scale = options.attention_scale * std::sqrt(static_cast<double>(heads.width));
  if (std::abs(scale - 1) < 1e-12) options.attention_scale = 0;
  auto& rope = options.rope;
  if (options.positions != "rope") rope = usual;
  rope.length = nn::rope_attention_factor(rope);
  const auto& kind = rope.scaling;
  if (kind != "llama3") rope.low = usual.low, rope.high = usual.high;
  if (kind != "yarn") rope.slow_beta = usual.slow_beta, rope.fast_beta = usual.fast_beta;
  if (kind != "longrope") rope.factors = rope.long_factors = {};
  if (kind == "none" || kind == "longrope") rope.factor = usual.factor;
  if (rope.query_growth == 0 && (kind == "none" || kind == "linear")) rope.trained = usual.trained;
  if (rope.skip > layers) rope.skip = 0;
  if (windows.empty() || (kind == "none" && rope.local_theta == rope.theta)) rope.local_theta = 0;
}

// Sets the options of a transformer that determine its function.
void take_transformer(nn::ModelOptions& kept, const nn::ModelOptions& options) {
  kept.transformer = options.transformer;
  const auto heads = nn::head_shape(options.shape, options.transformer);
  kept.transformer.kv_heads = heads.kv_heads;
  kept.transformer.d_head = heads.width;
  normalise(kept.transformer, heads, options.shape.layers);
  kept.transformer.bias = false;
  kept.transformer.bias_of.clear();
  for (const char* part : {"qkv", "output", "feed-forward", "norm"})
    if (options.transformer.has_bias(part)) kept.transformer.bias_of.emplace_back(part);
}

// Returns the options that determine the function of a model without memories.
core::OrderedJson function_of(const nn::ModelOptions& options) {
  nn::ModelOptions kept;
  kept.arch = options.arch;
  kept.vocabulary.tied = options.vocabulary.tied;
  kept.vocabulary.scale_embedding = options.vocabulary.scale_embedding;
  kept.vocabulary.cutoffs = options.vocabulary.cutoffs;
  kept.vocabulary.head_bias = options.vocabulary.head_bias;
  kept.vocabulary.logit_softcap = options.vocabulary.logit_softcap;
  kept.shape.layers = options.shape.layers;
  kept.shape.d_model = options.shape.d_model;
  kept.shape.heads = options.shape.heads;
  kept.shape.d_ff = options.shape.ffn_width();
  if (options.arch == "hybrid") {
    auto rotary = options;
    rotary.transformer.positions = "rope";  // of gated attention, whatever is said
    take_transformer(kept, rotary);
    kept.gla = options.gla, kept.state_memory = options.state_memory;
    kept.mixers.list = fmt::format("{}", fmt::join(options.layer_mixers(), ","));
  } else if (options.arch != "transformer") {
    if (options.arch == "mamba") kept.shape.heads = nn::ShapeOptions().heads;  // has none
    kept.mamba2 = options.mamba2, kept.mixers = options.mixers;
    kept.transformer.bias = options.transformer.bias;
    kept.gla.convolution = options.gla.convolution;
    kept.transformer.norm_epsilon = options.transformer.norm_epsilon;
  } else {
    take_transformer(kept, options);
  }
  core::FieldList all = core::list_fields(kept);
  return core::fields_to_json(all);
}

// Splits "...h.3..." into "...h.N..." and "3".
std::pair<std::string, std::string> numbered(const std::string& name) {
  const auto at = name.find(".h.");
  if (at == std::string::npos) return {name, ""};
  const auto begin = at + 3, end = name.find('.', begin);
  if (end == std::string::npos) return {name, ""};
  return {name.substr(0, begin) + "N" + name.substr(end), name.substr(begin, end - begin)};
}

// Replaces the part `letter` of `name` by `number`.
std::string with_number(std::string_view name, const std::string& number, char letter = 'N') {
  std::string out(name);
  if (const auto at = out.find(std::string{'.', letter, '.'}); at != std::string::npos)
    out.replace(at + 1, 1, number);
  return out;
}

bool is_of_experts(const std::vector<std::string>& theirs) {
  return theirs[0].find(".E.") != std::string::npos;
}

// Returns the rows of a weight's parts in the file. Hybrids: those of Qwen 3.5, whose queries have
// gates between them.
std::vector<std::int64_t> rows_of(const std::string& ours, std::size_t pieces,
    const nn::ModelOptions& options, std::int64_t rows) {
  const bool hybrid = options.arch == "hybrid";
  const auto values = options.gla.value_heads * options.gla.d_value;
  if (hybrid && ours.ends_with(".c_in")) return {rows - values, values};
  if (pieces != 3) return std::vector(pieces, rows / static_cast<std::int64_t>(pieces));
  const auto heads = nn::head_shape(options.shape, options.transformer);
  return {(hybrid ? 2 : 1) * heads.d_query(), heads.d_key(), heads.d_key()};
}

// Returns how the family's class differs from the options: it computes what reading gives of the
// config.json that would be written.
std::vector<std::string> differences(const Family& family, const nn::ModelOptions& options) {
  if (options.arch != family.row.arch)
    return {fmt::format("arch is {}, not {}", options.arch, family.row.arch)};
  if (!options.vocabulary.cutoffs.empty()) return {"cutoffs is not empty"};
  if (options.memory_layer.any())
    return {fmt::format("memory_layer is {}, not none", options.memory_layer.kind)};
  const auto config = core::parse_json(core::dump(family_config(family, options, 1, -1)), "");
  std::int64_t vocabulary = 0;
  nn::ModelOptions said;
  try {
    said = family_options(family, config, std::string(family.type), &vocabulary);
  } catch (const core::Error& error) {
    return {error.what()};  // the family's own reader refuses these options
  }
  const auto asked = function_of(options), given = function_of(said);
  std::set<std::string> unused;
  for (const auto& of : {options, said})
    for (auto name : nn::unused_options(of))
      std::ranges::replace(name, '-', '_'), unused.insert(name);
  std::vector<std::string> different;
  for (const auto& [key, value] : asked.items())
    if (value != given.at(key) && !unused.contains(key))
      different.push_back(
          fmt::format("{} is {}, not {}", key, core::dump(value), core::dump(given.at(key))));
  return different;
}

}  // namespace

std::vector<std::string> family_names() {
  return core::mapped<std::string>(families(), &Family::type);
}

const Family& family_named(const std::string& type, const std::string& origin) {
  if (const auto* family = core::find_by(families(), type, &Family::type)) return *family;
  core::bad_config("{}: \"model_type\": \"{}\" is not supported; supported: {}", origin, type,
      fmt::join(family_names(), ", "));
}

std::string unlike(const Family& family, const nn::ModelOptions& options) {
  return fmt::format("{}", fmt::join(differences(family, options), ", "));
}

std::string without_family(const nn::ModelOptions& options) {
  const Family* nearest = nullptr;
  std::vector<std::string> fewest;
  for (const Family& family : families()) {
    if (options.arch != family.row.arch) continue;
    const auto different = differences(family, options);
    if (different.empty()) return {};
    // A refusal hides other differences.
    const bool refused = different[0].starts_with(std::string(family.type) + ':');
    if (nearest != nullptr && (refused || different.size() >= fewest.size())) continue;
    nearest = &family, fewest = different;
  }
  if (nearest == nullptr) return {};  // of no family's architecture
  return fmt::format(
      "config.json: no family of transformers computes this model, so only Tessera loads it; the "
      "nearest is {}, but {}",
      nearest->type, fmt::join(fewest, ", "));
}

const Family* family_of(const nn::ModelOptions& options, const std::string& preferred) {
  for (const bool first : {true, false})
    for (const Family& family : families())
      if ((family.type == preferred) == first && unlike(family, options).empty()) return &family;
  return nullptr;
}

core::OrderedJson family_config(const Family& family, const nn::ModelOptions& options,
    std::int64_t vocabulary, std::int64_t end_of_document) {
  core::OrderedJson config;
  config["model_type"] = family.type;
  config["architectures"] = {family.row.architecture};
  config["vocab_size"] = vocabulary;
  auto copy = options;
  family.keys(ConfigPairs(config), copy, family.row);
  config["tie_word_embeddings"] = options.vocabulary.tied;
  const core::OrderedJson id =
      end_of_document < 0 ? core::OrderedJson(nullptr) : core::OrderedJson(end_of_document);
  config["bos_token_id"] = id;
  config["eos_token_id"] = id;
  config["pad_token_id"] = nullptr;  // a class's own would be another token, or none
  return config;
}

nn::ModelOptions family_options(const Family& family, const core::Json& config,
    const std::string& origin, std::int64_t* vocabulary) {
  core::Json named = config;
  for (const auto& [alias, key] : family.row.aliases)
    if (config.contains(alias) && !config[alias].is_null()) named[key] = config[alias];
  const ConfigKeys keys(named, origin);
  *vocabulary = keys.required("vocab_size");
  keys.expect("is_causal", true);
  keys.expect("use_bidirectional_attention", false);
  if (keys.has("per_layer_config")) keys.unsupported("per_layer_config", "a value");
  nn::ModelOptions options;
  options.arch = family.row.arch;
  options.vocabulary.scale_embedding = false;
  options.vocabulary.tied = keys.truth("tie_word_embeddings", family.row.tied);
  family.keys(ConfigPairs(keys), options, family.row);
  expect_bounded(options, origin);
  return options;
}

void expect_bounded(const nn::ModelOptions& options, const std::string& origin) {
  auto copy = options;
  try {
    core::expect_within_bounds(core::list_fields(copy));
  } catch (const core::Error& error) { core::bad_config("{}: {}", origin, error.what()); }
}

void size_keys(const ConfigPairs& pairs, nn::ModelOptions& options) {
  pairs.required("hidden_size", options.shape.d_model);
  pairs.required("num_hidden_layers", options.shape.layers);
  pairs.required("num_attention_heads", options.shape.heads);
  if (pairs.from != nullptr) expect_bounded(options, pairs.from->origin());
}

void inner_key(
    const ConfigPairs& pairs, nn::ModelOptions& options, const std::string& key, bool required) {
  if (pairs.from != nullptr) {
    expect_bounded(options, pairs.from->origin());
    if (required) pairs.from->required(key);
  }
  auto& shape = options.shape;
  auto width = shape.ffn_width();
  pairs.size(key, width, 0);
  shape.d_ff = width == 4 * shape.d_model ? 0 : width;
}

void kv_heads_key(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  const auto heads = options.shape.heads;
  const bool all =
      row.kv_heads == 0 || (pairs.from != nullptr && pairs.from->is_null("num_key_value_heads"));
  auto kv_heads = nn::head_shape(options.shape, options.transformer).kv_heads;
  pairs.size("num_key_value_heads", kv_heads, all ? heads : row.kv_heads);
  options.transformer.kv_heads = kv_heads == heads ? 0 : kv_heads;
}

void head_width_key(const ConfigPairs& pairs, nn::ModelOptions& options, const ClassRow& row) {
  const auto& shape = options.shape;
  if (pairs.to != nullptr) {
    (*pairs.to)["head_dim"] = nn::head_shape(shape, options.transformer).width;
    return;
  }
  const ConfigKeys& keys = *pairs.from;
  const bool divides = shape.d_model % shape.heads == 0;
  if (row.divided && !divides)
    keys.unsupported("num_attention_heads", "a number that does not divide hidden_size");
  const auto width = keys.size("head_dim", keys.is_null("head_dim") ? 0 : row.d_head);
  const bool usual = divides && width == shape.d_model / shape.heads;
  if (row.fixed_head && width > 0 && !usual)
    keys.unsupported("head_dim", "a number other than hidden_size / num_attention_heads");
  options.transformer.d_head = usual ? 0 : width;
}

std::vector<std::int64_t> Piece::shape_there(torch::IntArrayRef shape) const {
  auto there = shape.vec();
  there[0] = layout == Layout::after_two ? rows + kPaddingRows : rows;
  if (layout == Layout::transposed) std::swap(there[0], there[1]);
  if (layout == Layout::taps && there.size() == 1) return {1, 1, rows};  // RWKV-7
  if (layout == Layout::taps) there.insert(there.begin() + 1, 1);
  if (layout == Layout::by_part) {
    there[0] = rows / parts;
    there.insert(there.begin(), parts);
  }
  return there;
}

torch::Tensor Piece::there(const torch::Tensor& rows_here) const {
  switch (layout) {
    case Layout::as_is: break;
    case Layout::transposed: return rows_here.t();
    case Layout::taps:
      return rows_here.dim() == 1 ? rows_here.view({1, 1, -1}) : rows_here.unsqueeze(1);
    case Layout::by_head:
      return rows_here.unflatten(0, {3, parts, -1}).transpose(0, 1).flatten(0, 2);
    case Layout::after_two: return torch::constant_pad_nd(rows_here, {0, 0, kPaddingRows, 0});
    case Layout::by_part: return rows_here.unflatten(0, {parts, -1});
  }
  return rows_here;
}

torch::Tensor Piece::here(const torch::Tensor& tensor) const {
  switch (layout) {
    case Layout::as_is: break;
    case Layout::transposed: return tensor.t();
    case Layout::taps: return tensor.size(0) == 1 ? tensor.flatten() : tensor.squeeze(1);
    case Layout::by_head: return tensor.unflatten(0, {parts, 3, -1}).transpose(0, 1).flatten(0, 2);
    case Layout::after_two: return tensor.slice(0, kPaddingRows);
    case Layout::by_part: return tensor.flatten(0, 1);
  }
  return tensor;
}

std::vector<Piece> pieces_of(const Family* family, const nn::ModelOptions& options,
    const std::string& weight, std::int64_t rows, Stacking stacking) {
  if (family == nullptr) return {{weight, 0, rows, Layout::as_is}};
  const auto dot = weight.rfind('.');
  const auto [name, number] = numbered(weight.substr(0, dot));
  const auto whole = numbered(weight).first;
  const auto& row = family->row;
  const bool is_parameter = row.modules.contains(whole);
  const auto module = row.modules.find(is_parameter ? whole : name);
  if (module == row.modules.end())
    core::bug("{} cannot be expressed in a file of {}", weight, family->type);
  const auto& [ours, theirs] = *module;
  const std::string kind = is_parameter ? "" : weight.substr(dot);
  const bool of_experts = is_of_experts(theirs);  // otherwise the token shifts of an RWKV-7
  const auto count = of_experts ? options.transformer.experts.count : 1;
  if (const auto stacked = row.stacked.find(ours);
      stacking == Stacking::stacked && stacked != row.stacked.end())
    return {{with_number(stacked->second, number), 0, rows,
        of_experts || theirs.size() > 1 ? Layout::by_part : Layout::as_is,
        of_experts ? count : std::ssize(theirs)}};
  const auto found = row.layouts.find(ours);
  auto layout = found == row.layouts.end() ? Layout::as_is : found->second;
  if ((layout == Layout::transposed || layout == Layout::taps) && kind == ".bias")
    layout = Layout::as_is;
  const auto sizes = rows_of(ours, theirs.size(), options, rows / count);
  std::vector<Piece> pieces;
  std::int64_t begin = 0;
  for (std::int64_t expert = 0; expert < count; ++expert)
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      const auto tensor = with_number(with_number(theirs[i], number), std::to_string(expert), 'E');
      pieces.push_back({tensor + kind, begin, sizes[i], layout,
          options.arch == "mamba" ? options.mamba2.width(options.shape.d_model)
                                  : options.shape.heads});
      begin += sizes[i];
    }
  return pieces;
}

std::string stacked_name(const Family& family) {
  const auto& stacked = family.row.stacked;
  return stacked.empty() ? "" : with_number(stacked.begin()->second, "0");
}

double factor_of(const std::vector<WeightFactor>& factors, const std::string& weight) {
  if (factors.empty()) return 1;
  const auto name = numbered(weight.substr(0, weight.rfind('.'))).first;
  const auto* const known = core::find_by(factors, name, &WeightFactor::ours);
  return known == nullptr ? 1 : known->factor;
}

bool is_buffer(const Family* family, std::string_view tensor) {
  if (family == nullptr) return false;
  const auto& ends = family->row.buffers;
  return std::ranges::any_of(ends, [&](const auto& end) {
    return end.ends_with('.') ? tensor.starts_with(end) : tensor.ends_with(end);
  });
}

std::string head_name(const Family& family, const nn::ModelOptions& options) {
  return pieces_of(&family, options, "lm_head.weight", 0)[0].tensor;
}

std::string bare_name(const Family& family, const std::string& tensor) {
  const auto& base = family.row.base;
  return tensor.starts_with(base) ? tensor.substr(base.size()) : tensor;
}

}  // namespace model
