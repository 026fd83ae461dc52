#include "infer/stores/store_search.h"

#include "core/error.h"
#include "core/io.h"
#include "core/line_reader.h"
#include "infer/stores/device_search.h"
#include "model/adapter.h"
#include "nn/base/cuda.h"
#include "text/formats/tokenizer_json.h"

namespace infer {
namespace {

model::Loaded load_model(const StoreSearchOptions& options, torch::Device device) {
  if (options.model.empty())
    core::fail(core::Code::usage, "-m MODEL is missing; give the model that computed the keys");
  if (options.store.empty()) core::fail(core::Code::usage, "STORE is missing; see --help");
  auto loaded =
      model::load(options.model, device, nn::dtype(options.compute.precision), options.adapter);
  model::give_tokenizer(loaded, options.tokenizer);
  return loaded;
}

text::TokenizerPtr model_tokenizer(const model::Loaded& loaded) {
  if (loaded.tokenizer.empty()) return nullptr;
  return text::parse_tokenizer(loaded.tokenizer, loaded.folder);
}

}  // namespace

void StoreSearchOptions::fields(core::FieldList& f) {
  f.positional("STORE", store, "folder of a datastore");
  f.positional("TEXT", contexts, "contexts; the lines of stdin if not given");
  f("model", model, "folder of the model that computed the keys [required]").short_name = 'm';
  model::adapter_field(f, adapter);
  model::tokenizer_field(f, tokenizer);
  f("ids", ids, "contexts are token ids separated by spaces");
  f("k", k, "entries shown per context").between(1, 65536);
  f("nprobe", nprobe, "inverted lists probed per query (nprobe)").between(1, 1e6);
  f("rescore", rescore, "recompute the scores of the found entries from the stored keys");
  f("around", around, "tokens shown before each entry").between(0, 1e6);
  compute.fields(f);
}

StoreSearch::StoreSearch(const StoreSearchOptions& options, torch::Device device)
    : options_(options),
      device_(device),
      loaded_(load_model(options, device)),
      store_(options.store),
      words_(model_tokenizer(loaded_), options.model),
      windows_(windows_of(store_, loaded_)) {
  store_.expect_model(loaded_.fingerprint.hex(), model::tokenizer_fingerprint(loaded_.tokenizer),
                      options.model);
  if (options.rescore) store_.expect_rescorable();
  if (nn::in_host_memory(loaded_.model->head->weights().at(0))) return;
  DeviceRoom room = device_room(device);
  search_on(store_, device, room);
}

NearEntries StoreSearch::find(const std::string& context) {
  const auto tokens = words_.encode(context, options_.ids);
  const torch::Tensor key = context_key(*loaded_.model, windows_, tokens, device_);
  store::SearchOptions search;
  search.k = options_.k, search.nprobe = options_.nprobe, search.rescore = options_.rescore;
  search.threads = at::get_num_threads();
  const auto hits =
      store_.search({key.const_data_ptr<float>(), static_cast<std::size_t>(key.numel())}, search);
  NearEntries found;
  found.report = {{"context", context}, {"tokens", tokens.size()}};
  for (std::size_t i = 0; i < hits.ids.size() && hits.ids[i] >= 0; ++i) {
    const auto place = store_.context(hits.ids[i], options_.around);
    const std::vector<std::uint32_t> before(place.before.begin(), place.before.end());
    const auto label = static_cast<std::uint32_t>(hits.labels[i]);
    found.parts.push_back({{"score", hits.scores[i]},
                           {"token", label},
                           {"value", words_.decode(std::span(&label, 1))},
                           {"document", place.document},
                           {"row", hits.ids[i]},
                           {"before", words_.decode(before)}});
  }
  return found;
}

void StoreSearch::find_all(const std::function<void(const NearEntries&)>& found) {
  for (const auto& context : options_.contexts) found(find(context));
  if (!options_.contexts.empty()) return;
  core::LineReader lines(core::open_source("-"));
  while (const auto line = lines.next()) found(find(*line));
}

}  // namespace infer
