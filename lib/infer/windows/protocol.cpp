#include "infer/windows/protocol.h"

#include <algorithm>

#include "core/error.h"

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
  if (found == all.end())
    core::fail(core::Code::usage, "--protocol {}: unknown protocol; see --help", name);
  return &*found;
}

}  // namespace infer
