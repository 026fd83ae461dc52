#include "nn/base/download.h"

namespace nn {

using torch::Tensor;

Download::Download(const std::vector<Tensor>& tensors, torch::Dtype dtype) {
  if (tensors.empty()) return;
  const auto device = tensors[0].device();
  if (device.is_cpu()) {
    for (const Tensor& tensor : tensors) here_.push_back(tensor.to(dtype));
    return;
  }
  std::vector<Tensor> flat;
  for (const Tensor& tensor : tensors) flat.push_back(tensor.to(dtype).flatten());
  const Tensor all = flat.size() == 1 ? flat[0] : torch::cat(flat);
  const Tensor pinned =
      torch::empty(all.sizes(), torch::TensorOptions().dtype(dtype).pinned_memory(true));
  pinned.copy_(all, /*non_blocking=*/true);
  copied_.emplace(device.type());
  copied_->record(c10::impl::VirtualGuardImpl(device.type()).getStream(device));
  std::int64_t begin = 0;
  for (const Tensor& tensor : tensors) {
    here_.push_back(pinned.slice(0, begin, begin + tensor.numel()).view(tensor.sizes()));
    begin += tensor.numel();
  }
}

std::vector<Tensor> Download::get() {
  if (copied_) copied_->synchronize();
  copied_.reset();
  return std::move(here_);
}

}  // namespace nn
