#!/usr/bin/env bats
# train as several processes: the same bytes as one, how they stop, fail and go on.

load helpers
load processes

setup_file() {
  unset TESSERA_FORK_SERVERS # ranks are killed
  cd "$BATS_FILE_TMPDIR"
  text_shards 3000 600
  tokenize -q -t bytes --format lines train.txt -o lines.shard.zst
  bm25-pack -q --segment 32 train.shard.zst -o order.shard.zst 2>pack.log
  seq 40 | sed 's/^/one two /' >source.txt
  seq 40 | sed 's/$/ zwei drei/' >target.txt
  tokenize -q --learn bpe --vocab-size 300 source.txt target.txt -o pairs.json
  tokenize -q -t pairs.json --pairs source.txt target.txt -o pairs.shard.zst
}

setup() {
  data=$BATS_FILE_TMPDIR
  tiny=(--layers 2 --d-model 16 --heads 2 --segment 32 --batch 4 --lr 0.01 --steps 4 --log-every 1 --dropout 0.1 --attention-dropout 0.1 -q -j 1)
  cd "$BATS_TEST_TMPDIR"
}

# as_one SHARD OPTIONS...: one process and as many as each of `sizes` says train to the same bytes.
as_one() {
  local shard=$1 size
  shift
  rm -rf one
  train "${tiny[@]}" "$@" -o one "$data/$shard.shard.zst"
  for size in "${sizes[@]}"; do
    rm -rf many
    together "$size" train "${tiny[@]}" "$@" -o many "$data/$shard.shard.zst"
    all_end 0
    same one many || { echo "of $size ranks: $*" && return 1; }
  done
}

@test "1, 2 and 4 processes: the same bytes; of 1 and 4 for each order of batches" {
  sizes=(2 4)
  as_one train --batches shuffled --accumulate 4 --valid "$data/valid.shard.zst" --valid-every 2 --checkpoint-every 3 --keep 1
  sizes=(4)
  as_one train --batches sequential --accumulate 12 --average-checkpoints 2
  as_one train --batches runs --accumulate 4 --memory local,long --plain-warmup 0
  as_one lines --batches documents --accumulate 4
  as_one train --batches order --order "$data/order.shard.zst" --accumulate 4 --memory local,ext --drop-local 0.5 --plain-warmup 0
  as_one train --batches streams --batch-shards 4 --memory long --memory-previous 2 --plain-warmup 0 --checkpoint-every 3 --keep 1
  as_one train --batches streams --batch-shards 4 --accumulate 3 --segment-deviation 4
  as_one pairs --arch encoder-decoder --batch-tokens 64 --accumulate 4 --memory ext --memory-key output
}

@test "1 and 2 processes: the same bytes, for each architecture" {
  sizes=(2)
  as_one train --arch transformer --positions rope --accumulate 4
  as_one train --arch transformer --cutoffs 64,128 --accumulate 4 # a band may have no gradient
  as_one train --memory-layer product-key --memory-layer-keys 8 --memory-layer-top-k 3 --memory-layers 1,2 --accumulate 4 # tables are
  as_one train --memory-layer ngram --memory-layer-rows 50 --accumulate 12 --clip 0.5 # stepped by the rows that were read
  as_one train --arch transformer-xl --batch-shards 4
  as_one train --arch srupp --batch-shards 4 --optimiser radam
  as_one train --arch lstm --batches streams --batch-shards 4 --optimiser nag
  as_one train --arch gla --batches streams --batch-shards 4
  as_one train --arch gla --gla-update delta --batches streams --batch-shards 4
  as_one train --arch mosaic --accumulate 4
  as_one train --arch mosaic2 --accumulate 4 --short-term 6 --long-term-delay 5 --long-term-delay-most 5
}

