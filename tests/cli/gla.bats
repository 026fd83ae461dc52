#!/usr/bin/env bats
# What gla and its relatives add to their matrices and keep: trained, stopped, continued, read in windows of any length.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
  needs train
  cd "$BATS_FILE_TMPDIR"
  cats 40 | tokenize -q -t bytes --format lines -o text.shard.zst
}

setup() {
  needs train
  cd "$BATS_FILE_TMPDIR"
}

trains() { # FOLDER FLAG...
  local folder=$1
  shift
  train -q -j 1 --layers 2 --d-model 16 --heads 2 --segment 48 --batch 3 --steps 6 --lr 5e-3 "$@" -o "$folder" text.shard.zst
}

memories=("--arch gla --state-memory segments --state-every 7 --state-segments 3"
  "--arch gla --gla-update delta --state-memory fenwick --state-levels 6"
  "--arch lstm --state-memory segments --state-every 20" "--arch lstm --state-memory fenwick")

@test "stopped and continued they give the same bytes, where rows carry on too" {
  for kind in "--arch gla --gla-update delta" "--arch gla --gla-update delta --gla-decay none --gla-convolution 1" \
    "--arch gla --gla-decay fixed" "--arch mamba2 --state-size 5" "--arch rwkv7" "--arch mamba" "--arch kda" "--arch window --mixer-window 9" \
    "--arch hybrid --mixer rwkv7,window --mixer-window 20" "--arch rwkv4" "--arch s4d --channel-state 6" "--arch h3" \
    "--arch hyena --filter-length 30" "${memories[@]}"; do
    read -ra flags <<<"$kind --batches streams --batch-shards 3"
    rm -rf whole parts
    trains whole "${flags[@]}"
    run -75 trains parts "${flags[@]}" --max-time 0
    run -75 trains parts "${flags[@]}" --max-time 0
    trains parts "${flags[@]}"
    same whole parts
  done
}

@test "a State that is carried makes windows of any length one text" {
  for kind in "--arch gla --gla-update delta" "--arch gla --gla-decay fixed" "--arch gla --gla-decay none" \
    "--arch mamba2 --state-size 5" "--arch rwkv7" "--arch mamba" "--arch kda" "--arch window --mixer-window 9" \
    "--arch hybrid --mixer rwkv7,window --mixer-window 20" "--arch rwkv4" "--arch s4d --channel-state 6" "--arch h3" \
    "--arch hyena --filter-length 30" "${memories[@]}"; do
    read -ra flags <<<"$kind"
    rm -rf model
    trains model "${flags[@]}"
    whole=$(eval-ppl -q -j 1 -m model --window 4000 --carry on --json text.shard.zst | field loss)
    for window in 7 64 333; do
      near "$(eval-ppl -q -j 1 -m model --window $window --carry on --json text.shard.zst | field loss)" "$whole" 1e-5
    done
    sample -q -j 1 -m model --prompt "The cat" --max-tokens 20 >once
    sample -q -j 1 -m model --prompt "The cat" --max-tokens 20 | cmp - once
  done
}

@test "--dtype names an architecture whose weights have one type only" {
  for arch in mamba2 rwkv7 hybrid; do
    trains narrow-$arch --arch $arch
    for command in "sample --prompt a --max-tokens 1" "eval-ppl text.shard.zst"; do
      read -ra words <<<"$command"
      run --separate-stderr -69 "${words[0]}" -q -j 1 -m narrow-$arch --dtype int8 "${words[@]:1}"
      [ "$stderr" = "${words[0]}: --dtype: not supported for this $arch; leave it out, or see SPEED of sample(1)" ]
    done
  done
  trains narrow-gla --arch gla
  sample -q -j 1 -m narrow-gla --dtype int8 --prompt a --max-tokens 1
}

@test "a memory of states is planned, saved, read and not exported as what has none" {
  trains states --arch gla --state-memory segments --state-every 5 --state-segments 2
  plan() { train -q -j 1 --seed 1 --steps 1 --layers 2 --d-model 16 --heads 2 --segment 48 --plan --json "$@" text.shard.zst | field state_bytes; }
  # A layer's states are 2 heads of 4 x 8 numbers; a segment's mean has 8.
  [ "$(plan --arch gla)" = $((4 * 2 * 64)) ]
  [ "$(plan --arch gla --state-memory segments --state-segments 2)" = $((4 * 2 * (3 * 64 + 3 * 8))) ]
  [ "$(plan --arch gla --state-memory fenwick --state-levels 6)" = $((4 * 2 * 6 * 64)) ]
  [[ $(model info --json states) == *'"bytes":'$((4 * 2 * (3 * 64 + 3 * 8)))* ]]
  run --separate-stderr -64 train -q --arch gla --state-every 3 --steps 1 -o bad text.shard.zst
  [ "$stderr" = "train: --state-every: requires --state-memory" ]
  for format in "--family mamba2" "--output-format gguf" "--output-format rwkv"; do
    read -ra flags <<<"$format"
    run --separate-stderr -78 model export "${flags[@]}" -o exported states
    [[ $stderr == "model: states: cannot be exported as "* ]]
    [ ! -e exported ]
  done
  run --separate-stderr -69 sample -q -j 1 -m states --dtype int8 --prompt a --max-tokens 1
  [ "$stderr" = "sample: --dtype: not supported for this gla; leave it out, or see SPEED of sample(1)" ]
}

@test "an option that the architecture does not use is said, and changes nothing" {
  trains plain --arch mamba
  run -0 --separate-stderr train -j 1 --seed 1 --steps 1 --arch mamba --state-size 5 --heads 2 --plan text.shard.zst
  [[ $stderr == *"train: --heads, --state-size: not used by --arch mamba" ]]
  trains same --arch mamba --state-size 5
  for model in plain same; do
    tail -c +"$(($(od -A n -t u8 -N 8 $model/model.safetensors) + 9))" $model/model.safetensors >$model.weights
  done
  cmp plain.weights same.weights
  run -0 --separate-stderr train -j 1 --seed 1 --steps 1 --from same -o more text.shard.zst -q
  [ "$stderr" = "" ]
}

@test "the rule and what it keeps have to go together: one line, and nothing is made" {
  run --separate-stderr -64 trains bad --arch gla --gla-update delta --gla-decay fixed
  # shellcheck disable=SC2154  # stderr is bats'
  [ "$stderr" = "train: --gla-decay: fixed (RetNet) requires gla-update sum; with delta, give gated or none" ]
  run --separate-stderr -64 trains bad --arch gla --gla-decay fixed --heads 8
  [ "$stderr" = "train: --heads: a fixed decay (RetNet) needs keys of even width, not 1: d-model / 2 / heads" ]
  [ ! -e bad ]
}
