#include "task/regbench.h"

#include "core/json_line.h"
#include "core/parallel.h"

namespace task {
namespace {

constexpr std::uint64_t kLeastStates = 4, kMostStates = 12;
constexpr std::uint64_t kLeastAlphabet = 4, kMostEdges = 3;

using Classes = std::vector<std::uint8_t>;

/// Returns what distinguishes a state, given the classes so far: its class, its letters and their
/// targets' classes.
std::vector<std::uint8_t> signature(
    const Automaton& automaton, std::size_t state, const Classes& classes) {
  std::vector<std::uint8_t> parts = {classes[state]};
  for (const auto& edge : automaton.states[state]) {
    parts.push_back(edge.letter);
    parts.push_back(classes[edge.target]);
  }
  return parts;
}

/// Returns the classes of states that accept the same words (Moore 1956: refined until nothing
/// changes).
Classes equivalent_states(const Automaton& automaton) {
  Classes classes(automaton.states.size(), 0);
  for (std::size_t count = 1;;) {
    std::vector<std::vector<std::uint8_t>> seen;
    Classes finer;
    for (std::size_t state = 0; state < classes.size(); ++state) {
      const auto own = signature(automaton, state, classes);
      const auto at = std::ranges::find(seen, own) - seen.begin();
      if (static_cast<std::size_t>(at) == seen.size()) seen.push_back(own);
      finer.push_back(static_cast<std::uint8_t>(at));
    }
    classes = finer;
    if (seen.size() == count) return classes;
    count = seen.size();
  }
}

bool is_letter(std::uint8_t token) { return token >= 1 && token <= kLetters; }

void judge(const Automaton& automaton, int state, std::span<const float> p, RegbenchSums& sums) {
  const auto& edges = automaton.states[static_cast<std::size_t>(state)];
  const float truth = 1.0F / static_cast<float>(edges.size());
  double l1 = 0;
  for (const float x : p) l1 += x;
  for (const auto& edge : edges)
    l1 += std::abs(static_cast<double>(p[edge.letter]) - truth) - p[edge.letter];
  const auto best = std::ranges::max_element(p) - p.begin();
  ++sums.positions;
  sums.l1 += l1;
  sums.right += automaton.next(state, static_cast<std::uint8_t>(best)) >= 0 ? 1 : 0;
}

/// Sequences [first, first + count) and the lines of their automata.
struct Numbers {
  std::uint64_t first = 0, count = 0;
};
struct Made {
  std::vector<std::uint32_t> tokens;
  std::vector<std::size_t> lengths;
  std::string lines;
};

RegbenchSplit split_named(const RegbenchSet& set) {
  if (set.split == "valid") return RegbenchSplit::valid;
  return set.split == "test" ? RegbenchSplit::test : RegbenchSplit::train;
}

void make(
    const RegbenchSet& set, std::uint64_t seed, const Numbers& block, bool with_lines, Made& made) {
  made = {};
  const bool iid = set.split == "iid";
  const auto split = split_named(set);
  const auto environments = static_cast<std::uint64_t>(set.environments);
  for (auto number = block.first; number < block.first + block.count; ++number) {
    auto rng = sequence_rng(seed, iid ? RegbenchStream::iid : stream_of(split), number);
    const auto environment = iid                ? rng.below(environments)
                             : environments > 0 ? number % environments
                                                : number;
    const auto automaton = regbench_automaton(seed, split, environment);
    const auto sequence = random_sequence(automaton, set.shape, rng);
    made.tokens.insert(made.tokens.end(), sequence.begin(), sequence.end());
    made.lengths.push_back(sequence.size());
    if (with_lines)
      made.lines += fmt::format("{{\"sequence\":{},\"automaton\":{},\"states\":{}}}\n", number,
          environment, to_json(automaton));
  }
}

// Returns the automaton's state before each next token, for tokens 0 to n - 2 of a sequence; after
// '|' it is the start. Throws Error{bad_data}, naming `origin`, if the automaton does not accept
// the words.
std::vector<int> states_of(
    const Automaton& automaton, std::span<const std::uint8_t> sequence, const std::string& origin) {
  std::vector<int> states;
  int state = 0;
  for (std::size_t t = 0; t < sequence.size(); ++t) {
    state = sequence[t] == kSeparator ? 0 : automaton.next(state, sequence[t]);
    if (state < 0)
      core::bad_data(
          "{}: token {} is not in the alphabet of its automaton; give the automata written with "
          "these sequences",
          origin, t);
    if (t + 1 < sequence.size()) states.push_back(state);
  }
  return states;
}

}  // namespace

int Automaton::next(int state, std::uint8_t letter) const {
  for (const auto& edge : states[static_cast<std::size_t>(state)])
    if (edge.letter == letter) return edge.target;
  return -1;
}

Automaton random_automaton(core::Rng& rng) {
  const auto n = kLeastStates + rng.below(kMostStates - kLeastStates + 1);
  const auto alphabet = kLeastAlphabet + rng.below(kLetters - kLeastAlphabet + 1);
  std::array<std::uint8_t, kLetters> letters;
  for (std::size_t i = 0; i < letters.size(); ++i) letters[i] = static_cast<std::uint8_t>(i + 1);
  std::array<std::uint8_t, kMostStates> others{};
  // Makes the first `count` of `items` a random choice from its first `from`.
  const auto choose = [&](auto& items, std::uint64_t count, std::uint64_t from) {
    for (std::uint64_t i = 0; i < count; ++i) std::swap(items[i], items[i + rng.below(from - i)]);
  };
  choose(letters, alphabet, letters.size());
  Automaton automaton;
  for (std::uint64_t state = 0; state < n; ++state) {
    std::size_t rest = 0;
    for (std::uint64_t other = 0; other < n; ++other)
      if (other != state) others[rest++] = static_cast<std::uint8_t>(other);
    const auto edges = 1 + rng.below(kMostEdges);
    choose(others, edges, rest);
    choose(letters, edges, alphabet);
    std::vector<Edge> row;
    for (std::uint64_t i = 0; i < edges; ++i) row.push_back({letters[i], others[i]});
    std::ranges::sort(row, {}, &Edge::letter);
    automaton.states.push_back(std::move(row));
  }
  return automaton;
}

Automaton minimal(const Automaton& automaton) {
  const auto classes = equivalent_states(automaton);
  std::vector<int> number(automaton.states.size(), -1);  // of each class
  std::vector<std::size_t> walked = {0};                 // a state of each numbered class
  number[classes[0]] = 0;
  Automaton smallest;
  for (std::size_t i = 0; i < walked.size(); ++i) {
    std::vector<Edge> row;
    for (const auto& edge : automaton.states[walked[i]]) {
      auto& target = number[classes[edge.target]];
      if (target < 0) {
        target = static_cast<int>(walked.size());
        walked.push_back(edge.target);
      }
      row.push_back({edge.letter, static_cast<std::uint8_t>(target)});
    }
    smallest.states.push_back(std::move(row));
  }
  return smallest;
}

RegbenchSplit split_of(const Automaton& automaton) {
  constexpr std::uint64_t kShares = 8;
  const auto json = to_json(automaton);
  const auto share = core::hash64(std::as_bytes(std::span(json))) % kShares;
  return share == 0   ? RegbenchSplit::valid
         : share == 1 ? RegbenchSplit::test
                      : RegbenchSplit::train;
}

Automaton regbench_automaton(std::uint64_t seed, RegbenchSplit split, std::uint64_t number) {
  auto rng = automaton_rng(seed, stream_of(split), number);
  for (;;) {
    auto automaton = minimal(random_automaton(rng));
    if (split_of(automaton) == split) return automaton;
  }
}

std::string to_json(const Automaton& automaton) {
  std::string json = "[";
  for (const auto& row : automaton.states) {
    json += json.size() == 1 ? "{" : ",{";
    for (const auto& edge : row) {
      if (json.back() != '{') json += ',';
      json += '"';
      json += kRegbenchTokens[edge.letter];
      json += "\":";
      json += std::to_string(edge.target);
    }
    json += '}';
  }
  return json + "]";
}

Automaton automaton_of_json(std::string_view text, const std::string& origin) {
  const auto json = core::parse_json(text, origin);
  const auto bad = [&](const char* what) {
    core::bad_data("{}: not an automaton: {}", origin, what);
  };
  if (!json.is_array() || json.empty() || json.size() > 255) bad("not a list of 1 to 255 states");
  Automaton automaton;
  for (const auto& state : json) {
    if (!state.is_object() || state.empty()) bad("a state is not an object of letters");
    std::vector<Edge> row;
    for (const auto& [name, target] : state.items()) {
      const auto letter = name.size() == 1 ? kRegbenchTokens.find(name[0]) : std::string::npos;
      if (letter == std::string::npos || letter < 1 || letter > kLetters)
        bad("an edge's letter is not in a to r");
      if (!target.is_number_unsigned() || target.get<std::uint64_t>() >= json.size())
        bad("an edge leads to a missing state");
      row.push_back({static_cast<std::uint8_t>(letter), target.get<std::uint8_t>()});
    }
    automaton.states.push_back(std::move(row));
  }
  return automaton;
}

Sequence random_sequence(const Automaton& automaton, const SequenceShape& shape, core::Rng& rng) {
  // Multiplies the high bits by n: biased by n / 2^32, and four times as fast as Rng::below.
  const auto draw = [&](std::uint64_t n) { return (rng.next() >> 32) * n >> 32; };
  const auto words = shape.least_words + static_cast<std::int64_t>(draw(static_cast<std::uint64_t>(
                                             shape.most_words - shape.least_words + 1)));
  Sequence sequence;
  sequence.reserve(static_cast<std::size_t>(words * (shape.longest_word + 1)));
  for (std::int64_t word = 0; word < words; ++word) {
    if (word > 0) sequence.push_back(kSeparator);
    std::size_t state = 0;
    for (auto left = 1 + draw(static_cast<std::uint64_t>(shape.longest_word)); left > 0; --left) {
      const auto& edges = automaton.states[state];
      const auto& edge = edges[edges.size() == 1 ? 0 : draw(edges.size())];
      sequence.push_back(edge.letter);
      state = edge.target;
    }
  }
  return sequence;
}

void RegbenchScore::add(const Automaton& automaton, std::span<const std::uint8_t> sequence,
    std::span<const float> predictions, const std::string& origin) {
  const auto states = states_of(automaton, sequence, origin);
  ++sequences;
  std::size_t final = states.size();
  const auto row = [&](std::size_t t) {
    return predictions.subspan(t * kRegbenchTypes, kRegbenchTypes);
  };
  for (std::size_t t = 0; t < states.size(); ++t) {
    judge(automaton, states[t], row(t), with_separators);
    if (!is_letter(sequence[t + 1])) continue;
    judge(automaton, states[t], row(t), all);
    final = t;
  }
  if (final < states.size()) judge(automaton, states[final], row(final), last);
}

Predictions ngram_predictions(std::span<const std::uint8_t> sequence, std::int64_t order) {
  using Counts = std::array<std::uint32_t, kRegbenchTypes>;
  // Counts of what followed a context: its tokens as digits, the last one lowest. '|' is the
  // highest digit and no digit is 0, so that contexts of different lengths differ.
  std::unordered_map<std::uint64_t, Counts> followers;
  Predictions predictions;
  std::vector<std::uint64_t> contexts;  // of length 0, 1, ... up to the word's beginning
  const auto next_contexts = [&](std::uint8_t token) {
    if (token == kSeparator) contexts.assign(1, 0);  // the previous word has no influence
    std::vector<std::uint64_t> longer = {0};
    for (const auto context : contexts) {
      if (static_cast<std::int64_t>(longer.size()) >= order) break;
      longer.push_back(context * kRegbenchTypes + token);
    }
    contexts = std::move(longer);
  };
  contexts = {0};
  next_contexts(kSeparator);
  for (std::size_t t = 0; t < sequence.size(); ++t) {
    if (t > 0) {
      const Counts* counts = nullptr;
      for (auto context = contexts.rbegin(); context != contexts.rend() && !counts; ++context)
        if (const auto at = followers.find(*context); at != followers.end()) counts = &at->second;
      std::uint64_t total = 0;
      for (std::uint8_t letter = 1; letter <= kLetters; ++letter)
        total += counts != nullptr ? (*counts)[letter] : 1;
      for (std::uint8_t token = 0; token < kRegbenchTypes; ++token)
        predictions.push_back(is_letter(token)
                                  ? static_cast<float>(counts != nullptr ? (*counts)[token] : 1) /
                                        static_cast<float>(total)
                                  : 0.0F);
    }
    if (is_letter(sequence[t]))
      for (const auto context : contexts) ++followers[context][sequence[t]];
    next_contexts(sequence[t]);
  }
  return predictions;
}

void RegbenchSet::fields(core::FieldList& f) {
  f("split", split,
      "train, valid and test have disjoint languages; iid: new sequences of the languages of train",
      {"train", "valid", "test", "iid"});
  f("count", count, "number of sequences").between(1, 1e12).short_name = 'n';
  f("first", first, "number of the first sequence, to generate parts of a set separately")
      .between(0, 1e12);
  f("environments", environments,
      "number of automata; auto: one per sequence; with iid, the number that train had")
      .auto_or(1, 1e12);
}

void RegbenchSet::check() const {
  if (split == "iid" && environments == 0)
    core::bad_usage("--split iid: requires --environments, the number of automata of train");
  if (shape.most_words < shape.least_words)
    core::bad_usage("--most-words: must be at least --least-words");
}

core::OrderedJson RegbenchSet::changes(std::int64_t seed) const {
  return {{"split", split}, {"count", count}, {"first", first}, {"environments", environments},
      {"least_words", shape.least_words}, {"most_words", shape.most_words},
      {"longest_word", shape.longest_word}, {"seed", seed}};
}

void make_sequences(const RegbenchSet& set, std::uint64_t seed, int jobs, shard::Writer& writer,
    const std::function<void(const std::string&)>& lines,
    const std::function<void(std::uint64_t)>& progress) {
  constexpr std::uint64_t kBlock = 256;
  const auto first = static_cast<std::uint64_t>(set.first);
  const auto end = first + static_cast<std::uint64_t>(set.count);
  auto next = first;
  core::work_in_order<Numbers, Made>(
      jobs,
      [&](Numbers& block) {
        block = {next, std::min(kBlock, end - next)};
        next += block.count;
        return block.count > 0;
      },
      [&] { return [&](Numbers& block, Made& to) { make(set, seed, block, bool(lines), to); }; },
      [&](Made& from) {
        std::span<const std::uint32_t> rest(from.tokens);
        for (const auto length : from.lengths) {
          writer.write(rest.first(length));
          writer.end_document();
          rest = rest.subspan(length);
        }
        if (lines) lines(from.lines);
        if (progress) progress(next - first);
      });
}

std::vector<RegbenchProblem> read_regbench_problems(
    const shard::Dataset& data, const std::string& automata) {
  shard::expect_kind(data.header(), {shard::Kind::tokens}, data.name());
  if (data.header().vocabulary != kRegbenchTypes)
    core::bad_data("{}: has a vocabulary of {} tokens, not the {} of gen-regbench", data.name(),
        data.header().vocabulary, kRegbenchTypes);
  const auto& ends = data.documents().end;
  std::vector<RegbenchProblem> problems(ends.size());
  const auto text = core::read_text(automata);
  std::size_t at = 0;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    auto& problem = problems[i];
    problem.origin = fmt::format("{}:{}", automata, i + 1);
    if (at >= text.size())
      core::bad_data("{}: has {} lines, but {} has {} sequences; give the automata written with it",
          automata, i, data.name(), problems.size());
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = core::parse_json_line(text.substr(at, end - at), problem.origin);
    at = end + 1;
    if (!line.is_object() || !line.contains("states"))
      core::bad_data("{}: has no \"states\"", problem.origin);
    problem.automaton = automaton_of_json(core::dump(line["states"]), problem.origin);
    problem.begin = i == 0 ? 0 : ends[i - 1];
    std::vector<std::uint32_t> tokens(ends[i] - problem.begin);
    data.read(problem.begin, std::span(tokens));
    problem.sequence.assign(tokens.begin(), tokens.end());
    states_of(problem.automaton, problem.sequence, problem.origin);
  }
  if (at < text.size())
    core::bad_data("{}: has more lines than {} has sequences; give the automata written with it",
        automata, data.name());
  return problems;
}

core::OrderedJson figures(const RegbenchScore& score) {
  return {{"sequences", score.sequences}, {"positions", score.all.positions},
      {"accuracy", score.all.accuracy()}, {"accuracy_last", score.last.accuracy()},
      {"tvd", score.all.tvd()}, {"tvd_last", score.last.tvd()},
      {"tvd_with_separators", score.with_separators.tvd()}, {"l1", score.all.l1_mean()},
      {"l1_last", score.last.l1_mean()}, {"l1_with_separators", score.with_separators.l1_mean()}};
}

}  // namespace task
