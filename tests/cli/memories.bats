#!/usr/bin/env bats
# The cross product: any architecture, with any training memory, under any test memory. Another architecture is one word in `archs`.
# Each two of the three meet; CROSS=all tries every three (four times as long).

load helpers

archs=(transformer lstm gla mosaic mamba2 rwkv7 hybrid rwkv4 s4d h3 transformer-xl srupp encoder-decoder mamba kda window)
archs+=("gla --gla-update delta" "hyena --filter-length 20" "mosaic2 --short-term 8 --long-term-delay 5 --long-term-delay-most 9") # with their options
trained=(none local long "local,ext")

setup_file() {
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
  cats 24 >text
  head -n 16 text | tokenize -q -t bytes --format lines -o train.shard.zst
  tail -n 8 text | tokenize -q -t bytes --format lines -o test.shard.zst
  build-ngrams -q train.shard.zst -o shard.ngrams >/dev/null
  bm25-search build -q --passage 16 train.shard.zst -o shard.bm25
  # pairs, for encoder-decoder
  tokenize -q --learn bpe --vocab-size 257 -o bpe.json text
  sed 's/cat/dog/g' text >said
  tokenize -q -t bpe.json --pairs <(head -n 16 said) <(head -n 16 text) -o train.pairs.zst
  head -n 16 text | tokenize -q -t bpe.json | build-ngrams -q -o pairs.ngrams >/dev/null
  train -q -j 1 --arch lstm --layers 1 --d-model 8 --segment 24 --batch 4 --steps 2 train.shard.zst -o further.shard
  train -q -j 1 --arch encoder-decoder --layers 1 --d-model 8 --heads 1 --batch-tokens 200 --steps 2 train.pairs.zst -o further.pairs
  tokenize -q -t bpe.json --pairs <(tail -n 8 said) <(tail -n 8 text) -o test.pairs.zst
}

# finite NAME <RECORD: it follows the schema and its perplexity is a number.
finite() {
  tee "$1.json" | "$root/tests/cli/follows_schema" "$root/man/schemas/eval-ppl.json"
  python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))
sys.exit(not (1 < r["perplexity"] < 1000 and r["tokens"] > 500))' "$1.json"
}

tests=(
  "--memory long --long 200"
  "--cache 100"
  "--memory none --datastore STORE"
  "--memory local,long --cache 100 --datastore STORE --combine both --cache-lambda 0.2 --datastore-lambda 0.2"
  "--memory none --unigram --unigram-half-life 100"
  "--memory local --cache 50 --datastore STORE --combine both --ngrams ngrams --ngrams-lambda 0.3"
  "--memory local --cache 50 --datastore STORE --combine both --ngrams ngrams --ngrams-lambda 0.3 --unigram --unigram-lambda 0.1 --online-ngrams --online-ngrams-lambda 0.2 --ensemble FURTHER:0.2"
  "--memory local,long --cache 50 --datastore STORE --combine interpolate --datastore-combine joint"
  "--retrieve shard.bm25 --retrieve-every 8 --memory local --cache 50 --datastore STORE --combine both --ngrams ngrams"
  "--retrieve shard.bm25 --retrieve-every 8 --retrieve-mix 2 --memory local --combine interpolate --cache 50 --ngrams ngrams"
  "--memory none --datastore STORE --combine interpolate --min-pointers 2"
  "--memory local --cache 50 --cache-lambda gate --datastore STORE --combine interpolate --datastore-lambda gate --ngrams ngrams --ngrams-lambda gate --tune DATA --tune-lambdas 0,0.2 --tune-thetas 0.1 --tune-datastore-temperatures 4"
)

cross() { # ARCH MEMORY N: a model, its store, and every test memory whose number is N modulo 4
  local model=${1// /}-$2 data=shard batches=(--segment 32 --batch 4) flags words arch i
  read -ra arch <<<"$1"
  [ "$1" != encoder-decoder ] || data=pairs batches=(--batch-tokens 280)
  train -q -j 1 --arch "${arch[@]}" --layers 1 --d-model 16 --heads 2 "${batches[@]}" --steps 6 --lr 5e-3 --plain-warmup 1 \
    --memory "$2" "train.$data.zst" -o "$model"
  build-datastore -q -j 1 -m "$model" --index exact "train.$data.zst" -o "$model.store" >/dev/null
  for i in "${!tests[@]}"; do
    [ "${CROSS:-}" = all ] || [ $((i % 4)) -eq $(($3 % 4)) ] || continue
    flags=${tests[i]}
    [[ $data != pairs || $flags != *--retrieve* ]] || continue # pairs have no windows
    flags=${flags//STORE/$model.store --k 20}
    flags=${flags//FURTHER/further.$data}
    flags=${flags//DATA/test.$data.zst}
    read -ra words <<<"${flags//--ngrams ngrams/--ngrams $data.ngrams}"
    eval-ppl -q -j 1 -m "$model" "${words[@]}" --json "test.$data.zst" | finite "$model-$(cksum <<<"$flags" | cut -d " " -f 1)" || {
      echo "$model: $flags"
      return 1
    }
  done
}

@test "the cross product has every architecture" {
  printf '%s\n' "${archs[@]%% *}" | sort -u >crossed
  train --print-flags | cut -f 2,3 | sed -n 's/^--arch\t//p' | tr '|' '\n' | sort | diff crossed -
}

@test "any architecture with any training memory under any test memory: a finite perplexity, and JSON as described" {
  for program in train build-datastore eval-ppl; do
    command -v $program || skip "$program is not built"
  done
  cd "$BATS_FILE_TMPDIR"
  local a m failed=0
  for a in "${!archs[@]}"; do
    local running=()
    for m in "${!trained[@]}"; do
      cross "${archs[a]}" "${trained[m]}" $((a + m)) &
      running+=($!)
    done
    for m in "${running[@]}"; do wait "$m" || failed=1; done
  done
  [ $failed -eq 0 ]
}
