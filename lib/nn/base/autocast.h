#pragma once
// Computes products in another type than that of the weights.

#include <ATen/autocast_mode.h>

#include "nn/base/torch.h"

namespace nn {

/// During its lifetime, if `on`, products on the device are computed in `type`. Weights and sums
/// stay float32.
class Autocast {
 public:
  Autocast(bool on, torch::Device device, torch::ScalarType type = torch::kBFloat16)
      : on_(on), device_(device.type()) {
    if (!on_) return;
    was_on_ = at::autocast::is_autocast_enabled(device_);
    was_type_ = at::autocast::get_autocast_dtype(device_);
    at::autocast::increment_nesting();
    at::autocast::set_autocast_enabled(device_, true);
    at::autocast::set_autocast_dtype(device_, type);
  }
  ~Autocast() {
    if (!on_) return;
    if (at::autocast::decrement_nesting() == 0) at::autocast::clear_cache();
    at::autocast::set_autocast_enabled(device_, was_on_);
    at::autocast::set_autocast_dtype(device_, was_type_);
  }
  Autocast(const Autocast&) = delete;
  Autocast& operator=(const Autocast&) = delete;

 private:
  bool on_, was_on_ = false;
  torch::DeviceType device_;
  torch::ScalarType was_type_ = torch::kFloat32;
};

}  // namespace nn
