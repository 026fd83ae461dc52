// Makers of all architectures. To add one, add its maker here, its facts in architecture.cpp and
// its options in model_options.h.

#include "nn/arch/encoder_decoder.h"
#include "nn/arch/gla.h"
#include "nn/arch/lstm.h"
#include "nn/arch/model.h"
#include "nn/arch/mosaic.h"
#include "nn/arch/mosaic2.h"
#include "nn/arch/srupp.h"
#include "nn/arch/transformer_xl.h"

namespace nn {
namespace {

struct Maker {
  const char* name;
  std::shared_ptr<Architecture> (*make)(const ModelOptions& options, std::int64_t vocabulary);
  CarriedState (*carried_state)(const ModelOptions& options);
};

template <class A> constexpr Maker maker(const char* name) {
  return {name,
      [](const ModelOptions& options, std::int64_t vocabulary) -> std::shared_ptr<Architecture> {
        return std::make_shared<A>(options, vocabulary);
      },
      A::carried_state};
}

constexpr Maker kMakers[] = {
    maker<Transformer>("transformer"),
    maker<TransformerXl>("transformer-xl"),
    maker<Lstm>("lstm"),
    maker<Gla>("gla"),
    maker<Mosaic>("mosaic"),
    maker<Mosaic2>("mosaic2"),
    maker<Srupp>("srupp"),
    maker<EncoderDecoder>("encoder-decoder"),
};

const Maker& maker_of(const ModelOptions& options) {
  for (const auto& maker : kMakers)
    if (options.arch == maker.name) return maker;
  core::bug("arch: '{}' has no maker", arch_facts(options.arch).name);
}

}  // namespace

std::shared_ptr<Architecture> make_architecture(
    const ModelOptions& options, std::int64_t vocabulary) {
  return maker_of(options).make(options, vocabulary);
}

CarriedState carried_state(const ModelOptions& options) {
  return maker_of(options).carried_state(options);
}

}  // namespace nn