# near A B: the losses of two runs of four updates differ by 1e-5 of themselves at most.
near() {
  paste <(jq -r .loss "$1/metrics.jsonl") <(jq -r .loss "$2/metrics.jsonl") |
    awk '{ d = ($2 - $1) / $1; if (d < -1e-5 || d > 1e-5) bad = 1 } END { exit bad || NR != 4 }'
}

@test "a share without a power of two: its own bytes, again the same, and the loss of one process" {
  train "${tiny[@]}" --accumulate 6 --memory local -o one "$data/train.shard.zst"
  together 3 train "${tiny[@]}" --accumulate 6 --memory local -o three "$data/train.shard.zst"
  all_end 0
  together 3 train "${tiny[@]}" --accumulate 6 --memory local -o again "$data/train.shard.zst"
  all_end 0
  same three again
  together 2 train "${tiny[@]}" --accumulate 6 --memory local --reduce fast -o fast "$data/train.shard.zst"
  all_end 0
  near one three
  near one fast
}

@test "ranks that share a micro-batch and its memory: the loss of one process" {
  share_memory() { # NAME SIZE OPTIONS...: the losses are those of one process with the same micro-batches
    local name=$1 size=$2
    shift 2
    rm -rf one "$name"
    train "${tiny[@]}" --dropout 0 --attention-dropout 0 "$@" -o one "$data/train.shard.zst"
    together "$size" train "${tiny[@]}" --dropout 0 --attention-dropout 0 "$@" --memory-ranks 2 -o "$name" "$data/train.shard.zst"
    all_end 0
    near one "$name"
  }
  share_memory runs 2 --batches runs --memory local,long --plain-warmup 0 --batch 5
  share_memory order 2 --batches order --order "$data/order.shard.zst" --memory local,ext --drop-local 0.5 --plain-warmup 1
  share_memory teams 4 --batches runs --accumulate 2 --memory long --plain-warmup 0 --cutoffs 64,128
  # The gradient of the own rank's losses alone is another one, and the memory of rows that are not shared another memory.
  together 2 train "${tiny[@]}" --dropout 0 --attention-dropout 0 --memory long --plain-warmup 0 --memory-ranks 2 -o whole "$data/train.shard.zst"
  all_end 0
  together 2 train "${tiny[@]}" --dropout 0 --attention-dropout 0 --memory long --plain-warmup 0 --memory-ranks 2 --memory-gradient own -o own "$data/train.shard.zst"
  all_end 0
  [ "$(head -n 1 own/metrics.jsonl | jq .loss)" = "$(head -n 1 whole/metrics.jsonl | jq .loss)" ]
  run ! near whole own
  together 2 train "${tiny[@]}" --memory long --memory-ranks 3 -o model "$data/train.shard.zst"
  all_end 64
  run -64 train "${tiny[@]}" --memory long --memory-ranks 2 -o model "$data/train.shard.zst"
  [[ $output == *"--memory-ranks: takes a divisor of the number of ranks, 1"* ]]
  run -64 train "${tiny[@]}" --memory-ranks 2 -o model "$data/train.shard.zst"
  [[ $output == *"--memory-ranks: requires --memory"* ]]
}

