#!/usr/bin/env bats
# Models that go between Tessera's programs and transformers; hf_gpt2.py is the peer's side. The peer's python is
# $TESSERA_PEERS, else the bench's, else python3.

bats_require_minimum_version 1.5.0

setup_file() {
  root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  python=${TESSERA_PEERS:-}
  [ -n "$python" ] || python=$root/build/peers/bin/python
  [ -x "$python" ] || python=python3
  export python root PATH=${BIN:-$root/build/bin}:$PATH OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
  peer none none >reason || return 0
  text='The cat sat on a mat'
  ids=$(printf %s "$text" | od -An -v -tu1)
  export ids
  printf %s "$text" | tokenize -t bytes -o text.shard.zst
  mkdir made
  # shellcheck disable=SC2086  # a word an id
  peer make made $ids >made.losses
}

setup() {
  cd "$BATS_FILE_TMPDIR"
  [ ! -s reason ] || skip "$(cat reason)"
}

peer() {
  "$python" "$root/tests/golden/hf_gpt2.py" "$@" 2>/dev/null
}

loss() { # model: of eval-ppl, in one window, without memory
  eval-ppl -m "$1" --window 24 --memory none --json text.shard.zst |
    python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())["loss"])'
}

close() { # a b
  python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not abs(a - b) < 1e-4)' "$1" "$2"
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
