#!/usr/bin/env bats
# train under a real Slurm of two nodes, each in a network namespace of its own: what users submit, and what goes wrong there.

load helpers
load processes

# why_not: prints why there can be no Slurm here; nothing if there can.
why_not() {
  local program
  [ "$(id -u)" -eq 0 ] || { echo "needs root for network namespaces" && return; }
  for program in slurmctld slurmd srun munged ip nsenter; do
    command -v "$program" >/dev/null || { echo "$program is not installed (tools/setup cluster)" && return; }
  done
  [ -w /etc/hosts ] || { echo "there is no /etc/hosts to name the nodes in" && return; }
  ip netns add "tessera-$$" 2>/dev/null || { echo "no network namespace can be made here" && return; }
  ip netns exec "tessera-$$" true 2>/dev/null && ip -n "tessera-$$" link add bridge0 type bridge 2>/dev/null &&
    ip -n "tessera-$$" link add veth0 type veth peer name veth1 2>/dev/null ||
    { ip netns del "tessera-$$" && echo "no program can run in a network namespace here, or there is no bridge" && return; }
  ip netns del "tessera-$$"
  [ ! -e /run/netns/n0 ] && ! ip link show slurmbr0 >/dev/null 2>&1 || echo "another Slurm test has its nodes up"
}

setup_file() {
  unset TESSERA_FORK_SERVERS # nodes have namespaces of their own
  WHY_NOT=$(why_not)
  export WHY_NOT
  [ -z "$WHY_NOT" ] || return 0
  cd "$BATS_FILE_TMPDIR"
  # The folder of munge's socket, and all above it, must be root's alone to write in.
  SLURM=$(mktemp -d /run/tessera-slurm.XXXXXX)
  export SLURM SLURM_CONF=$SLURM/slurm.conf
  "$root/tests/cluster/slurm-up" "$SLURM" 2 >up.log 2>&1 || { cat up.log && return 1; }
  head -c 3000 "$root/LICENSE" >train.txt
  tokenize -q -t bytes train.txt -o train.shard.zst
}

teardown_file() {
  [ -n "${SLURM:-}" ] || return 0
  "$root/tests/cluster/slurm-down" "$SLURM"
  rm -rf "$SLURM"
}

setup() {
  [ -z "$WHY_NOT" ] || skip "$WHY_NOT"
  data=$BATS_FILE_TMPDIR
  tiny=(--layers 1 --d-model 16 --heads 2 --segment 32 --batch 4 --lr 0.01 --log-every 1 --dropout 0.1 --accumulate 4
    --checkpoint-every 5 -q -j 1)
  cd "$BATS_TEST_TMPDIR"
  # Each rank under srun, with its process number and exit code kept.
  cat >rank <<'END'
#!/bin/bash
"$@" 2>said.$SLURM_PROCID &
pid=$!
echo $pid >pid.$SLURM_PROCID
trap 'kill -TERM $pid' TERM
trap 'kill -USR1 $pid' USR1
wait $pid
code=$?
while kill -0 $pid 2>/dev/null; do wait $pid && code=$? || code=$?; done
echo $code >code.$SLURM_PROCID
exit $code
END
  chmod +x rank
}

# In no job's way: what a test left is cancelled.
teardown() {
  [ -n "$WHY_NOT" ] || scancel -u root -f
}

whole() { train "${tiny[@]}" "$@" -o whole "$data/train.shard.zst"; }

# codes_are A B: what the ranks ended with.
codes_are() {
  [ "$(cat code.0 code.1)" = "$1"$'\n'"$2" ] || { echo "ended with" code.* && head code.* said.* && return 1; }
}

# job_state JOB: as squeue or scontrol has it.
job_state() { scontrol -o show job "$1" | sed 's/.*JobState=\([A-Z]*\).*/\1/'; }

