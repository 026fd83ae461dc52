#!/usr/bin/env bats
# Layers that look rows up in a large table: trained, counted, evaluated, sampled, stopped and continued.

load helpers

tiny=(--layers 2 --d-model 16 --heads 2 --segment 32 --batch 4 --context 64)

setup_file() {
  export OMP_NUM_THREADS=1
  needs train
  cd "$BATS_FILE_TMPDIR"
  cats 40 | tokenize -q -t bytes --format lines -o text.shard.zst
  train -q -j 1 "${tiny[@]}" --memory-layer product-key --memory-layers 1,2 --memory-layer-keys 16 --memory-layer-top-k 4 \
    --steps 5 -o keys text.shard.zst
  train -q -j 1 "${tiny[@]}" --memory-layer ngram --memory-layers 1,2 --memory-layer-rows 100 --positions rope --steps 5 \
    -o ngrams text.shard.zst
}

setup() {
  needs train
  cd "$BATS_FILE_TMPDIR"
}

# json KEYS: what the line of stdin has there, as Python writes it
json() { python3 -c "import json, sys; print(json.loads(sys.stdin.readline())$1)"; }

parameters() { train -q --json --plan "${tiny[@]}" --steps 1 "$@" text.shard.zst | json '["parameters"]'; }

@test "--plan and model info count the table" {
  local plain shared own
  plain=$(parameters)
  shared=$(parameters --memory-layer product-key --memory-layers 1,2 --memory-layer-keys 16 --memory-layer-top-k 4)
  own=$(parameters --memory-layer product-key --memory-layers 1,2 --memory-layer-keys 16 --memory-layer-top-k 4 --no-memory-layer-shared)
  ((own == shared + 16 * 16 * 16))
  ((shared > plain))
  [ "$(model info --json keys | json '["parts"]["transformer.memory_pool"]')" = 4096 ]
  [ "$(model info --json keys | json '["parameters"]')" = "$shared" ]
  # Tables, key and value, three norms, taps.
  own=$(parameters --memory-layer ngram --memory-layer-rows 100)
  ((own == plain + 8 * 100 * 4 + 2 * 32 * 16 + 3 * 16 + 4 * 16))
}

@test "what was trained is evaluated and sampled" {
  local model
  for model in keys ngrams; do
    [ -n "$(eval-ppl -q --json -m $model text.shard.zst | json '["loss"]')" ]
    run -0 --separate-stderr sample -q -m $model --prompt "the cat" --max-tokens 5 --temperature 0
    [ -n "$output" ]
  done
}

@test "a model with memory layers is no family's: export refuses it in one line" {
  local model
  for model in keys ngrams; do
    run -78 --separate-stderr model export $model --family gpt2 -o exported
    [[ "$stderr" == *memory_layer* ]]
    [ "${#stderr_lines[@]}" = 1 ]
    [ ! -e exported ]
  done
}

@test "stopped and continued it gives the same bytes, with muon too" {
  local kind flags
  for kind in "--memory-layer product-key --memory-layer-keys 8 --memory-layer-top-k 3" \
    "--memory-layer ngram --memory-layer-rows 50 --positions rope --batches streams"; do
    rm -rf whole parts
    read -ra flags <<<"$kind --steps 4 --optimiser muon -q -j 1"
    train "${tiny[@]}" "${flags[@]}" -o whole text.shard.zst
    run -75 train "${tiny[@]}" "${flags[@]}" --max-time 0 -o parts text.shard.zst
    train "${tiny[@]}" "${flags[@]}" -o parts text.shard.zst
    same whole parts
  done
}

@test "what cannot be is refused by the option's name" {
  local flags
  for flags in "--memory-layer product-key --memory-layers 3" "--memory-layers 1" \
    "--memory-layer product-key --memory-layer-keys 4 --memory-layer-top-k 5" \
    "--memory-layer product-key --memory-layer-d-key 3" "--memory-layer ngram --memory-layer-width 5" \
    "--memory-layer product-key --arch lstm" "--memory-layer ngram --arch gla"; do
    # shellcheck disable=SC2086  # words
    run --separate-stderr train "${tiny[@]}" $flags -o refused text.shard.zst
    [ "$status" -ne 0 ]
    [[ "$stderr" == *memory-layer* ]]
    [ ! -e refused/model.safetensors ]
  done
}

@test "trained with TRIME's memories, with every memory at test, whole and in parts" {
  local kind flags model part with
  build-ngrams -q text.shard.zst -o ngrams-of-text >/dev/null
  for kind in "--memory-layer product-key --memory-layer-keys 8 --memory-layer-top-k 3" "--memory-layer ngram --memory-layer-rows 50"; do
    model=trime-${kind:15:5}
    read -ra flags <<<"$kind"
    train -q -j 1 "${tiny[@]}" "${flags[@]}" --memory local,long --steps 5 -o "$model" text.shard.zst
    build-datastore -q -m "$model" --index exact text.shard.zst -o "$model-store" >/dev/null
    with=(-q -j 1 -m "$model" --window 32 --batch-tokens 100 --memory-weights constant --memory local,long --long 64 --cache 30
      --ngrams ngrams-of-text --datastore "$model-store" --k 4)
    eval-ppl -q -j 1 -m "$model" --window 32 --memory none --json text.shard.zst -o none.json
    eval-ppl "${with[@]}" --json text.shard.zst -o whole.json
    # The text is its own n-grams and datastore.
    [ "$(jq '.loss' whole.json | cut -d . -f 1)" -lt "$(jq '.loss' none.json | cut -d . -f 1)" ]
    for part in 1 2; do eval-ppl "${with[@]}" --part "$part/2" text.shard.zst -o "part.$part"; done
    eval-ppl --json --sum part.1 part.2 >sum.json
    cmp whole.json sum.json
  done
}

@test "gla, transformer-xl and mosaic2 with product keys: trained, carried on, evaluated, stopped and continued" {
  local arch flags
  for arch in gla transformer-xl mosaic2; do
    flags=(--arch "$arch" --layers 2 --d-model 16 --heads 2 --segment 32 --batch 4 --batches streams --memory-layer product-key
      --memory-layers 1,2 --memory-layer-keys 8 --memory-layer-top-k 3 --steps 4 -q -j 1)
    rm -rf whole parts
    train "${flags[@]}" -o whole text.shard.zst
    run -75 train "${flags[@]}" --max-time 0 -o parts text.shard.zst
    train "${flags[@]}" -o parts text.shard.zst
    same whole parts
    [ -n "$(eval-ppl -q --json -m whole --carry on text.shard.zst | json '["loss"]')" ]
    run -0 --separate-stderr sample -q -m whole --prompt "the cat" --max-tokens 5 --temperature 0
    [ -n "$output" ]
  done
}
