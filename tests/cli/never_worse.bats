#!/usr/bin/env bats
# With default weights no memory, nor any two or three together, makes a text much less probable than the model alone does.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
  zstdcat "$root"/examples/novels/the-lost-world.txt.zst >novel
  head -c 28000 novel | tokenize -q -t bytes -o train.shard.zst
  head -c 32000 novel | tail -c 3000 | tokenize -q -t bytes -o valid.shard.zst
  for memory in none local; do
    train -q -j 1 --layers 1 --d-model 32 --heads 2 --segment 64 --batch 8 --steps 120 --lr 5e-3 --memory $memory train.shard.zst -o $memory
    build-datastore -q -j 1 -m $memory train.shard.zst -o $memory.store >/dev/null
  done
  build-ngrams -q train.shard.zst -o ngrams >/dev/null
  train -q -j 1 --arch lstm --layers 1 --d-model 16 --segment 64 --batch 8 --steps 20 train.shard.zst -o further
}

setup() { cd "$BATS_FILE_TMPDIR"; }

# perplexity MODEL OPTION...: of the text held out
perplexity() {
  local model=$1
  shift
  eval-ppl -q -j 1 -m "$model" "$@" --json valid.shard.zst | field perplexity
}

# no_worse MODEL OPTION...: than the model as it is, by more than 0.2 %
no_worse() {
  python3 -c 'import sys; mixed, alone = map(float, sys.argv[1:]); sys.exit(not mixed <= 1.002 * alone)' \
    "$(perplexity "$@")" "$(cat "$1.alone")" || { echo "$*: $(perplexity "$@"), alone $(cat "$1.alone")" && return 1; }
}

memories=(
  "--memory local,long"
  "--cache 500"
  "--unigram"
  "--online-ngrams"
  "--datastore STORE"
  "--datastore STORE --combine interpolate"
  "--ngrams ngrams"
  "--ensemble further"
  "--cache 500 --datastore STORE"
  "--memory local,long --datastore STORE --combine both"
  "--cache 500 --ngrams ngrams"
  "--memory local,long --cache 500 --unigram --datastore STORE --combine both --ngrams ngrams --online-ngrams --ensemble further"
)

@test "no memory with default weights is worse than a model without memory by more than 0.2 %" {
  perplexity none >none.alone
  for flags in "${memories[@]}"; do
    read -ra words <<<"${flags//STORE/none.store}"
    no_worse none "${words[@]}"
  done
}

@test "no memory with default weights is worse than a model with its training memory by more than 0.2 %" {
  perplexity local >local.alone
  for flags in "${memories[@]}"; do
    read -ra words <<<"${flags//STORE/local.store}"
    no_worse local "${words[@]}"
  done
}

@test "a store is calibrated on a piece of its text, and programs go by it until something else is given" {
  store info --json none.store | head -n 1 >info
  "$root/tests/cli/follows_schema" "$root/man/schemas/store-info.json" <info
  read -r temperature joint bias < <(python3 -c '
import json
found = json.load(open("info"))["calibration"]
assert found["tokens"] == 2048 and 0.02 <= found["share"] <= 0.9, found
print(found["temperature"], found["joint_temperature"], found["joint_bias"])')
  eval-ppl -q -j 1 -m none --datastore none.store --combine both --json valid.shard.zst | field signature >signature
  signs() { python3 -c '
import sys
said = dict(p.split(":", 1) for p in open("signature").read().strip().split("|") if ":" in p)
for name, value in zip(sys.argv[1::2], sys.argv[2::2]):
    assert float(said.get(name, "0")) == float(value), (name, value, said)' "$@"; }
  signs stores-temperature "$temperature" datastore-joint-temperature "$joint" datastore-joint-bias "$bias"
  # As options, and with others.
  cmp <(perplexity none --datastore none.store) \
    <(perplexity none --datastore none.store --datastore-joint-temperature "$joint" --datastore-joint-bias "$bias")
  eval-ppl -q -j 1 -m none --datastore none.store --combine both --joint-temperature 2 --datastore-temperature 3 --json valid.shard.zst |
    field signature >signature
  signs stores-temperature 3 temperature 2 datastore-joint-temperature 0 datastore-joint-bias 0
  # Without, and again: the rows are the same, and the numbers come.
  build-datastore -q -j 1 -m none --no-calibrate train.shard.zst -o bare >/dev/null
  [ "$(store info --json bare | head -n 1 | field calibration)" = None ]
  [ "$(store info --json bare | head -n 1 | field fingerprint)" = "$(field fingerprint <info)" ]
  build-datastore -q -j 1 -m none train.shard.zst -o bare >/dev/null
  diff -r bare none.store
  store verify none.store >/dev/null
}

@test "--tune gives each part of the softmax its own temperature, and its file the tuned figure" {
  run --separate-stderr eval-ppl -j 1 -m none --memory local --datastore none.store --tune valid.shard.zst -o tuned.conf
  tuned=$(sed -nE 's/.*perplexity ([0-9.]+), the best.*/\1/p' <<<"$stderr")
  near "$tuned" "$(perplexity none --config tuned.conf)" 1e-4
  grep -q '^local-joint-temperature' tuned.conf
  python3 -c 'import sys; sys.exit(not float(sys.argv[1]) <= float(sys.argv[2]) + 1e-4)' "$tuned" "$(perplexity none)"
  # Left out, a part gives nothing.
  near "$(perplexity none --memory local --local-joint-bias without --memory-weights constant)" "$(perplexity none --memory none)" 1e-6
  run -64 --separate-stderr eval-ppl -m none --memory local --local-joint-bias much valid.shard.zst
  [[ $stderr == *"--local-joint-bias: takes -1M to 1M, without or auto, not much"* ]]
}