# job_ends JOB SECONDS: waits until the job has completed, whatever became of it in between.
job_ends() {
  local i state
  for ((i = 0; i < $2 * 5; ++i)); do
    state=$(job_state "$1")
    case $state in COMPLETED) return 0 ;; FAILED | CANCELLED | TIMEOUT) break ;; esac
    sleep 0.2
  done
  echo "job $1 is $state" && cat ./*.out && return 1
}

@test "srun over two nodes, and two ranks on one: the bytes of one process" {
  whole --steps 6
  srun -N2 -n2 train "${tiny[@]}" --steps 6 --ranks launcher -o two "$data/train.shard.zst"
  same whole two
  srun -N1 -n2 --overcommit train "${tiny[@]}" --steps 6 --ranks launcher -o one-node "$data/train.shard.zst"
  same whole one-node
}

@test "a rank killed with -9 on either node: srun says 137, the other leaves with 76, and the same command goes on" {
  local victim pid code
  whole --steps 40
  for victim in 1 0; do
    rm -f code.* pid.*
    srun -N2 -n2 --kill-on-bad-exit=0 ./rank train "${tiny[@]}" --steps 1000000 --rank-timeout 30 --ranks launcher -o "long.$victim" \
      "$data/train.shard.zst" &
    pid=$!
    wait_for "long.$victim/metrics.jsonl"
    sleep "0.$((RANDOM % 9))"
    kill -9 "$(cat "pid.$victim")"
    wait "$pid" && code=0 || code=$?
    [ "$code" -eq 137 ]
    if [ "$victim" -eq 1 ]; then codes_are 76 137; else codes_are 137 76; fi
  done
  # And of a run that then goes on.
  rm -f code.* pid.*
  srun -N2 -n2 --kill-on-bad-exit=0 ./rank train "${tiny[@]}" --steps 40 --rank-timeout 20 --ranks launcher -o parts \
    "$data/train.shard.zst" &
  pid=$!
  wait_for parts/metrics.jsonl
  kill -9 "$(cat pid.1)" || [ ! -e "/proc/$(cat pid.1)" ] # it had ended
  wait "$pid" && code=0 || code=$?
  [ "$code" -eq 137 ] || [ "$code" -eq 0 ]
  srun -N2 -n2 train "${tiny[@]}" --steps 40 --ranks launcher -o parts "$data/train.shard.zst"
  same whole parts
}

@test "a node that is cut off: all leave with 76 within --rank-timeout, and the same command goes on" {
  local pid code
  whole --steps 60
  srun -N2 -n2 --kill-on-bad-exit=0 ./rank train "${tiny[@]}" --steps 1000000 --rank-timeout 4 --ranks launcher -o long \
    "$data/train.shard.zst" &
  pid=$!
  wait_for long/metrics.jsonl
  ip link set sv1 down
  wait_for code.0 && wait_for code.1
  ip link set sv1 up
  wait "$pid" && code=0 || code=$?
  [ "$code" -ne 0 ]
  codes_are 76 76
  grep -q 'another rank was lost' said.0
  srun -N2 -n2 train "${tiny[@]}" --steps 60 --ranks launcher -o parts "$data/train.shard.zst"
  same whole parts
}

@test "a job of lower priority is preempted, requeued, and ends in the same bytes" {
  local low high
  whole --steps 400
  low=$(sbatch --parsable --exclusive -N2 --partition=low --cpus-per-task=1 "$root/examples/cluster/train.sbatch" \
    "${tiny[@]}" --steps 400 -o parts "$data/train.shard.zst")
  wait_for parts/metrics.jsonl
  high=$(sbatch --parsable --exclusive -N2 --partition=high -o high.out --wrap 'sleep 1')
  job_ends "$high" 60
  job_ends "$low" 120
  [ "$(scontrol -o show job "$low" | sed 's/.* Restarts=\([0-9]*\).*/\1/')" -ge 1 ]
  same whole parts
}

