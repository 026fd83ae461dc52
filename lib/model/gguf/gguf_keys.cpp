#include "model/gguf/gguf_keys.h"

#include <numbers>

namespace model {
namespace {

constexpr std::size_t kStep = 32;

// Returns the number of a metadata type (gguf_file.cpp).
template <class T> constexpr std::uint32_t type_number() {
  if constexpr (std::is_same_v<T, bool>) return 7;
  if constexpr (std::is_same_v<T, std::uint32_t>) return 4;
  if constexpr (std::is_same_v<T, std::int32_t>) return 5;
  if constexpr (std::is_same_v<T, float>) return 6;
  return 8;
}
constexpr std::uint32_t kArrayNumber = 9;

class Header {
 public:
  template <class T> void raw(T value) {
    const auto at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  void text(const std::string& text) {
    raw(std::uint64_t{text.size()});
    for (const char c : text) bytes_.push_back(static_cast<std::byte>(c));
  }
  void element(bool value) { raw(static_cast<std::uint8_t>(value)); }
  void element(const std::string& value) { text(value); }
  template <class T> void element(T value) { raw(value); }
  template <class T> void value(const T& value) {
    raw(type_number<T>());
    element(value);
  }
  template <class T> void value(const std::vector<T>& values) {
    raw(kArrayNumber), raw(type_number<T>()), raw(std::uint64_t{values.size()});
    for (std::size_t i = 0; i < values.size(); ++i) element(static_cast<T>(values[i]));
  }
  void pad() { bytes_.resize((bytes_.size() + kStep - 1) / kStep * kStep); }
  const core::Bytes& bytes() const { return bytes_; }

 private:
  core::Bytes bytes_;
};

using core::Json;

double number_of(const Json& object, const char* key, double otherwise) {
  const auto found = object.find(key);
  return found == object.end() || !found->is_number() ? otherwise : found->get<double>();
}

std::uint32_t whole_of(const Json& object, const char* key, std::int64_t otherwise = 0) {
  return static_cast<std::uint32_t>(number_of(object, key, static_cast<double>(otherwise)));
}

Json scaling_of(const Json& config) {
  const auto found = config.find("rope_scaling");
  return found == config.end() || !found->is_object() ? Json::object() : *found;
}

// Returns n if all layers but each n-th have a window.
std::uint32_t period_of(const std::vector<bool>& windows) {
  for (std::size_t n = 2; n <= windows.size() + 1; ++n) {
    bool holds = true;
    for (std::size_t i = 0; i < windows.size(); ++i)
      holds = holds && windows[i] == (i % n != n - 1);
    if (holds) return static_cast<std::uint32_t>(n);
  }
  return 0;
}

}  // namespace

std::size_t GgufNewTensor::bytes() const {
  std::size_t elements = 1;
  for (const auto n : shape) elements *= static_cast<std::size_t>(n);
  return elements / type->elements * type->bytes;
}

void write_gguf(core::ByteSink& sink, const GgufMetadata& metadata,
    const std::vector<GgufNewTensor>& tensors,
    const std::function<std::vector<float>(std::size_t)>& numbers) {
  Header header;
  for (const char c : std::string_view("GGUF")) header.raw(c);
  header.raw(std::uint32_t{3});
  header.raw(std::uint64_t{tensors.size()}), header.raw(std::uint64_t{metadata.size()});
  for (const auto& [key, value] : metadata) {
    header.text(key);
    std::visit([&](const auto& of) { header.value(of); }, value);
  }
  std::uint64_t offset = 0;
  const auto padded = [](std::uint64_t n) { return (n + kStep - 1) / kStep * kStep; };
  for (const auto& tensor : tensors) {
    if (static_cast<std::size_t>(tensor.shape.back()) % tensor.type->elements != 0)
      core::bug("tensor {}: rows are not whole blocks", tensor.name);
    header.text(tensor.name);
    header.raw(static_cast<std::uint32_t>(tensor.shape.size()));
    for (auto n = tensor.shape.rbegin(); n != tensor.shape.rend(); ++n)
      header.raw(static_cast<std::uint64_t>(*n));
    header.raw(tensor.type->id), header.raw(offset);
    offset += padded(tensor.bytes());
  }
  header.pad();
  sink.write(header.bytes());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    core::Bytes blocks(padded(tensors[i].bytes()));
    gguf_pack(*tensors[i].type, numbers(i), blocks.data());
    sink.write(blocks);
  }
}

const GgufArchitecture* gguf_architecture_of(const std::string& model_type) {
  for (const auto& known : kGgufArchitectures)
    if (known.model_type == model_type || (known.name == "llama" && model_type == "mistral"))
      return &known;
  return nullptr;
}

GgufMetadata gguf_keys(const GgufArchitecture& architecture, const Json& config) {
  GgufMetadata keys = {{"general.architecture", std::string(architecture.name)},
      {"general.type", std::string("model")}};
  const auto put = [&](const char* key, GgufValue value) {
    keys.emplace_back(fmt::format("{}.{}", architecture.name, key), std::move(value));
  };
  const auto heads = whole_of(config, "num_attention_heads");
  const auto width = whole_of(config, "head_dim", whole_of(config, "hidden_size") / heads);
  put("vocab_size", whole_of(config, "vocab_size"));
  put("context_length", whole_of(config, "max_position_embeddings"));
  put("embedding_length", whole_of(config, "hidden_size"));
  put("block_count", whole_of(config, "num_hidden_layers"));
  put("feed_forward_length", whole_of(config, "intermediate_size"));
  put("attention.head_count", heads);
  put("attention.head_count_kv", whole_of(config, "num_key_value_heads", heads));
  put("attention.key_length", width);
  put("attention.value_length", width);
  put("attention.layer_norm_rms_epsilon",
      static_cast<float>(number_of(config, "rms_norm_eps", 1e-6)));
  put("rope.dimension_count", static_cast<std::uint32_t>(std::lround(
                                  width * number_of(config, "partial_rotary_factor", 1))));
  put("rope.freq_base", static_cast<float>(number_of(config, "rope_theta", 1e4)));
  const auto scaling = scaling_of(config);
  const auto kind = scaling.value("rope_type", "");
  if (kind == "linear" || kind == "yarn") {
    put("rope.scaling.type", kind);
    put("rope.scaling.factor", static_cast<float>(number_of(scaling, "factor", 1)));
  }
  if (kind == "yarn") {
    put("rope.scaling.original_context_length",
        whole_of(scaling, "original_max_position_embeddings"));
    put("rope.scaling.yarn_beta_fast", static_cast<float>(number_of(scaling, "beta_fast", 32)));
    put("rope.scaling.yarn_beta_slow", static_cast<float>(number_of(scaling, "beta_slow", 1)));
  }
  const auto window = whole_of(config, "sliding_window");
  if (window > 0 && !architecture.name.starts_with("qwen")) put("attention.sliding_window", window);
  if (!architecture.sandwich) return keys;
  for (const char* key : {"attn_logit_softcapping", "final_logit_softcapping"})
    put(key, static_cast<float>(number_of(config, key, 0)));
  if (architecture.name != "gemma3") return keys;
  std::vector<bool> windows;
  for (const auto& type : config.value("layer_types", Json::array()))
    windows.push_back(type == "sliding_attention");
  const auto period = period_of(windows);
  if (period > 0) put("attention.sliding_window_pattern", period);
  else put("attention.sliding_window_pattern", windows);
  put("rope.freq_base_swa", static_cast<float>(number_of(config, "rope_local_base_freq", 1e4)));
  return keys;
}

std::vector<float> gguf_rope_factors(const Json& config) {
  const auto scaling = scaling_of(config);
  if (scaling.value("rope_type", "") != "llama3") return {};
  const double factor = number_of(scaling, "factor", 1),
               low = number_of(scaling, "low_freq_factor", 1),
               high = number_of(scaling, "high_freq_factor", 4),
               trained = number_of(scaling, "original_max_position_embeddings", 8192),
               theta = number_of(config, "rope_theta", 1e4);
  const auto heads = number_of(config, "num_attention_heads", 1);
  const auto width = number_of(config, "head_dim", number_of(config, "hidden_size", 0) / heads) *
                     number_of(config, "partial_rotary_factor", 1);
  std::vector<float> factors;
  for (int i = 0; 2 * i < std::lround(width); ++i) {
    const double wave = 2 * std::numbers::pi * std::pow(theta, 2 * i / width);
    const double smooth = (trained / wave - low) / (high - low);
    factors.push_back(
        static_cast<float>(wave < trained / high  ? 1
                           : wave > trained / low ? factor
                                                  : 1 / ((1 - smooth) / factor + smooth)));
  }
  return factors;
}

GgufPlace gguf_place(const GgufArchitecture& architecture, const std::string& tensor) {
  const auto dot = tensor.rfind('.');
  const std::string kind = tensor.substr(dot), module = tensor.substr(0, dot);
  GgufPlace place;
  for (const auto& [theirs, ours] : kGgufNames)
    if (module == ours) place.name = std::string(theirs) + kind;
  constexpr std::string_view kLayer = "model.layers.";
  const auto end = module.find('.', kLayer.size());
  if (place.name.empty() && module.starts_with(kLayer) && end != std::string::npos) {
    const auto part = module.substr(end + 1);
    std::string_view found;
    if (architecture.sandwich)
      for (const auto& [theirs, ours] : kGgufSandwichNames)
        if (part == ours) found = theirs;
    if (architecture.name == "phi3" && part == "mlp.gate_up_proj") found = "ffn_up";
    for (const auto& [theirs, ours] : kGgufLayerNames)
      if (found.empty() && part == ours) found = theirs;
    if (!found.empty())
      place.name = fmt::format(
          "blk.{}.{}{}", module.substr(kLayer.size(), end - kLayer.size()), found, kind);
    place.turned = architecture.pairs && (part == "self_attn.q_proj" || part == "self_attn.k_proj");
  }
  place.one_more = architecture.one_more && tensor.ends_with("norm.weight");
  return place;
}

}  // namespace model
