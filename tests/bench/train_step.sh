#!/usr/bin/env bash
# train/step: tokens a second and peak memory of a training step beside PyTorch's, the price of a local and of a long
# memory, and the step of a Llama's shape (RMS norms, gated SiLU, grouped queries, rotary positions) beside PyTorch's of the same.
# PyTorch as it is tuned, too: AdamW's fused kernel, and products in bfloat16 (autocast), beside --precision bfloat16.
# Turn by turn: each round runs every program once; the medians of two rounds (ROUNDS) are compared.
set -euo pipefail
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
novels_bpe "$work"
tokenize -q -t "$work/tokenizer.json" "$work/text" -o "$work/text.shard.zst"

ours() { # NAME FLAG...: tokens/s and peak bytes, the median of the reports after the first
  local name=$1
  shift
  rm -rf "$work/model"
  train -q --layers 4 --d-model 256 --heads 4 --batch 8 --segment 512 --dropout 0 --steps 30 --log-every 5 \
    --plain-warmup 0 "$@" -o "$work/model" "$work/text.shard.zst"
  sed 1d "$work/model/timings.jsonl" | member tokens_per_s | median >>"$work/$name.speed"
  tail -n 1 "$work/model/timings.jsonl" | member peak_bytes >>"$work/$name.bytes"
}
theirs() { # NAME MODE [LD_PRELOAD]
  LD_PRELOAD=${3:-} "$PEERS" "$(dirname "$0")/train_step_peer.py" "$2" >"$work/peer"
  member tokens_per_s <"$work/peer" >>"$work/$1.speed"
  member peak_bytes <"$work/peer" >>"$work/$1.bytes"
}

jemalloc=$(find /usr/lib -name 'libjemalloc.so.2' -print -quit 2>/dev/null)
peers=()
if has_peer torch; then peers=(eager compile); fi
tuned=(eager-fused compile-fused eager-fused-bf16 compile-fused-bf16)
llama=(--norm-kind rms --feed-forward gated --activation silu --d-ff 688 --kv-heads 2 --positions rope --no-bias)
for ((round = 1; round <= ${ROUNDS:-2}; ++round)); do
  ours plain
  ours llama "${llama[@]}"
  ours local --memory local
  ours long --memory long
  ours bf16 --precision bfloat16
  for peer in "${peers[@]}"; do
    theirs "$peer" "$peer"
    theirs "llama-$peer" "llama-$peer"
  done
  if [ ${#peers[@]} -gt 0 ]; then
    for peer in "${tuned[@]}"; do theirs "$peer" "$peer"; done
  fi
  if [ ${#peers[@]} -gt 0 ] && [ -n "$jemalloc" ]; then theirs compile-jemalloc compile "$jemalloc"; fi
done
speed() { median <"$work/$1.speed"; }
bytes() { median <"$work/$1.bytes"; }
for peer in eager compile compile-jemalloc; do
  [ -e "$work/$peer.speed" ] || continue
  figure train/step tokens/s "$(speed plain)" "torch $peer" "$(speed "$peer")"
  figure train/memory bytes "$(bytes plain)" "torch $peer" "$(bytes "$peer")" lower
done
for peer in eager compile; do
  [ -e "$work/llama-$peer.speed" ] || continue
  figure train/llama-step tokens/s "$(speed llama)" "torch $peer" "$(speed "llama-$peer")"
done
for peer in eager compile; do
  [ -e "$work/$peer-fused.speed" ] || continue
  figure train/step tokens/s "$(speed plain)" "torch $peer, fused AdamW" "$(speed "$peer-fused")"
  figure train/step tokens/s "$(speed plain)" "torch $peer, fused AdamW, bfloat16" "$(speed "$peer-fused-bf16")"
  figure train/step-bfloat16 tokens/s "$(speed bf16)" "torch $peer, fused AdamW, bfloat16" "$(speed "$peer-fused-bf16")"
done
figure train/step-bfloat16 tokens/s "$(speed bf16)" "train --precision float32" "$(speed plain)"
figure train/trime-step tokens/s "$(speed local)" "train --memory none" "$(speed plain)"
figure train/long-step tokens/s "$(speed long)" "train --memory none" "$(speed plain)"
