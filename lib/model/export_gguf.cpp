#include "model/export_gguf.h"

#include "model/export_model.h"
#include "model/gguf/gguf_keys.h"
#include "model/tokenizer_file.h"
#include "text/formats/tokenizer_json.h"

namespace model {
namespace {

// Returns the family to write: the requested one, the model's own, or the first family that has a
// GGUF architecture and the model's shape.
const Family& family_to_write(const Loaded& loaded, const std::string& asked) {
  const std::string type = asked.empty() ? loaded.family : asked;
  if (!type.empty()) {
    const Family& family = family_named(type, loaded.folder);
    if (gguf_architecture_of(type) == nullptr)
      core::bad_config("{}: GGUF export of {} is not supported; supported: {}", loaded.folder, type,
          fmt::join(gguf_architectures(), ", "));
    return family;
  }
  for (const auto& name : family_names()) {
    const Family& family = family_named(name, loaded.folder);
    if (gguf_architecture_of(name) != nullptr && unlike(family, loaded.model->options).empty())
      return family;
  }
  core::bad_config("{}: cannot be exported as GGUF: its shape matches none of {}", loaded.folder,
      fmt::join(gguf_architectures(), ", "));
}

const GgufType& type_of(const std::string& dtype, torch::Dtype stored) {
  const std::string name = dtype == "auto" ? name_of_type(stored) : dtype;
  return *gguf_type_to_write(name == "bfloat16"  ? "BF16"
                             : name == "float16" ? "F16"
                             : name == "q8_0"    ? "Q8_0"
                                                 : "F32");
}

// Returns llama.cpp's number for the type of most tensors of a file.
std::uint32_t file_type(const GgufType& type) {
  return type.name == "F16" ? 1 : type.name == "Q8_0" ? 7 : type.name == "BF16" ? 32 : 0;
}

// Returns whether a value that was written as a float32 is the nearest one to `value`.
bool same_in_float32(const core::Json& value, const core::Json& read) {
  if (value.is_number_float() && read.is_number())
    return static_cast<float>(value.get<double>()) == static_cast<float>(read.get<double>());
  return value == read;
}

// Checks that the keys describe the model's function. It writes a file with these keys and the
// tensors whose presence or values are read, and reads it back.
void expect_said(const nn::ModelOptions& options, std::int64_t vocabulary, const Family& family,
    const GgufMetadata& keys, std::vector<GgufNewTensor> tensors, const std::vector<float>& factors,
    const std::string& name) {
  for (auto& tensor : tensors) {
    tensor.type = gguf_type_to_write("F32");
    if (tensor.name != kGgufRopeFactors)
      tensor.shape = tensor.name == "token_embd.weight" ? std::vector{vocabulary, std::int64_t{1}}
                                                        : std::vector<std::int64_t>{1};
  }
  core::MemorySink sink;
  write_gguf(sink, keys, tensors, [&](std::size_t i) {
    return tensors[i].name == kGgufRopeFactors
               ? factors
               : std::vector<float>(tensors[i].bytes() / sizeof(float));
  });
  const GgufFile file(sink.bytes, name);
  const auto config = gguf_config(file);
  std::int64_t rows = 0;
  const auto& other = family_named(config["model_type"], name);
  auto read = family_options(other, config, name, &rows);
  const auto own =
      core::parse_json(core::dump(family_config(family, options, vocabulary, -1)), name);
  auto asked = family_options(family, own, name, &rows);
  for (auto* each : {&read, &asked}) each->shape.dropout = each->shape.attention_dropout = 0;
  const auto has = core::to_json(asked), gives = core::to_json(read);
  for (const auto& [key, value] : has.items())
    if (!same_in_float32(value, gives.at(key)))
      core::bad_config("{}: GGUF cannot express {} {}", name, key, core::dump(value));
}

GgufIds ids_of(const Loaded& loaded) {
  const auto id = [&](const char* key) {
    const auto found = loaded.config.find(key);
    return found != loaded.config.end() && found->is_number_integer() ? found->get<std::int64_t>()
                                                                      : -1;
  };
  return {id("bos_token_id"), id("pad_token_id"), end_tokens(loaded.folder, loaded.config)};
}

// Returns a tensor's numbers in the order of the file, before they are packed.
std::vector<float> numbers_of(
    const torch::Tensor& weight, const GgufPlace& place, std::int64_t head_width) {
  auto values = weight.detach().to(torch::kCPU, torch::kFloat32);
  if (place.turned) {
    std::vector<std::int64_t> order(static_cast<std::size_t>(values.size(0)));
    for (std::size_t i = 0; i < order.size(); ++i)
      order[i] = gguf_family_row(static_cast<std::int64_t>(i), head_width);
    values = values.index_select(0, torch::tensor(order));
  }
  if (place.one_more) values = values + 1;
  values = values.contiguous();
  const auto* const first = values.const_data_ptr<float>();
  return {first, first + values.numel()};
}

void expect_finite(const std::vector<float>& numbers, const GgufNewTensor& tensor) {
  constexpr float kMostHalf = 65504;
  const bool half = tensor.type->name == "F16" || tensor.type->name == "Q8_0";
  const float most = !half ? 3.3e38F : tensor.type->name == "F16" ? kMostHalf : kMostHalf * 127;
  if (std::any_of(numbers.begin(), numbers.end(), [&](float x) { return !(std::abs(x) <= most); }))
    core::bad_data("--dtype: {} has values beyond the range of {}; use bfloat16", tensor.name,
        tensor.type->name);
}

}  // namespace

GgufExport export_gguf(const Loaded& loaded, const std::string& family_asked,
    const std::string& dtype, const std::string& path) {
  const torch::NoGradGuard no_grad;
  const Family& family = family_to_write(loaded, family_asked);
  const auto& architecture = *gguf_architecture_of(std::string(family.type));
  const auto model = in_shape_of(family, loaded.model, loaded.folder);
  const auto config = core::parse_json(
      core::dump(family_config(family, model->options, model->vocabulary, -1)), loaded.folder);
  const auto heads = nn::head_shape(model->options.shape, model->options.transformer);
  const GgufType& type = type_of(dtype, loaded.stored_type);
  GgufExport report{std::string(architecture.name), {}};

  auto keys = gguf_keys(architecture, config);
  keys.emplace_back("general.file_type", file_type(type));
  keys.emplace_back("general.quantization_version", std::uint32_t{2});
  const auto factors = gguf_rope_factors(config);
  std::vector<GgufNewTensor> tensors;
  std::vector<std::pair<torch::Tensor, GgufPlace>> weights;
  std::int64_t narrowed = 0;
  for (const auto& [name, weight] : weights_to_write(*model, &family)) {
    const auto place = gguf_place(architecture, name);
    if (place.name.empty())
      core::bad_config(
          "{}: GGUF files of {} cannot express {}", loaded.folder, architecture.name, name);
    const GgufType* own = weight.dim() == 1 ? gguf_type_to_write("F32") : &type;
    if (weight.size(-1) % static_cast<std::int64_t>(own->elements) != 0)
      own = gguf_type_to_write("F16"), ++narrowed;
    tensors.push_back({place.name, weight.sizes().vec(), own});
    weights.emplace_back(weight, place);
  }
  if (narrowed > 0)
    report.notes.push_back(
        fmt::format("wrote {} of {} tensors as float16, since their rows are not multiples of 32",
            narrowed, tensors.size()));
  if (!factors.empty())
    tensors.push_back({kGgufRopeFactors, {std::ssize(factors)}, gguf_type_to_write("F32")});
  expect_said(model->options, model->vocabulary, family, keys, tensors, factors, loaded.folder);

  if (!loaded.tokenizer.empty()) {
    std::string remark;
    for (auto& key :
        gguf_tokenizer_keys(loaded.tokenizer, model->vocabulary, ids_of(loaded), remark))
      keys.push_back(std::move(key));
    if (!remark.empty()) report.notes.push_back(remark);
    if (auto chat = chat_source_of(loaded.folder); !chat.empty())
      keys.emplace_back("tokenizer.chat_template", std::move(chat));
  } else {
    keys.emplace_back("tokenizer.ggml.model", std::string("none"));
    report.notes.emplace_back("the model has no tokenizer, so the file has none");
  }
  core::Output out(path);
  write_gguf(out, keys, tensors, [&](std::size_t i) {
    auto numbers =
        i < weights.size() ? numbers_of(weights[i].first, weights[i].second, heads.width) : factors;
    expect_finite(numbers, tensors[i]);
    return numbers;
  });
  out.commit();
  return report;
}

}  // namespace model
