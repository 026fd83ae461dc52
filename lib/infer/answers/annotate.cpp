#include "infer/answers/annotate.h"

#include "core/plain_text.h"
#include "infer/answers/passage_scorer.h"
#include "model/adapter.h"
#include "shard/unpacked_source.h"
#include "task/token_scores.h"
#include "text/tokenizer/special_text.h"

namespace infer {
namespace {

constexpr double kLeastGiven = 0.01;  // less is said

// The stream to annotate: tokens and the ends of documents.
struct Stream {
  std::vector<std::int64_t> tokens;
  std::vector<std::size_t> ends;
  WindowPlan windows;
  shard::Fingerprints skip;  // fingerprints of the data; empty: no store can hold them
};

bool of_shards(const AnnotateOptions& options, const std::vector<std::string>& files) {
  if (options.from != "auto") return options.from == "shard";
  return std::all_of(files.begin(), files.end(),
      [](const auto& path) { return path == "-" || shard::is_shard(path); });
}

Stream read_shards(
    const Evaluation& evaluation, const std::vector<std::string>& files, std::int64_t most) {
  const shard::Dataset data = evaluation.open(files);
  Stream stream;
  stream.windows = evaluation.windows(data);
  const auto size = std::min<std::uint64_t>(data.size(), static_cast<std::uint64_t>(most));
  std::vector<std::uint32_t> ids(size);
  data.read(0, std::span(ids));
  stream.tokens.assign(ids.begin(), ids.end());
  for (const auto end : data.documents().end) {
    stream.ends.push_back(static_cast<std::size_t>(std::min<std::uint64_t>(end, size)));
    if (end >= size) break;
  }
  stream.skip = data.fingerprints();
  return stream;
}

Stream read_texts(const Evaluation& evaluation, const AnnotateOptions& options,
    const std::vector<std::string>& files, const text::Tokenizer& tokenizer,
    const std::function<void(const std::string&)>& say) {
  Stream stream;
  const auto& windows = options.evaluation.windows;
  stream.windows = evaluation.windows();
  stream.windows.beginning =
      batch::chosen_beginning(windows.begin, &tokenizer, evaluation.loaded().folder).value_or(-1);
  if (windows.bos_at == "window") {
    if (stream.windows.beginning < 0)
      core::bad_usage("--bos-at window: requires --bos, the token at the start of each window");
    stream.windows.window_token = stream.windows.beginning;
  }
  const auto encoding = options.special ? tokenizer.parsing_special() : nullptr;
  const auto encoder = encoding ? encoding->encoder() : tokenizer.encoder();
  const text::SpecialText special(tokenizer);
  bool noted = options.special;
  for (const auto& path : files) {
    std::vector<std::uint32_t> ids;
    const auto source = shard::open_unpacked(path);
    const bool any_bytes = tokenizer.kind() == text::TokenizerKind::bytes;
    const std::string text = any_bytes ? core::read_text(*source) : core::read_utf8(*source);
    if (const auto found = noted ? "" : special.find(text); !found.empty()) {
      say(text::SpecialText::note(path, found));
      noted = true;
    }
    encoder->encode(text, ids);
    stream.tokens.insert(stream.tokens.end(), ids.begin(), ids.end());
    stream.ends.push_back(stream.tokens.size());
  }
  const auto size = std::min(stream.tokens.size(), static_cast<std::size_t>(options.most));
  stream.tokens.resize(size);
  for (auto& end : stream.ends) end = std::min(end, size);
  return stream;
}

// Decodes tokens. A character is printed with the token that holds its last byte.
class Printer {
 public:
  explicit Printer(text::TokenizerPtr tokenizer) : tokenizer_(std::move(tokenizer)) {}
  std::string next(std::int64_t token) {
    decode(token, line_start_, held_);
    return core::take_characters(held_);
  }
  /// Returns the bytes of an incomplete last character.
  const std::string& rest() const { return held_; }
  /// Returns the text of a token by itself.
  std::string alone(std::int64_t token) const {
    std::string text;
    bool line_start = false;
    decode(token, line_start, text);
    return text;
  }

