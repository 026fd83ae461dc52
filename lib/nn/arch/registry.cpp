// How each architecture is made. Adding one is its maker here, its facts in arch_facts.cpp and its
// options in model_options.h.

#include "core/error.h"
#include "nn/arch/encoder_decoder.h"
#include "nn/arch/gla.h"
#include "nn/arch/lstm.h"
#include "nn/arch/model.h"
#include "nn/arch/mosaic.h"
#include "nn/arch/mosaic2.h"
#include "nn/arch/srupp.h"
#include "nn/arch/transformer.h"
#include "nn/arch/transformer_xl.h"
#include "nn/base/arch_facts.h"

namespace nn {
namespace {

struct Maker {
  const char* name;
  std::shared_ptr<Architecture> (*make)(const ModelOptions& options, std::int64_t vocabulary);
};

template <class A>
std::shared_ptr<Architecture> make(const ModelOptions& options, std::int64_t vocabulary) {
  return std::make_shared<A>(options, vocabulary);
}

const Maker kMakers[] = {
    {"transformer", make<Transformer>},
    {"transformer-xl", make<TransformerXl>},
    {"lstm", make<Lstm>},
    {"gla", make<Gla>},
    {"mosaic", make<Mosaic>},
    {"mosaic2", make<Mosaic2>},
    {"srupp", make<Srupp>},
    {"encoder-decoder", make<EncoderDecoder>},
};

}  // namespace

std::shared_ptr<Architecture> make_architecture(const ModelOptions& options,
                                                std::int64_t vocabulary) {
  for (const auto& maker : kMakers)
    if (options.arch == maker.name) return maker.make(options, vocabulary);
  core::fail(core::Code::bug, "arch: '{}' has no maker", arch_facts(options.arch).name);
}

}  // namespace nn