@test "shares that are not equal, stdin, --plan and processes that no launcher started are refused" {
  together 2 train "${tiny[@]}" --accumulate 3 -o model "$data/train.shard.zst"
  all_end 64
  grep -q -- '--accumulate: 3 micro-batches per step cannot be divided equally among 2 ranks; give a multiple of 2' said.1
  together 2 train "${tiny[@]}" --batches streams -o model "$data/train.shard.zst"
  all_end 64
  grep -q -- '--batch-shards: 1 batch shards cannot be divided equally among 2 ranks' said.0
  together 2 train "${tiny[@]}" --accumulate 2 -o model
  all_end 64
  grep -q 'several ranks cannot share stdin' said.0
  run -64 train "${tiny[@]}" --batch-shards 2 -o model "$data/train.shard.zst"
  [[ $output == *"--batch-shards: requires --batches streams"* ]]
  run -64 train "${tiny[@]}" --batches streams --batch-shards 3 -o model "$data/train.shard.zst"
  [[ $output == *"--batch-shards: must divide --batch"* ]]
  run -64 env RANK=0 WORLD_SIZE=2 train "${tiny[@]}" --plan --ranks launcher "$data/train.shard.zst"
  [[ $output == *"--plan: cannot be combined with --ranks"* ]]
  # A batch script has SLURM_NTASKS without being a step of it.
  run -64 env SLURM_NTASKS=2 SLURM_PROCID=0 train "${tiny[@]}" --ranks launcher -o model "$data/train.shard.zst"
  [[ $output == *"--ranks launcher: no launcher started this process"* ]]
  run -64 env RANK=0 WORLD_SIZE=2 train "${tiny[@]}" --ranks launcher -o model "$data/train.shard.zst"
  [[ $output == *"MASTER_ADDR and MASTER_PORT are not set"* ]]
  run -64 env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 PMIX_NAMESPACE=a/b train "${tiny[@]}" --ranks launcher -o model \
    "$data/train.shard.zst"
  [[ $output == *"PMIX_NAMESPACE is 'a/b', which cannot be a file name"* ]]
  [ ! -e model/config.json ]
}

@test "without --ranks a launcher's variables mean nothing: eight seeds stay eight runs" {
  local seed
  for seed in 1 2; do
    SLURM_STEP_ID=0 SLURM_JOB_ID=1 SLURM_PROCID=$seed SLURM_STEP_NUM_TASKS=2 SLURM_STEP_NODELIST=n0 RANK=$seed WORLD_SIZE=2 \
      train "${tiny[@]}" --seed "$seed" -o "run$seed" "$data/train.shard.zst"
  done
  run ! cmp -s run1/model.safetensors run2/model.safetensors
}

# differ NAME OPTION...: rank 1 alone is given the options; all end with 64 and name NAME.
differ() {
  local name=$1
  shift
  # shellcheck disable=SC2016  # for the inner shell
  together 2 bash -c 'options=("$@")
    case $OMPI_COMM_WORLD_RANK in 0) options=("--ranks" "launcher") ;; esac
    exec train '"${tiny[*]}"' --accumulate 2 -o differ "${options[@]}" '"$data/train.shard.zst" differ "$@"
  all_end 64
  grep -q "^train: $name: rank 0 has .*, rank 1 has .*; give all ranks the same" said.0
  cmp said.0 said.1
}

@test "ranks that were told different things end with 64, naming the option and who" {
  differ lr --lr 0.02
  differ jobs -j 2
  differ seed --seed 2
  differ checkpoint_every --checkpoint-every 2
  differ shard --shard gradients
  mkdir -p 0 1 && cp "$data/train.shard.zst" 0/x.shard.zst && cp "$data/valid.shard.zst" 1/x.shard.zst
  # shellcheck disable=SC2016  # for the inner shell
  together 2 bash -c 'cd "$OMPI_COMM_WORLD_RANK" && exec train "$@"' other "${tiny[@]}" --accumulate 2 -o "$PWD/differ" x.shard.zst
  all_end 64
  grep -q '^train: data: rank 0 has ' said.1
}

@test "what one rank cannot do ends all with its code" {
  mkdir 0 1 && cp "$data/train.shard.zst" 0/x.shard.zst
  # shellcheck disable=SC2016  # for the inner shell
  together 2 bash -c 'cd "$OMPI_COMM_WORLD_RANK" && exec train "$@"' other "${tiny[@]}" --accumulate 2 -o "$PWD/model" x.shard.zst
  all_end 66
  grep -q 'rank 0 of 2: rank 1 failed; see its message' said.0
  # Another run is at work in the folder.
  mkdir model2
  flock model2 sleep 60 &
  local holder=$!
  sleep 0.2
  together 2 train "${tiny[@]}" --accumulate 2 -o model2 "$data/train.shard.zst"
  kill "$holder"
  all_end 73
  grep -q 'another process is training in this folder' said.0
  # The command that says how good the model is.
  together 2 train "${tiny[@]}" --accumulate 2 --valid-command false --valid-every 2 -o model3 "$data/train.shard.zst"
  all_end 65
  [ -d model3/step-2 ]
}

