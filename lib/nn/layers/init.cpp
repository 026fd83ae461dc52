#include "nn/layers/init.h"

#include <cmath>
#include <cstdlib>

#include "core/error.h"

namespace nn {
namespace {

thread_local bool no_first_values = false;

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// Whether the weight has a row per token or per position.
bool is_table(const std::string& name) {
  return contains(name, ".table_") || ends_with(name, "wte.weight") ||
         ends_with(name, "wpe.weight") || ends_with(name, "lm_head.weight");
}

/// Uses the names of torch's LSTM.
bool is_recurrent(const std::string& name) {
  return contains(name, "_ih_l") || contains(name, "_hh_l");
}

/// Returns N from "h.N", counted from 0, or 0 outside of layers.
std::int64_t layer_of(const std::string& name) {
  const auto path = "." + name;
  const auto at = path.find(".h.");
  return at == std::string::npos ? 0 : std::strtoll(path.c_str() + at + 3, nullptr, 10);
}

void fill(const std::string& name, torch::Tensor& p, const std::string& scheme,
          std::int64_t layers) {
  if (is_recurrent(name)) {
    const auto width = static_cast<double>(p.size(0)) / 4;  // of the cells, four gates each
    const auto bound = 1 / std::sqrt(width);
    p.uniform_(-bound, bound);
  } else if (p.dim() == 1) {
    p.fill_(ends_with(name, "bias") ? 0 : 1);
  } else if (scheme == "depth") {
    const auto numbers = static_cast<double>(2 * p.size(-1) * (layer_of(name) + 1));
    const auto spread = 1 / std::sqrt(numbers);
    p.normal_(0, spread).clamp_(-3 * spread, 3 * spread);
  } else if (scheme != "gpt2" && is_table(name)) {
    p.normal_(0, 1 / std::sqrt(static_cast<double>(p.size(1))));
  } else if (scheme == "fairseq") {
    torch::nn::init::xavier_uniform_(p);
  } else {
    const bool gpt2 = scheme == "gpt2", residual = ends_with(name, "c_proj.weight");
    const double spread = gpt2 ? .02 : 1 / std::sqrt(static_cast<double>(p.size(-1)));
    const auto additions = static_cast<double>(gpt2 ? 2 * layers : layers);
    p.normal_(0, residual ? spread / std::sqrt(additions) : spread);
  }
}

}  // namespace

void initialise(torch::nn::Module& module, const std::string& scheme, std::int64_t layers) {
  if (scheme != "gpt2" && scheme != "fairseq" && scheme != "fan-in" && scheme != "depth")
    core::fail(core::Code::bad_config, "init: takes gpt2, fairseq, fan-in or depth, not '{}'",
               scheme);
  if (no_first_values) return;
  const torch::NoGradGuard no_grad;
  for (auto& item : module.named_parameters()) fill(item.key(), item.value(), scheme, layers);
  for (const auto& part : module.modules(/*include_self=*/false))
    if (auto* const own = dynamic_cast<OwnFirstValues*>(part.get())) own->first_values();
}

NoFirstValues::NoFirstValues() : before_(no_first_values) { no_first_values = true; }
NoFirstValues::~NoFirstValues() { no_first_values = before_; }

}  // namespace nn
