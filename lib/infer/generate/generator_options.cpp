#include "infer/generate/generator_options.h"

#include <algorithm>

#include "core/error.h"

namespace infer {
namespace {

constexpr std::int64_t kTranslationBeam = 4;  // if no option chooses a method

}  // namespace

void DrawOptions::fields(core::FieldList& f) {
  f("temperature", temperature, "divides the log-probabilities before drawing; 0: always the best")
      .between(0, kHottest);
  f("top-k", top_k, "draw from the k best words; 0: all").between(0, 4e9);
  f("top-p", top_p, "draw from the fewest best words that together have this probability")
      .above(0)
      .at_most(1);
}

void SpanOptions::fields(core::FieldList& f) {
  const auto in_spans = f.group("Spans");
  f("spans", longest,
    "after a word that the stores gave, take so many tokens at most of what follows it there, "
    "as long as the model agrees; 0: none")
      .between(0, 4096);
  f("span-gamma", gamma,
    "a token is taken whose probability is at least this part of the best word's; "
    "1: only the best word, above 1: none")
      .at_least(0)
      .at_most(1e6);
  f("span-share", share, "share of a word's probability that the stores must have given")
      .between(0, 1);
}

void TranslationOptions::fields(core::FieldList& f) {
  const auto in_translation = f.group("Translation");
  f("source", source, "each prompt is a source to translate, for an encoder-decoder");
  f("max-len-a", max_len_a, "most tokens of a translation are a x + b, x those of the source")
      .between(0, 1e6);
  f("max-len-b", max_len_b, "see --max-len-a").between(0, 1e6);
  f("max-source", max_source, "most tokens of a source; one with more is an error")
      .between(1, 16e6);
  f("truncate-source", truncate, "cut a source that is too long, with a warning");
}

void GeneratorOptions::fields(core::FieldList& f) {
  const auto in_words = f.group("Words");
  draw.fields(f);
  f("beam", beam, "search with so many hypotheses instead of drawing; 0: draw").between(0, 10e3);
  f("length-penalty", length_penalty, "hypotheses compare by log p / tokens^X").between(-100, 100);
  f("samples", samples, "texts for each prompt; with --beam its best ones")
      .between(1, 1e6)
      .short_name = 'n';
  const auto in_ends = f.group("Ends");
  f("max-tokens", max_tokens, "most tokens of a text").between(1, kMostTokens);
  f("stop", stop, "a text ends before this; give it again for more");
  f("ignore-end", ignore_end, "go on after the tokens that end a text");
  translation.fields(f);
  const auto in_running = f.group("Running");
  f("begin", begin,
    "what stands before a prompt: none, or a token; auto: what the tokenizer's template says");
  f("special", special, "the text of a special token in a prompt, <|im_start|> say, is that token");
  f("window", window,
    "tokens the model sees at once; when they are full the older half goes [trained segment]")
      .between(0, 16e6);
  f("batch", batch, "texts decoded together").between(1, 1e6);
  f("weights", weights, "precision of the weights on the CPU; less is faster",
    {"float32", "bfloat16", "int8"});
  const auto in_citations = f.group("Citations");
  f("cite", cite, "tell the stored contexts and the n-grams that gave each token its probability");
  f("cite-most", cite_most, "contexts of a token").between(1, 65536);
  spans.fields(f);
}

void GeneratorOptions::settle(const std::set<std::string>& given) {
  using core::Code;
  using core::fail;
  if (translation.source && given.count("max-tokens") > 0)
    fail(Code::usage,
         "--source bounds a translation by --max-len-a and --max-len-b; leave out --max-tokens");
  bool draws = false;
  for (const char* name : {"temperature", "top-k", "top-p"}) {
    if (given.count(name) == 0) continue;
    draws = true;
    if (searches()) fail(Code::usage, "--beam searches, --{} draws: give one", name);
  }
  if (translation.source && given.count("beam") == 0 && !draws)
    beam = std::max(kTranslationBeam, samples);
}

void GeneratorOptions::check() const {
  using core::Code;
  using core::fail;
  if (searches() && samples > beam)
    fail(Code::usage, "--samples {}: a beam of {} has not so many hypotheses", samples, beam);
  if (searches() && spans.longest > 0)
    fail(Code::usage, "--beam searches, --spans {} draws: give one", spans.longest);
  if (window == 1) fail(Code::usage, "--window: takes 0 or at least 2 tokens");
  for (const auto& text : stop)
    if (text.empty()) fail(Code::usage, "--stop: takes a text that is not empty");
}

}  // namespace infer
