#!/usr/bin/env bash
# eval/*: tokens a second of eval-ppl beside the plain sliding loop in PyTorch, on the same GPT-2-shaped model (4 layers,
# d 256, 8,000 types, learned positions: every window is encoded whole) with windows of 512 and a stride of 256; and of
# a model with rotary positions with --carry on, beside the same model encoding every window whole; and of the first with a
# datastore of every key, beside the loop of knn-transformers over FAISS's flat index. Ours and the peer's
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
# 100,000 keys and more, and a short text that asks for them.
head -c 600000 "$work/text" | tail -c 450000 | tokenize -q --end-of-document none -t "$work/tokenizer.json" -o "$work/known.shard.zst"
head -c 30000 "$work/text" | tokenize -q --end-of-document none -t "$work/tokenizer.json" -o "$work/asked.shard.zst"
for part in known asked; do shard export --output-format npy "$work/$part.shard.zst" -o "$work/$part.npy"; done
build-datastore -q --index exact --metric l2 --no-calibrate --window 512 --stride 256 -m "$work/gpt2" "$work/known.shard.zst" -o "$work/store" >/dev/null

ours() { # NAME MODEL TEXT FLAG...
  local name=$1 model=$2 text=$3
  shift 3
  eval-ppl -q --json --timings "$work/$name.time" -m "$work/$model" --window 512 --stride 256 "$@" "$work/$text.shard.zst" >"$work/$name.json"
  member tokens_per_s <"$work/$name.time" >>"$work/$name"
}
theirs() { # NAME FILE...
  local name=$1
  shift
  "$PEERS" "$(dirname "$0")/eval_peer.py" "$work/gpt2" "$@" >"$work/$name.json"
  member tokens_per_s <"$work/$name.json" >>"$work/$name"
}
# agree OURS THEIRS WITHIN: their perplexities do, within this share.
agree() {
  awk -v ours="$(member perplexity <"$work/$1.json")" -v theirs="$(member perplexity <"$work/$2.json")" -v within="$3" \
    'BEGIN { d = ours / theirs - 1; exit !(d < within && d > -within) }' ||
    { echo "eval.sh: the perplexities differ: $(cat "$work/$1.json" "$work/$2.json")" >&2 && exit 1; }
}
speed() { median <"$work/$1"; }

peer=false flat=false
if has_peer torch && has_peer safetensors; then peer=true; fi
if $peer && has_peer faiss; then flat=true; fi
for _ in 1 2 3; do
  ours whole gpt2 text
  if $peer; then theirs peer "$work/ids.npy"; fi
  ours carried rope text --carry on
  ours encoded rope text --carry off
  if $flat; then
    ours stored gpt2 asked --datastore "$work/store" --combine interpolate --memory-weights constant --datastore-lambda 0.25 --datastore-temperature 10
    theirs flat "$work/asked.npy" "$work/known.npy"
  fi
done
if $peer; then
  agree whole peer 1e-4
  figure eval/sliding tokens/s "$(speed whole)" "PyTorch's sliding loop" "$(speed peer)"
fi
figure eval/carried tokens/s "$(speed carried)" "eval-ppl --carry off" "$(speed encoded)"
if $flat; then
  # Keys are float16 here, float32 there.
  agree stored flat 1e-3
  figure eval/stored tokens/s "$(speed stored)" "knn-transformers' loop over FAISS's flat index" "$(speed flat)"
fi
