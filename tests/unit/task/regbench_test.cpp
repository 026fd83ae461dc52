// RegBench's automata, sequences, scores and n-grams, compared with plain enumerations; induction.

#include <doctest/doctest.h>

#include "task/regbench.h"
#include "task/sequences.h"
#include "unit/thrown.h"

namespace {

using task::Automaton;
using Word = std::vector<std::uint8_t>;

/// Returns all words of up to `length` letters, by walking every edge.
std::set<Word> words_of(const Automaton& automaton, std::size_t length) {
  std::set<Word> all;
  std::vector<std::pair<Word, int>> level = {{{}, 0}};
  for (std::size_t n = 0; n < length; ++n) {
    std::vector<std::pair<Word, int>> longer;
    for (const auto& [word, state] : level)
      for (const auto& edge : automaton.states[static_cast<std::size_t>(state)]) {
        auto next = word;
        next.push_back(edge.letter);
        all.insert(next);
        longer.emplace_back(next, edge.target);
      }
    level = std::move(longer);
  }
  return all;
}

/// Returns the number of states reachable from the start that differ in their words of up to 7
/// letters, which suffices for the automata here.
std::size_t different_states(const Automaton& automaton) {
  std::set<int> met = {0};
  for (std::size_t before = 0; before != met.size();) {
    before = met.size();
    for (const int state : std::set<int>(met))
      for (const auto& edge : automaton.states[static_cast<std::size_t>(state)])
        met.insert(edge.target);
  }
  std::map<std::pair<int, std::size_t>, std::set<Word>> words;  // from a state, of one length
  for (std::size_t length = 0; length <= 7; ++length)
    for (const int state : met) {
      auto& from = words[{state, length}];
      if (length == 0) from = {{}};
      for (const auto& edge : automaton.states[static_cast<std::size_t>(state)])
        if (length > 0)
          for (auto word : words[{edge.target, length - 1}]) {
            word.insert(word.begin(), edge.letter);
            from.insert(word);
          }
    }
  std::set<std::vector<std::set<Word>>> languages;
  for (const int state : met) {
    std::vector<std::set<Word>> language;
    for (std::size_t length = 0; length <= 7; ++length) language.push_back(words[{state, length}]);
    languages.insert(language);
  }
  return languages.size();
}

task::Sequence tokens(const std::string& text) {
  task::Sequence sequence;
  for (const char c : text)
    sequence.push_back(static_cast<std::uint8_t>(task::kRegbenchTokens.find(c)));
  return sequence;
}

// a(b|c)*, then from b only c, from c only b: state 0 -a-> 1 -b-> 2 -c-> 1, 1 -c-> 0.
const Automaton kSmall{{{{1, 1}}, {{2, 2}, {3, 0}}, {{3, 1}}}};

}  // namespace

DOCTEST_TEST_CASE("random automata are as published") {
  std::set<std::size_t> states, edges;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    core::Rng rng(1, i);
    const auto automaton = task::random_automaton(rng);
    states.insert(automaton.states.size());
    for (std::size_t state = 0; state < automaton.states.size(); ++state) {
      std::set<int> letters, targets;
      for (const auto& edge : automaton.states[state]) {
        DOCTEST_REQUIRE(edge.target < automaton.states.size());
        DOCTEST_REQUIRE(edge.target != state);
        DOCTEST_REQUIRE((edge.letter >= 1 && edge.letter <= task::kLetters));
        letters.insert(edge.letter), targets.insert(edge.target);
      }
      edges.insert(automaton.states[state].size());
      DOCTEST_REQUIRE(letters.size() == automaton.states[state].size());
      DOCTEST_REQUIRE(targets.size() == automaton.states[state].size());
    }
  }
  DOCTEST_CHECK(states == std::set<std::size_t>{4, 5, 6, 7, 8, 9, 10, 11, 12});
  DOCTEST_CHECK(edges == std::set<std::size_t>{1, 2, 3});
}

DOCTEST_TEST_CASE("a minimal automaton has the same words and no state too many") {
  for (std::uint64_t i = 0; i < 40; ++i) {
    core::Rng rng(2, i);
    const auto automaton = task::random_automaton(rng);
    const auto smallest = task::minimal(automaton);
    DOCTEST_CHECK(words_of(automaton, 6) == words_of(smallest, 6));
    DOCTEST_CHECK(smallest.states.size() == different_states(automaton));
    DOCTEST_CHECK(task::minimal(smallest) == smallest);
  }
  // Four states of one language, two of them unreachable.
  const Automaton doubled{{{{1, 1}}, {{1, 0}}, {{1, 3}}, {{1, 2}}}};
  DOCTEST_CHECK(task::minimal(doubled) == Automaton{{{{1, 0}}}});
}

