#!/usr/bin/env bats
# Random languages and induction: data, n-grams, a model that is scored.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
}

@test "gen-regbench: the same by seed, in parts and with any number of threads; tokens that decode" {
  gen-regbench -n 600 -j 1 --automata whole.jsonl -o whole.shard.zst
  gen-regbench -n 600 -j 3 | cmp - whole.shard.zst
  gen-regbench -n 590 --first 10 --automata rest.jsonl -o rest.shard.zst
  tail -n 590 whole.jsonl | cmp - rest.jsonl
  [ "$(shard cat --text whole.shard.zst | tail -c 500)" = "$(shard cat --text rest.shard.zst | tail -c 500)" ]
  run -0 shard info --json whole.shard.zst
  [ "$(jq -c '[.kind, .dtype, .vocabulary, .documents]' <<<"$output")" = '["tokens","u8",20,600]' ]
  gen-regbench -n 600 --seed 2 --automata other.jsonl -o other.shard.zst
  run -1 cmp -s whole.jsonl other.jsonl
}

@test "gen-regbench: splits share no language; iid has train's; environments are shared" {
  gen-regbench -n 60 --environments 20 --automata train.jsonl -o train.shard.zst
  [ "$(jq .automaton train.jsonl | sort -u | wc -l)" -eq 20 ]
  gen-regbench --split iid --environments 20 -n 60 --automata iid.jsonl -o iid.shard.zst
  gen-regbench --split test -n 60 --automata test.jsonl -o test.shard.zst
  jq -c .states train.jsonl | sort -u >known
  jq -c .states iid.jsonl | sort -u >again
  [ "$(comm -13 known again | wc -l)" -eq 0 ]
  [ "$(jq -c .states test.jsonl | sort -u | comm -12 known - | wc -l)" -eq 0 ]
  run -1 cmp -s train.shard.zst iid.shard.zst
  run -64 gen-regbench --split iid -o x
  run -64 gen-regbench --least-words 3 --most-words 2 -o x
  run -64 gen-regbench -n 2 --automata both -o both
  [ "$output" = 'gen-regbench: --automata and -o: both are both; give two files' ]
  run -64 gen-regbench -n 2 --automata -
}

@test "eval-regbench: longer n-grams follow the languages better; the wrong automata are named" {
  gen-regbench --split test -n 40 --automata test.jsonl -o test.shard.zst
  eval-regbench --ngram 1 --automata test.jsonl --json test.shard.zst -o one.json
  eval-regbench --ngram 3 --automata test.jsonl --json test.shard.zst -o three.json
  jq -es '.[0].accuracy < 0.6 and .[1].accuracy > 0.9 and .[1].tvd < .[0].tvd and .[1].l1 == 2 * .[1].tvd' one.json three.json
  gen-regbench --split valid -n 40 --automata valid.jsonl -o valid.shard.zst
  run -65 eval-regbench --ngram 2 --automata valid.jsonl test.shard.zst
  [[ $output == "eval-regbench: valid.jsonl:"*"not in the alphabet of its automaton"* ]]
  head -n 39 test.jsonl >short.jsonl
  run -65 eval-regbench --ngram 2 --automata short.jsonl test.shard.zst
  cat test.jsonl valid.jsonl >long.jsonl
  run -65 eval-regbench --ngram 2 --automata long.jsonl test.shard.zst
  run -64 eval-regbench --automata test.jsonl test.shard.zst
  gen-regbench -n 3 --least-words 1 --most-words 1 --longest-word 1 --automata one.jsonl -o one.shard.zst
  run -65 eval-regbench --ngram 3 --automata one.jsonl one.shard.zst
  [ "$output" = 'eval-regbench: one.shard.zst: nothing to score; no sequence has a symbol after its first' ]
}

@test "a model that is trained on one language follows it, and keeps '|' out of its words" {
  gen-regbench -n 60 --environments 1 --most-words 12 --longest-word 8 -o train.shard.zst
  gen-regbench --split iid --environments 1 -n 10 --most-words 12 --longest-word 8 --automata iid.jsonl -o iid.shard.zst
  train -q --arch gla --layers 1 --d-model 16 --heads 2 --dropout 0 --batches documents --segment 128 --batch 10 --epochs 20 \
    --lr 2e-2 --ignore-index 19 train.shard.zst -o model
  eval-regbench -q -m model --automata iid.jsonl --json iid.shard.zst -o figures.json
  jq -e '.accuracy > 0.88 and .tvd < 0.3 and .tvd_with_separators < 0.3' figures.json
  eval-regbench -q -m model --batch 3 --automata iid.jsonl --json iid.shard.zst -o again.json
  jq -es '(.[0].tvd - .[1].tvd) | fabs < 1e-5' figures.json again.json
}

@test "gen-induction: the same by seed and number; bad shapes are refused" {
  gen-induction -n 30 --length 20 -o whole.shard.zst
  gen-induction -n 10 --first 20 --length 20 | shard cat - >part
  [ "$(shard cat whole.shard.zst | tail -n 200 | md5sum)" = "$(tail -n 200 part | md5sum)" ]
  run -64 gen-induction --symbols 8 --pairs 4 -o x
  run -64 gen-induction --length 3 -o x
}
