#include "nn/layers/key_visibility.h"

#include "core/error.h"
#include "nn/base/upload.h"

namespace nn {

torch::Tensor KeyVisibility::hidden(std::int64_t queries, std::int64_t slots,
                                    torch::Device device) const {
  const auto numbers = torch::TensorOptions(torch::kInt64).device(device);
  const auto own = torch::arange(slots - queries, slots, numbers).unsqueeze(1);  // (T, 1)
  const auto slot = torch::arange(slots, numbers).unsqueeze(0);                  // (1, S)
  auto hidden = slot > own;
  if (before >= 0) hidden = hidden | (slot < own - before);
  hidden = hidden.unsqueeze(0);
  if (first.defined())  // (B, T, S)
    hidden = hidden | (slot < upload(first, device).unsqueeze(1)).unsqueeze(1);
  return hidden.unsqueeze(1);
}

bool parse_same_length(const std::string& text) {
  if (text != "on" && text != "off")
    core::fail(core::Code::bad_config, "same-length: takes on or off, not '{}'", text);
  return text == "on";
}

}  // namespace nn
