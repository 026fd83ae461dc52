#include "infer/stores/store_search.h"

#include "core/file_text.h"
#include "infer/stores/device_search.h"
#include "infer/windows/windows.h"
#include "model/adapter.h"
#include "nn/base/cuda.h"
#include "text/formats/tokenizer_json.h"

namespace infer {
namespace {

// Returns the token before the text: the one recorded for the store, or the end-of-document token
// if documents end with it.
std::int64_t beginning_of(
    const store::Datastore& store, const core::Json& windows, const model::Loaded& loaded) {
  if (loaded.tokenizer.empty()) return -1;
  const auto tokenizer = text::parse_tokenizer(loaded.tokenizer, loaded.folder);
  if (windows.contains("begin"))
    return batch::chosen_beginning(windows["begin"], tokenizer.get(), store.name()).value_or(-1);
  const auto first = store.documents();
  const auto mark = tokenizer->end_of_document();
  const auto end = first.size() > 1 ? first[1] : store.size();
  const bool marked =
      mark && end > 0 &&
      store.labels()[static_cast<std::size_t>(end - 1)] == static_cast<std::int32_t>(*mark);
  return marked ? static_cast<std::int64_t>(*mark) : -1;
}

model::Loaded load_model(const StoreSearchOptions& options, torch::Device device) {
  if (options.model.empty())
    core::bad_usage("-m MODEL is missing; give the model that computed the keys");
  if (options.store.empty()) core::bad_usage("STORE is missing; see --help");
  auto loaded =
      model::load(options.model, device, nn::dtype(options.compute.precision), options.adapter);
  model::give_tokenizer(loaded, options.tokenizer);
  return loaded;
}

text::TokenizerPtr model_tokenizer(const model::Loaded& loaded) {
  if (loaded.tokenizer.empty()) return nullptr;
  return text::parse_tokenizer(loaded.tokenizer, loaded.folder);
}

// Returns the model's key (1, d_key), float32, CPU, after `tokens`. The key comes from the last
// window that ends with these tokens, as for a text's first rows; carried State covers all tokens.
// Throws Error{usage} for no tokens, Error{bad_data} for a token outside the vocabulary.
torch::Tensor context_key(nn::Model& model, const WindowPlan& windows,
    const std::vector<std::uint32_t>& tokens, torch::Device device) {
  const torch::NoGradGuard no_gradient;
  std::vector<std::int64_t> inputs;
  if (windows.beginning >= 0) inputs.push_back(windows.beginning);
  inputs.insert(inputs.end(), tokens.begin(), tokens.end());
  if (inputs.empty()) core::bad_usage("a context needs at least one token");
  for (const std::int64_t token : inputs)
    if (token >= model.vocabulary)
      core::bad_data("token {} is outside the vocabulary of {}", token, model.vocabulary);
  model.eval();
  auto& architecture = *model.architecture;
  const std::int64_t size = std::ssize(inputs);
  nn::State state;
  torch::Tensor g;
  std::int64_t begin = windows.carried ? 0 : std::max<std::int64_t>(0, size - windows.window);
  for (std::int64_t number = 0; begin < size; ++number) {
    const std::int64_t end =
        std::min(size, begin + (number == 0 ? windows.window : windows.stride));
    if (number > 0 && architecture.carry() == nn::Carry::forget)
      architecture.forget(state, windows.window - windows.stride);
    const auto batch = context_batch(inputs, begin, end, number).to(device);
    g = architecture.forward(batch, windows.carried ? &state : nullptr).key;
    begin = end;
  }
  return g[0].slice(0, -1).to(torch::kCPU, torch::kFloat32).contiguous();
}

}  // namespace

WindowPlan windows_of(const store::Datastore& store, const model::Loaded& loaded) {
  const std::string name = store.name() + "/" + store::kManifestName;
  const auto& sources = store.manifest().sources;
  if (sources.empty() || !sources[0].windows.contains("window"))
    core::bad_usage(
        "{}: was built from sentence pairs; a context without a source has no key", store.name());
  const core::Json& windows = sources[0].windows;
  WindowOptions options;
  options.window = core::get<std::int64_t>(windows, "window", name);
  options.stride = core::get<std::int64_t>(windows, "stride", name);
  options.carry = core::get<std::string>(windows, "carry", name);
  WindowPlan plan = plan_windows(options, *loaded.model, loaded.facts);
  plan.beginning = beginning_of(store, windows, loaded);
  return plan;
}

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
    : options_(options), device_(device), loaded_(load_model(options, device)),
      store_(options.store), text_(model_tokenizer(loaded_), options.model),
      windows_(windows_of(store_, loaded_)) {
  store_.expect_model(
      loaded_.fingerprint.hex(), model::tokenizer_fingerprint(loaded_.tokenizer), options.model);
  if (options.rescore) store_.expect_rescorable();
  if (nn::in_host_memory(loaded_.model->head->weights().at(0))) return;
  DeviceRoom room = device_room(device);
  search_on(store_, device, room);
}

NearEntries StoreSearch::find(const std::string& context) {
  const auto tokens = text_.encode(context, options_.ids);
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
    found.parts.push_back(
        {{"score", hits.scores[i]}, {"token", label}, {"value", text_.decode(std::span(&label, 1))},
            {"document", place.document}, {"row", hits.ids[i]}, {"before", text_.decode(before)}});
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
