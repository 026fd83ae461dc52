#include "model/gguf/gguf_model.h"

#include "core/plain_text.h"
#include "model/gguf/gguf_keys.h"

namespace model {
namespace {

// Keys that do not change a model's log-probabilities, whatever their values.
constexpr std::array kHarmless = {"tensor_data_layout", "expert_used_count", "pooling_type",
    "rope.scaling.finetuned", "rope.scaling.original_context_length"};
// Keys that change the function, and the two values at which they have no effect.
struct Switch {
  const char* key;
  double off, unset;
};
constexpr std::array kSwitches = {Switch{"leading_dense_block_count", 0, 0},
    Switch{"expert_count", 0, 0}, Switch{"expert_shared_count", 0, 0},
    Switch{"nextn_predict_layers", 0, 0}, Switch{"logit_scale", 1, 0},
    Switch{"residual_scale", 1, 0}, Switch{"embedding_scale", 1, 0},
    Switch{"attention.scale", 0, 0}, Switch{"attention.clamp_kqv", 0, 0},
    Switch{"attention.max_alibi_bias", 0, 0}, Switch{"attention.temperature_scale", 0, 0},
    Switch{"attention.shared_kv_layers", 0, 0}, Switch{"rope.scaling.attn_factor", 1, 1},
    Switch{"rope.scaling.alpha", 0, 0}, Switch{"rope.scaling.yarn_attn_factor", 1, 1},
    Switch{"rope.scaling.yarn_log_multiplier", 0, 0}};

// Tokens at which llama.cpp stops, whatever the metadata say.
constexpr std::array kEnds = {"<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|eom_id|>",
    "<|end_of_text|>", "<end_of_turn>", "<|end|>"};

constexpr std::int64_t kMostHeadWidth = 1 << 16;

// Reads the keys of an architecture.
class Keys {
 public:
  explicit Keys(const GgufFile& file) : file_(file), architecture_(architecture_of(file)) {}

  const GgufArchitecture& architecture() const { return architecture_; }
  bool is(std::string_view name) const { return architecture_.name == name; }
  std::string key(const char* end) const {
    known_.insert(end);
    return fmt::format("{}.{}", architecture_.name, end);
  }
  // Refuses the architecture's keys that were not passed to key() before and are not harmless.
  void expect_known() const {
    const std::string prefix = fmt::format("{}.", architecture_.name);
    for (const auto& name : file_.keys(prefix)) {
      const auto end = name.substr(prefix.size());
      if (known_.count(end) == 0 && !core::contains(kHarmless, end))
        core::bad_config("{}: {} is not supported", file_.name(), core::printable(name));
    }
  }
  bool has(const char* end) const { return file_.has(key(end)); }
  std::int64_t whole(const char* end, std::int64_t otherwise) const {
    return file_.whole(key(end)).value_or(otherwise);
  }
  double number(const char* end, double otherwise) const {
    return file_.number(key(end)).value_or(otherwise);
  }
  std::string text(const char* end) const { return std::string(file_.text(key(end)).value_or("")); }
  std::int64_t required(const char* end) const {
    const auto found = file_.whole(key(end));
    if (!found || *found < 1)
      core::bad_data(
          "{}: {} {}", file_.name(), key(end), found ? fmt::format("is {}", *found) : "is missing");
    return *found;
  }
  [[noreturn]] void unsupported(const char* end, const std::string& value) const {
    core::bad_config("{}: {}: {} is not supported", file_.name(), key(end), value);
  }

 private:
  static const GgufArchitecture& architecture_of(const GgufFile& file) {
    const auto found = file.text("general.architecture");
    if (!found) core::bad_data("{}: general.architecture is missing", file.name());
    if (auto* known = core::find_by(kGgufArchitectures, *found, &GgufArchitecture::name))
      return *known;
    core::bad_config("{}: general.architecture \"{}\" is not supported; supported: {}", file.name(),
        core::printable(*found), fmt::join(gguf_architectures(), ", "));
  }

