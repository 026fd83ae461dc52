// Any config.json is understood or gives an Error. No model is made before the weights agree.

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "core/error.h"
#include "core/io.h"
#include "fuzz/target.h"
#include "model/model_config.h"
#include "model/weights.h"
#include "nn/base/torch.h"

namespace {

/// A file of 12 tensors that belong to no model.
const model::TensorFiles& other_weights() {
  static core::MemorySink sink;
  static const auto reader = [] {
    model::NamedTensors tensors;
    for (int i = 0; i < 12; ++i)
      tensors.emplace_back("tensor" + std::to_string(i), torch::zeros({1}));
    model::write_safetensors(sink, tensors);
    return std::make_unique<model::TensorFiles>(std::make_unique<model::SafetensorsReader>(
        std::make_unique<core::RandomMemory>(sink.bytes)));
  }();
  return *reader;
}

bool is_named(const core::Error& error) {
  return error.code() == core::Code::bad_data || error.code() == core::Code::bad_config;
}

}  // namespace

FUZZ_TARGET(config_json)(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  model::Config config;
  try {
    config = model::parse_config(core::parse_json(text, "config.json"), "config.json");
  } catch (const core::Error& error) {
    if (!is_named(error)) std::abort();
    return;
  }
  const auto written =
      core::dump(model::make_config(config.options, config.vocabulary, {}, "", -1));
  const auto again = model::parse_config(core::parse_json(written, "again"), "again");
  if (core::to_json(again.options) != core::to_json(config.options)) std::abort();
  try {
    model::read_model(config, "config.json", other_weights());
    std::abort();
  } catch (const core::Error& error) {
    if (!is_named(error)) std::abort();
  }
}
