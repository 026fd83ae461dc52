#!/usr/bin/env bats
# The window that a model of transformers has by default, and what is said where a text does not fit into it.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  for positions in 64 256 1024; do "$root"/tests/cli/tiny_llama "llama$positions" "$positions"; done
  head -c 3000 "$root"/LICENSE | tokenize -q -t bytes -o text.shard.zst
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

signature() { # MODEL [FLAG...]
  eval-ppl --json -m "$@" text.shard.zst | field signature
}

@test "the window is the model's positions, for each protocol too" {
  for positions in 64 256 1024; do
    [[ $(signature "llama$positions") == *"|window:$positions|stride:$positions|"* ]]
  done
  [[ $(signature llama1024 --protocol hf) == *'|window:1024|stride:512|'* ]]
  for protocol in lm-eval fairseq; do
    [[ $(signature llama64 --protocol "$protocol" --bos a) == *'|window:64|stride:64|'* ]]
  done
  [[ $(signature llama1024 --protocol llama.cpp) == *'|window:512|stride:512|'* ]]
}

@test "a window beyond the positions is taken, with a note" {
  expect() { [ "$status" -eq 0 ] && [[ $stderr == *"$1: --window 128: llama64 has only 64 positions;"* ]]; }
  run --separate-stderr eval-ppl -m llama64 --window 128 text.shard.zst
  expect eval-ppl && [[ $output == *'|window:128|'* ]]
  run --separate-stderr eval-ppl -m llama256 --window 128 text.shard.zst
  [ "$status" -eq 0 ]
  [[ $stderr != *positions* ]]
  for program in build-datastore sample score annotate; do needs "$program"; done
  run --separate-stderr build-datastore -m llama64 --window 128 text.shard.zst -o store
  expect build-datastore
  run --separate-stderr sample -m llama64 -t bytes --window 128 --prompt a --max-tokens 1
  expect sample
  run --separate-stderr score -m llama64 -t bytes --window 128 <<<ab
  expect score
  run --separate-stderr annotate -m llama64 -t bytes --window 128 --max-tokens 20 text.shard.zst
  expect annotate
}

@test "a context and a prompt that lose their beginning are told, with numbers" {
  needs sample
  needs score
  long=$(printf 'x%.0s' {1..90})
  printf '{"context": "%s", "continuation": "ab"}\n{"context": "short", "continuation": "ab"}\n' "$long" >requests.jsonl
  run --separate-stderr score -m llama64 -t bytes requests.jsonl
  [ "$status" -eq 0 ]
  [[ $stderr == *'score: truncated 1 of 2 contexts to the window of 64 tokens: left out the first 27 of their 90 tokens;'* ]]
  run --separate-stderr score -m llama256 -t bytes requests.jsonl
  [ "$status" -eq 0 ]
  [[ $stderr != *'left out'* ]]
  printf '%s\nshort\n' "$long" >prompts
  run --separate-stderr sample -m llama64 -t bytes prompts --max-tokens 1
  [ "$status" -eq 0 ]
  [[ $stderr == *'sample: truncated 1 of 2 prompts to the window of 64 tokens: left out the first 26 of their 90 tokens;'* ]]
  run --separate-stderr sample -m llama256 -t bytes prompts --max-tokens 1
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  # Learned positions: the newer half is kept.
  "$root"/tests/cli/tiny_gpt2 gpt2
  run --separate-stderr sample -m gpt2 -t bytes prompts --max-tokens 1
  [[ $stderr == *'left out the first 32 of their 90 tokens;'* ]]
}

@test "the tokens that generation_config.json names end a text, else those of config.json" {
  needs sample
  "$root"/tests/cli/tiny_llama ends
  write() { sample --json -m ends -t bytes --temperature 0 --max-tokens 6 --prompt ab "$@"; }
  all=$(write | field tokens)
  last=$(python3 -c 'import sys; t = eval(sys.argv[1]); print(next(x for i, x in enumerate(t) if i > 0 and x not in t[:i]))' "$all")
  n=$(python3 -c 'import sys; print(eval(sys.argv[1]).index(int(sys.argv[2])) + 1)' "$all" "$last")
  ended() { # FLAG...: the text ends with that token, which is no part of it
    write "$@" >ended
    [ "$(field finish <ended)" = end ]
    [ "$(python3 -c 'import json; r = json.load(open("ended")); print(len(r["tokens"]), r["tokens"][-1])')" = "$n $last" ]
  }
  printf '{"eos_token_id": [65000, %s]}' "$last" >ends/generation_config.json
  ended
  [ "$(write --ignore-end | field tokens)" = "$all" ]
  "$root"/tests/cli/tiny_llama ends 64 1 "{\"eos_token_id\": $last}"
  echo '{"eos_token_id": null}' >ends/generation_config.json
  ended
  echo '{"eos_token_id": 65000}' >ends/generation_config.json
  [ "$(write | field tokens)" = "$all" ]
  echo '{"eos_token_id": "x"}' >ends/generation_config.json
  run --separate-stderr write
  [ "$status" -eq 78 ]
  [[ $stderr == 'sample: ends/generation_config.json: "eos_token_id" takes a token'* ]]
}
