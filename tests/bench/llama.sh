#!/usr/bin/env bash
# llama/*: SmolLM2-135M with each precision of weights beside llama.cpp with the same numbers in GGUF files, with as many
# threads: tokens a second of a prompt of 512 tokens (LENGTH) and of the 64 that follow it, and the peak of resident memory.
# Turn by turn; the best of three rounds (ROUNDS) is compared, since whatever else runs only slows down. The package
# xllamacpp is built for AVX2; where the peers have llama-cpp-python, which is built for the processor, it is compared too.
# llama/first-*: seconds to the first token after a prompt of 10 tokens, the file's opening included, and of `sample` the
# start of the program too; beside llama-cpp-python alone. `sample` converts the weights of MODEL, unless they are the file's;
# llama.cpp reads a file that has been converted. MODEL names another GGUF file, THREADS the threads.
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
length=${LENGTH:-512}
builds=(speed)
if has_peer llama_cpp; then builds+=(native); fi
# A word of one token, `length` times.
printf 'The' >"$work/long"
for ((i = 1; i < length; ++i)); do printf ' cat'; done >>"$work/long"

seconds() { sed -nE 's/.* ([0-9.]+) s$/\1/p' "$work/notes"; }
ours() { # WEIGHTS TOKENS: seconds from the prompt to the last token
  sample -v -m "$model" -j "$threads" --dtype "$1" --temperature 0 --ignore-end --window $((length + 128)) --max-tokens "$2" \
    --prompt "$(cat "$work/long")" 2>"$work/notes" >"$work/text"
  seconds
}
start_to_first() { # WEIGHTS
  local begin=$EPOCHREALTIME
  sample -q -m "$model" -j "$threads" --dtype "$1" --temperature 0 --max-tokens 1 \
    --prompt 'The cat cat cat cat cat cat cat cat cat' >"$work/text"
  awk "BEGIN { print $EPOCHREALTIME - $begin }"
}
for ((round = 1; round <= ${ROUNDS:-3}; ++round)); do
  for weights in float32 bfloat16 int8 file; do
    ours "$weights" 1 >>"$work/first-$weights"
    ours "$weights" 65 >>"$work/all-$weights"
    start_to_first "$weights" >>"$work/start-$weights"
    [ "$round" -gt 1 ] || "$PEERS" "$peer" peak sample -q -m "$model" -j "$threads" --dtype "$weights" --temperature 0 \
      --ignore-end --window $((length + 128)) --max-tokens 64 --prompt "$(cat "$work/long")" >"$work/peak-$weights"
  done
  for type in float32 bfloat16 q8_0 own; do
    for build in "${builds[@]}"; do
      "$PEERS" "$peer" "$build" "$work/$type.gguf" "$threads" "$length" 2>/dev/null >"$work/found"
      for what in prefill decode; do member "$what" <"$work/found" >>"$work/$what-$type.$build"; done
      member peak_mb <"$work/found" >"$work/peak-$type.$build"
      [ "$build" = speed ] || member first <"$work/found" >>"$work/start-$type.$build"
    done
  done
done
best() { sort -g "$work/$1" | tail -n 1; }
least() { sort -g "$work/$1" | head -n 1; }
for weights in float32 bfloat16 int8 file; do
  first=$(least "first-$weights")
  awk "BEGIN { print $length / $first }" >"$work/prefill-$weights"
  awk "BEGIN { print 64 / ($(least "all-$weights") - $first) }" >"$work/decode-$weights"
done
beside() { # WEIGHTS TYPE NAME
  local what build name
  for build in "${builds[@]}"; do
    name="llama.cpp $3"
    [ "$build" = speed ] || name+=", $build"
    for what in prefill decode; do
      figure "llama/$what-$1-$2" tokens/s "$(best "$what-$1")" "$name" "$(best "$what-$2.$build")"
    done
    figure "llama/peak-$1-$2" MB "$(best "peak-$1")" "$name" "$(best "peak-$2.$build")" lower
    [ "$build" = speed ] || figure "llama/first-$1-$2" s "$(least "start-$1")" "$name" "$(least "start-$2.$build")" lower
  done
}
beside float32 float32 F32
beside bfloat16 bfloat16 BF16
beside int8 q8_0 Q8_0
for weights in int8 file; do beside "$weights" own "$(basename "$model" .gguf | sed "s/.*[.]//")"; done
