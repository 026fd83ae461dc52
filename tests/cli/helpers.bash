#!/usr/bin/env bash
# What the program tests share: `load helpers` stands in each before its own setup.
#
#   $root   the checkout; $BIN, the programs' folder, which is first in PATH

bats_require_minimum_version 1.5.0

root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
BIN=${BIN:-$root/build/bin}
[[ :$PATH: == *":$BIN:"* ]] || PATH=$BIN:$PATH
# Threads that spin while they wait take the processor from the tests beside them.
export root BIN PATH OMP_WAIT_POLICY=passive

# field NAME: of a JSON line on stdin, as Python prints it.
field() {
  python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())[sys.argv[1]])' "$1"
}

# text_shards N M: train.shard.zst and valid.shard.zst, the first N and the last M bytes of a text, beside their texts.
text_shards() {
  head -c "$1" "$root/LICENSE" >train.txt
  tail -c "$2" "$root/LICENSE" >valid.txt
  tokenize -q -t bytes train.txt -o train.shard.zst
  tokenize -q -t bytes valid.txt -o valid.shard.zst
}

# novel LINES: the first lines of a novel, a text that stays as it is (pages of the project change).
novel() { zstdcat "$root/examples/novels/the-lost-world.txt.zst" | sed -n "1,${1}p"; }

# near A B TOLERANCE
near() {
  python3 -c 'import sys; a, b, t = map(float, sys.argv[1:]); sys.exit(not abs(a - b) <= t * abs(b))' "$@"
}

# cats N: N lines that resemble each other.
cats() {
  local i
  for ((i = 0; i < $1; ++i)); do
    echo "The cat sat on the mat; cat $i, mat $((i * i)), and the cat sat again."
  done
}

# same A B: every file of two folders has the same bytes, but for timings.jsonl.
same() { diff -r -x timings.jsonl "$1" "$2"; }

# Is nothing there that was begun and not finished?
no_leftovers() { [ -z "$(find . -name '*.tmp*')" ]; }

# stops_at SIGNAL FOLDER COMMAND...: a training into FOLDER is sent SIGNAL once it is at work, and ends with 75. Where it
# had come to its end before the signal did it begins anew.
stops_at() {
  local signal=$1 folder=$2 code pid
  shift 2
  for _ in {1..20}; do
    code=0
    rm -rf "$folder"
    "$@" &
    pid=$!
    while [ ! -s "$folder/metrics.jsonl" ] && [ -e "/proc/$pid" ]; do sleep 0.02; done
    kill "-$signal" "$pid" 2>/dev/null || [ ! -e "/proc/$pid" ]
    wait "$pid" || code=$?
    [ "$code" -eq 0 ] || break
  done
  [ "$code" -eq 75 ] || { echo "ended with $code" && return 1; }
}

# needs PROGRAM: where a program was left out of the build its test says so.
needs() { [ -x "$BIN/$1" ] || skip "$1 is not built"; }

# damage FILE OFFSET: another byte stands there.
damage() {
  python3 -c '
import sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    byte = file.read(1)[0]
    file.seek(int(sys.argv[2]))
    file.write(bytes([byte ^ 16]))' "$@"
}
