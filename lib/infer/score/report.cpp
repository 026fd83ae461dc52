#include "infer/score/report.h"

#include "core/build_info.h"
#include "passages/passage_index.h"

namespace infer {

core::OrderedJson figure(double value) {
  return std::isfinite(value) ? core::OrderedJson(value) : core::OrderedJson(nullptr);
}

std::string short_fingerprint(const core::Digest& digest) { return digest.hex().substr(0, 12); }

std::string signature(const core::Digest& data, const core::Digest& model,
    const WindowPlan& windows, const MemoryPlan& memory, const std::string& precision) {
  std::string text =
      fmt::format("data:{}|model:{}", short_fingerprint(data), short_fingerprint(model));
  const auto add = [&](const char* name, const auto& value) {
    fmt::format_to(std::back_inserter(text), "|{}:{}", name, value);
  };
  if (!windows.protocol.empty()) add("protocol", windows.protocol);
  if (windows.pairs) {
    add("unit", "pair");
  } else {
    add("window", windows.window);
    add("stride", windows.stride);
    add("reset", windows.by_document ? "document" : "none");
    add("carry", windows.carried ? "on" : "off");
    add("first", windows.beginning >= 0 ? "scored" : "skipped");
    if (!windows.begin.empty()) add("bos", windows.begin);
    if (windows.window_token >= 0) add("bos-at", "window");
  }
  if (windows.learned) add("loss-on", "marked");
  if (const auto& o = windows.dynamic; o.on)
    add("dynamic", fmt::format("{}:{}:{}:{}", o.weights, o.optimiser, o.rate, o.decay));
  if (windows.retrieve.any()) {
    const RetrievePlan& retrieve = windows.retrieve;
    add("retrieve",
        fmt::format("{}:{}:{}:{}", retrieve.index->data().substr(0, 12),
            retrieve.index->passage_length(), retrieve.index->k1(), retrieve.index->b()));
    add("retrieve-query", retrieve.query);
    add("retrieve-tokens", retrieve.tokens);
    if (retrieve.mix > 1) {
      add("retrieve-mix", retrieve.mix);
      add("retrieve-temperature", retrieve.temperature);
    }
  }
  memory.sign(add);
  add("precision", precision);
  add("version", core::build::kVersion);
  return text;
}

core::OrderedJson figures(const Totals& totals) {
  core::OrderedJson report{{"loss", figure(totals.loss())},
      {"perplexity", figure(totals.perplexity())},
      {"bits_per_token", figure(totals.bits_per_token())},
      {"bits_per_byte", figure(totals.bits_per_byte())},
      {"bits_per_word", figure(totals.bits_per_word())},
      {"byte_perplexity", figure(totals.byte_perplexity())},
      {"word_perplexity", figure(totals.word_perplexity())}, {"tokens", totals.tokens},
      {"bytes", std::llround(totals.bytes)}, {"words", std::llround(totals.words)}};
  if (totals.gates) {
    const GateTotals& gates = *totals.gates;
    const auto share = [&](double sum) {
      return gates.compared ? figure(sum / static_cast<double>(totals.tokens))
                            : core::OrderedJson(nullptr);
    };
    report["gate"] = {{"constant_loss", share(gates.constant_nats)},
        {"worse", share(static_cast<double>(gates.worse))}};
  }
  if (const auto& searches = totals.searches)
    report["searches"] = {
        {"made", searches->made}, {"followed", searches->followed}, {"skipped", searches->skipped}};
  return report;
}

core::OrderedJson timings(const Totals& totals) {
  return {{"seconds", figure(totals.seconds)}, {"tokens_per_s", figure(totals.tokens_per_s())}};
}

}  // namespace infer
