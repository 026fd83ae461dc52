#!/usr/bin/env bash
# shared/*: programs with their default number of threads beside the same programs with -j 1, while as many other processes
# as there are processors are busy: sample of SmolLM2-135M with int8 weights, train, and eval-ppl. A thread that waits for
# another without a core of its own must not spin. Turn by turn, the medians of three rounds (ROUNDS).
set -euo pipefail
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

work=$(mktemp -d)
busy=()
finish() {
  [ ${#busy[@]} -eq 0 ] || kill "${busy[@]}"
  rm -rf "$work"
}
trap finish EXIT
novels_bpe "$work"
tokenize -q -t "$work/tokenizer.json" "$work/text" -o "$work/text.shard.zst"
head -c 200000 "$work/text" | tokenize -q -t "$work/tokenizer.json" - -o "$work/part.shard.zst"
found=("$(dirname "$0")"/../../.deps/model/*.gguf)

writes() { # NAME OPTION...
  local name=$1
  shift
  sample -v -m "${found[0]}" --dtype int8 --temperature 0 --ignore-end --max-tokens 256 --prompt 'The cat' "$@" 2>"$work/notes" >"$work/text.out"
  sed -nE 's/.* ([0-9.]+) s$/\1/p' "$work/notes" | awk '{ print 256 / $1 }' >>"$work/$name"
}
trains() { # NAME OPTION...
  local name=$1
  shift
  rm -rf "$work/model"
  train -q --layers 4 --d-model 256 --heads 4 --segment 512 --batch 8 --steps 6 --log-every 2 -o "$work/model" "$@" "$work/text.shard.zst"
  tail -n 1 "$work/model/timings.jsonl" | member tokens_per_s >>"$work/$name"
}
scores() { # NAME OPTION...
  local name=$1
  shift
  eval-ppl -q -m "$work/model" --window 512 --timings "$work/timings" -o /dev/null "$@" "$work/part.shard.zst"
  member tokens_per_s <"$work/timings" >>"$work/$name"
}

for ((i = 0; i < $(nproc); ++i)); do
  while :; do :; done &
  busy+=($!)
done
for ((round = 1; round <= ${ROUNDS:-3}; ++round)); do
  for threads in default one; do
    option=()
    [ "$threads" = default ] || option=(-j 1)
    [ ! -e "${found[0]}" ] || writes "sample-$threads" "${option[@]}"
    trains "train-$threads" "${option[@]}"
    scores "eval-$threads" "${option[@]}"
  done
done
for what in sample train eval; do
  [ ! -e "$work/$what-one" ] || figure "shared/$what" tokens/s "$(median <"$work/$what-default")" "-j 1" "$(median <"$work/$what-one")"
done
