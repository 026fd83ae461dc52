#!/usr/bin/env bats
# bats file_tags=nightly
# tokenize with a tokenizer.model beside sentencepiece and transformers: models trained anew, and texts of another seed.
#
# TESSERA_PEERS: a python with those modules. TESSERA_FULL=1 compares 20,000 texts instead of 2,000.

bats_require_minimum_version 1.5.0

setup_file() {
  root=$(cd "$BATS_TEST_DIRNAME/../../.." && pwd)
  python=${TESSERA_PEERS:-$root/build/peers/bin/python}
  [ -x "$python" ] || python=python3
  export root python
  cd "$root"
  n=2000
  [ -z "${TESSERA_FULL:-}" ] || n=20000
  missing=
  "$python" tests/golden/tokenizers/sentencepiece_peer.py make 7 $n "$BATS_FILE_TMPDIR" 2>"$BATS_FILE_TMPDIR/notes" || missing=$?
  export missing
}

setup() {
  [ "$missing" != 77 ] || skip "python modules sentencepiece and transformers are missing (TESSERA_PEERS names a python that has them)"
  [ -z "$missing" ]
  PATH=${BIN:-$root/build/bin}:$PATH
  cd "$BATS_FILE_TMPDIR"
}

compare() { # tokenizer expected [option]
  tokenize -q -t "$1" --end-of-document none "${@:3}" texts.jsonl -o x.shard.zst
  shard cat --by-document x.shard.zst >ours
  "$python" "$root/tests/golden/tokenizers/sentencepiece_peer.py" compare ours "$2" || { echo "$2" && return 1; }
}

@test "sentencepiece: unigram and BPE with user-defined symbols, and the tokenizer.json made of them" {
  for model in *.model; do
    compare "$model" "${model%.model}.ids"
    tokenize -q --export json -t "$model" -o again.json
    compare again.json "${model%.model}.ids"
  done
}

@test "transformers: a folder with added tokens" {
  for folder in */tokenizer.model; do
    compare "${folder%/*}" "${folder%/*}.ids"
    compare "${folder%/*}" "${folder%/*}.special" --special
  done
}
