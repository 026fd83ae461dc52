#include "task/regbench.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_map>

#include "core/error.h"

namespace task {
namespace {

bool is_letter(std::uint8_t token) { return token >= 1 && token <= kLetters; }

void judge(const Automaton& automaton, int state, std::span<const float> p, RegbenchSums& sums) {
  const auto& edges = automaton.states[static_cast<std::size_t>(state)];
  const float truth = 1.0F / static_cast<float>(edges.size());
  double l1 = 0;
  for (const float x : p) l1 += x;
  for (const auto& edge : edges)
    l1 += std::abs(static_cast<double>(p[edge.letter]) - truth) - p[edge.letter];
  const auto best = std::max_element(p.begin(), p.end()) - p.begin();
  ++sums.positions;
  sums.l1 += l1;
  sums.right += automaton.next(state, static_cast<std::uint8_t>(best)) >= 0 ? 1 : 0;
}

}  // namespace

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

std::vector<int> states_of(const Automaton& automaton, std::span<const std::uint8_t> sequence,
                           const std::string& origin) {
  std::vector<int> states;
  int state = 0;
  for (std::size_t t = 0; t < sequence.size(); ++t) {
    state = sequence[t] == kSeparator ? 0 : automaton.next(state, sequence[t]);
    if (state < 0)
      core::fail(
          core::Code::bad_data,
          "{}: token {} is not in the alphabet of its automaton; give the automata written with "
          "these sequences",
          origin, t);
    if (t + 1 < sequence.size()) states.push_back(state);
  }
  return states;
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

}  // namespace task
