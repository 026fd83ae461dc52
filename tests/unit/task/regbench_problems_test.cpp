// Sequences and their automata together.

#include "task/regbench.h"

#include <doctest/doctest.h>

#include "core/io.h"
#include "unit/temporary_folder.h"
#include "unit/thrown.h"

DOCTEST_TEST_CASE("each sequence has its automaton; another file is refused by line") {
  const TemporaryFolder folder;
  const std::string automata = folder / "automata", path = folder / "shard";
  task::RegbenchSet set;
  set.count = 20;
  std::string lines;
  {
    core::Output out(path);
    shard::Header header;
    header.vocabulary = task::kRegbenchTypes;
    header.dtype = shard::dtype_for(header.vocabulary);
    shard::Writer writer(out, header);
    task::make_sequences(set, 3, 1, writer, [&](const std::string& more) { lines += more; }, {});
    writer.finish();
    out.commit();
  }
  const shard::Dataset data({path});
  core::write_file(automata, lines);
  const auto problems = task::read_regbench_problems(data, automata);
  DOCTEST_REQUIRE(problems.size() == 20);
  task::RegbenchScore score;
  for (std::size_t i = 0; i < problems.size(); ++i) {
    const auto& problem = problems[i];
    DOCTEST_CHECK(problem.automaton == task::regbench_automaton(3, task::RegbenchSplit::train, i));
    DOCTEST_CHECK(problem.begin == (i == 0 ? 0 : data.documents().end[i - 1]));
    DOCTEST_CHECK(problem.origin == automata + ":" + std::to_string(i + 1));
    score.add(problem.automaton, problem.sequence, task::ngram_predictions(problem.sequence, 3),
        problem.origin);
  }
  DOCTEST_CHECK(task::figures(score)["sequences"] == 20);
  DOCTEST_CHECK(task::figures(score)["tvd"] == score.all.tvd());
  core::write_file(automata, lines.substr(0, lines.rfind("{\"seq")));
  DOCTEST_CHECK(
      thrown([&] { task::read_regbench_problems(data, automata); }).names("has 19 lines"));
  core::write_file(automata, lines + lines);
  DOCTEST_CHECK(thrown([&] { task::read_regbench_problems(data, automata); }).names("more lines"));
  core::write_file(automata, "{}\n" + lines);
  DOCTEST_CHECK(
      thrown([&] { task::read_regbench_problems(data, automata); }).names(":1: has no \"states\""));
}