 private:
  void decode(std::int64_t token, bool& line_start, std::string& text) const {
    if (static_cast<std::size_t>(token) < tokenizer_->size())
      tokenizer_->decode_token(static_cast<std::uint32_t>(token), line_start, text);
  }
  text::TokenizerPtr tokenizer_;
  bool line_start_ = true;
  std::string held_;
};

page::AnnotatedToken annotated(const TokenScores& scores, std::size_t i, const Printer& print) {
  page::AnnotatedToken made;
  made.nats = -scores.log_prob[i];
  const TokenDetails& details = scores.details[i];
  made.rank = details.rank;
  made.shares = details.shares;
  for (const auto& [word, p] : details.likely) made.likely.emplace_back(print.alone(word), p);
  if (scores.cited.empty()) return made;
  for (const auto& context : scores.cited[i].contexts)
    made.contexts.push_back({context.store, context.document, context.row, context.share,
        context.text, context.source});
  return made;
}

// Fills `beside` by position.
void compare(const std::string& path, const Stream& stream, page::AnnotatedText& text) {
  const auto source = core::open_source(path);
  task::TokenScoreReader reader(*source);
  task::TokenScore score;
  bool any = false;
  while (reader.next(score) && score.position < stream.tokens.size()) {
    if (stream.tokens[score.position] != static_cast<std::int64_t>(score.token))
      core::bad_data("{}:{}: belongs to another text: its token {} is {}, not {}", path,
          reader.line(), score.position, score.token, stream.tokens[score.position]);
    text.tokens[score.position].beside = score.nats;
    any = true;
  }
  if (!any)
    core::bad_data(
        "{}: has no score of a token that is shown; give --per-token of this text", path);
  text.beside = path;
}

std::string memory_in_words(const std::vector<std::string>& sources) {
  return sources.size() < 2 ? "" : " with " + core::listed(std::span(sources).subspan(1), "and");
}

}  // namespace

void AnnotateOptions::fields(core::FieldList& f) {
  auto& own = evaluation;
  f("model", own.model, "folder of the model; without it, FILEs are samples").short_name = 'm';
  model::adapter_field(f, own.adapter);
  model::tokenizer_field(f, tokenizer);
  f("special", special, "parse the text of special tokens, such as <|im_start|>, as these tokens");
  f("format", from,
      "kind of FILEs; auto: shards if they begin like shards, else texts; stdin is a shard",
      {"auto", "shard", "text", "sample"});
  const auto in_page = f.group("Page");
  f("beside", beside,
      "per-token scores of another model on the same shards (eval-ppl --per-token), to compare with");
  f("title", title, "title of the page; auto: the name of the first FILE");
  f("max-tokens", most, "maximum tokens on the page; later tokens are left out").between(2, 10e6);
  f("cite-k", cite_k, "cited contexts per token").between(0, 64);
  f("likely", likely, "most probable alternatives shown per token").between(0, 64);
  own.windows.fields(f);
  own.reach.fields(f);
  own.memory.fields(f);
}

page::AnnotatedText annotate(const AnnotateOptions& options, const std::vector<std::string>& files,
    const std::function<void(const std::string&)>& say) {
  Evaluation evaluation(options.evaluation);
  say(evaluation.window_note());
  model::Loaded& loaded = evaluation.loaded();
  if (evaluation.of_pairs())
    core::bad_usage("{}: an encoder-decoder reads pairs; eval-ppl scores them", loaded.folder);
  model::give_tokenizer(loaded, options.tokenizer);
  const auto tokenizer = tokenizer_of(loaded, "print tokens");
  Stream stream = of_shards(options, files)
                      ? read_shards(evaluation, files, options.most)
                      : read_texts(evaluation, options, files, *tokenizer, say);
  if (options.special && of_shards(options, files))
    core::bad_usage("--special: a shard is already tokenized; leave it out");
  if (stream.tokens.size() < 2)
    core::bad_data("{}: nothing to annotate; a text needs at least two tokens", files[0]);

  const MemoryPlan memory = evaluation.memory().without(stream.skip);
  memory.expect_probabilities();
  page::AnnotatedText text;
  text.title = options.title == "auto" ? files[0] : options.title;
  text.sources = memory.names();
  text.model = loaded.folder + memory_in_words(text.sources);

  TokenWants wants;
  wants.details = true;
  wants.likely = options.likely;
  wants.skip = stream.skip;
  std::optional<Citer> citer;
  if (options.cite_k > 0 && memory.has(&KindFacts::cites))
    wants.citer = &citer.emplace(memory, tokenizer, options.cite_k);
  loaded.model->eval();
  ModuleEngine engine(*loaded.model, evaluation.device());
  const auto vocabulary = std::min<std::int64_t>(
      static_cast<std::int64_t>(tokenizer->size()), loaded.model->vocabulary);
  PassageScorer scorer(*loaded.model, engine, stream.windows, memory, vocabulary, wants);

  Printer print(tokenizer);
  std::size_t begin = 0;
  std::vector<std::size_t> ends = stream.ends;
  const auto score = [&](std::size_t end) {
    Passage passage;
    passage.text = true;
    auto from = stream.tokens.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto to = stream.tokens.begin() + static_cast<std::ptrdiff_t>(end);
    if (stream.windows.beginning >= 0) passage.context = {stream.windows.beginning};
    const std::size_t unscored = passage.context.empty() ? 1 : 0;
    if (unscored == 1) passage.context = {*from++};
    TokenScores scores;
    if (from != to) {
      passage.continuations.emplace_back(from, to);
      scores = std::move(scorer.score({&passage, 1})[0][0]);
    }
    for (std::size_t i = begin; i < end; ++i) {
      auto& token = text.tokens.emplace_back();
      if (i >= begin + unscored) token = annotated(scores, i - begin - unscored, print);
      token.text = print.next(stream.tokens[i]);
    }
    begin = end;
  };
  if (stream.windows.by_document) {
    for (const std::size_t end : ends)
      if (end > begin) score(end);
  } else {
    score(stream.tokens.size());
  }
  text.tokens.back().text += print.rest();
  text.tokens[0].begins_document = true;
  for (const std::size_t end : ends)
    if (end < text.tokens.size()) text.tokens[end].begins_document = true;
  if (!options.beside.empty()) compare(options.beside, stream, text);
  for (std::size_t i = 1; i < text.sources.size(); ++i) {
    double sum = 0;
    for (const auto& token : text.tokens) sum += token.shares.size() > i ? token.shares[i] : 0;
    if (const double share = sum / static_cast<double>(text.tokens.size()); share < kLeastGiven)
      say(
          fmt::format("{}: gives {:.2f} % of the text, almost nothing; eval-ppl --tune finds a "
                      "temperature and a weight for it; see tessera-memories(7)",
              text.sources[i], 100 * share));
  }
  return text;
}

page::AnnotatedText annotate_samples(
    const AnnotateOptions& options, const std::vector<std::string>& files) {
  page::AnnotatedText text;
  text.title = options.title == "auto" ? files[0] : options.title;
  text.model = "sample";
  for (const auto& path : files) {
    core::LineReader lines(shard::open_unpacked(path));
    while (const auto line = lines.next()) {
      if (text.tokens.size() >= static_cast<std::size_t>(options.most)) break;
      if (!line->empty()) page::add_sample(text, *line, lines.origin());
    }
  }
  if (text.tokens.empty()) core::bad_data("{}: has no samples", files[0]);
  return text;
}

}  // namespace infer
