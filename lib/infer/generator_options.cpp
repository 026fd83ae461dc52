#include "infer/generator_options.h"

#include <cmath>

#include "core/error.h"

namespace infer {

void DrawOptions::fields(core::FieldList& f) {
  f("temperature", temperature, "divides the log-probabilities before drawing; 0: always the best");
  f("top-k", top_k, "draw from the k best words; 0: all");
  f("top-p", top_p, "draw from the fewest best words that together have this probability");
}

void TranslationOptions::fields(core::FieldList& f) {
  f.group("Translation");
  f("source", source, "each prompt is a source to translate, for an encoder-decoder");
  f("max-len-a", max_len_a, "most tokens of a translation are a x + b, x those of the source");
  f("max-len-b", max_len_b, "see --max-len-a");
  f("max-source", max_source, "most tokens of a source; one with more is an error");
  f("truncate-source", truncate, "cut a source that is too long, with a warning");
}

void GeneratorOptions::fields(core::FieldList& f) {
  f.group("Words");
  draw.fields(f);
  f("beam", beam, "search with so many hypotheses instead of drawing; 0: draw");
  f("length-penalty", length_penalty, "hypotheses compare by log p / tokens^X");
  f("samples", samples, "texts for each prompt; with --beam its best ones").short_name = 'n';
  f.group("Ends");
  f("max-tokens", max_tokens, "most tokens of a text");
  f("stop", stop, "a text ends before this; give it again for more");
  f("ignore-end", ignore_end, "go on after the end-of-document token");
  translation.fields(f);
  f.group("Running");
  f("window", window,
    "tokens the model sees at once; when they are full the older half goes [trained segment]");
  f("batch", batch, "texts decoded together");
  f("weights", weights, "precision of the weights on the CPU; less is faster",
    {"float32", "bfloat16", "int8"});
  f.group("Citations");
  f("cite", cite, "tell the stored contexts that gave each token its probability");
  f("cite-most", cite_most, "contexts of a token");
}

void GeneratorOptions::check() const {
  using core::Code;
  using core::fail;
  if (!(draw.temperature >= 0) || !std::isfinite(draw.temperature))
    fail(Code::usage, "--temperature: takes a number from 0 on");
  if (draw.top_k < 0) fail(Code::usage, "--top-k: takes a number of words");
  if (!(draw.top_p > 0 && draw.top_p <= 1)) fail(Code::usage, "--top-p: takes a share above 0");
  if (beam < 0) fail(Code::usage, "--beam: takes a number of hypotheses");
  if (!std::isfinite(length_penalty)) fail(Code::usage, "--length-penalty: takes a number");
  if (samples < 1) fail(Code::usage, "--samples: takes a positive number");
  if (searches() && samples > beam)
    fail(Code::usage, "--samples {}: a beam of {} has not so many hypotheses", samples, beam);
  if (max_tokens < 1) fail(Code::usage, "--max-tokens: takes a positive number");
  if (!(translation.max_len_a >= 0) || !std::isfinite(translation.max_len_a) ||
      !(translation.max_len_b >= 0) || !(translation.max_len_b <= 1e6))
    fail(Code::usage, "--max-len-a, --max-len-b: take numbers from 0 on");
  if (translation.max_source < 1) fail(Code::usage, "--max-source: takes a positive number");
  if (batch < 1) fail(Code::usage, "--batch: takes a positive number");
  if (window < 0 || window == 1) fail(Code::usage, "--window: takes at least 2 tokens");
  if (cite_most < 1) fail(Code::usage, "--cite-most: takes a positive number");
  for (const auto& text : stop)
    if (text.empty()) fail(Code::usage, "--stop: takes a text that is not empty");
}

}  // namespace infer