DOCTEST_TEST_CASE("no language is in two splits; a seed and a number give one automaton") {
  std::map<std::string, task::RegbenchSplit> split;
  for (const auto part :
      {task::RegbenchSplit::train, task::RegbenchSplit::valid, task::RegbenchSplit::test})
    for (std::uint64_t i = 0; i < 3000; ++i) {
      const auto automaton = task::regbench_automaton(i % 2, part, i);
      const auto json = task::to_json(automaton);
      DOCTEST_REQUIRE(split.try_emplace(json, part).first->second == part);
      DOCTEST_REQUIRE(task::automaton_of_json(json, "x") == automaton);
    }
  DOCTEST_CHECK(split.size() > 8000);
  DOCTEST_CHECK(task::regbench_automaton(7, task::RegbenchSplit::test, 5) ==
                task::regbench_automaton(7, task::RegbenchSplit::test, 5));
}

DOCTEST_TEST_CASE("sequences are words of the automaton, of the lengths asked for") {
  std::set<std::int64_t> counts, lengths;
  for (std::uint64_t i = 0; i < 300; ++i) {
    core::Rng rng(3, i);
    const auto sequence = task::random_sequence(kSmall, {}, rng);
    std::int64_t words = 1, length = 0;
    int state = 0;
    for (const auto token : sequence) {
      if (token == task::kSeparator) {
        lengths.insert(length), ++words, length = 0, state = 0;
        continue;
      }
      ++length;
      state = kSmall.next(state, token);
      DOCTEST_REQUIRE(state >= 0);
    }
    counts.insert(words);
    lengths.insert(length);
  }
  DOCTEST_CHECK((*counts.begin() == 10 && *counts.rbegin() == 19 && counts.size() == 10));
  DOCTEST_CHECK((*lengths.begin() == 1 && *lengths.rbegin() == 49 && lengths.size() == 49));
}

DOCTEST_TEST_CASE("scores: each convention, by hand") {
  // Predictions of the four tokens after a: b, c, |, a. The true distributions are uniform.
  const auto sequence = tokens("abc|a");
  task::Predictions p(4 * task::kRegbenchTypes, 0);
  const auto put = [&](std::size_t t, char token, float mass) {
    p[t * task::kRegbenchTypes + task::kRegbenchTokens.find(token)] = mass;
  };
  put(0, 'b', 0.75F), put(0, 'c', 0.25F);  // truth b, c: half each; L1 = .5
  put(1, 'a', 0.6F), put(1, 'c', 0.4F);    // truth c; L1 = 1.2, wrong
  put(2, '|', 0.2F), put(2, 'b', 0.8F);    // truth b, c; L1 = 1; the next is '|'
  put(3, 'a', 1.0F);                       // truth a
  task::RegbenchScore score;
  score.add(kSmall, sequence, p, "x");
  DOCTEST_CHECK(score.sequences == 1);
  DOCTEST_CHECK(score.all.positions == 3);
  DOCTEST_CHECK(score.all.accuracy() == doctest::Approx(2.0 / 3));
  DOCTEST_CHECK(score.all.l1_mean() == doctest::Approx((0.5 + 1.2) / 3));
  DOCTEST_CHECK(score.all.tvd() == doctest::Approx((0.5 + 1.2) / 6));
  DOCTEST_CHECK(score.last.positions == 1);
  DOCTEST_CHECK(score.last.accuracy() == 1);
  DOCTEST_CHECK(score.last.l1_mean() == doctest::Approx(0));
  DOCTEST_CHECK(score.with_separators.positions == 4);
  DOCTEST_CHECK(score.with_separators.l1_mean() == doctest::Approx((0.5 + 1.2 + 0.8 + 0.2) / 4));
  DOCTEST_CHECK(thrown([&] {
    score.add(kSmall, tokens("ba"), p, "side:3");
  }).names("side:3: token 0 is not in the alphabet"));
}