  const GgufFile& file_;
  const GgufArchitecture& architecture_;
  mutable std::set<std::string> known_;
};

const GgufTensor* tensor_of(const GgufFile& file, const std::string& name) {
  const auto found = file.tensors().find(name);
  return found == file.tensors().end() ? nullptr : &found->second;
}

std::int64_t head_width(const Keys& keys) {
  const auto heads = keys.required("attention.head_count");
  const auto width = keys.whole("attention.key_length", keys.required("embedding_length") / heads);
  if (width < 1 || width > kMostHeadWidth)
    keys.unsupported("attention.key_length", std::to_string(width));
  if (keys.whole("attention.value_length", width) != width)
    keys.unsupported("attention.value_length", "a width other than that of keys");
  return width;
}

void expect_switches_off(const GgufFile& file, const Keys& keys) {
  if (const auto type = file.text("general.type").value_or("model"); type != "model")
    core::bad_config(
        "{}: general.type \"{}\" is not supported", file.name(), core::printable(type));
  if (file.whole("split.count").value_or(1) > 1)
    core::bad_config("{}: is one of several files of a model; merge them: llama-gguf-split --merge",
        file.name());
  for (const auto& [key, off, unset] : kSwitches)
    if (const auto value = keys.number(key, off); value != off && value != unset)
      keys.unsupported(key, fmt::format("{}", value));
  for (const auto& [key, off] :
      {std::pair{"attention.causal", true}, {"use_parallel_residual", false}})
    if (file.truth(keys.key(key)).value_or(off) != off)
      keys.unsupported(key, fmt::format("{}", !off));
  if (!keys.is("gemma2") && !keys.is("gemma3"))
    for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
      if (const auto value = keys.number(key, 0); value != 0)
        keys.unsupported(key, fmt::format("{}", value));
  for (const char* name : {"rope_factors_long.weight", "rope_factors_short.weight"})
    if (tensor_of(file, name) != nullptr)
      core::bad_config("{}: {}: LongRoPE is not supported", file.name(), name);
}

// Computes Llama 3's rope scaling from llama.cpp's divisors of the angles.
core::Json llama3_scaling(
    const GgufFile& file, const GgufTensor& tensor, double theta, std::int64_t width) {
  const auto count = width / 2;
  if (tensor.shape != std::vector<std::int64_t>{count})
    core::bad_data("{}: tensor {} does not have {} numbers", file.name(), kGgufRopeFactors, count);
  std::vector<float> found(static_cast<std::size_t>(count));
  gguf_unpack(*tensor.type, file.bytes_of(tensor), found.data());
  core::Json scaling = {{"rope_type", "llama3"}, {"factor", found.back()}, {"low_freq_factor", 1.0},
      {"high_freq_factor", 4.0},
      {"original_max_position_embeddings", 8192}};  // values of all Llamas from 3.1 on
  const auto expected =
      gguf_rope_factors({{"head_dim", width}, {"rope_theta", theta}, {"rope_scaling", scaling}});
  for (std::size_t i = 0; i < found.size(); ++i)
    if (!(std::abs(found[i] - expected[i]) <= 1e-3 * expected[i]))
      core::bad_config(
          "{}: {}: only the rope factors of Llama 3 are supported", file.name(), kGgufRopeFactors);
  return scaling;
}

core::Json scaling_of(const GgufFile& file, const Keys& keys, double theta, std::int64_t width) {
  const double factor = keys.number("rope.scaling.factor", keys.number("rope.scale_linear", 1));
  auto type = keys.text("rope.scaling.type");
  if (type.empty()) type = factor == 1 || factor == 0 ? "none" : "linear";
  // Share of yarn's angles; negative: 1 with yarn, else 0.
  const double usual = type == "yarn" ? 1 : 0,
               share = keys.number("rope.scaling.yarn_ext_factor", usual);
  if (share != usual && share >= 0)
    keys.unsupported("rope.scaling.yarn_ext_factor", fmt::format("{}", share));
  const auto beta = [&](const char* key, double otherwise) {
    const double value = keys.number(key, otherwise);
    if (type == "yarn" && !(value > 0)) keys.unsupported(key, fmt::format("{}", value));
    return value;
  };
  const double fast = beta("rope.scaling.yarn_beta_fast", 32),
               slow = beta("rope.scaling.yarn_beta_slow", 1);
  if (const auto* const factors = tensor_of(file, kGgufRopeFactors)) {
    if (type != "none" && factor != 1)
      keys.unsupported("rope.scaling.type", "a type beside rope_freqs.weight");
    return llama3_scaling(file, *factors, theta, width);
  }
  if (type == "none") return nullptr;
  if (factor <= 0) keys.unsupported("rope.scaling.factor", fmt::format("{}", factor));
  if (type == "linear") return {{"rope_type", "linear"}, {"factor", factor}};
  if (type != "yarn") keys.unsupported("rope.scaling.type", '"' + core::printable(type) + '"');
  return {{"rope_type", "yarn"}, {"factor", factor}, {"beta_fast", fast}, {"beta_slow", slow},
      {"original_max_position_embeddings", keys.required("rope.scaling.original_context_length")}};
}

void put_rope(const GgufFile& file, const Keys& keys, std::int64_t width, core::Json& config) {
  const double theta = keys.number("rope.freq_base", 10000);
  config["rope_theta"] = theta;
  const auto turned = keys.whole("rope.dimension_count", width);
  // Of these families only Phi-3 rotates a part of a head.
  if (turned < 1 || turned > width || (turned != width && !keys.is("phi3")))
    keys.unsupported("rope.dimension_count", std::to_string(turned));
  if (turned != width)
    config["partial_rotary_factor"] = static_cast<double>(turned) / static_cast<double>(width);
  config["rope_scaling"] = scaling_of(file, keys, theta, turned);
}

// Returns which layers of Gemma 3 have a window. The key is a flag per layer, or n if all but each
// n-th layer have one.
core::Json layer_types_of(const GgufFile& file, const Keys& keys, std::int64_t layers) {
  constexpr const char* kPattern = "attention.sliding_window_pattern";
  auto types = core::Json::array();
  const auto put = [&](bool window) {
    types.push_back(window ? "sliding_attention" : "full_attention");
  };
  if (file.is_list(keys.key(kPattern))) {
    for (const auto window : file.numbers(keys.key(kPattern))) put(window != 0);
    return types;
  }
  const auto every = keys.whole(kPattern, 6);
  if (every < 1) keys.unsupported(kPattern, std::to_string(every));
  if (layers > std::ssize(file.tensors()))
    core::bad_data(
        "{}: has only {} tensors for {} layers", file.name(), file.tensors().size(), layers);
  for (std::int64_t i = 0; i < layers; ++i) put(i % every != every - 1);
  return types;
}

// Reads the keys of a single architecture.
void put_special(const GgufFile& file, const Keys& keys, std::int64_t width, core::Json& config) {
  const auto window = keys.whole("attention.sliding_window", 0);
  const auto has_bias = [&](const char* module) {
    return tensor_of(file, fmt::format("blk.0.{}.bias", module)) != nullptr;
  };
  if (keys.is("llama")) {
    config["attention_bias"] = has_bias("attn_q");
    config["mlp_bias"] = has_bias("ffn_up");
    if (window > 0) {
      config["model_type"] = "mistral";
      config["sliding_window"] = window;
    }
  }
  if (keys.is("qwen3")) config["attention_bias"] = has_bias("attn_q");
  if (keys.is("phi3") && window > 0) config["sliding_window"] = window;
  if (!keys.architecture().sandwich) return;
  const auto put_cap = [&](const char* key, double otherwise) {
    const double cap = keys.number(key, otherwise);
    config[key] = cap > 0 ? core::Json(cap) : core::Json(nullptr);
  };
  const bool second = keys.is("gemma2");
  put_cap("attn_logit_softcapping", second ? 50 : 0);
  put_cap("final_logit_softcapping", second ? 30 : 0);
  config["sliding_window"] = keys.required("attention.sliding_window");
  // The largest model of each version does not divide by the root of a head's width. No key says
  // so.
  const auto layers = keys.required("block_count"), heads = keys.required("attention.head_count");
  const bool largest = layers == (second ? 46 : 62);
  config["query_pre_attn_scalar"] = largest ? keys.required("embedding_length") / heads : width;
  if (second) return;
  config["layer_types"] = layer_types_of(file, keys, layers);
  config["rope_local_base_freq"] = keys.number("rope.freq_base_swa", 10000);
  config["rope_theta"] = keys.number("rope.freq_base", 1e6);
}

constexpr std::int64_t kNoToken = (std::int64_t{1} << 32) - 1;  // -1 in 32 bits without a sign

std::optional<std::int64_t> token_id(const GgufFile& file, const char* name) {
  const auto id = file.whole(fmt::format("tokenizer.ggml.{}_token_id", name));
  return id && *id >= 0 && *id < kNoToken ? id : std::nullopt;
}

// Checks the ids of tokens, for a model of `rows` tokens, and the tokens' types.
void expect_tokens(const GgufFile& file, std::int64_t rows) {
  constexpr double kLastType = 6;
  constexpr const char *kPrefix = "tokenizer.ggml.", *kTypes = "tokenizer.ggml.token_type";
  for (const auto& key : file.keys(kPrefix)) {
    if (!key.ends_with("_token_id")) continue;
    const auto id = *file.whole(key);
    if (id != -1 && id != kNoToken && (id < 0 || id >= rows))
      core::bad_value(file.name(), core::printable(key), id,
          fmt::format("0 to {}, the model's tokens", rows - 1));
  }
  for (const auto type : file.numbers(kTypes))
    if (!(type >= 0 && type <= kLastType && type == std::floor(type)))
      core::bad_value(file.name(), fmt::format("an element of {}", kTypes), type,
          fmt::format("0 to {}", kLastType));
}

std::vector<std::int64_t> ends_of(const GgufFile& file) {
  constexpr double kControl = 3, kUserDefined = 4;
  std::vector<std::int64_t> ids;  // ids that keys name, then tokens of kEnds
  const auto add = [&](std::int64_t id) {
    if (!core::contains(ids, id)) ids.push_back(id);
  };
  for (const char* name : {"eos", "eot", "eom"})
    if (const auto id = token_id(file, name)) add(*id);
  const auto tokens = file.texts("tokenizer.ggml.tokens");
  const auto types = file.numbers("tokenizer.ggml.token_type");
  for (std::size_t i = 0; i < std::min(tokens.size(), types.size()); ++i) {
    if (types[i] != kControl && types[i] != kUserDefined) continue;
    if (core::contains(kEnds, tokens[i])) add(static_cast<std::int64_t>(i));
  }
  return ids;
}

template <class Json> void put_tokens(const GgufFile& file, Json& config) {
  const std::array<std::pair<const char*, const char*>, 2> names = {
      {{"bos", "bos_token_id"}, {"padding", "pad_token_id"}}};
  for (const auto& [theirs, ours] : names)
    if (const auto id = token_id(file, theirs)) config[ours] = *id;
  if (const auto ends = ends_of(file); !ends.empty()) config["eos_token_id"] = ends;
}

// Returns the family's name for a tensor, or an empty string.
std::string family_name(const GgufArchitecture& architecture, const std::string& name) {
  const auto dot = name.rfind('.');
  if (dot == std::string::npos) return {};
  const std::string kind = name.substr(dot);
  const std::string_view module = std::string_view(name).substr(0, dot);
  for (const auto& [theirs, ours] : kGgufNames)
    if (module == theirs) return std::string(ours) + kind;
  constexpr std::string_view kLayer = "blk.";
  const auto end = module.find('.', kLayer.size());
  if (!module.starts_with(kLayer) || end == std::string_view::npos) return {};
  const auto number = module.substr(kLayer.size(), end - kLayer.size());
  const auto part = module.substr(end + 1);
  const auto in_layer = [&](std::string_view ours) {
    return fmt::format("model.layers.{}.{}{}", number, ours, kind);
  };
  if (architecture.sandwich)
    for (const auto& [theirs, ours] : kGgufSandwichNames)
      if (part == theirs) return in_layer(ours);
  if (architecture.name == "phi3" && part == "ffn_up") return in_layer("mlp.gate_up_proj");
  for (const auto& [theirs, ours] : kGgufLayerNames)
    if (part == theirs) return in_layer(ours);
  return {};
}

}  // namespace

std::int64_t gguf_family_row(std::int64_t row, std::int64_t width) {
  const auto head = row / width, within = row % width;
  return head * width + within % 2 * (width / 2) + within / 2;
}

std::int64_t gguf_file_row(std::int64_t row, std::int64_t width) {
  const auto within = row % width, half = width / 2;
  return row - within + within % half * 2 + within / half;
}

std::vector<std::string> gguf_architectures() {
  return core::mapped<std::string>(kGgufArchitectures, &GgufArchitecture::name);
}

core::Json gguf_config(const GgufFile& file) {
  const Keys keys(file);
  expect_switches_off(file, keys);
  core::Json config;
  config["model_type"] = keys.architecture().model_type;
  const auto* const embedding = tensor_of(file, "token_embd.weight");
  if (embedding == nullptr || embedding->shape.size() != 2)
    core::bad_data("{}: has no matrix token_embd.weight", file.name());
  config["vocab_size"] = embedding->shape[0];
  if (const auto rows = keys.whole("vocab_size", embedding->shape[0]); rows != embedding->shape[0])
    core::bad_data("{}: {} is {}, but token_embd.weight has {} rows", file.name(),
        keys.key("vocab_size"), rows, embedding->shape[0]);
  config["hidden_size"] = keys.required("embedding_length");
  config["num_hidden_layers"] = keys.required("block_count");
  config["num_attention_heads"] = keys.required("attention.head_count");
  config["num_key_value_heads"] =
      keys.whole("attention.head_count_kv", keys.required("attention.head_count"));
  const auto width = head_width(keys);
  config["head_dim"] = width;
  config["intermediate_size"] = keys.required("feed_forward_length");
  config["max_position_embeddings"] = keys.required("context_length");
  config["rms_norm_eps"] = keys.number("attention.layer_norm_rms_epsilon", 1e-6);
  config["tie_word_embeddings"] = tensor_of(file, "output.weight") == nullptr;
  put_rope(file, keys, width, config);
  put_special(file, keys, width, config);
  expect_tokens(file, embedding->shape[0]);
  put_tokens(file, config);
  keys.expect_known();
  return config;
}

core::OrderedJson gguf_generation_config(const GgufFile& file) {
  auto config = core::OrderedJson::object();
  put_tokens(file, config);
  return config;
}

std::map<std::string, GgufWeight> gguf_weights(const GgufFile& file) {
  const Keys keys(file);
  const auto& architecture = keys.architecture();
  const auto width = head_width(keys);
  std::map<std::string, GgufWeight> weights;
  for (const auto& [name, tensor] : file.tensors()) {
    if (name == kGgufRopeFactors) continue;  // gguf_config() reads it
    const auto renamed = family_name(architecture, name);
    GgufWeight weight{&tensor};
    const bool turned = renamed.ends_with("q_proj.weight") || renamed.ends_with("k_proj.weight") ||
                        renamed.ends_with("q_proj.bias") || renamed.ends_with("k_proj.bias");
    if (architecture.pairs && turned) {
      const bool by_rows = tensor.shape.size() == 2 || tensor.type->elements == 1;
      if (!by_rows || width % 2 != 0 || tensor.shape[0] % width != 0)
        core::bad_data("{}: tensor {} has {} rows, not a multiple of the head width {}",
            file.name(), core::printable(name), tensor.shape[0], width);
      weight.rotated_heads = tensor.shape[0] / width;
    }
    weight.one_more = architecture.one_more && renamed.ends_with("norm.weight");
    if (!weights.emplace(renamed.empty() ? name : renamed, weight).second)
      core::bad_data(
          "{}: tensor {} also occurs under another name", file.name(), core::printable(name));
  }
  return weights;
}

void gguf_read_rows(const GgufFile& file, const GgufWeight& weight, std::int64_t first,
    std::int64_t rows, float* out) {
  const auto& tensor = *weight.tensor;
  const auto all = tensor.shape[0];
  const auto whole = file.bytes_of(tensor);
  const auto row_bytes = whole.size() / static_cast<std::size_t>(all);
  const bool is_whole = rows == all;
  const auto bytes = is_whole ? whole
                              : whole.subspan(static_cast<std::size_t>(first) * row_bytes,
                                    static_cast<std::size_t>(rows) * row_bytes);
  const auto elements = bytes.size() / tensor.type->bytes * tensor.type->elements;
  if (weight.rotated_heads == 0) {
    gguf_unpack(*tensor.type, bytes, out);
  } else {
    const auto columns = elements / static_cast<std::size_t>(rows);
    for (std::int64_t i = 0; i < rows; ++i) {
      const auto from = gguf_file_row(first + i, all / weight.rotated_heads);
      gguf_unpack(*tensor.type,
          whole.subspan(static_cast<std::size_t>(from) * row_bytes, row_bytes),
          out + static_cast<std::size_t>(i) * columns);
    }
  }
  if (weight.one_more)
    for (std::size_t i = 0; i < elements; ++i) out[i] -= 1;
  if (is_whole || weight.rotated_heads == 0) file.release(bytes);
}

}  // namespace model
