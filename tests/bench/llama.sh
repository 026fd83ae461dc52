#!/usr/bin/env bash
# llama/*: SmolLM2-135M with each precision of weights beside llama.cpp with the same numbers in GGUF files, with as many
# threads: tokens a second of a prompt of 512 tokens and of the 64 that follow, and the peak of resident memory. Turn by
# turn; the best of three rounds is compared, since whatever else runs only slows down. The package xllamacpp is built for
# AVX2; MODEL names another GGUF file, THREADS the threads.
set -euo pipefail
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

has_peer xllamacpp || exit 0
found=("$(dirname "$0")"/../../.deps/model/*.gguf)
model=${MODEL:-${found[0]}}
[ -e "$model" ] || { echo "llama.sh: no GGUF of SmolLM2; tools/setup model brings one: its figures are left out" >&2 && exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
peer=$(dirname "$0")/llama_peer.py
threads=${THREADS:-$(nproc)}
for type in float32 bfloat16 q8_0; do model export -q "$model" --output-format gguf --dtype "$type" -o "$work/$type.gguf" >/dev/null; done
cp "$model" "$work/own.gguf"
# A word of one token, 512 times.
printf 'The' >"$work/long"
printf ' cat%.0s' {1..511} >>"$work/long"

seconds() { sed -nE 's/.* ([0-9.]+) s$/\1/p' "$work/notes"; }
ours() { # WEIGHTS TOKENS PROMPT
  sample -v -m "$model" -j "$threads" --dtype "$1" --temperature 0 --ignore-end --max-tokens "$2" --prompt "$3" 2>"$work/notes" >"$work/text"
}
for round in 1 2 3; do
  for weights in float32 bfloat16 int8 file; do
    ours "$weights" 1 "$(cat "$work/long")"
    seconds | awk '{ print 512 / $1 }' >>"$work/prefill-$weights"
    ours "$weights" 65 The
    seconds | awk '{ print 65 / $1 }' >>"$work/decode-$weights"
    [ "$round" -gt 1 ] || "$PEERS" "$peer" peak sample -q -m "$model" -j "$threads" --dtype "$weights" --temperature 0 \
      --ignore-end --max-tokens 64 --prompt "$(cat "$work/long")" >"$work/peak-$weights"
  done
  for type in float32 bfloat16 q8_0 own; do
    "$PEERS" "$peer" speed "$work/$type.gguf" "$threads" 2>/dev/null >"$work/found"
    for what in prefill decode; do member "$what" <"$work/found" >>"$work/$what-$type.peer"; done
    member peak_mb <"$work/found" >"$work/peak-$type.peer"
  done
done
best() { sort -g "$work/$1" | tail -n 1; }
beside() { # WEIGHTS TYPE NAME
  local what
  for what in prefill decode; do
    figure "llama/$what-$1-$2" tokens/s "$(best "$what-$1")" "llama.cpp $3" "$(best "$what-$2.peer")"
  done
  figure "llama/peak-$1-$2" MB "$(best "peak-$1")" "llama.cpp $3" "$(best "peak-$2.peer")" lower
}
beside float32 float32 F32
beside bfloat16 bfloat16 BF16
beside int8 q8_0 Q8_0
for weights in int8 file; do beside "$weights" own "$(basename "$model" .gguf | sed "s/.*[.]//")"; done
