#!/usr/bin/env bash
# translate/*: sentences a second of an encoder-decoder of fairseq's IWSLT shape with random weights, beam 4, beside
# CTranslate2 with the same weights in float32, as many threads and as many sentences together, all of LENGTH tokens. Turn by
# turn; the best of three rounds is compared. The translations must be the same but for one in twenty, where sums differ
# in the last bit.
#
# What perf says of ours: three quarters are the products with the weights, a tenth is attention, a tenth the encoder.
set -euo pipefail
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

{ has_peer ctranslate2 && has_peer tokenizers && has_peer safetensors; } || exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
peer=$(dirname "$0")/translate_peer.py
sentences=${SENTENCES:-64} length=${LENGTH:-32} threads=$(nproc)

"$PEERS" "$peer" lines 20000 1 >"$work/text"
"$PEERS" "$peer" lines "$sentences" 2 >"$work/lines"
tokenize -q --learn bpe --vocab-size 10000 -o "$work/bpe.json" "$work/text"
tokenize -q -t "$work/bpe.json" --pairs "$work/lines" "$work/lines" -o "$work/pairs.shard.zst"
train -q --arch encoder-decoder --layers 6 --d-model 512 --d-ff 1024 --heads 4 --positions sinusoidal --activation relu --no-tied \
  --steps 1 --lr 1e-9 --batch-tokens 200 -o "$work/model" "$work/pairs.shard.zst"
"$PEERS" "$peer" convert "$work/model" "$work/peer"

for _ in 1 2 3; do
  sample -j "$threads" -v -m "$work/model" --source --beam 4 --batch 128 --max-len-a 0 --max-len-b "$length" --json "$work/lines" \
    2>"$work/notes" >"$work/ours"
  sed -nE 's/.* ([0-9.]+) s$/\1/p' "$work/notes" | awk -v n="$sentences" '{ print n / $1 }' >>"$work/speed"
  "$PEERS" "$peer" run "$work/peer" "$work/bpe.json" "$work/lines" 4 32 "$length" "$threads" >"$work/theirs"
  member seconds <"$work/theirs" | awk -v n="$sentences" '{ print n / $1 }' >>"$work/peer_speed"
done
"$PEERS" "$peer" same "$work/ours" "$work/theirs"
best() { sort -g "$work/$1" | tail -n 1; }
figure translate/beam-4 sentences/s "$(best speed)" ctranslate2 "$(best peer_speed)"