long=(--steps 30 --accumulate 4 --checkpoint-every 5 --valid-every 20)

@test "killed with -9 at any moment, whichever rank, and continued by any number: the same bytes" {
  local round size victim before
  # Once at work, but in the last round, perhaps before they met.
  kill_one() {
    local i
    for ((i = 0; i < 3000 && round < 2; ++i)); do
      [ "$(wc -l 2>/dev/null <parts/metrics.jsonl || echo 0)" -le "$before" ] || break
      sleep 0.02
    done
    sleep "0.$((RANDOM % 5))"
    kill -9 "${pids[victim]}" 2>/dev/null || [ ! -e "/proc/${pids[victim]}" ] # it had ended
  }
  train "${tiny[@]}" "${long[@]}" --valid "$data/valid.shard.zst" --memory local,long -o whole "$data/train.shard.zst"
  for round in 0 1 2; do
    size=$((round % 2 ? 4 : 2)) victim=$((round % size))
    before=$(wc -l 2>/dev/null <parts/metrics.jsonl || echo 0)
    BEFORE_RANKS=kill_one together "$size" train "${tiny[@]}" "${long[@]}" --valid "$data/valid.shard.zst" --memory local,long \
      --rank-timeout 20 -o parts "$data/train.shard.zst"
    [ "${codes[victim]}" -eq 137 ] || [ "${codes[victim]}" -eq 0 ]
    [ "${codes[victim]}" -eq 0 ] || {
      unset "codes[victim]"
      # Killed when all had been done and said, it is missed by nobody.
      all_end 0 >ended || all_end 76
      [ ! -s ended ] || grep -qE 'another rank was lost|could not join the other ranks' said.*
      [ -s ended ] || [ -e parts/model.safetensors ]
    }
  done
  train "${tiny[@]}" "${long[@]}" --valid "$data/valid.shard.zst" --memory local,long -o parts "$data/train.shard.zst"
  same whole parts
}

