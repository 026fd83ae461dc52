#pragma once
// A plain softmax with packed weights, for decoding.

#include <memory>

#include "infer/decode/decode_kernels.h"
#include "infer/decode/packed_model.h"
#include "nn/arch/model.h"

namespace infer {

/// Returns whether the model's head is a plain softmax without biases.
bool packs_head(const nn::Model& model);
/// Returns the head for decoding: a packed one if packs_head(), else the model's own. `packed`
/// (null: none) has the matrices that were taken from the model.
std::shared_ptr<nn::Head> decoding_head(const nn::Model& model, Precision precision,
                                        const PackedModel* packed = nullptr);

}  // namespace infer
