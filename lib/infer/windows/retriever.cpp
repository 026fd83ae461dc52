#include "infer/windows/retriever.h"

#include "passages/analysis.h"

namespace infer {
namespace {

std::uint64_t begin_of(const shard::Documents& documents, std::uint64_t document) {
  return document == 0 ? 0 : documents.end[document - 1];
}

// Copies the first `length` steps of row i of rows (R, T) to row `to` of `out`, after `before`
// steps.
void put(const Tensor& rows, std::int64_t i, std::int64_t before, std::int64_t length, Tensor& out,
    std::int64_t to) {
  out[to].slice(0, before, before + length).copy_(rows[i].slice(0, 0, length));
}

constexpr const char* kDefaultForm =
    "Notes:\n{{ passages | join('\\n') }}\n\n{{ question }}\n"
    "Answer with the sentence of the notes that says it.";

// Words that say nothing of a passage in a question, beside the index's stop words.
constexpr std::string_view kWordsOfQuestions =
    "how what when where which who whom whose why do does did can could may might must shall "
    "should would will has have had i me my we us our you your much many long often any some";

text::ChatTemplate read_form(const std::string& file) {
  if (file.empty()) return {kDefaultForm, "the default of --retrieve-template"};
  return {core::read_text(file, /*most=*/1 << 20), file};
}

}  // namespace

Retriever::Retriever(RetrievePlan plan)
    : plan_(std::move(plan)), queries_(*plan_.index),
      searcher_(plan_.index->searcher(static_cast<std::uint32_t>(plan_.mix))) {}

std::vector<Prefixes> Retriever::find(std::span<const RetrievalQuery> queries) {
  constexpr std::size_t kBatch = passages::BlockSearcher::kBatch;
  std::vector<std::vector<passages::TermCount>> terms;
  std::vector<passages::Bm25Query> asked;
  for (const auto& query : queries) terms.push_back(queries_.terms_of(std::span(query.tokens)));
  for (std::size_t i = 0; i < queries.size(); ++i) asked.push_back({terms[i], queries[i].without});
  passages::Hits hits(
      static_cast<std::uint32_t>(asked.size()), static_cast<std::uint32_t>(plan_.mix));
  for (std::size_t at = 0; at < asked.size(); at += kBatch)
    searcher_.search(index().blocks(),
        std::span(asked).subspan(at, std::min(kBatch, asked.size() - at)),
        static_cast<std::uint32_t>(at), hits);
  std::vector<Prefixes> found(queries.size());
  for (std::uint32_t i = 0; i < hits.queries(); ++i) {
    double sum = 0;
    for (const auto& hit : hits.of(i)) {
      const auto tokens = index().passage(hit.unit, static_cast<std::uint64_t>(plan_.tokens));
      const double weight =
          std::exp((static_cast<double>(hit.score) - static_cast<double>(hits.of(i)[0].score)) /
                   plan_.temperature);
      sum += weight;
      found[i].push_back(
          {{tokens.begin(), tokens.end()}, hit.unit, static_cast<double>(hit.score), weight});
    }
    for (auto& prefix : found[i]) prefix.weight /= sum;
  }
  return found;
}

std::int64_t longest(const Prefixes& prefixes) {
  return core::max_of(prefixes, [](const auto& prefix) { return std::ssize(prefix.tokens); });
}

core::OrderedJson to_json(const Prefixes& prefixes, const passages::PassageIndex& index) {
  auto list = core::OrderedJson::array();
  for (const auto& prefix : prefixes) {
    const auto place = index.cuts().place(prefix.passage);
    list.push_back({{"passage", prefix.passage}, {"score", prefix.score}, {"weight", prefix.weight},
        {"document", place.document},
        {"offset", place.begin - index.cuts().begin_of(place.document)},
        {"length", prefix.tokens.size()}});
  }
  return list;
}

WindowPrefixes::WindowPrefixes(const WindowPlan& plan, const shard::Dataset& data)
    : plan_(plan), data_(data), retriever_(plan.retrieve) {}

std::vector<std::uint32_t> WindowPrefixes::query(const Span& span) const {
  const std::uint64_t end = span.target + static_cast<std::uint64_t>(span.first_scored);
  const std::uint64_t begin =
      plan_.by_document ? begin_of(data_.documents(), static_cast<std::uint64_t>(span.stream)) : 0;
  const auto most = static_cast<std::uint64_t>(plan_.retrieve.query);
  std::vector<std::uint32_t> tokens(std::min(most, end - begin));
  data_.read(end - tokens.size(), std::span(tokens));
  return tokens;
}

const std::vector<passages::UnitRange>& WindowPrefixes::own_passages(std::uint64_t element) {
  const auto& ends = data_.documents().end;
  const auto after = std::ranges::upper_bound(ends, element);
  const auto document = static_cast<std::uint64_t>(after - ends.begin());
  if (document == document_) return own_;
  const std::uint64_t begin = begin_of(data_.documents(), document);
  std::vector<std::uint32_t> tokens(data_.documents().end[document] - begin);
  data_.read(begin, std::span(tokens));
  document_ = document;
  return own_ = retriever_.index().same_document(tokens);
}

std::vector<Prefixes> WindowPrefixes::find(std::vector<Span>& spans) {
  std::vector<RetrievalQuery> queries;
  for (const Span& span : spans) {
    RetrievalQuery& query = queries.emplace_back();
    if (span.length - span.first_scored + plan_.retrieve.tokens > plan_.window) continue;
    query.tokens = this->query(span);
    query.without = own_passages(span.target + static_cast<std::uint64_t>(span.first_scored));
  }
  auto found = retriever_.find(queries);
  for (std::size_t i = 0; i < spans.size(); ++i) {
    Span& span = spans[i];
    const std::int64_t less =
        std::max<std::int64_t>(0, span.length + longest(found[i]) - plan_.window);
    if (less == 0) continue;
    span.target += static_cast<std::uint64_t>(less);
    span.length -= less;
    span.first_scored -= less;
    span.first_new = std::max<std::int64_t>(0, span.first_new - less);
    span.begins = false;
  }
  return found;
}

PrefixedBatch prepend(const nn::Batch& host, const std::vector<std::int64_t>& lengths,
    const std::vector<Prefixes>& prefixes) {
  static const Prefixes kNone(1);
  PrefixedBatch out;
  std::int64_t rows = 0, steps = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const Prefixes& own = prefixes[i].empty() ? kNone : prefixes[i];
    rows += std::ssize(own);
    steps = std::max(steps, lengths[i] + longest(own));
  }
  out.batch = nn::Batch::padding(rows, steps);
  nn::Batch& batch = out.batch;
  batch.fresh.fill_(true);
  std::int64_t row = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    for (const Prefix& prefix : prefixes[i].empty() ? kNone : prefixes[i]) {
      const auto from = static_cast<std::int64_t>(i), before = std::ssize(prefix.tokens);
      std::ranges::copy(prefix.tokens, batch.inputs[row].data_ptr<std::int64_t>());
      put(host.inputs, from, before, lengths[i], batch.inputs, row);
      put(host.targets, from, before, lengths[i], batch.targets, row);
      put(host.place.run, from, before, lengths[i], batch.place.run, row);
      put(host.place.segment, from, before, lengths[i], batch.place.segment, row);
      put(host.place.position, from, before, lengths[i], batch.place.position, row);
      batch.place.run[row].slice(0, 0, before).copy_(host.place.run[from][0]);
      out.window.push_back(from);
      out.before.push_back(before);
      out.weight.push_back(prefix.weight);
      ++row;
    }
  return out;
}

