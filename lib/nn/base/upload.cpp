#include "nn/base/upload.h"

#include <stdexcept>

namespace nn {
namespace {

thread_local SameUploads* t_same = nullptr;

torch::Tensor copied(const torch::Tensor& host, torch::Device device) {
  return host.pin_memory().to(device, /*non_blocking=*/true);
}

bool same(const torch::Tensor& a, const torch::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && torch::equal(a, b);
}

}  // namespace

torch::Tensor upload(const torch::Tensor& x, const torch::TensorOptions& options) {
  if (!x.is_cpu() || options.device().is_cpu()) return x.to(options);
  const auto host = x.to(options.device(torch::kCPU));
  return t_same != nullptr ? t_same->give(host, options.device()) : copied(host, options.device());
}

SameUploads::SameUploads(Uploads& uploads, bool complete)
    : uploads_(uploads), complete_(complete), before_(t_same) {
  t_same = this;
}

SameUploads::~SameUploads() { t_same = before_; }

torch::Tensor SameUploads::give(const torch::Tensor& host, torch::Device device) {
  const auto i = given_++;
  if (i < uploads_.size() && same(uploads_[i].first, host)) return uploads_[i].second;
  if (complete_) throw std::logic_error("uploaded data changed during the recording");
  uploads_.resize(i);
  return uploads_.emplace_back(host.clone(), copied(host, device)).second;
}

}  // namespace nn
