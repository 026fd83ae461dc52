#pragma once
// What several architectures ask of their options.

#include "nn/base/model_options.h"

namespace nn {

/// The heads divide d_model. This and the others throw Error{bad_config} naming the option.
void check_heads(const ShapeOptions& shape);
/// Heads of any width, and those of keys and values divide them.
void check_heads(const ShapeOptions& shape, const TransformerOptions& options);
/// norm is pre or post.
void check_norm(const TransformerOptions& options);
/// Rotary positions turn pairs; heads are checked.
void check_positions(const ShapeOptions& shape, const TransformerOptions& options);
/// The layers named exist, and what a head reads is there. `memory` any: of a transformer.
void check_memory_layers(const MemoryLayerOptions& memory, const ShapeOptions& shape);

}  // namespace nn
