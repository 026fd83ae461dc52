// Options' names in other programs: the hint names an option of the program.

#include "cli/flags.h"

#include <doctest/doctest.h>

DOCTEST_TEST_CASE("a name that another program has for an option leads to it") {
  const std::vector<std::string> train = {"--lr", "--batch", "--layers", "--d-model", "--heads",
      "--steps", "--segment", "--batch-tokens"};
  const auto hint = [&](const std::string& flag) {
    return cli::hint_for_other_name(flag, train, true);
  };
  DOCTEST_CHECK(hint("--learning-rate") == "; did you mean --lr?");
  DOCTEST_CHECK(hint("--learning_rate") == "; did you mean --lr?");
  DOCTEST_CHECK(hint("--Batch-Size") == "; did you mean --batch?");
  DOCTEST_CHECK(hint("--n_embd") == "; did you mean --d-model?");
  DOCTEST_CHECK(hint("--d_model") == "; did you mean --d-model?");
  DOCTEST_CHECK(hint("--block_size") == "; did you mean --segment?");
  DOCTEST_CHECK(hint("--epochs") == "; did you mean --steps?");
  DOCTEST_CHECK(hint("--max-tokens") == "; did you mean --batch-tokens?");
  DOCTEST_CHECK(hint("--dataset") == "; files are given without an option");
  DOCTEST_CHECK(cli::hint_for_other_name("--dataset", train, false).empty());
  DOCTEST_CHECK(hint("--num-beams").empty());  // an option that this program lacks
  DOCTEST_CHECK(hint("--nonsense").empty());
  // The beginning of an option's name may also be another program's name.
  DOCTEST_CHECK(cli::hint_for_other_name("--vocab", {"--tokenizer", "--vocab-size"}, true) ==
                "; did you mean --vocab-size or --tokenizer?");
  DOCTEST_CHECK(
      cli::hint_for_other_name("--vocab", {"--tokenizer"}, true) == "; did you mean --tokenizer?");
  DOCTEST_CHECK(hint("--resume").empty());  // this program keeps no checkpoints
  DOCTEST_CHECK(cli::hint_for_other_name("--resume", {"--checkpoint-every"}, true) ==
                "; rerun the command of a run to resume it");
  DOCTEST_CHECK(cli::hint_for_other_name("--repetition_penalty", {"--top-p"}, true) ==
                "; there is no penalty of repetitions");
  DOCTEST_CHECK(hint("--").empty());
  DOCTEST_CHECK(cli::hint_for_other_name("--max-new-tokens", {"--max-tokens"}, true) ==
                "; did you mean --max-tokens?");
}
