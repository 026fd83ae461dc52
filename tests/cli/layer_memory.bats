#!/usr/bin/env bats
# Layers with a memory of their own, transformer-xl and srupp: trained on columns, stopped and continued, read at other
# lengths than in training.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  text_shards 6000 1500
  train --arch transformer-xl --layers 3 --layer-memory "long=24 short=4 place=last:1" --d-model 16 --heads 2 --segment 8 \
    --batch 4 --steps 20 -q -j 1 -o xl train.shard.zst
  train --arch srupp --layers 2 --layer-memory 16 --d-model 16 --d-projection 8 --heads 1 --segment 16 --batch 4 --steps 20 \
    --memory local,long -q -j 1 -o srupp train.shard.zst
}

setup() {
  data=$BATS_FILE_TMPDIR
  cd "$BATS_TEST_TMPDIR"
}

signature() { # MODEL FLAG...
  local model=$1
  shift
  eval-ppl -m "$data/$model" "$@" --json -q "$data/valid.shard.zst" | sed -E 's/.*"signature":"([^"]*)".*/\1/'
}

loss() { # MODEL FLAG...
  local model=$1
  shift
  eval-ppl -m "$data/$model" "$@" --json -q "$data/valid.shard.zst" | sed -E 's/.*"loss":([^,]*),.*/\1/'
}

@test "trained on columns unless another order is asked for" {
  local model
  for model in xl srupp; do
    grep -q '"batches": *"streams"' "$data/$model/config.json"
  done
}

@test "killed or stopped and continued, the State goes on: the same bytes" {
  local arch signal pid code target
  lines() { wc -l 2>/dev/null <"parts-$arch/metrics.jsonl" || echo 0; }
  for arch in transformer-xl srupp; do
    command=(train --arch "$arch" --layers 2 --layer-memory "20,5" --d-model 16 --heads 2 --d-projection 8 --segment 8 --batch 4
      --segment-deviation 2 --optimiser radam --dropout 0.1 --steps 60 --log-every 1 --checkpoint-every 7 --keep 2 -q -j 1)
    "${command[@]}" -o "whole-$arch" "$data/train.shard.zst"
    for signal in KILL TERM KILL; do
      code=137
      [ "$signal" = KILL ] || code=75
      target=$(($(lines) + 4)) # beyond what the run before has left, so that this one is at work
      TESSERA_FORK_SERVERS='' "${command[@]}" -o "parts-$arch" "$data/train.shard.zst" &
      pid=$!
      while [ "$(lines)" -lt "$target" ] && kill -0 "$pid" 2>/dev/null; do
        sleep 0.02
      done
      kill -"$signal" "$pid" 2>/dev/null || continue
      wait "$pid" || [ $? -eq $code ]
    done
    "${command[@]}" -o "parts-$arch" "$data/train.shard.zst"
    diff -r -x timings.jsonl "whole-$arch" "parts-$arch"
  done
}

@test "other lengths at test than in training, named in the signature" {
  [[ "$(signature xl)" != *layer-memory* ]]
  run -0 signature xl --layer-memory 'long=64 short=8 place=last:1' --same-length on --clamp-length 24
  [[ "$output" == *"|layer-memory:long=64+short=8+place=last:1|clamp-length:24|same-length:on"* ]]
  [ "$(loss xl)" = "$(loss xl --layer-memory 4,4,24)" ]
  [ "$(loss xl)" != "$(loss xl --layer-memory none)" ]
  [ "$(loss srupp)" != "$(loss srupp --layer-memory 64)" ]
}

@test "with same-length the figure does not depend on how the text is cut" {
  local a b
  a=$(loss xl --same-length on --window 7)
  b=$(loss xl --same-length on --window 300)
  awk -v a="$a" -v b="$b" 'BEGIN { exit !(a - b < 1e-4 && b - a < 1e-4) }'
}

