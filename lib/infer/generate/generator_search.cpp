// Beam search for the best texts of each prompt, and citation of the stored contexts behind them.

#include <algorithm>
#include <set>

#include "infer/generate/generator.h"
#include "infer/generate/generator_draw.h"

namespace infer {

// The hypotheses of one prompt.
struct Generator::Search {
  struct Text {
    StopText text;
    text::StreamDecoder decoder;
  };
  std::uint64_t prompt;
  Beam beam;
  Text start;               // the state after the prompt
  std::vector<Text> texts;  // of the live hypotheses
};

void Generator::search(const std::vector<Start>& starts, const GeneratorCallbacks& watch) {
  std::vector<Search> searches;
  for (const auto& start : starts) {
    const Search::Text text{StopText(start.stop), decoder_after(start)};
    searches.push_back(
        {start.number, Beam(options_.beam, options_.length_penalty, start.most), text, {text}});
  }
  open_rows(starts);
  std::vector<Sample> found;  // kept until they are cited
  const auto tell = [&](const Search& search) {
    std::int64_t rank = 0;
    std::set<std::string> texts;
    for (auto& hypothesis : search.beam.best(2 * options_.beam)) {
      if (rank == options_.samples) break;
      Sample sample{search.prompt,
                    rank,
                    {},
                    std::move(hypothesis.tokens),
                    hypothesis.log_prob,
                    hypothesis.ending.finish,
                    {}};
      auto text = search.start;
      for (const auto token : sample.tokens) ends(text.text, text.decoder, token);
      sample.text = text.text.text();
      if (!texts.insert(sample.text).second) continue;  // of other tokens
      ++rank;
      if (watch.piece) watch.piece(sample.prompt, sample.sample, sample.text);
      if (citer_) {
        found.push_back(std::move(sample));
      } else if (watch.finished) {
        watch.finished(sample);
      }
    }
  };
  while (!searches.empty()) {
    const torch::Tensor log_p = session_->log_probs();
    count(static_cast<std::size_t>(log_p.size(0)), watch);
    std::vector<std::int64_t> parents, tokens;
    std::vector<Search> rest;
    std::int64_t first = 0;  // row of the search's first hypothesis
    for (auto& search : searches) {
      std::vector<std::span<const float>> rows;
      const auto live = static_cast<std::int64_t>(search.beam.live().size());
      for (std::int64_t i = 0; i < live; ++i) rows.push_back(row_of(log_p, first + i));
      best_word(rows[0]);  // throws if the model gives NaN
      const auto continued = search.beam.advance(
          rows, [&](std::size_t parent, std::int64_t word) -> std::optional<Ending> {
            auto text = search.texts[parent];
            const auto finish = ends(text.text, text.decoder, word);
            if (!finish) return std::nullopt;
            return Ending(*finish, text.text.text());
          });
      if (search.beam.done()) {
        tell(search);
      } else {
        std::vector<Search::Text> texts;
        for (std::size_t i = 0; i < continued.size(); ++i) {
          const auto word = search.beam.live()[i].tokens.back();
          texts.push_back(search.texts[static_cast<std::size_t>(continued[i])]);
          ends(texts.back().text, texts.back().decoder, word);
          parents.push_back(first + continued[i]);
          tokens.push_back(word);
        }
        search.texts = std::move(texts);
        rest.push_back(std::move(search));
      }
      first += live;
    }
    searches = std::move(rest);
    if (searches.empty()) break;
    session_->select(parents);
    session_->advance(tokens);
  }
  if (citer_) cite(starts, found);
  for (const auto& sample : found)
    if (watch.finished) watch.finished(sample);
}

// Feeds the samples again, token by token, and looks up what the stores contributed to each token.
void Generator::cite(const std::vector<Start>& starts, std::vector<Sample>& samples) {
  std::vector<std::int64_t> rows;  // first of the starts, then of the unfinished samples
  std::vector<Sample*> live;
  for (auto& sample : samples) {
    const auto start = std::find_if(starts.begin(), starts.end(), [&](const Start& candidate) {
      return candidate.number == sample.prompt;
    });
    rows.push_back(start - starts.begin());
    live.push_back(&sample);
  }
  open_rows(starts);
  session_->select(rows);
  while (!live.empty()) {
    const torch::Tensor log_p = session_->log_probs();
    std::vector<std::int64_t> tokens, going_on;
    std::vector<Sample*> rest;
    for (std::size_t i = 0; i < live.size(); ++i) {
      auto& sample = *live[i];
      const auto row = static_cast<std::int64_t>(i);
      const auto token = sample.tokens[sample.cited.size()];
      const auto log_prob = row_of(log_p, row)[static_cast<std::size_t>(token)];
      sample.cited.push_back(
          citer_->cite(session_->memory(), {row, token, static_cast<double>(log_prob)}));
      if (sample.cited.size() == sample.tokens.size()) continue;
      tokens.push_back(token);
      going_on.push_back(row);
      rest.push_back(live[i]);
    }
    live = std::move(rest);
    if (live.empty()) break;
    session_->select(going_on);
    session_->advance(tokens);
  }
}

}  // namespace infer
