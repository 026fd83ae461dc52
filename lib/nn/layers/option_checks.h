#pragma once
// Checks of options that several architectures share.

#include "nn/base/model_options.h"

namespace nn {

/// Checks that the heads divide d_model. All checks throw Error{bad_config} that names the option.
void check_heads(const ShapeOptions& shape);
/// Checks that the key-value heads divide the query heads; heads may have any width.
void check_heads(const ShapeOptions& shape, const TransformerOptions& options);
/// Checks that norm is pre or post.
void check_norm(const TransformerOptions& options);
/// Checks that rotary embeddings rotate pairs; call check_heads() before.
void check_positions(const ShapeOptions& shape, const TransformerOptions& options);
/// Checks that no token has more experts than there are, and that options of experts are used only
/// with experts.
void check_experts(const ExpertOptions& experts);
/// Checks that the named layers exist and that a head has enough values to read. Requires
/// memory.any() of a transformer.
void check_memory_layers(const MemoryLayerOptions& memory, const ShapeOptions& shape);

}  // namespace nn
