#include "infer/windows/protocol.h"

#include <algorithm>

#include "core/error.h"

namespace infer {
namespace {

// The page "Perplexity of fixed-length models" of transformers' manual, since version 4.47.
// Versions 4.28 to 4.46 used the mean of the windows' means.
Protocol hf() {
  Protocol protocol;
  protocol.name = "hf";
  protocol.stride = 512;
  protocol.layout.closed = true;
  protocol.layout.one_less = true;
  protocol.layout.without_mark = true;
  return protocol;
}

// loglikelihood_rolling of lm-evaluation-harness, context_len 1.
Protocol lm_eval() {
  Protocol protocol;
  protocol.name = "lm-eval";
  protocol.beginning = Beginning::template_or_mark;
  protocol.layout.last_full = true;
  protocol.layout.without_mark = true;
  protocol.by_document = true;
  return protocol;
}

// llama-perplexity without --ppl-stride.
Protocol llama_cpp() {
  Protocol protocol;
  protocol.name = "llama.cpp";
  protocol.window = 512;
  protocol.layout.closed = true;
  protocol.layout.whole_only = true;
  protocol.layout.second_half = true;
  protocol.layout.without_mark = true;
  protocol.begins_windows = true;
  return protocol;
}

// fairseq-eval-lm: --tokens-per-sample W --context-window W - S, --sample-break-mode none.
Protocol fairseq() {
  Protocol protocol;
  protocol.name = "fairseq";
  protocol.beginning = Beginning::mark;
  protocol.layout.grows = true;
  return protocol;
}

}  // namespace

const std::vector<Protocol>& protocols() {
  static const std::vector<Protocol> all = {hf(), lm_eval(), llama_cpp(), fairseq()};
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
