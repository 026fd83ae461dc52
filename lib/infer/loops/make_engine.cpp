#include "infer/loops/make_engine.h"

#include "core/error.h"
#include "infer/loops/device_engine.h"
#include "infer/loops/layered_models.h"
#include "infer/loops/transformer_engine.h"

namespace infer {

std::unique_ptr<Engine> make_engine(nn::Model& model, torch::Device device, Precision precision,
                                    bool record) {
  if (TransformerEngine::fits(model, device))
    return std::make_unique<TransformerEngine>(model, precision);
  if (auto layered = layered_model(model, device, precision))
    return std::make_unique<LayeredEngine>(model, std::move(*layered), precision);
  if (DeviceEngine::fits(model, device) && precision == Precision::float32)
    return std::make_unique<DeviceEngine>(model, device, record);
  if (precision != Precision::float32)
    core::fail(core::Code::unavailable,
               "--dtype: not supported on a device or with bounded memories; leave it out");
  return std::make_unique<ModuleEngine>(model, device);
}

}  // namespace infer
