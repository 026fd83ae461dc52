#!/usr/bin/env bash
# mixer/NAME-step and mixer/NAME-decode: tokens a second of a training step (8 x 512 tokens) and of greedy decoding of one text, of
# each architecture with 4 layers of d 256 and 8,000 types, beside the transformer's of the same program, and beside
# transformers' or PyTorch's form for the CPU where there is one. ARCHS names some architectures only.
# Turn by turn; the medians of ROUNDS rounds are compared [3].
set -euo pipefail
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
novels_bpe "$work"
tokenize -q -t "$work/tokenizer.json" "$work/text" -o "$work/text.shard.zst"
read -ra archs <<<"${ARCHS:-transformer mosaic mosaic2 gla delta retnet linear mamba mamba2 rwkv4 rwkv7 kda window s4d h3 hyena lstm}"

# What --arch takes for a name.
flags_of() {
  case $1 in
    delta) echo --arch gla --gla-update delta ;;
    retnet) echo --arch gla --gla-decay fixed ;;
    linear) echo --arch gla --gla-decay none ;;
    *) echo --arch "$1" ;;
  esac
}
ours() { # NAME
  rm -rf "$work/model"
  # shellcheck disable=SC2046  # several arguments
  train -q $(flags_of "$1") --layers 4 --d-model 256 --heads 4 --batch 8 --segment 512 --dropout 0 --lr 1e-4 --steps 12 --log-every 3 \
    -t "$work/tokenizer.json" -o "$work/model" "$work/text.shard.zst"
  sed 1d "$work/model/timings.jsonl" | member tokens_per_s | median >>"$work/$1.step"
  sample -m "$work/model" -v --temperature 0 --ignore-end --max-tokens 256 --prompt The --json 2>"$work/notes" >"$work/out"
  sed -nE 's/.* ([0-9.]+) s$/\1/p' "$work/notes" | awk '{ print 256 / $1 }' >>"$work/$1.decode"
}
theirs() { # NAME step|decode ARGUMENT
  "$PEERS" "$(dirname "$0")/mixers_peer.py" "$@" 2>/dev/null | member tokens_per_s >>"$work/peer-$1.$2"
}

peers=()
if has_peer transformers; then peers=(transformer mamba mamba2 rwkv4 delta lstm); fi
for ((round = 0; round < ${ROUNDS:-3}; ++round)); do
  for name in "${archs[@]}"; do
    ours "$name"
    [[ " ${peers[*]} " == *" $name "* ]] || continue
    theirs "$name" step 3
    [ "$name" = delta ] || theirs "$name" decode 128
  done
done
for name in "${archs[@]}"; do
  for what in step decode; do
    value=$(median <"$work/$name.$what")
    if [ "$name" != transformer ] && [ -e "$work/transformer.$what" ]; then
      figure "mixer/$name-$what" tokens/s "$value" "the transformer's" "$(median <"$work/transformer.$what")"
    fi
    [ ! -e "$work/peer-$name.$what" ] ||
      figure "mixer/$name-$what" tokens/s "$value" "$([ "$name" = lstm ] && echo torch || echo transformers)" "$(median <"$work/peer-$name.$what")"
  done
done
