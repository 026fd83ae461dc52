#pragma once
// Annotates each token of a text with the predictions of a model and its memories (program
// annotate).

#include "infer/score/evaluation.h"
#include "page/annotated_text.h"

namespace infer {

struct AnnotateOptions {
  EvaluationOptions evaluation;
  std::string tokenizer;
  bool special = false;        ///< for a text: see text::Tokenizer::parsing_special()
  std::string from = "auto";   ///< format of the FILEs: shard, text, sample
  std::string beside;          ///< a --per-token file of the same shards, for comparison; empty:
                               ///< none
  std::string title = "auto";  ///< auto: name of the first FILE
  std::int64_t cite_k = 3, likely = 5;
  std::int64_t most = 20'000;  ///< maximum number of tokens
  void fields(core::FieldList& f);
};

/// Scores the first options.most tokens of `files` as eval-ppl does. Shards are one stream; with
/// windows.restart each document is a separate stream. The model's tokenizer encodes a text.
/// Datastores and n-gram indices exclude entries of the scored shards.
/// `say` receives Evaluation::window_note(), and a line for each source that has no share in any
/// token. Throws the errors of Evaluation; Error{usage} for a
/// model that reads pairs; Error{bad_data} for a model without a tokenizer and if `beside` has
/// other tokens.
page::AnnotatedText annotate(const AnnotateOptions& options, const std::vector<std::string>& files,
    const std::function<void(const std::string&)>& say);

/// Annotates lines of `sample --cite --json` (page::add_sample), up to options.most tokens.
page::AnnotatedText annotate_samples(
    const AnnotateOptions& options, const std::vector<std::string>& files);

}  // namespace infer
