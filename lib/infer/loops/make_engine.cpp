#include "infer/loops/make_engine.h"

#include "core/error.h"
#include "infer/loops/device_engine.h"
#include "infer/loops/layered_models.h"
#include "infer/loops/transformer_engine.h"

namespace infer {

std::unique_ptr<Engine> make_engine(nn::Model& model, torch::Device device, Precision precision,
                                    bool record, const PackedModel* packed) {
  if (TransformerEngine::fits(model, device, packed))
    return std::make_unique<TransformerEngine>(model, precision, packed);
  if (auto layered = layered_model(model, device, precision))
    return std::make_unique<LayeredEngine>(model, std::move(*layered), precision);
  if (DeviceEngine::fits(model, device) && precision == Precision::float32)
    return std::make_unique<DeviceEngine>(model, device, record);
  if (precision != Precision::float32)
    core::fail(core::Code::unavailable,
               "--dtype: not supported on a device or with bounded memories; leave it out");
  return std::make_unique<ModuleEngine>(model, device);
}

model::Loaded load_to_decode(const std::string& path, torch::Device device, Precision precision,
                             const std::string& adapter, std::optional<torch::Dtype> others) {
  if (precision == Precision::float32) others = torch::kFloat32;
  // Weights that will be packed need no float32 copy first.
  auto packed = device.is_cpu() ? std::make_shared<PackedModel>(precision) : nullptr;
  return model::load(path, device, others, adapter, std::move(packed));
}

const PackedModel* packed_in(const model::Loaded& loaded) {
  const auto* const packed = dynamic_cast<const PackedModel*>(loaded.taker.get());
  return packed == nullptr || packed->empty() ? nullptr : packed;
}

model::Loaded read_again(const model::Loaded& loaded) {
  auto again = model::load(loaded.folder, torch::kCPU, torch::kFloat32, loaded.adapter);
  if (again.fingerprint.hex() != loaded.fingerprint.hex())
    core::fail(core::Code::bad_data,
               "{}: its weights have changed since they were loaded; start the program again",
               loaded.folder);
  return again;
}

void take_packed_weights(const model::Loaded& loaded, const model::Loaded& again) {
  const auto* const packed = packed_in(loaded);
  if (packed == nullptr) return;
  const torch::NoGradGuard no_gradient;
  const auto from = again.model->named_weights(), to = loaded.model->named_weights();
  for (std::size_t i = 0; i < to.size(); ++i)
    if (packed->find(to[i].second) != nullptr)
      torch::Tensor(to[i].second).set_data(from[i].second.detach());
}

}  // namespace infer
