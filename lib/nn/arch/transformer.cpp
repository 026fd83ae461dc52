#include "nn/arch/transformer.h"

namespace nn {

Transformer::Transformer(const ModelOptions& options, std::int64_t vocabulary)
    : DecoderStack(options, vocabulary) {
  register_blocks(/*read_sources=*/false);
}

Hidden Transformer::forward(const Batch& batch, State* state) {
  KvCache cache(batch, state, context());
  return decode(batch, cache, {}, watcher(), state);
}

}  // namespace nn