# restarts JOB N SECONDS: waits until the job was put back into the queue so often.
restarts() {
  local i
  for ((i = 0; i < $3 * 5; ++i)); do
    [ "$(scontrol -o show job "$1" | sed 's/.* Restarts=\([0-9]*\).*/\1/')" -lt "$2" ] || return 0
    sleep 0.2
  done
  echo "job $1 was not put back" && scontrol -o show job "$1" && cat ./*.out && return 1
}

# goes_on FOLDER: the run in it saves at one of its updates, if not at the first signal, then at one of the next, and comes further.
goes_on() {
  local i saved
  for ((i = 0; i < 1800; ++i)); do
    saved=$(find "$1" -maxdepth 1 -name 'step-*' 2>/dev/null | sed 's/.*step-//' | sort -n | tail -n 1)
    [ -z "$saved" ] || [ "$(tail -n 1 "$1/metrics.jsonl" | jq .step)" -le "$saved" ] || return 0
    sleep 0.1
  done
  echo "stayed at ${saved:-the start}" && cat ./*.out && return 1
}

@test "before the time limit ranks save, and the job goes back into the queue and on; so does one that makes" {
  local ranks made
  ranks=$(sbatch --parsable -N2 --cpus-per-task=1 --time=1 --signal=USR1@50 "$root/examples/cluster/train.sbatch" \
    "${tiny[@]}" --checkpoint-every 1000000 --steps 100000000 -o ranks "$data/train.shard.zst")
  printf 'model/model.safetensors:\n\ttrain %s --checkpoint-every 1000000 --steps 100000000 -o model %s\n' "${tiny[*]}" \
    "$data/train.shard.zst" >Makefile
  printf '#!/bin/bash\nexec "%s/examples/cluster/requeue" srun make\n' "$root" >job
  made=$(sbatch --parsable --requeue --open-mode=append --time=1 --signal=TERM@50 job)
  restarts "$ranks" 1 90
  goes_on ranks
  scancel "$ranks"
  restarts "$made" 1 90
  goes_on model
  scancel "$made"
}

@test "a batch script without srun trains alone, and is told so if it asks for ranks" {
  whole --steps 3
  sbatch -W -o one.out -n2 --wrap "train ${tiny[*]} --steps 3 -o alone $data/train.shard.zst"
  same whole alone
  run ! sbatch -W -o two.out -n2 --wrap "train ${tiny[*]} --steps 3 --ranks launcher -o never $data/train.shard.zst"
  grep -q 'no launcher started this process' two.out
  [ ! -e never ]
}

@test "eight seeds under one srun are eight runs" {
  local seed
  sbatch -W -o seeds.out --ntasks=8 --overcommit --cpus-per-task=1 "$root/examples/cluster/seeds.sbatch" runs "${tiny[@]}" --steps 2 \
    "$data/train.shard.zst" || { cat seeds.out && return 1; }
  for seed in 1 2 3 4 5 6 7 8; do [ -s "runs/seed-$seed/model.safetensors" ]; done
  [ "$(sha256sum runs/*/model.safetensors | cut -d ' ' -f 1 | sort -u | wc -l)" -eq 8 ]
  train "${tiny[@]}" --steps 2 --seed 5 -o five "$data/train.shard.zst"
  same five runs/seed-5
}

@test "mpirun in a job of two nodes: the bytes of one process" {
  command -v mpirun >/dev/null || skip "mpirun is not installed (tools/setup cluster)"
  whole --steps 3
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  sbatch -W -o mpi.out -N2 --cpus-per-task=1 "$root/examples/cluster/mpirun.sbatch" "${tiny[@]}" --steps 3 -o two \
    "$data/train.shard.zst" || { cat mpi.out && return 1; }
  same whole two
}

@test "an array of parts and the job that adds them up: the bytes of one process" {
  local parts sum
  "$root"/tests/cli/tiny_gpt2 model
  eval-ppl -q -j 1 --json -m model --window 32 --batch-tokens 100 --cache 40 --memory-weights constant "$data/train.shard.zst" -o whole.json
  parts=$(sbatch --parsable --array=1-3 --cpus-per-task=1 "$root/examples/cluster/parts.sbatch" out eval-ppl -m model --window 32 --batch-tokens 100 \
    --cache 40 --memory-weights constant "$data/train.shard.zst")
  sum=$(sbatch --parsable --dependency="afterok:$parts" --cpus-per-task=1 "$root/examples/cluster/parts.sbatch" out eval-ppl)
  job_ends "$sum" 120
  cmp whole.json out/whole
}

@test "arrays of parts of a shard, an order and a store, and what is made of them" {
  local last text=$PWD/novel.txt
  novel 1000 >"$text"
  "$root"/tests/cli/tiny_gpt2 model
  # in_parts OUT PROGRAM OPTIONS... -- OPTIONS...: those of the parts, and those of the job that puts them together.
  in_parts() {
    local out=$1 program=$2 own=() array
    shift 2
    for (( ; $#; )); do
      [ "$1" != -- ] || break
      own+=("$1")
      shift
    done
    shift
    array=$(sbatch --parsable --array=1-3 --cpus-per-task=1 "$root/examples/cluster/parts.sbatch" "$out" "$program" "${own[@]}")
    last=$(sbatch --parsable --dependency="afterok:$array" --cpus-per-task=1 "$root/examples/cluster/parts.sbatch" "$out" "$program" "$@")
  }
  tokenize -q -t bytes --format lines "$text" -o whole.shard
  bm25-pack -q --segment 100 whole.shard -o whole.order
  build-datastore -q -j 1 --no-calibrate -m model --window 32 --batch-tokens 1000 --index IVF4,Flat whole.shard -o whole.store
  in_parts shards tokenize -t bytes --format lines "$text" --
  in_parts orders bm25-pack --segment 100 whole.shard -- --segment 100 whole.shard
  in_parts stores build-datastore -m model --window 32 --batch-tokens 1000 --index exact whole.shard -- --index IVF4,Flat
  job_ends "$last" 120
  cmp whole.shard shards/whole
  cmp whole.order orders/whole
  diff -r whole.store stores/whole
}
