// Which architectures there are. Adding one is its maker here and its options in model_options.h.

#include <algorithm>

#include <fmt/ranges.h>

#include "core/error.h"
#include "nn/encoder_decoder.h"
#include "nn/gla.h"
#include "nn/lstm.h"
#include "nn/model.h"
#include "nn/mosaic.h"
#include "nn/srupp.h"
#include "nn/transformer.h"
#include "nn/transformer_xl.h"

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
    {"srupp", make<Srupp>},
    {"encoder-decoder", make<EncoderDecoder>},
};

}  // namespace

void Architecture::set_reach(const Reach& reach) {
  if (reach.context_slots != 0)
    core::fail(core::Code::usage,
               "--context-slots: only a mosaic has contextual memories; leave it out");
  if (reach.of_layers())
    core::fail(core::Code::usage,
               "--layer-memory, --clamp-length, --same-length: this model's layers have no such "
               "memory; leave them out");
}

std::vector<std::string> architecture_names() {
  std::vector<std::string> names;
  for (const auto& maker : kMakers) names.emplace_back(maker.name);
  return names;
}

std::shared_ptr<Architecture> make_architecture(const ModelOptions& options,
                                                std::int64_t vocabulary) {
  for (const auto& maker : kMakers)
    if (options.arch == maker.name) return maker.make(options, vocabulary);
  core::fail(core::Code::bad_config, "arch: '{}' is none of {}", options.arch,
             fmt::join(architecture_names(), ", "));
}

}  // namespace nn