nn::Hidden without_prefixes(const nn::Hidden& hidden, const PrefixedBatch& prefixed,
    const std::vector<std::int64_t>& lengths) {
  const auto windows = std::ssize(lengths);
  const std::int64_t steps = *std::max_element(lengths.begin(), lengths.end());
  const auto first_rows = [&](const Tensor& rows) {
    Tensor out = rows.new_zeros({windows, steps, rows.size(2)});
    for (std::size_t row = prefixed.window.size();
         row-- > 0;) {  // so that the first of a window is copied last
      const auto window = prefixed.window[row];
      const auto length = lengths[static_cast<std::size_t>(window)];
      out[window]
          .slice(0, 0, length)
          .copy_(rows[static_cast<std::int64_t>(row)].slice(
              0, prefixed.before[row], prefixed.before[row] + length));
    }
    return out;
  };
  return {first_rows(hidden.output), first_rows(hidden.key)};
}

void TurnOptions::fields(core::FieldList& f) {
  const auto in_retrieval = f.group("Retrieval");
  f("retrieve-k", k, "maximum passages in the last turn of a chat").between(1, 1000);
  f("retrieve-candidates", candidates,
      "in a chat, passages that BM25 finds; those after which the turn is most probable are used")
      .between(1, 1000);
  f("retrieve-within", within,
      "in a chat, use a passage only if the turn's log-probability after it is at most this many "
      "nats below that after the best passage")
      .between(0, 1e6);
  f("retrieve-evidence", evidence,
      "in a chat, minimum evidence that a passage answers the turn; none: always use passages")
      .none_or_above(0, 1e6);
  f("retrieve-template", form,
      "file of a Jinja template that turns `passages` and `question` into the last turn of a chat");
}

