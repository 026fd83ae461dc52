#!/usr/bin/env bash
# sample/*: tokens a second of a GPT-2 small and of a Llama of 134 M parameters with random weights, greedy, beside
# transformers' generate in float32: one prompt with each precision of weights; of GPT-2 eight prompts together and a beam
# of four too. Turn by turn; the best of three rounds is compared, since whatever else runs only slows down.
set -euo pipefail
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

has_peer transformers || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
peer=$(dirname "$0")/sample_peer.py
tokens=${TOKENS:-64}
for model in gpt2 llama; do "$PEERS" "$peer" make "$work/$model" "$model" >/dev/null 2>&1; done
for row in 1 2 3 4 5 6 7 8; do
  if [ "$row" -eq 1 ]; then echo 'The cat '; else echo 'The dog '; fi
done >"$work/prompts"

# All tokens count, of a beam those of the best hypothesis: what the user gets.
ours() { # NAME MODEL ROWS FLAG...
  local name=$1 model=$2 rows=$3
  shift 3
  head -n "$rows" "$work/prompts" | sample -m "$work/$model" -t bytes -v --max-tokens "$tokens" --json "$@" \
    2>"$work/notes" >"$work/texts"
  [ "$(wc -l <"$work/texts")" -eq "$rows" ]
  sed -nE 's/.* ([0-9.]+) s$/\1/p' "$work/notes" | awk -v n=$((rows * tokens)) '{ print n / $1 }' >>"$work/$name"
}
theirs() { # NAME MODEL ROWS BEAMS
  "$PEERS" "$peer" run "$work/$2" "$3" "$4" "$tokens" 2>/dev/null | member tokens_per_s >>"$work/$1"
}
best() { sort -g "$work/$1" | tail -n 1; }

for _ in 1 2 3; do
  for model in gpt2 llama; do
    for weights in float32 bfloat16 int8; do ours "$model-$weights" "$model" 1 --temperature 0 --dtype "$weights"; done
    theirs "$model-generate" "$model" 1 1
  done
  ours batch gpt2 8 --temperature 0
  theirs generate-batch gpt2 8 1
  ours beam gpt2 1 --beam 4
  theirs generate-beam gpt2 1 4
done
for weights in float32 bfloat16 int8; do
  figure "sample/$weights" tokens/s "$(best "gpt2-$weights")" "transformers float32" "$(best gpt2-generate)"
  figure "sample/llama-$weights" tokens/s "$(best "llama-$weights")" "transformers float32" "$(best llama-generate)"
done
figure sample/batch-8 tokens/s "$(best batch)" "transformers float32" "$(best generate-batch)"
figure sample/beam-4 tokens/s "$(best beam)" "transformers float32" "$(best generate-beam)"
