#!/usr/bin/env bats
# build-targets and train --targets: what a datastore says of its own text, learned.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
  "$root"/tests/cli/tiny_gpt2 model
  cats 20 >text
  head -n 16 text | tokenize -q -t bytes --format lines -o train.shard.zst
  tail -n 4 text | tokenize -q -t bytes --format lines -o test.shard.zst
  build-datastore -q -m model --index exact train.shard.zst -o store >/dev/null
  build-targets -q --datastore store --k 16 --top-k 8 train.shard.zst -o targets.shard.zst
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

refused() {
  local code=$1 text=$2
  shift 2
  run --separate-stderr "$@"
  [ "$status" -eq "$code" ]
  [ -z "$output" ]
  [ "$(wc -l <<<"$stderr")" -eq 1 ]
  [[ $stderr == *"$text"* ]]
}

small=(--layers 1 --d-model 16 --heads 2 --segment 32 --batch 4 --steps 12 --lr 5e-3)

@test "targets: a vector a token, distributions of neighbours without the own entry; the same bytes with any -j" {
  build-targets -q -j 1 --datastore store --k 16 --top-k 8 <train.shard.zst >again.shard.zst
  cmp targets.shard.zst again.shard.zst
  shard verify -q targets.shard.zst >/dev/null
  zstdcat targets.shard.zst >vectors
  zstdcat train.shard.zst >tokens
  python3 - <<'END'
import struct
tokens = open("tokens", "rb").read()
numbers = struct.unpack("<%df" % (len(tokens) * 16), open("vectors", "rb").read())
assert not any(numbers[:16])  # nothing stands before the first
sure = 0
for i in range(1, len(tokens)):
    words, shares = numbers[16 * i : 16 * i + 8], numbers[16 * i + 8 : 16 * i + 16]
    assert 0.3 < sum(shares) <= 1 + 1e-5 and list(shares) == sorted(shares, reverse=True), (i, shares)
    sure += words[0] == tokens[i]
assert 0 < sure < len(tokens) - 1, sure
END
}

@test "train --targets: another model than without, finished and gone on to the same bytes; --ensemble takes it" {
  train -q "${small[@]}" --targets targets.shard.zst train.shard.zst -o taught
  train -q "${small[@]}" train.shard.zst -o plain
  ! cmp -s taught/model.safetensors plain/model.safetensors || false
  train -q "${small[@]}" --targets targets.shard.zst train.shard.zst -o taught # there is nothing to do
  train -q "${small[@]}" --checkpoint-every 5 --max-time 0:00:00 --targets targets.shard.zst train.shard.zst -o parts || [ $? -eq 75 ]
  train -q "${small[@]}" --checkpoint-every 5 --targets targets.shard.zst train.shard.zst -o parts
  cmp taught/model.safetensors parts/model.safetensors
  eval-ppl -q -m model --ensemble taught:0.3 --json test.shard.zst >/dev/null
  build-targets -q --datastore store --k 5 --top-k 8 train.shard.zst -o others.shard.zst
  refused 64 targets train -q "${small[@]}" --targets others.shard.zst train.shard.zst -o taught
}

@test "what belongs to another text, is damaged, or has no such loss: one line and a documented code" {
  refused 65 "does not contain test.shard.zst" build-targets --datastore store test.shard.zst -o x.shard.zst
  [ ! -e x.shard.zst ]
  refused 65 "was built for a text with fingerprint" train -q --targets targets.shard.zst test.shard.zst -o x
  refused 65 "not a file of targets; create it with build-targets" train -q --targets <(gen-moons --count 8) test.shard.zst -o x
  refused 65 "train.shard.zst: is a shard of tokens; expected a shard of vectors" train -q --targets train.shard.zst train.shard.zst -o x
  head -c 2000 targets.shard.zst >cut.shard.zst
  refused 65 "cut.shard.zst" train -q --targets cut.shard.zst train.shard.zst -o x
  refused 64 "--targets: cannot be combined with --memory" train -q --memory local --targets targets.shard.zst train.shard.zst -o x
  refused 64 "--targets: cannot be combined with --cutoffs" train -q --cutoffs 100 --targets targets.shard.zst train.shard.zst -o x
  refused 66 nothing build-targets --datastore nothing train.shard.zst -o x.shard.zst
}

@test "a store without every key as the model gave it gives no targets" {
  for how in "--keys pca:4" "--prune merge" "--skip-known 0.0025"; do
    # shellcheck disable=SC2086
    build-datastore -q -m model --index exact $how train.shard.zst -o reduced >/dev/null
    refused 64 "does not have every original key" build-targets -q --datastore reduced --k 16 train.shard.zst -o none.shard.zst
    [ ! -e none.shard.zst ]
    rm -r reduced
  done
}
