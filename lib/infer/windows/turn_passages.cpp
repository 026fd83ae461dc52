#include "infer/windows/turn_passages.h"

#include <initializer_list>

#include "infer/windows/retriever.h"

namespace infer {
namespace {

constexpr std::uint64_t kMostPassageTokens = 256;
constexpr std::size_t kMostFormBytes = 1 << 20;
constexpr const char* kDefaultForm =
    "Notes:\n{{ passages | join('\\n') }}\n\n{{ question }}\n"
    "Answer with the sentence of the notes that says it.";

// Words that say nothing of a passage in a question, beside the index's stop words.
constexpr std::string_view kWordsOfQuestions =
    "how what when where which who whom whose why do does did can could may might must shall "
    "should would will has have had i me my we us our you your much many long often any some";

text::ChatTemplate read_form(const std::string& file) {
  if (file.empty()) return {kDefaultForm, "the default of --retrieve-template"};
  return {core::read_text(file, kMostFormBytes), file};
}

}  // namespace

void TurnOptions::fields(core::FieldList& f) {
  const auto in_retrieval = f.group("Retrieval");
  f("retrieve-k", k, "most passages in the last turn of a chat").between(1, 1000);
  f("retrieve-least", least,
      "in a chat, leave out passages with less than this fraction of the best one's score")
      .between(0, 1);
  f("retrieve-template", form,
      "file of a Jinja template that makes the last turn of a chat of `passages` and `question`");
}

text::Chat::Revision TurnOptions::settle(
    RetrieveOptions& retrieve, bool chat, const std::set<std::string>& given) const {
  const bool turns = chat && retrieve.any();
  const auto refuse = [&](std::initializer_list<const char*> names, const char* why) {
    for (const char* const name : names)
      if (given.contains(name)) core::bad_usage("--{}: {}", name, why);
  };
  if (!turns) {
    refuse({"retrieve-k", "retrieve-least", "retrieve-template"}, "requires --chat and --retrieve");
    return {};
  }
  refuse({"retrieve-every", "retrieve-query", "retrieve-mix", "retrieve-temperature"},
      "cannot be combined with --chat, where passages are retrieved once, by the last turn");
  auto passages = std::make_shared<const TurnPassages>(retrieve.index, retrieve.tokens, *this);
  retrieve.index.clear();
  return [passages](core::OrderedJson& messages) { return passages->put_into(messages); };
}

TurnPassages::TurnPassages(const std::string& index, std::int64_t tokens, TurnOptions options)
    : index_(index), tokens_(tokens > 0 ? static_cast<std::uint64_t>(tokens) : kMostPassageTokens),
      options_(std::move(options)), form_(read_form(options_.form)) {}

core::OrderedJson TurnPassages::put_into(core::OrderedJson& messages) const {
  Prefixes found;
  auto texts = core::OrderedJson::array();
  auto& last = messages.back();
  const auto content = last.find("content");
  if (last.at("role") != "user" || content == last.end() || !content->is_string()) return texts;
  const auto question = content->get<std::string>();
  passages::PassageQueries queries(index_);
  auto terms = queries.terms_of(question);
  for (const auto& word : queries.terms_of(kWordsOfQuestions))
    std::erase_if(terms, [&](const auto& term) { return term.term == word.term; });
  const passages::Bm25Query query{terms};
  const auto hits = index_.search({&query, 1}, static_cast<std::uint32_t>(options_.k));
  for (const auto& hit : hits.of(0)) {
    const auto score = static_cast<double>(hit.score);
    if (!found.empty() && score < options_.least * found[0].score) break;
    const auto tokens = index_.passage(hit.unit, tokens_);
    texts.push_back(index_.tokenizer()->decode(tokens));
    found.push_back({{tokens.begin(), tokens.end()}, hit.unit, score});
  }
  if (!found.empty())
    *content = form_.render({{"passages", texts}, {"question", question}}, std::time(nullptr));
  return to_json(found, index_);
}

}  // namespace infer