@test "a signal to any rank stops all after the same update with 75; another number of ranks goes on to the same bytes" {
  local signal told size=2 columns=(--steps 150 --batches streams --batch-shards 4 --arch lstm --log-every 5 --checkpoint-every 100)
  stop_one() {
    wait_for parts/metrics.jsonl
    kill "-$signal" "${pids[told]}" 2>/dev/null || [ ! -e "/proc/${pids[told]}" ]
  }
  train "${tiny[@]}" "${columns[@]}" -o whole "$data/train.shard.zst"
  for signal in TERM HUP USR2; do
    told=$((size - 1 - ${#signal} % 2))
    for _ in {1..20}; do # until the signal comes before the run's end
      rm -rf parts
      BEFORE_RANKS=stop_one together "$size" env --default-signal=INT,HUP train "${tiny[@]}" "${columns[@]}" -o parts "$data/train.shard.zst"
      [ "${codes[0]}" -eq 0 ] || break
    done
    all_end 75
    [ ! -e parts/model.safetensors ]
    [ "$(find parts -maxdepth 1 -name 'step-*' | wc -l)" -eq 1 ]
    size=$((6 - size))
    together "$size" train "${tiny[@]}" "${columns[@]}" -o parts "$data/train.shard.zst"
    all_end 0
    same whole parts
  done
  # Nothing to do any more.
  together 2 train "${tiny[@]}" "${columns[@]}" -o parts "$data/train.shard.zst"
  all_end 0
}

@test "a rank that is silent: the others leave with 76 after --rank-timeout, and so does it when it wakes" {
  freeze() {
    wait_for model/metrics.jsonl
    kill -STOP "${pids[1]}"
    wait "${pids[0]}" || first=$?
    kill -CONT "${pids[1]}"
  }
  first=0
  BEFORE_RANKS=freeze together 2 train "${tiny[@]}" --steps 100000 --accumulate 2 --rank-timeout 10 -o model "$data/train.shard.zst"
  [ "$first" -eq 76 ]
  [ "${codes[1]}" -eq 76 ]
  grep -q 'another rank was lost' said.0
}

# same_model A B: as same, but for the checkpoints, in which every rank has a file.
same_model() {
  local file
  for file in model.safetensors config.json metrics.jsonl; do cmp "$1/$file" "$2/$file" || return 1; done
}

@test "--shard: the bytes of one process, with every rank's file in a checkpoint" {
  # sharded SIZE SHARD OPTIONS...: as `one` with these options.
  sharded() {
    local size=$1 shard=$2
    shift 2
    rm -rf many
    together "$size" train "${tiny[@]}" "$@" --shard "$shard" -o many "$data/train.shard.zst"
    all_end 0
    same_model one many || { echo "--shard $shard, $size ranks: $*" && return 1; }
  }
  # Layers that are cut among ranks, and such that are not.
  local options=(--d-model 192 --accumulate 4 --checkpoint-every 3 --keep 1)
  train "${tiny[@]}" "${options[@]}" -o one "$data/train.shard.zst"
  for shard in optimiser gradients weights; do
    sharded 4 "$shard" "${options[@]}"
    [ -s many/step-3/state.3.safetensors ]
    model verify many
  done
  options+=(--optimiser muon)
  train "${tiny[@]}" "${options[@]}" -o muon "$data/train.shard.zst"
  rm -rf one && mv muon one
  sharded 2 weights "${options[@]}"
  options=(--batches streams --batch-shards 4 --accumulate 3 --memory long --plain-warmup 0 --optimiser nag --arch transformer-xl)
  rm -rf one
  train "${tiny[@]}" "${options[@]}" -o one "$data/train.shard.zst"
  sharded 2 gradients "${options[@]}"
  options=(--accumulate 12 --memory local,long --plain-warmup 0 --valid "$data/valid.shard.zst" --valid-every 2 --average-checkpoints 2)
  rm -rf one
  train "${tiny[@]}" "${options[@]}" -o one "$data/train.shard.zst"
  sharded 2 gradients "${options[@]}"
  sharded 2 weights "${options[@]}"
}

@test "--shard is refused without ranks, for memory tables and where blocks cannot borrow weights" {
  run -64 train "${tiny[@]}" --shard optimiser -o alone "$data/train.shard.zst"
  [[ $output == *"--shard: requires --ranks"* ]]
  # refused LINE OPTIONS...
  refused() {
    local line=$1
    shift
    together 2 train "${tiny[@]}" --accumulate 2 "$@" -o refused "$data/train.shard.zst"
    all_end 64
    grep -qF -- "$line" said.0
    [ "$(wc -l <said.0)" -eq 1 ]
  }
  refused '--shard: cannot be combined with --memory-layer' --shard optimiser --memory-layer ngram --memory-layer-rows 50
  refused '--shard: weights requires arch transformer, not lstm' --shard weights --arch lstm
}

@test "--shard: stopped, killed and trained further by other numbers of ranks: the same bytes" {
  stop_one() {
    wait_for parts/metrics.jsonl
    kill -"$signal" "${pids[1]}" 2>/dev/null || [ ! -e "/proc/${pids[1]}" ]
  }
  local options=(--d-model 192 --steps 24 --accumulate 4 --log-every 4 --checkpoint-every 4) shard signal
  train "${tiny[@]}" "${options[@]}" -o whole "$data/train.shard.zst"
  for shard in "gradients KILL" "weights TERM"; do
    read -r shard signal <<<"$shard"
    rm -rf parts
    BEFORE_RANKS=stop_one together 4 train "${tiny[@]}" "${options[@]}" --shard "$shard" -o parts "$data/train.shard.zst"
    together 2 train "${tiny[@]}" "${options[@]}" --shard "$shard" -o parts "$data/train.shard.zst"
    all_end 0
    same_model whole parts
    [ -z "$(find parts -name '*.tmp.*')" ]
  done
  train "${tiny[@]}" "${options[@]}" --steps 28 -o whole "$data/train.shard.zst"
  together 2 train "${tiny[@]}" "${options[@]}" --steps 28 --shard weights -o parts "$data/train.shard.zst"
  all_end 0
  same_model whole parts
}

@test "--shard: each of four processes has less memory, as --plan says" {
  local options=(--layers 4 --d-model 512 --heads 4 --segment 16 --batch 1 --accumulate 4 --steps 2 -q -j 1) shard
  plan=$(train "${options[@]}" --plan --json "$data/train.shard.zst")
  for shard in none weights; do
    together 4 train "${options[@]}" --log-every 1 --shard "$shard" -o "$shard" "$data/train.shard.zst"
    all_end 0
    echo "$(tail -n 1 "$shard/timings.jsonl" | jq .peak_bytes) $(jq ".per_rank[] | select(.ranks == 4 and .shard == \"$shard\") |
      .weights_bytes + .gradient_bytes + .optimiser_bytes" <<<"$plan")"
  done >memory
  cat memory
  # At least half of what is planned is saved.
  awk 'NR == 1 { peak = $1; planned = $2 } NR == 2 { saved = peak - $1; plan = planned - $2 } END { exit !(NR == 2 && plan > 1e8 && saved > plan / 2) }' memory
}

# use_stub: NCCL's interface without a GPU.
use_stub() {
  export TESSERA_NCCL=$BIN/../tests/libnccl_stub.so
  [ -e "$TESSERA_NCCL" ] || skip "no libnccl_stub.so: make tests builds it"
}

@test "NCCL's transfers: the bytes of one process with the tree, its loss without" {
  use_stub
  local -a nccl=(--rank-backend nccl --accumulate 4)
  train "${tiny[@]}" --accumulate 4 -o one "$data/train.shard.zst"
  for size in 2 4; do
    rm -rf many
    together "$size" train "${tiny[@]}" "${nccl[@]}" --reduce tree -o many "$data/train.shard.zst"
    all_end 0
    same one many
  done
  together 2 train "${tiny[@]}" "${nccl[@]}" -o fast "$data/train.shard.zst"
  all_end 0
  near one fast
  [ "$(jq -r .tessera.training.reduce fast/config.json)" = fast ]
  [ "$(jq -r .tessera.training.reduce many/config.json)" = tree ]
  # What ranks send at least: each gradient once a step, of as many bytes as the model.
  bytes=$((4 * $(stat -c %s one/model.safetensors)))
  for shard in "2 optimiser" "4 gradients" "2 weights"; do
    read -r size shard <<<"$shard"
    rm -rf pieces log
    NCCL_STUB_LOG=$PWD/log together "$size" train "${tiny[@]}" "${nccl[@]}" --reduce tree --shard "$shard" -o pieces "$data/train.shard.zst"
    all_end 0
    same_model one pieces
    awk -v n="$bytes" '{ sent += $3 } END { exit !(NR > 1 && sent > n) }' log
  done
  for shard in "2 gradients" "4 weights"; do
    read -r size shard <<<"$shard"
    rm -rf pieces
    together "$size" train "${tiny[@]}" "${nccl[@]}" --shard "$shard" -o pieces "$data/train.shard.zst"
    all_end 0
    near one pieces
    [ "$(jq -r .tessera.training.reduce pieces/config.json)" = fast ]
  done
  together 2 train "${tiny[@]}" "${nccl[@]}" --deterministic -o alike "$data/train.shard.zst"
  all_end 0
  cmp one/model.safetensors alike/model.safetensors
  train "${tiny[@]}" --dropout 0 --attention-dropout 0 --memory long --plain-warmup 0 -o alone "$data/train.shard.zst"
  together 2 train "${tiny[@]}" --dropout 0 --attention-dropout 0 --memory long --plain-warmup 0 --memory-ranks 2 --rank-backend nccl \
    -o shared "$data/train.shard.zst"
  all_end 0
  near alone shared
}

@test "a rank that is killed ends the others with 76, though NCCL would wait; without NCCL or a GPU it is one line" {
  use_stub
  kill_second() { wait_for parts/metrics.jsonl && kill -9 "${pids[1]}"; }
  BEFORE_RANKS=kill_second together 4 train "${tiny[@]}" --accumulate 4 --steps 100000 --rank-backend nccl -o parts "$data/train.shard.zst"
  [ "${codes[*]}" = "76 137 76 76" ] || { echo "${codes[*]}" && return 1; }
  [ "$(cat said.0 said.2 said.3 | grep -c 'another rank was lost')" -eq 3 ]
  [ "$(cat said.0 said.2 said.3 | wc -l)" -eq 3 ]
  TESSERA_NCCL=/nowhere/libnccl.so together 2 train "${tiny[@]}" --accumulate 2 --rank-backend nccl -o none "$data/train.shard.zst"
  all_end 69
  grep -q 'NCCL cannot be loaded' said.0
  unset TESSERA_NCCL
  together 2 train "${tiny[@]}" --accumulate 2 --rank-backend nccl --device cpu -o none "$data/train.shard.zst"
  all_end 64
  grep -q -- '--rank-backend nccl: connects GPUs' said.0
}

@test "--max-time stops all ranks alike" {
  train "${tiny[@]}" "${long[@]}" -o whole "$data/train.shard.zst"
  local code=75
  while [ "$code" -eq 75 ]; do
    together 2 train "${tiny[@]}" "${long[@]}" --max-time 1 -o parts "$data/train.shard.zst"
    code=${codes[0]}
    all_end "$code"
  done
  [ "$code" -eq 0 ]
  same whole parts
}

@test "meeting by an address, as torchrun's variables say" {
  local port pid
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
  RANK=1 train "${tiny[@]}" --accumulate 2 --ranks launcher -o two "$data/train.shard.zst" &
  pid=$!
  RANK=0 train "${tiny[@]}" --accumulate 2 --ranks launcher -o two "$data/train.shard.zst"
  wait "$pid"
  unset WORLD_SIZE MASTER_ADDR MASTER_PORT
  train "${tiny[@]}" --accumulate 2 -o one "$data/train.shard.zst"
  same one two
}

@test "mpirun starts the ranks" {
  command -v mpirun >/dev/null || skip "mpirun is not installed (tools/setup cluster)"
  train "${tiny[@]}" --accumulate 2 -o one "$data/train.shard.zst"
  mpirun --allow-run-as-root --oversubscribe -n 2 train "${tiny[@]}" --accumulate 2 --ranks launcher -o two "$data/train.shard.zst"
  same one two
}

@test "torchrun starts the ranks, and starts them again when one was lost" {
  local torchrun=${TORCHRUN:-torchrun}
  command -v "$torchrun" >/dev/null || skip "torchrun is not installed (TORCHRUN names one)"
  train "${tiny[@]}" "${long[@]}" -o one "$data/train.shard.zst"
  # Rank 1 of the first start is killed once it is at work.
  cat >rank <<'END'
#!/usr/bin/env bash
[ "$RANK.$TORCHELASTIC_RESTART_COUNT" = 1.0 ] || exec "$@"
"$@" &
while [ ! -s two/metrics.jsonl ]; do sleep 0.02; done
kill -9 $!
exit 137
END
  chmod +x rank
  "$torchrun" --standalone --no-python --nproc-per-node 2 --max-restarts 3 \
    ./rank train "${tiny[@]}" "${long[@]}" --ranks launcher -o two "$data/train.shard.zst"
  same one two
}
