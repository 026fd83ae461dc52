#include "infer/memory/cite.h"

#include "core/plain_text.h"
#include "task/token_scores.h"

namespace infer {

Citer::Citer(const MemoryPlan& memory, text::TokenizerPtr tokenizer, std::int64_t most)
    : tokenizer_(std::move(tokenizer)), most_(most) {
  if (!memory.has(&KindFacts::cites))
    core::bad_usage(
        "--cite: requires {}", flags_of_kinds([](const auto& kind) { return kind.facts().cites; }));
}

std::string Citer::decode(const std::vector<std::int32_t>& ids) const {
  text::StreamDecoder decoder(tokenizer_);
  std::string text;
  for (const std::int32_t id : ids)
    if (id >= 0 && static_cast<std::size_t>(id) < tokenizer_->size())
      decoder.push(static_cast<std::uint32_t>(id), text);
  return text;
}

// Returns the document's name and the token's line: the newlines of all tokens before it, plus one.
// (The first token of a text may have no row in a store.)
std::string Citer::source_of(const Evidence::Context& context) const {
  if (context.name.empty() || !context.since_start) return context.name;
  if (newlines_.empty())
    for (std::size_t id = 0; id < tokenizer_->size(); ++id) {
      const std::string text = decode({static_cast<std::int32_t>(id)});
      newlines_.push_back(static_cast<std::int32_t>(std::count(text.begin(), text.end(), '\n')));
    }
  std::int64_t line = 1;
  for (const std::int32_t id : *context.since_start)
    if (id >= 0 && static_cast<std::size_t>(id) < newlines_.size())
      line += newlines_[static_cast<std::size_t>(id)];
  return fmt::format("{}:{}", context.name, line);
}

CitedToken Citer::cite(const StreamMemory& memory, const RowToken& of) const {
  Evidence evidence = memory.evidence(of, most_, kContextTokens);
  CitedToken cited{
      of.token, decode({static_cast<std::int32_t>(of.token)}), evidence.share, of.log_prob, {}};
  for (auto& one : evidence.contexts) {
    std::string text = decode(one.before), source = source_of(one);
    one.since_start.reset();  // may be a whole document
    cited.contexts.push_back({std::move(one), std::move(text), std::move(source)});
  }
  cited.models = std::move(evidence.models);
  return cited;
}

core::OrderedJson to_json(const std::vector<CitedToken>& cited) {
  core::OrderedJson all = core::OrderedJson::array();
  for (const CitedToken& token : cited) {
    core::OrderedJson contexts = core::OrderedJson::array();
    for (const auto& context : token.contexts) {
      contexts.push_back({{"store", context.store}, {"document", context.document},
          {"row", context.row}, {"share", context.share}, {"context", context.text}});
      if (context.matched > 0) contexts.back()["matched"] = context.matched;
      if (!context.source.empty()) contexts.back()["source"] = context.source;
    }
    all.push_back({{"token", token.token}, {"text", token.text}, {"log_prob", token.log_prob},
        {"share", token.share}, {"contexts", std::move(contexts)}});
    for (const auto& model : token.models)
      all.back()["models"].push_back({{"model", model.folder}, {"share", model.share}});
  }
  return all;
}

std::string citation_heading() {
  return "prompt\tsample\tnumber\ttext\tshare\tstore\tdocument\trow\tcontext\tsource\n";
}

std::string citation_lines(
    std::uint64_t prompt, std::int64_t sample, const std::vector<CitedToken>& cited) {
  std::string lines;
  for (std::size_t i = 0; i < cited.size(); ++i) {
    for (const auto& model : cited[i].models)
      fmt::format_to(std::back_inserter(lines), "{}\t{}\t{}\t{}\t{:.4f}\t{}\t-\t-\t\t\n", prompt,
          sample, i, task::escape_text(cited[i].text), model.share, core::printable(model.folder));
    for (const auto& context : cited[i].contexts)
      fmt::format_to(std::back_inserter(lines), "{}\t{}\t{}\t{}\t{:.4f}\t{}\t{}\t{}\t{}\t{}\n",
          prompt, sample, i, task::escape_text(cited[i].text), context.share,
          core::printable(context.store), context.document, context.row,
          task::escape_text(context.text), core::printable(context.source));
  }
  return lines;
}

}  // namespace infer
