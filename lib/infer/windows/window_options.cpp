#include "infer/windows/window_options.h"

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
  const auto& all = protocols();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& p) { return p.name == name; });
  if (found == all.end()) core::bad_usage("--protocol {}: unknown protocol; see --help", name);
  return &*found;
}

void WindowOptions::fields(core::FieldList& f, bool documents) {
  const auto in_windows = f.group("Windows");
  f("window", window,
      "context length in tokens; auto: the segment of training, else the model's positions")
      .between(1, 16e6)
      .or_auto();
  f("stride", stride,
      "tokens by which the window advances; only new tokens are scored; auto: the window, or "
      "half of it with --carry on if the state forgets")
      .between(1, 16e6)
      .or_auto();
  if (documents)
    f("reset", restart, "reset state and memories before each document, or never",
        {"none", "document"});
  f("carry", carry,
      "keep the recurrent state or KV cache between windows instead of re-encoding the context; "
      "auto: if the state does not grow",
      {"auto", "on", "off"});
  f("bos", begin,
      "BOS token before the text: none, or a token; auto: by the tokenizer's template, else the "
      "end-of-document token");
  f("bos-at", bos_at,
      "text: BOS token before the text only; window: also in place of each later window's first "
      "token",
      {"text", "window"});
  f("batch-tokens", batch_tokens, "maximum tokens per forward pass").between(1, 1e9);
}

void WindowOptions::protocol_field(core::FieldList& f, std::vector<std::string> names) {
  const auto in_windows = f.group("Windows");
  f("protocol", protocol,
      "windows, BOS tokens and scored tokens as in another program; explicit options take precedence",
      std::move(names));
}

void WindowOptions::settle(const std::set<std::string>& given) {
  const Protocol* const chosen = find_protocol(protocol);
  if (chosen == nullptr) return;
  if (given.count("reset") == 0 && chosen->by_document) restart = "document";
  if (given.count("bos-at") == 0 && chosen->begins_windows) bos_at = "window";
}

void refuse_windows_of_pairs(const std::set<std::string>& given) {
  for (const char* flag : {"window", "stride", "reset", "carry", "bos", "bos-at", "protocol"})
    if (given.count(flag) > 0) core::bad_usage("--{}: not supported for sentence pairs", flag);
}

}  // namespace infer
