#include "task/regbench_problems.h"

#include <algorithm>
#include <span>

#include "core/error.h"
#include "core/io.h"
#include "core/json_line.h"

namespace task {

std::vector<RegbenchProblem> read_regbench_problems(const shard::Dataset& data,
                                                    const std::string& automata) {
  using core::Code;
  using core::fail;
  shard::expect_kind(data.header(), {shard::Kind::tokens}, data.name());
  if (data.header().vocabulary != kRegbenchTypes)
    fail(Code::bad_data, "{}: has a vocabulary of {} tokens, not the {} of gen-regbench",
         data.name(), data.header().vocabulary, kRegbenchTypes);
  const auto& ends = data.documents().end;
  std::vector<RegbenchProblem> problems(ends.size());
  const auto text = core::read_text(automata);
  std::size_t at = 0;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    auto& problem = problems[i];
    problem.origin = fmt::format("{}:{}", automata, i + 1);
    if (at >= text.size())
      fail(Code::bad_data,
           "{}: has {} lines, but {} has {} sequences; give the automata written with it", automata,
           i, data.name(), problems.size());
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = core::parse_json_line(text.substr(at, end - at), problem.origin);
    at = end + 1;
    if (!line.is_object() || !line.contains("states"))
      fail(Code::bad_data, "{}: has no \"states\"", problem.origin);
    problem.automaton = automaton_of_json(core::dump(line["states"]), problem.origin);
    problem.begin = i == 0 ? 0 : ends[i - 1];
    std::vector<std::uint32_t> tokens(ends[i] - problem.begin);
    data.read(problem.begin, std::span(tokens));
    problem.sequence.assign(tokens.begin(), tokens.end());
    states_of(problem.automaton, problem.sequence, problem.origin);
  }
  if (at < text.size())
    fail(Code::bad_data,
         "{}: has more lines than {} has sequences; give the automata written with it", automata,
         data.name());
  return problems;
}

core::OrderedJson figures(const RegbenchScore& score) {
  return {{"sequences", score.sequences},
          {"positions", score.all.positions},
          {"accuracy", score.all.accuracy()},
          {"accuracy_last", score.last.accuracy()},
          {"tvd", score.all.tvd()},
          {"tvd_last", score.last.tvd()},
          {"tvd_with_separators", score.with_separators.tvd()},
          {"l1", score.all.l1_mean()},
          {"l1_last", score.last.l1_mean()},
          {"l1_with_separators", score.with_separators.l1_mean()}};
}

}  // namespace task
