#!/usr/bin/env bash
# What the tests of models that go to transformers and come back share: `load transformers`, with $script the peer's side
# and $window the window of loss(). The peer's python is $TESSERA_PEERS, else the bench's, else python3.

bats_require_minimum_version 1.5.0

# find_peer: for setup_file; false, with the file `reason`, where that python lacks what $script takes.
find_peer() {
  root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  python=${TESSERA_PEERS:-}
  [ -n "$python" ] || python=$root/build/peers/bin/python
  [ -x "$python" ] || python=python3
  export python root PATH=${BIN:-$root/build/bin}:$PATH OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR" && peer none none >reason
}

setup() {
  cd "$BATS_FILE_TMPDIR" || return
  [ ! -s reason ] || skip "$(cat reason)"
}

peer() {
  "$python" "$root/tests/golden/${script:?}" "$@" 2>/dev/null
}

# loss MODEL [FLAG...]: of eval-ppl, in one window, without memory.
loss() {
  eval-ppl -m "$@" --window "${window:?}" --memory none --json text.shard.zst |
    python3 -c 'import json, sys; print(repr(json.loads(sys.stdin.readline())["loss"]))'
}

# close A B [BOUND]
close() {
  python3 -c 'import sys; a, b, c = map(float, sys.argv[1:]); sys.exit(not abs(a - b) < c)' "$1" "$2" "${3:-1e-4}"
}
