#pragma once
// A text with what a model and its memories say of each of its tokens: annotate's work.

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "core/options.h"
#include "infer/score/evaluation.h"
#include "page/annotated_text.h"

namespace infer {

struct AnnotateOptions {
  EvaluationOptions evaluation;
  std::string tokenizer;
  bool special = false;       ///< of a text: see text::parsing_special()
  std::string from = "auto";  ///< what the FILEs are: shard, text, sample
  std::string beside;         ///< a --per-token file of the same shards; empty: none
  std::string title;          ///< empty: the first FILE's name
  std::int64_t cite_most = 3, likely = 5;
  std::int64_t most = 20'000;  ///< tokens
  void fields(core::FieldList& f);
};

/// `files` as eval-ppl scores them, the first options.most tokens. Shards are one stream, or with
/// windows.restart each document is one; a text is encoded by the model's tokenizer. A store or an
/// index of n-grams that holds the shards' very text is searched without it. `given`: see
/// Evaluation; `say` is told Evaluation::window_note(). Throws as Evaluation does, Error{usage} for
/// a model that reads pairs, and Error{bad_data} for a model without a tokenizer and where `beside`
/// is of other tokens.
page::AnnotatedText annotate(const AnnotateOptions& options, const std::vector<std::string>& files,
                             const std::set<std::string>& given,
                             const std::function<void(const std::string&)>& say);

/// Lines of `sample --cite --json` (page::add_sample), the first options.most tokens' worth.
page::AnnotatedText annotate_samples(const AnnotateOptions& options,
                                     const std::vector<std::string>& files);

}  // namespace infer