DOCTEST_TEST_CASE("scores equal those over all words that may follow") {
  for (std::uint64_t i = 0; i < 6; ++i) {
    core::Rng rng(4, i);
    const auto automaton = task::minimal(task::random_automaton(rng));
    const auto sequence = task::random_sequence(automaton, {3, 4, 5}, rng);
    const auto words = words_of(automaton, 6);
    const auto p = task::ngram_predictions(sequence, 2);
    double right = 0, l1 = 0;
    std::uint64_t positions = 0;
    Word prefix;
    for (std::size_t t = 0; t + 1 < sequence.size(); ++t) {
      if (sequence[t] == task::kSeparator) prefix.clear();
      else prefix.push_back(sequence[t]);
      if (sequence[t + 1] == task::kSeparator) continue;
      std::vector<double> truth(task::kRegbenchTypes, 0);
      double possible = 0;
      for (std::uint8_t token = 0; token < task::kRegbenchTypes; ++token) {
        auto longer = prefix;
        longer.push_back(token);
        truth[token] = static_cast<double>(words.count(longer));
        possible += truth[token];
      }
      std::size_t best = 0;
      for (std::size_t token = 0; token < task::kRegbenchTypes; ++token) {
        const double predicted = p[t * task::kRegbenchTypes + token];
        l1 += std::abs(predicted - truth[token] / possible);
        if (predicted > p[t * task::kRegbenchTypes + best]) best = token;
      }
      right += truth[best];
      ++positions;
    }
    task::RegbenchScore score;
    score.add(automaton, sequence, p, "x");
    DOCTEST_CHECK(score.all.positions == positions);
    DOCTEST_CHECK(score.all.right == doctest::Approx(right));
    DOCTEST_CHECK(score.all.l1 == doctest::Approx(l1));
  }
}

DOCTEST_TEST_CASE("n-grams equal counts by looking back at every place") {
  core::Rng rng(5);
  const auto automaton = task::minimal(task::random_automaton(rng));
  const auto sequence = task::random_sequence(automaton, {6, 6, 12}, rng);
  for (const std::int64_t order : {1, 2, 3, 5}) {
    const auto p = task::ngram_predictions(sequence, order);
    // A '|' before the sequence, as before every word.
    auto text = sequence;
    text.insert(text.begin(), task::kSeparator);
    for (std::size_t end = 2; end < text.size(); ++end) {  // predicts text[end]
      std::vector<double> counts(task::kRegbenchTypes, 0);
      double total = 0;
      // From the longest context down: the tokens before `end`, back to '|' at most.
      for (std::size_t n = static_cast<std::size_t>(order) - 1; total == 0; --n) {
        bool whole = n <= end;
        for (std::size_t k = 2; whole && k <= n; ++k) whole = text[end - k + 1] != task::kSeparator;
        if (whole)
          for (std::size_t at = std::max<std::size_t>(n, 1); at < end; ++at) {
            bool same = text[at] != task::kSeparator;
            for (std::size_t k = 1; same && k <= n; ++k) same = text[at - k] == text[end - k];
            if (same) ++counts[text[at]], ++total;
          }
        if (n == 0) break;
      }
      for (std::size_t token = 0; token < task::kRegbenchTypes; ++token)
        DOCTEST_REQUIRE(
            p[(end - 2) * task::kRegbenchTypes + token] == doctest::Approx(counts[token] / total));
    }
  }
}

DOCTEST_TEST_CASE("what is no automaton is named") {
  const auto refusal = [](const char* json) {
    return thrown([&] { task::automaton_of_json(json, "f:2"); });
  };
  DOCTEST_CHECK(refusal("[]").names("f:2: not an automaton: not a list"));
  DOCTEST_CHECK(refusal("[{}]").names("f:2: not an automaton: a state"));
  DOCTEST_CHECK(refusal(R"([{"z":0}])").names("f:2: not an automaton: an edge's letter"));
  DOCTEST_CHECK(refusal(R"([{"a":1}])").names("f:2: not an automaton: an edge leads"));
}

DOCTEST_TEST_CASE("induction: each pair holds in its sequence, the last was there before") {
  for (const auto& shape : {task::InductionShape{20, 3, 2, 40}, {20, 8, 0, 8}}) {
    const auto n = static_cast<std::size_t>(shape.length);
    std::set<std::pair<std::uint32_t, std::uint32_t>> answers;
    for (std::uint64_t i = 0; i < 200; ++i) {
      core::Rng rng(6, i);
      const auto sequence = task::induction_sequence(shape, rng);
      DOCTEST_REQUIRE(sequence.size() == n);
      bool before = false;
      for (std::size_t t = 0; t + 2 < n; ++t) {
        DOCTEST_REQUIRE(sequence[t] < 20);
        if (sequence[t] != sequence[n - 2]) continue;
        DOCTEST_REQUIRE(sequence[t + 1] == sequence[n - 1]);
        before = true;
      }
      DOCTEST_REQUIRE(before);
      answers.insert({sequence[n - 2], sequence[n - 1]});
    }
    DOCTEST_CHECK(answers.size() > 100);  // it differs between sequences
  }
}
