#include "task/automaton.h"

#include "core/hash.h"
#include "core/json.h"

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
      const auto at = std::find(seen.begin(), seen.end(), own) - seen.begin();
      if (static_cast<std::size_t>(at) == seen.size()) seen.push_back(own);
      finer.push_back(static_cast<std::uint8_t>(at));
    }
    classes = finer;
    if (seen.size() == count) return classes;
    count = seen.size();
  }
}

char name_of(std::uint8_t letter) { return kRegbenchTokens[letter]; }

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
    std::sort(row.begin(), row.end(), [](Edge a, Edge b) { return a.letter < b.letter; });
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
      json += name_of(edge.letter);
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

}  // namespace task
