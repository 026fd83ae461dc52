#include "model/weights.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "core/error.h"
#include "model/families/family.h"
#include "nn/layers/init.h"
#include "nn/layers/layers.h"

namespace model {
namespace {

using core::Code;
using core::fail;

std::string print(torch::IntArrayRef shape) {
  return fmt::format("({})", fmt::join(shape.begin(), shape.end(), ", "));
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

/// What stands in the files of one weight: its pieces, with the names there.
struct Expected {
  std::vector<std::int64_t> shape;
  std::vector<Piece> pieces;
};

/// In the order of the model's weights. `bare`: without the family's base.
std::vector<Expected> expected_tensors(const Config& config, const std::string& origin, bool bare) {
  const auto shapes = made(origin, [&] {
    const nn::ShapesOnly shapes_only;
    const nn::NoFirstValues unset;
    return nn::Model(config.options, config.vocabulary).named_weights();
  });
  std::vector<Expected> expected;
  for (const auto& [name, tensor] : shapes) {
    auto pieces = pieces_of(config.family, config.options, name, tensor.size(0));
    if (bare)
      for (auto& piece : pieces) piece.tensor = bare_name(*config.family, piece.tensor);
    expected.push_back({tensor.sizes().vec(), std::move(pieces)});
  }
  return expected;
}

/// transformers ties the head to the embedding whatever the file has for it.
void expect_tied(const TensorFiles& files, const std::string& head, const std::string& embedding) {
  if (files.entry(head).shape != files.entry(embedding).shape ||
      !files.read(head).equal(files.read(embedding)))
    fail(Code::bad_data, "{}: {} differs from {}, but config.json ties them", files.file_of(head),
         head, embedding);
}

void check_tensors(const TensorFiles& files, const std::vector<Expected>& expected,
                   const Config& config) {
  std::set<std::string> known;
  for (const auto& weight : expected) {
    for (const auto& piece : weight.pieces) {
      const auto shape = piece.shape_there(weight.shape);
      if (!files.has(piece.tensor))
        fail(Code::bad_data, "{}: no tensor {} {} in it", files.name(), piece.tensor, print(shape));
      const auto& entry = files.entry(piece.tensor);
      if (entry.shape != shape)
        fail(Code::bad_data, "{}: tensor {} is {}, config.json makes it {}",
             files.file_of(piece.tensor), piece.tensor, print(entry.shape), print(shape));
      if (!c10::isFloatingType(entry.dtype))
        fail(Code::bad_data, "{}: tensor {} is of type {}, not floating point",
             files.file_of(piece.tensor), piece.tensor, c10::toString(entry.dtype));
      known.insert(piece.tensor);
    }
  }
  for (const auto& name : files.tensors()) {
    if (known.count(name) > 0 || is_buffer(config.family, name)) continue;
    const bool tied = config.family != nullptr && config.options.vocabulary.tied;
    if (tied && name == head_name(*config.family, config.options)) {
      expect_tied(files, name, expected[0].pieces[0].tensor);
      continue;
    }
    fail(Code::bad_data, "{}: tensor {} {} belongs to no part of the model", files.file_of(name),
         name, print(files.entry(name).shape));
  }
}

/// Where each stands, in the order of their names.
std::vector<std::size_t> by_name(
    const std::vector<std::pair<std::string, torch::Tensor>>& weights) {
  std::vector<std::size_t> order(weights.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return weights[a].first < weights[b].first; });
  return order;
}

/// Of a model whose weights come one by one, by_name(), as float32.
class Fingerprint {
 public:
  void add(const std::string& name, const torch::Tensor& weight) { weights_.add(name, weight); }
  core::Digest of(const nn::Model& model) const {
    core::Hasher hasher;
    hasher.update(options_digest(model.options, model.vocabulary).hex());
    hasher.update(weights_.digest().hex());
    return hasher.digest();
  }

 private:
  TensorsDigest weights_;
};

bool is_finite(const torch::Tensor& tensor) {
  if (tensor.numel() == 0) return true;
  const auto [least, most] = tensor.aminmax();  // NaN stays NaN; no copy is made
  return torch::isfinite(least).item<bool>() && torch::isfinite(most).item<bool>();
}

}  // namespace

NamedTensors weights_to_write(const nn::Model& model, const Family* family) {
  NamedTensors tensors;
  for (const auto& [name, tensor] : model.named_weights())
    for (const auto& piece : pieces_of(family, model.options, name, tensor.size(0)))
      tensors.emplace_back(piece.tensor,
                           piece.there(tensor.detach().narrow(0, piece.begin, piece.rows)));
  return tensors;
}

torch::Dtype dtype_of(const TensorFiles& files) {
  for (const auto& name : files.tensors())
    if (files.entry(name).dtype != torch::kBFloat16) return torch::kFloat32;
  return torch::kBFloat16;
}

ReadModel read_model(const Config& config, const std::string& config_origin,
                     const TensorFiles& files, torch::Dtype dtype) {
  if (config.options.shape.layers > static_cast<std::int64_t>(files.size()))
    fail(Code::bad_data, "{}: {} tensors for {} layers", files.name(), files.size(),
         config.options.shape.layers);
  auto expected = expected_tensors(config, config_origin, false);
  if (config.family != nullptr && !files.has(expected[0].pieces[0].tensor))
    if (files.has(bare_name(*config.family, expected[0].pieces[0].tensor)))
      expected = expected_tensors(config, config_origin, true);
  check_tensors(files, expected, config);

  const torch::NoGradGuard no_grad;
  const nn::NoFirstValues unset;  // torch's generator stays as it is
  const nn::ParameterType type(dtype);
  const auto model = std::make_shared<nn::Model>(config.options, config.vocabulary);
  const auto weights = model->named_weights();
  Fingerprint fingerprint;
  for (const auto i : by_name(weights)) {
    const auto& [weight_name, weight] = weights[i];
    const auto wide = dtype == torch::kFloat32 ? weight : torch::empty(weight.sizes());
    for (const auto& piece : expected[i].pieces) {
      const std::string& name = piece.tensor;
      const torch::Tensor target = wide.narrow(0, piece.begin, piece.rows);
      if (piece.layout == Layout::as_is && files.entry(name).dtype == target.scalar_type()) {
        files.read_into(name, target);  // without a copy: embeddings are large
      } else {
        target.copy_(piece.here(files.read(name)));
      }
      if (!is_finite(target))
        fail(Code::bad_data, "{}: tensor {} holds a value that is not finite", files.file_of(name),
             name);
    }
    fingerprint.add(weight_name, wide);
    if (dtype != torch::kFloat32) torch::Tensor(weight).copy_(wide);
  }
  return {model, fingerprint.of(*model)};
}

core::Digest fingerprint(const nn::Model& model) {
  const auto weights = model.named_weights();
  Fingerprint fingerprint;
  for (const auto i : by_name(weights))
    fingerprint.add(weights[i].first, weights[i].second.detach().to(torch::kFloat32));
  return fingerprint.of(model);
}

}  // namespace model
