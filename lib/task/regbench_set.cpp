#include "task/regbench_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/in_order.h"

namespace task {
namespace {

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

void make(const RegbenchSet& set, std::uint64_t seed, const Numbers& block, bool with_lines,
          Made& made) {
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

}  // namespace

void RegbenchSet::fields(core::FieldList& f) {
  f("split", split,
    "train, valid and test have disjoint languages; iid: new sequences of the languages of train",
    {"train", "valid", "test", "iid"});
  f("count", count, "number of sequences").between(1, 1e12).short_name = 'n';
  f("first", first, "number of the first sequence, to generate parts of a set separately")
      .between(0, 1e12);
  f("environments", environments,
    "number of automata; auto: one per sequence; with iid, the number that train had")
      .between(1, 1e12)
      .or_auto();
}

void RegbenchSet::check() const {
  if (split == "iid" && environments == 0)
    core::fail(core::Code::usage,
               "--split iid: requires --environments, the number of automata of train");
  if (shape.most_words < shape.least_words)
    core::fail(core::Code::usage, "--most-words: must be at least --least-words");
}

core::OrderedJson RegbenchSet::changes(std::int64_t seed) const {
  return {{"split", split},
          {"count", count},
          {"first", first},
          {"environments", environments},
          {"least_words", shape.least_words},
          {"most_words", shape.most_words},
          {"longest_word", shape.longest_word},
          {"seed", seed}};
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

}  // namespace task
