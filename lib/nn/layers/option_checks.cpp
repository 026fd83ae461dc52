#include "nn/layers/option_checks.h"

#include "core/error.h"

namespace nn {

using core::Code;
using core::fail;

void check_heads(const ShapeOptions& shape) {
  if (shape.d_model % shape.heads != 0)
    fail(Code::bad_config, "heads: {} does not divide d-model {}", shape.heads, shape.d_model);
}

void check_norm(const TransformerOptions& options) {
  if (options.norm != "pre" && options.norm != "post")
    fail(Code::bad_config, "norm: '{}' is none of pre, post", options.norm);
}

void check_positions(const ShapeOptions& shape, const TransformerOptions& options) {
  if (options.positions == "rope" && shape.d_model / shape.heads % 2 != 0)
    fail(Code::bad_config, "positions: rope needs heads of even width, not {}",
         shape.d_model / shape.heads);
}

}  // namespace nn
