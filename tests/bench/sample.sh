#!/usr/bin/env bash
# sample/*: tokens a second of a GPT-2 small with random weights, greedy, beside transformers' generate in float32: one
# prompt with each precision of weights, eight prompts together, a beam of four. Turn by turn; the best of three rounds
# is compared, since whatever else runs only slows down.
set -euo pipefail
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

has_peer transformers || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
peer=$(dirname "$0")/sample_peer.py
tokens=${TOKENS:-64}
"$PEERS" "$peer" make "$work/model" >/dev/null 2>&1
for row in 1 2 3 4 5 6 7 8; do
  if [ "$row" -eq 1 ]; then echo 'The cat '; else echo 'The dog '; fi
done >"$work/prompts"

# All tokens count, of a beam those of the best hypothesis: what the user gets.
ours() { # NAME ROWS FLAG...
  local name=$1 rows=$2
  shift 2
  head -n "$rows" "$work/prompts" | sample -m "$work/model" -t bytes -v --max-tokens "$tokens" --json "$@" \
    2>"$work/notes" >"$work/texts"
  [ "$(wc -l <"$work/texts")" -eq "$rows" ]
  sed -nE 's/.* ([0-9.]+) s$/\1/p' "$work/notes" | awk -v n=$((rows * tokens)) '{ print n / $1 }' >>"$work/$name"
}
theirs() { # NAME ROWS BEAMS
  "$PEERS" "$peer" run "$work/model" "$2" "$3" "$tokens" 2>/dev/null | member tokens_per_s >>"$work/$1"
}
best() { sort -g "$work/$1" | tail -n 1; }

for _ in 1 2 3; do
  for weights in float32 bfloat16 int8; do ours "$weights" 1 --temperature 0 --weights "$weights"; done
  theirs generate 1 1
  ours batch 8 --temperature 0
  theirs generate-batch 8 1
  ours beam 1 --beam 4
  theirs generate-beam 1 4
done
for weights in float32 bfloat16 int8; do
  figure "sample/$weights" tokens/s "$(best "$weights")" "transformers float32" "$(best generate)"
done
figure sample/batch-8 tokens/s "$(best batch)" "transformers float32" "$(best generate-batch)"
figure sample/beam-4 tokens/s "$(best beam)" "transformers float32" "$(best generate-beam)"
