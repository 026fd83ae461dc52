#include "infer/windows/retrieve_options.h"

#include "infer/windows/window_plan.h"
#include "passages/passage_index.h"

namespace infer {
namespace {

constexpr std::int64_t kMostByDefault = 256;

}  // namespace

void RetrieveOptions::fields(core::FieldList& f) {
  const auto in_retrieval = f.group("Retrieval");
  f("retrieve", index,
      "index of passages (bm25-search build); the best passage is prepended to the context; see "
      "tessera-memories(7)");
  f("retrieve-every", every, "retrieve again every N tokens (stride)").between(1, 16e6);
  f("retrieve-query", query, "query: the last N tokens of the text").between(1, 16e6);
  f("retrieve-tokens", tokens,
      "maximum tokens of the passage, which replace the oldest of the window; auto: half the "
      "window, at most 256")
      .between(1, 16e6)
      .or_auto();
  f("retrieve-mix", mix,
      "prepend each of the N best passages separately and mix their probabilities (ensemble)")
      .between(1, 1000);
  f("retrieve-temperature", temperature,
      "temperature of the softmax over the passages' scores, which gives the weights of the mixture")
      .above(0)
      .at_most(1e6);
}

void RetrieveOptions::turn_fields(core::FieldList& f) {
  const auto in_retrieval = f.group("Retrieval");
  f("retrieve", index,
      "index of passages (bm25-search build); the best ones are put into the last turn of a chat; "
      "see tessera-memories(7)");
  f("retrieve-tokens", tokens, "most tokens of a passage; auto: 256").between(1, 16e6).or_auto();
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

}  // namespace infer
