#include "infer/generate/generator_options.h"

#include <charconv>

namespace infer {
namespace {

// The log-probability of a token that is not allowed: finite, so that a row always has a best
// token.
constexpr float kNever = -1e30F;
constexpr double kMostBias = 1e9;

std::pair<std::int64_t, double> bias_of(const std::string& text) {
  std::pair<std::int64_t, double> bias;
  const char* const end = text.data() + text.size();
  const auto id = std::from_chars(text.data(), end, bias.first);
  if (id.ec == std::errc() && id.ptr != end && *id.ptr == ':') {
    const auto value = std::from_chars(id.ptr + 1, end, bias.second);
    if (value.ec == std::errc() && value.ptr == end && std::abs(bias.second) <= kMostBias)
      return bias;
  }
  core::bad_usage("--logit-bias {}: takes ID:X, the id of a token and a number", text);
}

constexpr std::int64_t kTranslationBeam = 4;  // if no option chooses a method

}  // namespace

void LogitRules::check(std::int64_t vocabulary, bool flags) const {
  const auto expect = [&](const char* rule, std::int64_t id) {
    if (id < 0 || id >= vocabulary)
      core::bad_data("{}: {} is not a token id; the tokenizer has {} tokens", rule, id, vocabulary);
  };
  for (const auto& [id, bias] : biases) expect(flags ? "--logit-bias" : "logit_bias", id);
  for (const auto id : allowed) expect(flags ? "--allowed-token-ids" : "allowed_token_ids", id);
}

void LogitOptions::fields(core::FieldList& f) {
  f("presence-penalty", presence, "subtract X from the logit of each token that the text has")
      .between(-100, 100);
  f("frequency-penalty", frequency,
      "subtract X from the logit of a token for each of its occurrences in the text")
      .between(-100, 100);
  f("repetition-penalty", repetition,
      "divide positive logits of tokens of the prompt and the text by X, multiply others by it")
      .above(0, 100);
  f("logit-bias", biases, "ID:X adds X to the logit of a token; may be repeated");
  f("allowed-token-ids", allowed, "draw only these tokens").between(0, INT32_MAX);
}

LogitRules LogitOptions::rules() const {
  return {allowed, core::mapped(biases, bias_of), repetition, frequency, presence};
}

ChangedLogits::ChangedLogits(LogitRulesPtr rules, std::span<const std::int64_t> prompt)
    : rules_(rules != nullptr && rules->any() ? std::move(rules) : nullptr) {
  if (!needs_normaliser()) return;
  for (const auto token : prompt) counts_.try_emplace(token, 0);
}

void ChangedLogits::add(std::int64_t token) {
  if (any() && rules_->counts()) ++counts_[token];
}

void ChangedLogits::apply(std::span<float> log_p, float log_z) const {
  const auto at = [&](std::int64_t id) -> float& { return log_p[static_cast<std::size_t>(id)]; };
  if (!rules_->allowed.empty()) {
    const auto kept = core::mapped(rules_->allowed, at);
    std::fill(log_p.begin(), log_p.end(), kNever);
    for (std::size_t i = 0; i < kept.size(); ++i) at(rules_->allowed[i]) = kept[i];
  }
  for (const auto& [id, bias] : rules_->biases)
    at(id) = std::max(kNever, at(id) + static_cast<float>(bias));
  const auto repetition = static_cast<float>(rules_->repetition);
  for (const auto& [id, count] : counts_) {
    if (id < 0 || id >= std::ssize(log_p)) continue;
    float logit = at(id) + log_z;
    if (at(id) <= kNever) continue;
    if (repetition != 1) logit = logit > 0 ? logit / repetition : logit * repetition;
    logit -= static_cast<float>(static_cast<double>(count) * rules_->frequency);
    if (count > 0) logit -= static_cast<float>(rules_->presence);
    at(id) = std::max(kNever, logit - log_z);
  }
}

void DrawOptions::fields(core::FieldList& f) {
  f("temperature", temperature, "sampling temperature; 0: greedy; auto: 1")
      .between(0, kHottest)
      .or_auto(-1);
  f("top-k", top_k, "sample from the k most probable tokens; none: from all").none_or(1, 4e9);
  f("top-p", top_p,
      "sample from the smallest set of most probable tokens with this total probability")
      .above(0, 1);
}

void SpanOptions::fields(core::FieldList& f) {
  const auto in_spans = f.group("Spans");
  f("copy-spans", longest,
      "copied spans (NEST): after a token predicted by the datastores, copy up to N tokens that "
      "follow its entry while the model accepts them")
      .between(0, 4096);
  f.rest_needs("copy-spans");
  f("span-gamma", gamma,
      "accept a copied token if its probability is at least X times the most probable token's; "
      "1: only the most probable token, above 1: none")
      .between(0, 1e6);
  f("span-threshold", share,
      "copy after a token only if the datastores gave at least this fraction of its probability")
      .between(0, 1);
}

void TranslationOptions::fields(core::FieldList& f) {
  const auto in_translation = f.group("Translation");
  f("source", source, "translate: each prompt is a source sentence of an encoder-decoder");
  f.rest_needs("source");
  f("max-len-a", max_len_a,
      "limit a translation to a x + b tokens, where x is the number of source tokens")
      .between(0, 1e6);
  f("max-len-b", max_len_b, "see --max-len-a").between(0, 1e6);
  f("max-source", max_source, "maximum tokens of a source; a longer source is an error")
      .between(1, 16e6);
  f("truncate-source", truncate, "truncate a source that is too long, with a warning");
}

void GeneratorOptions::fields(core::FieldList& f) {
  const auto in_words = f.group("Words");
  draw.fields(f);
  logits.fields(f);
  f("beam", beam,
      "beam search with N hypotheses instead of sampling; none: sample; auto: 4 with --source "
      "unless an option says how to sample, else none")
      .none_or(1, 10e3)
      .or_auto(-1);
  f("length-penalty", length_penalty, "rank hypotheses by log p / tokens^X").between(-100, 100);
  f("samples", samples, "texts per prompt; with --beam, the best N").between(1, 1e6).short_name =
      'n';
  const auto in_ends = f.group("Ends");
  f("max-tokens", max_tokens,
      "maximum generated tokens of a text; auto: 256, or by --max-len-a with --source")
      .auto_or(1, kMostTokens);
  f("stop", stop, "end a text before this string; may be repeated");
  f("ignore-end", ignore_end, "continue after end-of-text tokens");
  translation.fields(f);
  const auto in_running = f.group("Running");
  f("bos", begin,
      "BOS token before each prompt: none, or a token; auto: by the tokenizer's template");
  f("special", special,
      "parse the text of special tokens in prompts, such as <|im_start|>, as these tokens");
  f("window", window,
      "context length in tokens; when it is full, the older half is dropped; auto: the segment of "
      "training")
      .auto_or(1, 16e6);
  f("batch", batch, "texts decoded in one batch").between(1, 1e6);
  f("dtype", weights,
      "data type of the weights on the CPU; smaller types decode faster; file: as the GGUF file has "
      "them; auto: file for a GGUF file in blocks, else float32",
      {"auto", "float32", "bfloat16", "int8", "file"});
  key_field(f);
  const auto in_citations = f.group("Citations");
  f("cite", cite, "print the stored contexts and n-grams that predicted each token");
  f("cite-k", cite_k, "cited contexts per token").between(1, 65536).needs("cite");
  spans.fields(f);
}

void GeneratorOptions::key_field(core::FieldList& f) {
  f("kv-dtype", keys,
      "data type of the KV cache of a transformer on the CPU; float16 takes half of the memory and "
      "holds magnitudes up to 65,504; further models keep float32",
      {"float32", "float16"});
}

void GeneratorOptions::settle() {
  if (translation.source && max_tokens > 0)
    core::bad_usage(
        "--max-tokens: cannot be combined with --source; use --max-len-a and --max-len-b");
  auto drawn = core::changed(draw);
  for (auto& name : core::changed(logits)) drawn.push_back(std::move(name));
  if (searches() && !drawn.empty())
    core::bad_usage("--beam: cannot be combined with --{}", drawn[0]);
  if (beam < 0 && translation.source && drawn.empty()) beam = std::max(kTranslationBeam, samples);
}

void GeneratorOptions::check() const {
  if (searches() && samples > beam)
    core::bad_usage("--samples {}: takes at most --beam, {}", samples, beam);
  if (searches() && spans.longest > 0)
    core::bad_usage("--beam: cannot be combined with --copy-spans {}", spans.longest);
  if (window == 1) core::bad_usage("--window: takes at least 2 tokens");
  for (const auto& text : stop)
    if (text.empty()) core::bad_usage("--stop: takes a non-empty text");
}

}  // namespace infer
