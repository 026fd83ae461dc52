#include "infer/score/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/build_info.h"
#include "infer/stores/stores.h"
#include "passages/passage_index.h"

namespace infer {
namespace {

core::OrderedJson figure(double value) {
  return std::isfinite(value) ? core::OrderedJson(value) : core::OrderedJson(nullptr);
}

}  // namespace

std::string short_fingerprint(const core::Digest& digest) { return digest.hex().substr(0, 12); }

std::string signature(const core::Digest& data, const core::Digest& model,
                      const WindowPlan& windows, const MemoryPlan& memory,
                      const std::string& precision) {
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
    add("restart", windows.by_document ? "document" : "none");
    add("carry", windows.carried ? "on" : "off");
    add("first", windows.beginning >= 0 ? "scored" : "skipped");
    if (!windows.begin.empty()) add("begin", windows.begin);
    if (windows.window_token >= 0) add("begin-of", "window");
  }
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
  const nn::MemoryRule& rule = memory.rule;
  std::string names = rule.name();
  std::replace(names.begin(), names.end(), ',', '+');
  add("memory", names);
  if (rule.any()) {
    if (rule.far) add("long", rule.reach);
    add("combine", memory.combine);
  }
  if (rule.any() || memory.stores.joined()) add("temperature", rule.temperature);
  if (memory.interpolated()) add("memory-lambda", memory.memory_lambda);
  const auto share = [&](const char* source, double constant) {
    return memory.gates.has(source) ? "gate" : fmt::format("{}", constant);
  };
  if (memory.cache > 0) {
    add("cache", memory.cache);
    add("theta", memory.cache_theta);
    add("cache-lambda", share("cache", memory.cache_lambda));
  }
  if (memory.stores.any()) {
    const StorePlan& stores = memory.stores;
    add("stores", stores.opened->signature());
    add("k", stores.k);
    add("nprobe", stores.nprobe);
    add("rescore", stores.rescore ? "yes" : "no");
    if (stores.follow > 0) add("follow", stores.follow);
    add("stores-combine", stores.combine);
    if (stores.interpolated()) {
      add("stores-temperature", stores.temperature);
      add("stores-lambda", share("datastore", stores.lambda));
    }
  }
  if (memory.ngrams.any()) {
    add("ngrams", memory.ngrams.index->signature());
    const auto& lambda = memory.ngrams.lambda;
    const bool one = std::count(lambda.begin(), lambda.end(), lambda[0]) == std::ssize(lambda);
    add("ngrams-lambda", memory.gates.has("ngrams") ? "gate"
                         : one                      ? fmt::format("{}", lambda[0])
                                                    : fmt::format("{}", fmt::join(lambda, "+")));
  }
  if (memory.gates.any()) {
    const auto texts = fmt::format("{}", fmt::join(to_texts(memory.gates.gate), "\n"));
    add("gate", short_fingerprint(core::hash128(texts)));
    if (memory.gates.threshold > 0) add("threshold", memory.gates.threshold);
  }
  if (memory.with.any()) {
    std::vector<std::string> models;
    std::vector<std::string> shares;
    for (const auto& with : memory.with.models) {
      const auto plan = plan_windows(with->windows, *with->loaded.model, with->loaded.facts);
      models.push_back(windows.pairs
                           ? short_fingerprint(with->loaded.fingerprint)
                           : fmt::format("{}@{}/{}{}", short_fingerprint(with->loaded.fingerprint),
                                         plan.window, plan.stride, plan.carried ? "/carry" : ""));
    }
    for (const auto& share : memory.with.shares)
      shares.push_back(share.gated ? "gate" : fmt::format("{}", share.lambda));
    add("with", fmt::format("{}", fmt::join(models, "+")));
    add("with-lambda", fmt::format("{}", fmt::join(shares, "+")));
  }
  if (!memory.tuned_on.empty()) add("tuned-on", memory.tuned_on);
  add("precision", precision);
  add("version", core::build::kVersion);
  return text;
}

core::OrderedJson figures(const Totals& totals) {
  core::OrderedJson report;
  report["loss"] = figure(totals.loss());
  report["perplexity"] = figure(totals.perplexity());
  report["bits_per_token"] = figure(totals.bits_per_token());
  report["bits_per_byte"] = figure(totals.bits_per_byte());
  report["bits_per_word"] = figure(totals.bits_per_word());
  report["byte_perplexity"] = figure(totals.byte_perplexity());
  report["word_perplexity"] = figure(totals.word_perplexity());
  report["tokens"] = totals.tokens;
  report["bytes"] = std::llround(totals.bytes);
  report["words"] = std::llround(totals.words);
  if (totals.gates) {
    const GateTotals& gates = *totals.gates;
    const auto share = [&](double sum) {
      return gates.compared ? figure(sum / static_cast<double>(totals.tokens))
                            : core::OrderedJson(nullptr);
    };
    report["gate"] = {{"constant_loss", share(gates.constant_nats)},
                      {"worse", share(static_cast<double>(gates.worse))}};
  }
  if (totals.searches) {
    const SearchCounts& searches = *totals.searches;
    report["searches"] = {
        {"made", searches.made}, {"followed", searches.followed}, {"skipped", searches.skipped}};
  }
  return report;
}

core::OrderedJson timings(const Totals& totals) {
  core::OrderedJson report;
  report["seconds"] = figure(totals.seconds);
  report["tokens_per_s"] = figure(totals.tokens_per_s());
  return report;
}

}  // namespace infer
