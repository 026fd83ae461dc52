#!/usr/bin/env bats
# eval-ppl --retrieve has the loss of a plain Python loop over transformers' GPT-2.

load transformers
script=hf_retrieve.py window=64

setup_file() {
  find_peer || return 0
  mkdir made
  peer make made
  tokenize -q -t bytes --format lines made/train -o train.shard.zst
  tokenize -q -t bytes made/test -o text.shard.zst
}

# behind PASSAGE WINDOW EVERY QUERY TOKENS MIX TEMPERATURE: both losses.
behind() {
  bm25-search build -q --passage "$1" train.shard.zst -o train.bm25
  expected=$(peer loss made "$@")
  found=$(window=$2 loss made/model --retrieve train.bm25 --retrieve-every "$3" --retrieve-query "$4" --retrieve-tokens "$5" \
    --retrieve-mix "$6" --retrieve-temperature "$7")
  echo "$*: $expected, $found"
  close "$found" "$expected"
}

@test "the best passage before every token, every four, every sixteen" {
  behind 24 64 1 20 24 1 1
  behind 24 64 4 32 24 1 1
  behind 40 48 16 10 20 1 1
}

@test "several passages mixed, by the softmax of their scores" {
  behind 24 64 4 32 24 3 1
  behind 16 40 7 12 12 5 2.5
}