text::Chat::Revision TurnOptions::settle(RetrieveOptions& retrieve, bool chat) const {
  if (!chat || !retrieve.any()) {
    for (const auto& name : core::changed(*this))
      core::bad_usage("--{}: requires --chat and --retrieve", name);
    return {};
  }
  auto of_windows = retrieve;
  of_windows.index.clear(), of_windows.tokens = 0;
  for (const auto& name : core::changed(of_windows))
    core::bad_usage(
        "--{}: cannot be combined with --chat, where passages are retrieved once, by the last turn",
        name);
  auto passages = std::make_shared<const TurnPassages>(retrieve.index, retrieve.tokens, *this);
  retrieve.index.clear();
  return [passages](core::OrderedJson& messages) { return passages->put_into(messages); };
}

TurnPassages::TurnPassages(const std::string& index, std::int64_t tokens, TurnOptions options)
    : index_(index), tokens_(tokens > 0 ? static_cast<std::uint64_t>(tokens) : 256),
      options_(std::move(options)), form_(read_form(options_.form)) {}

// Keeps the passages after which the turn is most probable, best first.
void TurnPassages::choose(const std::string& turn, std::vector<Candidate>& candidates) const {
  if (candidates.empty()) return;
  const auto& gains_of = options_.model->gains;
  std::vector<double> gains;
  if (gains_of) gains = gains_of(turn, core::mapped(candidates, &Candidate::text));
  gains.resize(candidates.size());  // all alike if the model cannot say
  for (std::size_t i = 0; i < gains.size(); ++i) candidates[i].gain = gains[i];
  std::ranges::stable_sort(candidates, std::greater(), &Candidate::gain);
  candidates.resize(std::min(candidates.size(), static_cast<std::size_t>(options_.k)));
  const double best = candidates[0].gain;
  std::erase_if(candidates, [&](const auto& one) { return one.gain < best - options_.within; });
}

// Returns whether a passage has enough evidence.
bool TurnPassages::shows(const std::string& turn, const std::vector<Candidate>& chosen) const {
  const auto& vectors_of = options_.model->words;
  if (!vectors_of || options_.evidence == 0) return true;
  passages::Analyzer analyzer;
  std::vector<std::uint32_t> common, asked, terms;
  std::vector<std::string_view> words;
  analyzer.analyze(kWordsOfQuestions, common);
  analyzer.analyze(turn, asked, &words);
  const Tensor vectors = vectors_of(words);
  return std::ranges::any_of(chosen, [&](const Candidate& one) {
    terms.clear(), words.clear();
    analyzer.analyze(one.text, terms, &words);
    if (terms.empty()) return false;
    const Tensor nearest = vectors.mm(vectors_of(words).t()).amax(1).clamp_min(0);
    double over = 0;  // sum w (c + gain / 25 - evidence)
    for (std::size_t i = 0; i < asked.size(); ++i) {
      if (std::ranges::count(common, asked[i]) > 0) continue;
      const bool there = std::ranges::count(terms, asked[i]) > 0;
      const double c = there ? 1 : nearest[static_cast<std::int64_t>(i)].item<double>();
      over += index_.idf(analyzer.term(asked[i])) * (c + one.gain / 25 - options_.evidence);
    }
    return over >= 0;
  });
}

core::OrderedJson TurnPassages::put_into(core::OrderedJson& messages) const {
  const auto last = std::find_if(messages.rbegin(), messages.rend(),
      [](const core::OrderedJson& message) { return message.at("role") == "user"; });
  if (last == messages.rend()) return core::OrderedJson::array();
  const auto content = last->find("content");
  if (content == last->end() || !content->is_string()) return core::OrderedJson::array();
  const auto question = content->get<std::string>();
  passages::PassageQueries queries(index_);
  auto terms = queries.terms_of(question);
  for (const auto& word : queries.terms_of(kWordsOfQuestions))
    std::erase_if(terms, [&](const auto& term) { return term.term == word.term; });
  const passages::Bm25Query query{terms};
  const auto candidates = std::max(options_.k, options_.candidates);
  const auto hits = index_.search({&query, 1}, static_cast<std::uint32_t>(candidates));
  std::vector<Candidate> chosen;
  for (const auto& hit : hits.of(0)) {
    const auto tokens = index_.passage(hit.unit, tokens_);
    chosen.push_back({{{tokens.begin(), tokens.end()}, hit.unit, static_cast<double>(hit.score)},
        index_.tokenizer()->decode(tokens)});
  }
  choose(question, chosen);
  if (!chosen.empty() && !shows(question, chosen)) chosen.clear();
  if (!chosen.empty())
    *content =
        form_.render({{"passages", core::mapped(chosen, &Candidate::text)}, {"question", question}},
            std::time(nullptr));
  return to_json(core::mapped(chosen, &Candidate::prefix), index_);
}

}  // namespace infer
