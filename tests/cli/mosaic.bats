#!/usr/bin/env bats
# Memory Mosaics: contextual memories of bounded size, and what the memories attend to.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
  text_shards 6000 1500
  local arch
  for arch in mosaic transformer lstm; do
    train -q -j 1 --arch $arch --layers 2 --d-model 16 --heads 2 --segment 16 --batch 4 --steps 20 --lr 5e-3 --context 48 \
      -o $arch train.shard.zst
  done
}

setup() {
  data=$BATS_FILE_TMPDIR
  cd "$BATS_TEST_TMPDIR"
}

record() { # FLAG...: of the mosaic
  eval-ppl -q -j 1 -m "$data/mosaic" --json "$@" "$data/valid.shard.zst"
}

@test "as many slots as a window holds change nothing; fewer do, and the two ways to forget differ" {
  local whole enough fewer idle
  whole=$(record --window 64 --carry off | jq .loss)
  enough=$(record --window 64 --carry off --context-slots 63 --evict lru | jq .loss)
  awk -v a="$whole" -v b="$enough" 'BEGIN { exit !(a - b < 1e-6 && b - a < 1e-6) }'
  fewer=$(record --window 64 --carry off --context-slots 6 | jq .loss)
  idle=$(record --window 64 --carry off --context-slots 6 --evict lru | jq .loss)
  [ "$whole" != "$fewer" ]
  [ "$fewer" != "$idle" ]
}

@test "bounded, the State goes on from window to window: the figure does not depend on how the text is cut" {
  local a b
  a=$(record --window 7 --context-slots 20 | jq .loss)
  b=$(record --window 300 --context-slots 20 | jq .loss)
  awk -v a="$a" -v b="$b" 'BEGIN { exit !(a - b < 1e-5 && b - a < 1e-5) }'
  [[ "$(record --context-slots 20 --evict lru | jq -r .signature)" == *"|context-slots:20|evict:lru"* ]]
}

@test "sample takes them too: enough slots draw the same text" {
  sample -q -j 1 -m "$data/mosaic" --prompt "The licence" --max-tokens 30 --window 64 >whole
  sample -q -j 1 -m "$data/mosaic" --prompt "The licence" --max-tokens 30 --context-slots 64 --evict lru >enough
  cmp whole enough
  sample -q -j 1 -m "$data/mosaic" --prompt "The licence" --max-tokens 30 --beam 2 --context-slots 4 >fewer
  [ -s fewer ]
}

@test "slots are a mosaic's: others refuse them in one line" {
  run -64 --separate-stderr eval-ppl -m "$data/transformer" --context-slots 8 "$data/valid.shard.zst"
  [[ "$stderr" == *"--context-slots"* && "${#stderr_lines[@]}" -eq 1 ]]
  run -64 --separate-stderr sample -m "$data/lstm" --context-slots 8 --prompt x
  run -64 --separate-stderr eval-ppl -m "$data/mosaic" --evict lru "$data/valid.shard.zst"
  run -64 --separate-stderr eval-ppl -m "$data/mosaic" --context-slots -1 "$data/valid.shard.zst"
}

@test "probe attention: a row of weights a head that sums to one, also beyond the training length" {
  local arch
  for arch in mosaic transformer; do
    probe attention -q -j 1 -m "$data/$arch" --window 48 --sequences 5 "$data/valid.shard.zst" >long
    [ "$(head -n 1 long)" = $'layer\thead\tposition\tattention' ]
    [ "$(wc -l <long)" -eq $((1 + 2 * 2 * 48)) ]
    awk 'NR > 1 { sum[$1 "." $2] += $4; if ($4 < 0) exit 1 }
         END { for (i in sum) if (sum[i] < .9999 || sum[i] > 1.0001) exit 1 }' long
  done
  probe attention -q -j 1 -m "$data/mosaic" --sequences 5 --json "$data/valid.shard.zst" |
    jq -es 'length == 64 and ([.[] | select(.position == 15) | .attention] | add == 0)'
  run -64 --separate-stderr probe attention -m "$data/transformer" --window 49 "$data/valid.shard.zst"
  [[ "$stderr" == *"has only 48 positions"* ]]
  run -64 --separate-stderr probe attention -m "$data/lstm" "$data/valid.shard.zst"
  [[ "$stderr" == *"lstm"* && "${#stderr_lines[@]}" -eq 1 ]]
}

@test "probe lambda: a number between 0 and 1 for each head of each unit" {
  probe lambda -m "$data/mosaic" >lambda
  [ "$(cut -f 2 lambda | sort | uniq -c | tr -s ' \n' ' ')" = " 4 contextual 4 persistent 1 unit " ]
  awk 'NR > 1 && !($4 > 0 && $4 < 1) { exit 1 }' lambda
  [ "$(probe lambda -m "$data/mosaic" --json | jq -s length)" -eq 8 ]
  run -64 probe lambda -m "$data/transformer"
}

@test "both versions train in bfloat16, to nearly the same loss" {
  for arch in mosaic mosaic2; do
    for precision in float32 bfloat16; do
      train -q -j 1 --arch $arch --layers 1 --d-model 16 --heads 2 --segment 32 --batch 4 --steps 10 --log-every 10 --dropout 0 \
        --short-term 8 --long-term-delay 4 --long-term-delay-most 9 --precision $precision -o $arch-$precision "$data/train.shard.zst"
    done
    jq -e -s '((.[0].loss / .[1].loss - 1) | fabs) < 0.02' $arch-*/metrics.jsonl
  done
}

@test "mosaic2: what its memories hold changes a text's loss; what they cannot hold is refused" {
  train -q -j 1 --arch mosaic2 --layers 1 --d-model 16 --heads 2 --segment 32 --batch 4 --steps 20 --lr 5e-3 -o model \
    --short-term 8 --long-term-delay 4 --long-term-delay-most 9 "$data/train.shard.zst"
  [ "$(model info --json model | jq -c '.options | [.short_term, .long_term_delay, .long_term_delay_most]')" = '[8,4,9]' ]
  local by_window streamed
  by_window=$(eval-ppl -q -j 1 -m model --window 4096 --stride 4096 --json "$data/valid.shard.zst" | jq .loss)
  streamed=$(eval-ppl -q -j 1 -m model --window 4096 --stride 37 --carry on --json "$data/valid.shard.zst" | jq .loss)
  awk -v a="$by_window" -v b="$streamed" 'BEGIN { exit !(a - b < 1e-4 && b - a < 1e-4) }'
  run -64 --separate-stderr train --arch mosaic2 --long-term-delay 9 --long-term-delay-most 8 -o never "$data/train.shard.zst"
  # shellcheck disable=SC2154  # stderr is bats'
  [ "$stderr" = "train: --long-term-delay-most: 8 is less than long-term-delay 9" ]
  [ ! -e never ]
}
