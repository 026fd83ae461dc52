#!/usr/bin/env bats
# Three moons: vectors, a unit that learns to forecast them, its errors and its maps.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
  forecaster=(train --arch mosaic --loss clipped-mse --heads 3 --segment 120 -q)
}

moons() { # SHARD OPTION...
  gen-moons --per-unit 20 -n 400 -o "$@"
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
  moons one.shard.zst --periods 0.5,1,1.5
  eval-forecast --identity 3 --length 120 --horizon 10 --every 5 --sequences 4 one.shard.zst -o errors
  awk -v early="$(error_at 16 errors)" -v late="$(error_at 51 errors)" 'BEGIN { exit !(late < early / 4) }'
}

@test "training: the loss falls, the same command does nothing, another is refused" {
  moons moons.shard.zst
  local command=("${forecaster[@]}" --batch 4 --steps 30 --lr 1e-2 --warmup 0 moons.shard.zst -o)
  "${command[@]}" a
  "${command[@]}" b
  cmp a/model.safetensors b/model.safetensors
  jq -es '.[-1].loss < .[0].loss' a/metrics.jsonl
  "${command[@]}" a
  run -64 "${command[@]}" a --seed 2
  [ "$(probe weights -m a | wc -l)" -eq 28 ]
}

@test "a run that SIGTERM or --max-time ends saves, exits 75, and goes on to the same bytes" {
  moons moons.shard.zst
  local command=("${forecaster[@]}" --batch 4 --steps 60 --log-every 1 -j 1 -o)
  "${command[@]}" whole moons.shard.zst
  stops_at TERM parts "${command[@]}" parts moons.shard.zst
  [ ! -e parts/model.safetensors ]
  run -75 "${command[@]}" parts --max-time 0 moons.shard.zst
  "${command[@]}" parts --checkpoint-every 7 moons.shard.zst
  same whole parts
  run -75 "${command[@]}" piped --max-time 0 - <moons.shard.zst
  "${command[@]}" piped </dev/null
  same whole piped
}

@test "--plan of vectors trains nothing; --valid and --from do what they do with tokens" {
  moons moons.shard.zst
  moons valid.shard.zst --split valid
  local command=("${forecaster[@]}" --batch 4 --steps 20 moons.shard.zst)
  run -0 "${command[@]}" --plan --json -o model
  [ "$(jq -c '[.parameters, .steps, .rows_per_step]' <<<"$output")" = '[54,20,476]' ]
  [ ! -e model ]
  "${command[@]}" --valid valid.shard.zst --valid-every 5 --valid-command 'eval-forecast -q -m {} --length 120 --horizon 5 \
    --every 200 --sequences 2 valid.shard.zst' --valid-better lower -o model
  jq -es 'map(select(.valid_loss and .valid_score)) | length == 4' model/metrics.jsonl
  "$root/tests/cli/follows_schema" "$root/man/schemas/train-plan.json" <<<"$output"
  "$root/tests/cli/follows_schema" "$root/man/schemas/metrics.json" <model/metrics.jsonl
  "$root/tests/cli/follows_schema" "$root/man/schemas/timings.json" <model/timings.jsonl
  "${command[@]}" --from model -o again
  run -64 "${command[@]}" --from model --beta 49 -o other
  [[ $output == *"--beta: model has 50, not 49"* ]]
}

@test "what means nothing for vectors is refused by name" {
  moons moons.shard.zst
  refuses() { # NAME ARGUMENT...
    run -64 "${forecaster[@]}" --steps 2 -o model moons.shard.zst "${@:2}"
    [[ $output == *"--$1: cannot be combined with --loss clipped-mse"* ]]
    [ ! -e model ]
  }
  refuses layers --layers 2
  refuses memory --memory local
  refuses device --device cuda
  refuses precision --precision bfloat16
  refuses epochs --epochs 2
  refuses dropout --dropout 0.2
  refuses order --order moons.shard.zst
  run -64 train --beta 3 -q -o model moons.shard.zst
  [[ $output == *"--beta"* ]]
  train --arch mosaic --loss clipped-mse --heads 3 --steps 2 --segment 120 --print-config >config.toml
  train --config config.toml --device cpu --precision float32 -q -o model moons.shard.zst
}

@test "the record of examples/three-moons: errors that fall where they must, and maps that divide the moons" {
  curve() { # NAME SPLIT ERROR-BY-CONTEXT: of periods 0.5, 1, 2.5 and their common 5
    echo "# $1 $2 0.5 1 2.5 5"
    printf 'context\terror\n'
    awk "BEGIN { for (c = 1; c < 780; c += 4) { t = c * 18 / 800; print c \"\t\" ($3) } }"
  }
  maps() { # SEED KEY-ROW-0: identities but for the key's first row
    awk -v seed="$1" -v row="$2" 'BEGIN { split(row, first, ","); n = split("key value c_proj", map, " ")
      for (m = 1; m <= n; ++m) for (r = 0; r < 3; ++r) for (c = 0; c < 3; ++c)
        print seed "\t" map[m] "\t" r "\t" c "\t" (m == 1 && r == 0 ? first[c + 1] : r == c) }'
  }
  falls='t < .5 ? .7 : t < 1 ? .5 : t < 2.5 ? .3 : .1'
  {
    for split in train valid; do
      curve one-1 $split 't < 5 ? .7 : .2'
      curve one-2 $split 't < 3 ? .7 : .2'
      curve three-1 $split "$falls"
      curve three-2 $split "$falls"
      curve three-3 $split 't < 2.5 ? .7 : .1'
      curve three-4 $split 't < .5 ? 70 : t < 1 ? 50 : t < 2.5 ? 3 : .1'
    done
    echo '# maps'
    maps 1 .9,.1,.1
    maps 2 .7,.5,0
    maps 3 1,0,0
    maps 4 1,0,0
  } | awk -f "$root/examples/three-moons/record.awk" >record
  holds() { awk -F '\t' -v model="$1" -v split_name="$2" '$1 == model && $2 == split_name { print $NF }' record; }
  [ "$(holds one-1 train) $(holds one-2 train) $(holds three-1 valid) $(holds three-3 valid)" = "yes no yes no" ]
  [ "$(awk -F '\t' '/^[1-4]\t/ { print $3, $5 }' record | tr '\n' ';')" = "yes yes;no no;yes no;yes no;" ]
  grep -qx 'converged: 1 of 4' record
}
