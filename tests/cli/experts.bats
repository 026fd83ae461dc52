#!/usr/bin/env bats
# Layers of experts: trained from nothing, counted, evaluated, sampled, continued.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
  needs train
  cd "$BATS_FILE_TMPDIR"
  cats 40 | tokenize -q -t bytes --format lines -o text.shard.zst
  train -q -j 1 --layers 2 --d-model 16 --heads 2 --d-ff 8 --segment 32 --batch 4 --positions rope --norm-kind rms --feed-forward gated \
    --activation silu --no-bias --no-scale-embedding --experts 6 --experts-per-token 2 --steps 5 -o six text.shard.zst
}

setup() {
  needs train
  cd "$BATS_FILE_TMPDIR"
}

# json KEYS: what the line of stdin has there, as Python writes it
json() { python3 -c "import json, sys; print(json.loads(sys.stdin.readline())$1)"; }

@test "a model of experts is a Mixtral, of which a token uses a third of the experts" {
  model info --json six >info
  [ "$(json '["family"]' <info)" = mixtral ]
  # Of each of 2 layers, 4 of 6 experts, each of 3 matrices, are left out.
  (($(json '["parameters"]' <info) - $(json '["active_parameters"]' <info) == 2 * 4 * 3 * 16 * 8))
}

@test "it is evaluated, sampled and trained further, from its own folder and as exported" {
  [ -n "$(eval-ppl -q --json -m six text.shard.zst | json '["loss"]')" ]
  run -0 --separate-stderr sample -q -m six --prompt "the cat" --max-tokens 5 --temperature 0
  [ -n "$output" ]
  model export six --family mixtral -o exported
  train -q -j 1 --from exported --segment 32 --batch 4 --steps 2 -o further text.shard.zst
  [ "$(model info --json further | json '["family"]')" = mixtral ]
}

@test "more experts a token than there are, and settings without experts, are refused by name" {
  run --separate-stderr train --experts 2 --experts-per-token 3 --steps 1 -o refused text.shard.zst
  [ "$status" -ne 0 ]
  [[ "$stderr" == *"experts-per-token: 3 is more than experts 2"* ]]
  run --separate-stderr train --experts-per-token 3 --steps 1 -o refused text.shard.zst
  [[ "$stderr" == *"experts-per-token: requires experts"* ]]
  [ "$status" -ne 0 ]
  [ ! -e refused/model.safetensors ]
}
