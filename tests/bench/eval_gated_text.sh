#!/usr/bin/env bash
# eval/gated-text: tokens a second of evaluation with a datastore that a gate leaves out where it gives little, beside the best
# constant share and a search for every token; on text of which a half is like the store (articles) and a half is not
# (novels), so that the gate has something to find out: eval_gated's keys and words are random, no store helps there
# and to search nothing costs nothing. The gate's threshold is a twentieth below the largest at which the loss of the
# validation text is no higher than the constant's; the losses on the test text are said on stderr. eval/gated-follow: the
# same gate, and rows after a neighbour that was right are followed instead of a search (--min-pointers 1), with a threshold of
# its own. Turn by turn; the medians of three rounds are compared.
#
# TESSERA_DATA holds wikitext-2/{train,valid,test}.txt.zst and novels/{valid,test}.jsonl.zst. GATED_LINES [all] of the training
# text make the store (all: 2.7 M keys), GATED_STEPS [600] train the model. Half an hour and 3 GB at /tmp.
set -euo pipefail
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

data=${TESSERA_DATA:-}
if [ ! -e "$data/wikitext-2/train.txt.zst" ] || [ ! -e "$data/novels/test.jsonl.zst" ]; then
  echo "eval_gated_text.sh: TESSERA_DATA=$data: no wikitext-2 and novels there: its figure is left out" >&2
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
zstdcat "$data/wikitext-2/train.txt.zst" | sed -n "1,${GATED_LINES:-\$}p" >train.txt
# mixed PART: articles and novels, 25 lines of each in turn.
mixed() {
  zstdcat "$data/wikitext-2/$1.txt.zst" | grep -v '^ *$' | sed -n 1,400p >articles
  zstdcat "$data/novels/$1.jsonl.zst" | jq -r .text | grep -v '^ *$' | sed -n 1501,2500p >novels
  awk 'BEGIN {
    while ((a = getline article <"articles") > 0) {
      print article
      if (++n % 25 == 0) for (i = 0; i < 60 && (getline novel <"novels") > 0; ++i) print novel
    }
  }'
}
mixed valid >valid.txt
mixed test >test.txt
tokenize -q --learn bpe --vocab-size 8000 train.txt -o tokenizer.json
for part in train valid test; do tokenize -q -t tokenizer.json "$part.txt" -o "$part.shard.zst"; done
train -q --layers 4 --d-model 256 --heads 4 --segment 256 --batch 8 --steps "${GATED_STEPS:-600}" --lr 2e-3 --dropout 0.1 -o model train.shard.zst
build-datastore -q -m model --window 256 --stride 128 -o store train.shard.zst >/dev/null

near=(-q --datastore store --combine interpolate --k 1024 --nprobe 32)
eval-ppl "${near[@]}" -m model --window 256 --stride 128 --tune valid.shard.zst -o constant.conf
eval-ppl "${near[@]}" -m model --window 256 --stride 128 --datastore-lambda gate --tune valid.shard.zst -o gate.conf
evaluate() { # NAME CONFIG DATA FLAG...
  local name=$1 config=$2 shard=$3
  shift 3
  eval-ppl -q -m model --config "$config" --window 256 --stride 128 --json --timings "$name.time" "$@" "$shard" >"$name.json"
}
no_higher() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a <= b) }'; }

evaluate valid constant.conf valid.shard.zst
bound=$(member loss <valid.json)
# threshold FLAG...: a twentieth below the largest at which the validation text loses nothing beside the constant, by halves.
threshold() {
  local threshold=0 above=1 middle
  for _ in 1 2 3 4 5 6 7; do
    middle=$(awk -v a="$threshold" -v b="$above" 'BEGIN { print (a + b) / 2 }')
    evaluate valid gate.conf valid.shard.zst --datastore-threshold "$middle" "$@"
    if no_higher "$(member loss <valid.json)" "$bound"; then threshold=$middle; else above=$middle; fi
  done
  awk -v threshold="$threshold" 'BEGIN { print 0.95 * threshold }'
}
gated=(--datastore-threshold "$(threshold)")
followed=(--min-pointers 1 --datastore-threshold "$(threshold --min-pointers 1)")
for _ in 1 2 3; do
  evaluate constant constant.conf test.shard.zst
  evaluate gated gate.conf test.shard.zst "${gated[@]}"
  evaluate followed gate.conf test.shard.zst "${followed[@]}"
  for name in constant gated followed; do member tokens_per_s <"$name.time" >>"$name.speed"; done
done
said() { echo "eval/gated-text: loss $(member loss <"$1.json") with $2, $(grep -o '"searches":{[^}]*}' "$1.json")" >&2; }
said gated "${gated[*]}"
said followed "${followed[*]}"
echo "eval/gated-text: loss $(member loss <constant.json) with a constant share, a search for each" >&2
figure eval/gated-text tokens/s "$(median <gated.speed)" "a constant share, a search a token" "$(median <constant.speed)"
figure eval/gated-follow tokens/s "$(median <followed.speed)" "a constant share, a search a token" "$(median <constant.speed)"