@test "TRIME's memories on these layers: local and long, far back at test" {
  [[ "$(signature srupp --long 12288)" == *"|memory:local+long|long:12288|"* ]]
  [ "$(loss srupp --long 12288)" != "$(loss srupp --memory none)" ]
  [ "$(loss xl --memory local,long --long 1000)" != "$(loss xl)" ]
}

@test "a length for each layer, TRIME's memories and a datastore together" {
  local flags=(--memory "local,long" --long 200 --datastore store --k 20 --combine both --datastore-lambda 0.2)
  build-datastore -q -j 1 -m "$data/xl" --index exact "$data/train.shard.zst" -o store
  run -0 signature xl "${flags[@]}" --layer-memory 'long=64 short=8 place=first:1'
  [[ "$output" == *"|memory:local+long|long:200|combine:both|"*"|stores:"*"|layer-memory:long=64+short=8+place=first:1" ]]
  [ "$(loss xl "${flags[@]}")" != "$(loss xl --memory local,long --long 200)" ]
  [ "$(loss xl "${flags[@]}")" != "$(loss xl "${flags[@]}" --layer-memory none)" ]
}

@test "further models look as far back: one beside itself gives what it gives alone" {
  local model
  for model in xl srupp; do
    near "$(loss $model --memory none --layer-memory 2)" \
      "$(loss $model --memory none --ensemble "$data/$model:0.5" --layer-memory 2)" 1e-6
  done
  near "$(loss xl --clamp-length 2)" "$(loss srupp --memory none --ensemble "$data/xl:0.999999" --clamp-length 2)" 1e-4
  printf 'The licence is a licence' >text
  alone=$(score -q -m "$data/xl" --layer-memory 2 text | field log_prob)
  near "$alone" "$(score -q -m "$data/xl" --ensemble "$data/xl:0.5" --layer-memory 2 text | field log_prob)" 1e-4
  [ "$alone" != "$(score -q -m "$data/xl" text | field log_prob)" ]
  alone=$(sample -q -m "$data/xl" --layer-memory 2 --prompt 'The licence' --temperature 0 --max-tokens 20 --json | field log_prob)
  near "$alone" "$(sample -q -m "$data/xl" --ensemble "$data/xl:0.5" --layer-memory 2 --prompt 'The licence' --temperature 0 --max-tokens 20 --json | field log_prob)" 1e-4
}

@test "sample goes on with both, at other lengths too, the same each time" {
  local model
  for model in xl srupp; do
    sample -m "$data/$model" --prompt "The licence" --max-tokens 20 --layer-memory 40 -q -o a
    sample -m "$data/$model" --prompt "The licence" --max-tokens 20 --layer-memory 40 -q -o b
    cmp a b
    [ -s a ]
  done
}

@test "what makes no sense is refused by name" {
  run -64 --separate-stderr eval-ppl -m "$data/xl" --layer-memory 1,2 "$data/valid.shard.zst"
  [[ "$stderr" == *"2 lengths for 3 layers"* ]]
  run -64 --separate-stderr eval-ppl -m "$data/srupp" --clamp-length 4 "$data/valid.shard.zst"
  [[ "$stderr" == *"no positions"* ]]
  run -64 --separate-stderr eval-ppl -m "$data/srupp" --ensemble "$data/srupp" --clamp-length 4 "$data/valid.shard.zst"
  [[ "$stderr" == *"no positions"* ]]
  run -64 --separate-stderr eval-ppl -m "$data/srupp" --ensemble "$data/xl" --layer-memory 1,2 "$data/valid.shard.zst"
  [[ "$stderr" == *"2 lengths for 3 layers"* ]]
  run --separate-stderr train --arch transformer-xl --layer-memory "long=5 place=top:1" -q -o refused "$data/train.shard.zst"
  [ "$status" -ne 0 ]
  [[ "$stderr" == *"takes all, none, first:N"* ]]
  [ ! -e refused/model.safetensors ]
}
