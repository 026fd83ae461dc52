#!/usr/bin/env bash
# eval/*: tokens a second of eval-ppl beside the plain sliding loop in PyTorch, on the same GPT-2-shaped model (4 layers,
# d 256, 8,000 types, learned positions: every window is encoded whole) with windows of 512 and a stride of 256; and of
# a model with rotary positions with --carry on, beside the same model encoding every window whole. The first two
# must agree on the perplexity. Turn by turn; the medians of three rounds are compared.
set -euo pipefail
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
novels_bpe "$work"
head -c 150000 "$work/text" | tokenize -q --end-of-document none -t "$work/tokenizer.json" -o "$work/text.shard.zst"
shape=(-q --layers 4 --d-model 256 --heads 4 --segment 512 --batch 2 --steps 2)
train "${shape[@]}" --context 512 --init gpt2 --no-scale-embedding -o "$work/gpt2" "$work/text.shard.zst"
train "${shape[@]}" --positions rope -o "$work/rope" "$work/text.shard.zst"
shard export --output-format npy "$work/text.shard.zst" -o "$work/ids.npy"

ours() { # NAME MODEL FLAG...
  local name=$1 model=$2
  shift 2
  eval-ppl -q --json --timings "$work/$name.time" -m "$work/$model" --window 512 --stride 256 "$@" "$work/text.shard.zst" >"$work/$name.json"
  member tokens_per_s <"$work/$name.time" >>"$work/$name"
}
speed() { median <"$work/$1"; }

peer=false
if has_peer torch && has_peer safetensors; then peer=true; fi
for _ in 1 2 3; do
  ours whole gpt2
  if $peer; then
    "$PEERS" "$(dirname "$0")/eval_peer.py" "$work/gpt2" "$work/ids.npy" >"$work/peer.json"
    member tokens_per_s <"$work/peer.json" >>"$work/peer"
  fi
  ours carried rope --carry on
  ours encoded rope --carry off
done
if $peer; then
  awk -v ours="$(member perplexity <"$work/whole.json")" -v theirs="$(member perplexity <"$work/peer.json")" \
    'BEGIN { d = ours / theirs - 1; exit !(d < 1e-4 && d > -1e-4) }' ||
    { echo "eval.sh: the perplexities differ: $(cat "$work/whole.json" "$work/peer.json")" >&2 && exit 1; }
  figure eval/sliding tokens/s "$(speed whole)" "PyTorch's sliding loop" "$(speed peer)"
fi
figure eval/carried tokens/s "$(speed carried)" "eval-ppl --carry off" "$(speed encoded)"
