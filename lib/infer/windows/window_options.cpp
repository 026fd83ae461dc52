#include "infer/windows/window_options.h"

#include "infer/windows/window_plan.h"
#include "passages/passage_index.h"

namespace infer {

const std::vector<Protocol>& protocols() {
  static const std::vector<Protocol> all = {
      // The page "Perplexity of fixed-length models" of transformers' manual, since version 4.47.
      // Versions 4.28 to 4.46 used the mean of the windows' means.
      {.name = "hf",
          .layout = {.closed = true, .one_less = true, .without_mark = true},
          .stride = 512},
      // loglikelihood_rolling of lm-evaluation-harness, context_len 1.
      {.name = "lm-eval",
          .layout = {.last_full = true, .without_mark = true},
          .beginning = Beginning::template_or_mark,
          .by_document = true},
      // llama-perplexity without --ppl-stride.
      {.name = "llama.cpp",
          .layout = {.closed = true, .whole_only = true, .second_half = true, .without_mark = true},
          .window = 512,
          .begins_windows = true},
      // fairseq-eval-lm: --tokens-per-sample W --context-window W - S, --sample-break-mode none.
      {.name = "fairseq", .layout = {.grows = true}, .beginning = Beginning::mark}};
  return all;
}

std::vector<std::string> protocol_names() {
  std::vector<std::string> names = {"none"};
  for (const auto& protocol : protocols()) names.push_back(protocol.name);
  return names;
}

const Protocol* find_protocol(const std::string& name) {
  if (name == "none") return nullptr;
  if (const auto* found = core::find_by(protocols(), name, &Protocol::name)) return found;
  core::bad_usage("--protocol {}: unknown protocol; see --help", name);
}

void WindowOptions::fields(core::FieldList& f, bool documents) {
  const auto in_windows = f.group("Windows");
  f("window", window,
      "context length in tokens; auto: the segment of training, else the model's positions")
      .auto_or(1, 16e6);
  f("stride", stride,
      "tokens by which the window advances; only new tokens are scored; auto: the window, or "
      "half of it with --carry on if the state can drop its oldest tokens")
      .auto_or(1, 16e6);
  if (documents)
    f("reset", restart,
        "reset state and memories before each document, or never; auto: none, or as a protocol says",
        {"auto", "none", "document"});
  f("carry", carry,
      "keep the recurrent state or KV cache between windows instead of re-encoding the context; "
      "auto: if the state does not grow",
      {"auto", "on", "off"});
  f("bos", begin,
      "BOS token before the text: none, or a token; auto: by the tokenizer's template, else the "
      "end-of-document token");
  f("bos-at", bos_at,
      "text: BOS token before the text only; window: also in place of each later window's first "
      "token; auto: text, or as a protocol says",
      {"auto", "text", "window"});
  f("batch-tokens", batch_tokens, "maximum tokens per forward pass").between(1, 1e9);
}

void WindowOptions::protocol_field(core::FieldList& f, std::vector<std::string> names) {
  const auto in_windows = f.group("Windows");
  f("protocol", protocol,
      "use the windows, BOS and scored tokens of another program; explicit options take precedence",
      std::move(names));
}

void WindowOptions::settle() {
  const Protocol* const chosen = find_protocol(protocol);
  if (restart == "auto") restart = chosen && chosen->by_document ? "document" : "none";
  if (bos_at == "auto") bos_at = chosen && chosen->begins_windows ? "window" : "text";
}

void WindowOptions::refuse_for_pairs() const {
  WindowOptions own = *this;
  own.batch_tokens = WindowOptions().batch_tokens;
  auto flags = core::changed(own);
  if (protocol != "none") flags.emplace_back("protocol");
  for (const auto& flag : flags) core::bad_usage("--{}: not supported for sentence pairs", flag);
}

namespace {

constexpr std::int64_t kMostByDefault = 256;

// Sets it where a model has such a memory. If none has, reports the first model's reason.
void set_where_it_is(const std::vector<nn::Model*>& models, const auto& set) {
  std::string refused;
  bool taken = false;
  for (nn::Model* const model : models) {
    try {
      set(*model->architecture);
      taken = true;
    } catch (const core::Error& error) {
      if (error.code() != core::Code::usage) core::bad_usage("{}", error.what());
      if (refused.empty()) refused = error.what();
    }
  }
  if (!taken) core::bad_usage("{}", refused);
}

}  // namespace

void RetrieveOptions::fields(core::FieldList& f) {
  const auto in_retrieval = f.group("Retrieval");
  f("retrieve", index,
      "index of passages (bm25-search build); the best passage is prepended to the context; see "
      "tessera-memories(7)");
  f.rest_needs("retrieve");
  f("retrieve-every", every, "retrieve again every N tokens (stride)").between(1, 16e6);
  f("retrieve-query", query, "query: the last N tokens of the text").between(1, 16e6);
  f("retrieve-tokens", tokens,
      "maximum tokens of the passage, which replace the oldest of the window; auto: half the "
      "window, at most 256")
      .auto_or(1, 16e6);
  f("retrieve-mix", mix,
      "prepend each of the N best passages separately and mix their probabilities (ensemble)")
      .between(1, 1000);
  f("retrieve-temperature", temperature,
      "temperature of the softmax over the passages' scores, which gives the weights of the mixture")
      .above(0, 1e6);
}

void RetrieveOptions::turn_fields(core::FieldList& f) {
  const auto in_retrieval = f.group("Retrieval");
  f("retrieve", index,
      "index of passages (bm25-search build); the best ones are put into the last turn of a chat; "
      "see tessera-memories(7)");
  f.rest_needs("retrieve");
  f("retrieve-tokens", tokens, "maximum tokens of a passage; auto: 256").auto_or(1, 16e6);
}

void RetrieveOptions::settle(WindowOptions& windows) const {
  if (!any()) return;
  for (const char* const protocol : {"lm-eval", "llama.cpp"})
    if (windows.protocol == protocol)
      core::bad_usage(
          "--protocol {}: cannot be combined with --retrieve; use hf or fairseq", protocol);
  if (windows.stride != 0 && windows.stride != every)
    core::bad_usage(
        "--stride {}: with --retrieve, the stride is --retrieve-every, {}; leave it out",
        windows.stride, every);
  if (windows.carry == "on")
    core::bad_usage(
        "--carry on: cannot be combined with --retrieve, since each window has another passage");
  if (windows.bos_at == "window")
    core::bad_usage(
        "--bos-at window: cannot be combined with --retrieve, since windows begin with passages");
  windows.stride = every;
  windows.carry = "off";
}

void RetrievePlan::put_into(WindowPlan& windows) const {
  if (!any()) return;
  if (windows.protocol.empty()) windows.layout.grows = true;
  windows.batch_tokens = std::max<std::int64_t>(1, windows.batch_tokens / mix);
  windows.retrieve = *this;
}

RetrievePlan plan_retrieval(
    const RetrieveOptions& options, std::int64_t window, const model::Loaded& loaded) {
  RetrievePlan plan;
  if (!options.any()) return plan;
  auto index = std::make_shared<const passages::PassageIndex>(options.index);
  shard::Header header;
  header.vocabulary = index->vocabulary();
  header.tokenizer = index->tokenizer_json();
  model::check_tokenizer(loaded, header, options.index);
  plan.every = options.every, plan.query = options.query;
  plan.mix = options.mix, plan.temperature = options.temperature;
  plan.tokens = options.tokens;
  const std::int64_t room = window - options.every;
  if (plan.tokens == 0)
    plan.tokens = std::min({kMostByDefault, std::max<std::int64_t>(1, window / 2), room});
  if (plan.tokens < 1 || plan.tokens > room)
    core::bad_usage(
        "--retrieve-tokens {}: does not fit into a window of {} tokens of which {} are scored",
        std::max<std::int64_t>(1, plan.tokens), window, options.every);
  plan.index = std::move(index);
  return plan;
}

void LayerReachOptions::fields(core::FieldList& f) {
  const auto in_memory_of_layers = f.group("Memory of layers");
  f("layer-memory", layer_memory,
      "memory length of each layer in tokens, in the form that train takes [as trained]");
  f("clamp-length", clamp_length,
      "clamp relative distances at N (clamp_len); none: no clamp; auto: as trained")
      .none_or(1, 16e6)
      .or_auto(-1);
  f("same-length", same_length,
      "limit the attention of every token to the memory length (same_length); auto: as trained",
      {"auto", "on", "off"});
  f("context-slots", context_slots,
      "mosaic: key-value pairs in each head of a contextual memory; none: unbounded")
      .none_or(1, 16e6);
  f("evict", evict, "pair evicted from a full memory: the oldest, or the least recently used (lru)",
      {"oldest", "lru"});
}

void LayerReachOptions::apply(const std::vector<nn::Model*>& models) const {
  if (context_slots == 0 && evict != "oldest")
    core::bad_usage("--evict {}: requires --context-slots", evict);
  if (context_slots > 0)
    set_where_it_is(models, [&](auto& of) { of.bound_slots({context_slots, evict == "lru"}); });
  const nn::LayerReach memory{layer_memory, -1, ""}, clamp{"", clamp_length, ""},
      same{"", -1, same_length == "auto" ? "" : same_length};
  for (const auto& one : {memory, clamp, same})
    if (!one.open()) set_where_it_is(models, [&](auto& of) { of.set_reach(one); });
}

std::string LayerReachOptions::signature() const {
  std::string text;
  std::string lengths = layer_memory;
  std::replace(lengths.begin(), lengths.end(), ' ', '+');
  if (!lengths.empty()) text += "|layer-memory:" + lengths;
  if (clamp_length >= 0) text += fmt::format("|clamp-length:{}", clamp_length);
  if (same_length != "auto") text += "|same-length:" + same_length;
  if (context_slots > 0) text += fmt::format("|context-slots:{}|evict:{}", context_slots, evict);
  return text;
}

}  // namespace infer
