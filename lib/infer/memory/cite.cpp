#include "infer/memory/cite.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/error.h"
#include "core/printable.h"
#include "infer/stores/stores.h"
#include "task/token_scores.h"

namespace infer {

Citer::Citer(const MemoryPlan& memory, text::TokenizerPtr tokenizer, std::int64_t most)
    : stores_(memory.stores.opened),
      ngrams_(memory.ngrams.index),
      with_(memory.with.shares),
      tokenizer_(std::move(tokenizer)),
      most_(static_cast<std::size_t>(most)) {
  if (!memory.stores.any() && !memory.ngrams.any() && !memory.with.any())
    core::fail(core::Code::usage,
               "--cite: there is nothing to cite; add --datastore, --ngrams or --with");
}

std::string Citer::decode(const std::vector<std::int32_t>& ids) const {
  text::StreamDecoder decoder(tokenizer_);
  std::string text;
  for (const std::int32_t id : ids)
    if (id >= 0 && static_cast<std::size_t>(id) < tokenizer_->size())
      decoder.push(static_cast<std::uint32_t>(id), text);
  return text;
}

void Citer::add_places(const NgramShare& ngrams, CitedToken& cited) const {
  const std::uint64_t count = ngrams::Index::count(ngrams.match);
  const auto before = static_cast<std::int64_t>(ngrams.match.length) - 1;
  cited.share += ngrams.share;
  for (std::uint64_t n = 0; n < std::min<std::uint64_t>(count, most_); ++n) {
    const auto place = ngrams_->place(ngrams.match, n);
    const auto around = ngrams_->around(ngrams.match, n, before - kContextTokens, before);
    cited.contexts.push_back({ngrams_->folders()[place.folder]->name(),
                              static_cast<std::int64_t>(place.document),
                              static_cast<std::int64_t>(place.element) + before,
                              ngrams.share / static_cast<double>(count),
                              decode({around.begin(), around.end()}), before});
  }
}

CitedToken Citer::cite(std::int64_t token, double log_prob, const std::vector<StoreShare>& shares,
                       const std::optional<NgramShare>& ngrams,
                       const std::vector<double>& with) const {
  CitedToken cited{token, decode({static_cast<std::int32_t>(token)}), 0, log_prob, {}};
  if (ngrams) add_places(*ngrams, cited);
  for (std::size_t i = 0; i < with.size(); ++i) cited.models.push_back({with_[i].folder, with[i]});
  auto best = shares;
  std::stable_sort(best.begin(), best.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  for (const StoreShare& one : best) cited.share += one.share;
  best.resize(std::min(best.size(), most_));
  for (const StoreShare& one : best) {
    const auto& store = (*stores_)[static_cast<std::size_t>(one.store)];
    const auto context = store.context(one.row, kContextTokens);
    cited.contexts.push_back({store.name(), context.document, one.row, one.share,
                              decode({context.before.begin(), context.before.end()})});
  }
  std::stable_sort(cited.contexts.begin(), cited.contexts.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  cited.contexts.resize(std::min(cited.contexts.size(), most_));
  return cited;
}

core::OrderedJson to_json(const std::vector<CitedToken>& cited) {
  core::OrderedJson all = core::OrderedJson::array();
  for (const CitedToken& token : cited) {
    core::OrderedJson contexts = core::OrderedJson::array();
    for (const auto& context : token.contexts) {
      contexts.push_back({{"store", context.store},
                          {"document", context.document},
                          {"row", context.row},
                          {"share", context.share},
                          {"context", context.text}});
      if (context.matched > 0) contexts.back()["matched"] = context.matched;
    }
    all.push_back({{"token", token.token},
                   {"text", token.text},
                   {"log_prob", token.log_prob},
                   {"share", token.share},
                   {"contexts", std::move(contexts)}});
    for (const auto& model : token.models)
      all.back()["models"].push_back({{"model", model.folder}, {"share", model.share}});
  }
  return all;
}

std::string citation_heading() {
  return "prompt\tsample\tnumber\ttext\tshare\tstore\tdocument\trow\tcontext\n";
}

std::string citation_lines(std::uint64_t prompt, std::int64_t sample,
                           const std::vector<CitedToken>& cited) {
  std::string lines;
  for (std::size_t i = 0; i < cited.size(); ++i) {
    for (const auto& model : cited[i].models)
      fmt::format_to(std::back_inserter(lines), "{}\t{}\t{}\t{}\t{:.4f}\t{}\t-\t-\t\n", prompt,
                     sample, i, task::escape_text(cited[i].text), model.share,
                     core::printable(model.folder));
    for (const auto& context : cited[i].contexts)
      fmt::format_to(std::back_inserter(lines), "{}\t{}\t{}\t{}\t{:.4f}\t{}\t{}\t{}\t{}\n", prompt,
                     sample, i, task::escape_text(cited[i].text), context.share,
                     core::printable(context.store), context.document, context.row,
                     task::escape_text(context.text));
  }
  return lines;
}

}  // namespace infer
