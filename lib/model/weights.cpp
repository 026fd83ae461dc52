#include "model/weights.h"

#include <fmt/ranges.h>

#include <set>

#include "core/error.h"
#include "model/gpt2.h"
#include "nn/layers/init.h"
#include "nn/layers/layers.h"

namespace model {
namespace {

using core::Code;
using core::fail;

std::string print(torch::IntArrayRef shape) {
  return fmt::format("({})", fmt::join(shape.begin(), shape.end(), ", "));
}

bool is_transposed(bool gpt2_layout, const std::string& name) {
  return gpt2_layout && is_transposed_in_gpt2(name);
}

/// What throws inside torch when options are absurd becomes the Error of a bad configuration.
template <class Make>
auto made(const std::string& origin, const Make& make) {
  try {
    return make();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    fail(Code::bad_config, "{}: no model can be made of it: {}", origin,
         text.substr(0, text.find('\n')));
  } catch (const core::Error& error) {
    fail(error.code(), "{}: {}", origin, error.what());
  }
}

/// Name in the file and shape there of each weight.
struct Expected {
  std::string name, file_name;
  std::vector<std::int64_t> shape;
};

std::vector<Expected> expected_tensors(const Config& config, const std::string& origin, bool bare) {
  const auto shapes = made(origin, [&] {
    const nn::ShapesOnly shapes_only;
    const nn::NoFirstValues unset;
    return nn::Model(config.options, config.vocabulary).named_weights();
  });
  std::vector<Expected> expected;
  for (const auto& [name, tensor] : shapes) {
    auto shape = tensor.sizes().vec();
    if (is_transposed(config.gpt2_layout, name)) std::swap(shape[0], shape[1]);
    expected.push_back({name, config.gpt2_layout ? gpt2_name(name, bare) : name, std::move(shape)});
  }
  return expected;
}

/// transformers ties the head to the embedding whatever the file has for it.
void expect_tied(const SafetensorsReader& reader, const std::string& head,
                 const std::string& embedding) {
  if (reader.entry(head).shape != reader.entry(embedding).shape ||
      !reader.read(head).equal(reader.read(embedding)))
    fail(Code::bad_data, "{}: {} differs from {}, but config.json ties them", reader.name(), head,
         embedding);
}

void check_tensors(const SafetensorsReader& reader, const std::vector<Expected>& expected,
                   const Config& config, bool bare) {
  std::set<std::string> known;
  for (const auto& weight : expected) {
    if (!reader.has(weight.file_name))
      fail(Code::bad_data, "{}: no tensor {} {} in it", reader.name(), weight.file_name,
           print(weight.shape));
    const auto& entry = reader.entry(weight.file_name);
    if (entry.shape != weight.shape)
      fail(Code::bad_data, "{}: tensor {} is {}, config.json makes it {}", reader.name(),
           weight.file_name, print(entry.shape), print(weight.shape));
    if (!c10::isFloatingType(entry.dtype))
      fail(Code::bad_data, "{}: tensor {} is of type {}, not floating point", reader.name(),
           weight.file_name, c10::toString(entry.dtype));
    known.insert(weight.file_name);
  }
  for (const auto& [name, entry] : reader.entries()) {
    if (known.count(name) > 0) continue;
    if (config.gpt2_layout && is_gpt2_buffer(name)) continue;
    if (config.gpt2_layout && name == "lm_head.weight") {
      expect_tied(reader, name, gpt2_name("transformer.wte.weight", bare));
      continue;
    }
    fail(Code::bad_data, "{}: tensor {} {} belongs to no part of the model", reader.name(), name,
         print(entry.shape));
  }
}

bool is_finite(const torch::Tensor& tensor) {
  if (tensor.numel() == 0) return true;
  const auto [least, most] = tensor.aminmax();  // NaN stays NaN; no copy is made
  return torch::isfinite(least).item<bool>() && torch::isfinite(most).item<bool>();
}

}  // namespace

NamedTensors weights_to_write(const nn::Model& model, bool gpt2_layout) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : model.named_weights())
    tensors.emplace_back(name,
                         is_transposed(gpt2_layout, name) ? tensor.detach().t() : tensor.detach());
  return tensors;
}

std::shared_ptr<nn::Model> read_model(const Config& config, const std::string& config_origin,
                                      const SafetensorsReader& reader) {
  if (config.options.shape.layers > static_cast<std::int64_t>(reader.entries().size()))
    fail(Code::bad_data, "{}: {} tensors for {} layers", reader.name(), reader.entries().size(),
         config.options.shape.layers);
  const bool bare = reader.has("wte.weight");
  const auto expected = expected_tensors(config, config_origin, bare);
  check_tensors(reader, expected, config, bare);

  const torch::NoGradGuard no_grad;
  const nn::NoFirstValues unset;  // torch's generator stays as it is
  const auto model = std::make_shared<nn::Model>(config.options, config.vocabulary);
  const auto weights = model->named_weights();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::string& name = expected[i].file_name;
    const bool transposed = is_transposed(config.gpt2_layout, expected[i].name);
    torch::Tensor target = weights[i].second;
    if (!transposed && reader.entry(name).dtype == target.scalar_type()) {
      reader.read_into(name, target);  // without a copy: embeddings are large
    } else {
      const auto tensor = reader.read(name);
      target.copy_(transposed ? tensor.t() : tensor);
    }
    if (!is_finite(target))
      fail(Code::bad_data, "{}: tensor {} holds a value that is not finite", reader.name(), name);
  }
  return model;
}

core::Digest fingerprint(const nn::Model& model) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : model.named_weights())
    tensors.emplace_back(name, tensor.detach().to(torch::kFloat32));
  core::Hasher hasher;
  hasher.update(options_digest(model.options, model.vocabulary).hex());
  hasher.update(tensors_digest(tensors).hex());
  return hasher.digest();
}

}  // namespace model
