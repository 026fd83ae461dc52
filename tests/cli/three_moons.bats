#!/usr/bin/env bats
# Three moons: vectors, a unit that learns to forecast them, its errors and its maps.

bats_require_minimum_version 1.5.0

setup() {
  root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  PATH=${BIN:-$root/build/bin}:$PATH
  cd "$BATS_TEST_TMPDIR"
}

# At the context of $1 rows in a table of errors.
error_at() { awk -v at="$1" '$1 == at { print $2 }' "$2"; }

@test "moons are vectors, a document a triple" {
  gen-moons -n 100 -o moons.shard.zst
  run -0 shard info --json moons.shard.zst
  [ "$(jq -c '[.kind, .width, .elements, .documents]' <<<"$output")" = '["vectors",6,4800,8]' ]
  gen-moons -n 100 | cmp - moons.shard.zst
  run -64 gen-moons --periods 1,2 -o x
}

@test "the identity with three heads forecasts once the longest period was seen" {
  gen-moons --periods 0.5,1,1.5 --per-unit 20 -n 400 -o one.shard.zst
  eval-forecast --identity 3 --length 120 --horizon 10 --every 5 --sequences 4 one.shard.zst -o errors
  awk -v early="$(error_at 16 errors)" -v late="$(error_at 51 errors)" 'BEGIN { exit !(late < early / 4) }'
}

@test "training: the loss falls, the same command does nothing, another is refused" {
  gen-moons --per-unit 20 -n 400 -o moons.shard.zst
  command="train --arch mosaic --loss clipped-mse --heads 3 --segment 120 --batch 4 --steps 30 --lr 1e-2 --warmup 0 moons.shard.zst -q -o"
  $command a
  $command b
  cmp a/model.safetensors b/model.safetensors
  jq -es '.[-1].loss < .[0].loss' a/metrics.jsonl
  $command a
  run -64 $command a --seed 2
  [ "$(probe weights -m a | wc -l)" -eq 28 ]
}
