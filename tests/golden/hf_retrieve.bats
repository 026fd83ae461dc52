#!/usr/bin/env bats
# bats file_tags=nightly
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

# behind "PASSAGE WINDOW EVERY QUERY TOKENS MIX TEMPERATURE"...: both losses of each.
behind() {
  local expected found passage window every query tokens mix temperature
  peer loss made "$@" >losses
  [ "$(wc -l <losses)" -eq $# ]
  while read -r expected; do
    read -r passage window every query tokens mix temperature <<<"$1"
    shift
    bm25-search build -q --passage "$passage" train.shard.zst -o train.bm25
    found=$(loss made/model --retrieve train.bm25 --retrieve-every "$every" --retrieve-query "$query" --retrieve-tokens "$tokens" \
      --retrieve-mix "$mix" --retrieve-temperature "$temperature")
    echo "$passage, $window, $every: $expected, $found"
    close "$found" "$expected"
  done <losses
}

@test "the best passage before every token, every four, every sixteen" {
  behind '24 64 1 20 24 1 1' '24 64 4 32 24 1 1' '40 48 16 10 20 1 1'
}

@test "several passages mixed, by the softmax of their scores" {
  behind '24 64 4 32 24 3 1' '16 40 7 12 12 5 2.5'
}
