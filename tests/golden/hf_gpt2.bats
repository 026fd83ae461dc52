#!/usr/bin/env bats
# bats file_tags=nightly
# Models that go between Tessera's programs and transformers.

load transformers
script=hf_gpt2.py window=24

setup_file() {
  find_peer || return 0
  text='The cat sat on a mat'
  ids=$(printf %s "$text" | od -An -v -tu1)
  export ids
  printf %s "$text" | tokenize -t bytes -o text.shard.zst
  mkdir made
  # shellcheck disable=SC2086  # a word an id
  peer make made $ids >made.losses
}

@test "eval-ppl gives transformers' loss for its GPT-2 folders, however they are written" {
  [ "$(wc -l <made.losses)" -eq 7 ]
  while read -r name expected; do
    echo "$name: $expected, $(loss "made/$name")"
    close "$(loss "made/$name")" "$expected"
  done <made.losses
}

@test "transformers gives eval-ppl's loss for a model that train made" {
  train --layers 2 --d-model 16 --heads 2 --context 24 --segment 8 --batch 1 --steps 3 --init gpt2 --no-scale-embedding -o trained text.shard.zst
  # shellcheck disable=SC2086  # a word an id
  close "$(loss trained)" "$(peer loss trained $ids)"
}

@test "train goes on from a folder of transformers, and transformers from there" {
  train --from made/bare --segment 8 --batch 1 --steps 2 --lr 1e-9 -o continued text.shard.zst
  # shellcheck disable=SC2086  # a word an id
  now=$(peer loss continued $ids)
  close "$now" "$(awk '$1 == "bare" { print $2 }' made.losses)"
  close "$now" "$(loss continued)"
}
