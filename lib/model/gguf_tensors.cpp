#include "model/gguf_tensors.h"

#include <utility>

namespace model {

GgufTensors::GgufTensors(const std::string& path) : GgufTensors(GgufFile(path)) {}

GgufTensors::GgufTensors(std::span<const std::byte> bytes, std::string name)
    : GgufTensors(GgufFile(bytes, std::move(name))) {}

GgufTensors::GgufTensors(GgufFile file) : file_(std::move(file)), weights_(gguf_weights(file_)) {
  for (const auto& [name, weight] : weights_) {
    const auto& tensor = *weight.tensor;
    entries_[name] = {torch::kFloat32, tensor.shape, tensor.begin, tensor.begin + tensor.bytes};
  }
}

std::string GgufTensors::type_of(const std::string& tensor) const {
  entry(tensor);
  return std::string(weights_.at(tensor).tensor->type->name);
}

void GgufTensors::fill(const std::string& tensor, std::int64_t first,
                       const torch::Tensor& out) const {
  gguf_read_rows(file_, weights_.at(tensor), first, out.size(0), out.data_ptr<float>());
}

}  // namespace model
