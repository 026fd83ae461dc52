#!/usr/bin/env bats
# A command that is killed after it has committed its output, and before the caller knows it, is run again: it finds its
# work done. Nothing is removed, added or built twice.
#
# The process dies behind its n-th call that changes what is in a folder, and behind main (`exit`), so every window from the
# commit on is met.

load helpers
source "$root/tests/faults/struck.bash"

setup_file() {
  unset TESSERA_FORK_SERVERS # calls are made to fail in the front
  faults=$BIN/../tests/libfaults.so
  [ -e "$faults" ] || skip "no $faults (make tests)"
  ! grep -q 'TESSERA_SANITIZE:BOOL=ON' "$BIN/../CMakeCache.txt" || skip "sanitizers want to be preloaded first"
  needs build-datastore
  export faults OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
  "$root/tests/cli/tiny_gpt2" model
  seq 1000 1040 | tokenize -q -t bytes --format lines -o a.shard.zst
  seq 2000 2020 | tokenize -q -t bytes --format lines -o b.shard.zst
  build=(build-datastore -q -j 1 -m model --batch-tokens 64)
  "${build[@]}" --index IVF4,Flat a.shard.zst -o ivf
  "${build[@]}" --part 1/2 a.shard.zst -o part.1
  "${build[@]}" --part 2/2 a.shard.zst -o part.2
  train -q -j 1 --layers 1 --d-model 8 --heads 1 --segment 16 --batch 2 --steps 1 a.shard.zst -o plain
}

setup() { cd "$BATS_FILE_TMPDIR"; }

# last_calls BASE COMMAND...: killed behind each of its last calls, from before the commit on.
last_calls() {
  base=$1
  shift
  undisturbed "$@"
  local n
  for ((n = calls > 6 ? calls - 5 : 1; n <= calls; ++n)); do
    prepare
    struck "$changing_calls" "$n" kill-after "$@"
    [ "$code" -eq 137 ]
    again "$@" || { echo "killed behind call $n of $calls" && return 1; }
  done
}

@test "store remove: killed behind a call and run again, one document is gone, and the receipt is given" {
  base=ivf
  remove=(store remove -q -j 1 --json --document 3 out)
  undisturbed "${remove[@]}"
  local n how before=0 committed=$calls
  # The first call behind which the removal is committed.
  while [ $((committed - before)) -gt 1 ]; do
    n=$(((before + committed) / 2))
    prepare
    struck "$changing_calls" "$n" kill-after "${remove[@]}"
    [ "$code" -eq 137 ]
    if grep -q '"generation": *2,' out/store.json; then committed=$n; else before=$n; fi
  done
  # Every fourth before it, and the last; all from it on.
  for ((n = 1; n <= calls; n = n >= before ? n + 1 : n + 4 > before ? before : n + 4)); do
    prepare
    struck "$changing_calls" "$n" kill-after "${remove[@]}"
    [ "$code" -eq 137 ]
    again "${remove[@]}" || { echo "killed behind call $n of $calls" && return 1; }
    # What had been removed already is said to be so, with -q too.
    if [ "$n" -ge "$committed" ]; then
      [ "$(wc -l <stderr)" -eq 1 ]
      grep -q '^store: out: nothing removed: these documents were already removed in generation 2; ' stderr
    else
      [ ! -s stderr ]
    fi
  done
  [ "$committed" -gt 5 ]
  [ "$committed" -lt $((calls - 3)) ]

  # A signal that can be held is held from the commit until the receipt is out.
  signals=(term-after int-after usr1-after)
  for ((n = committed; n <= calls; ++n)); do
    how=${signals[n % 3]}
    prepare
    struck "$changing_calls" "$n" "$how" "${remove[@]}"
    [ "$code" -eq 0 ]
    cmp stdout record
    [ ! -s stderr ]
    like_whole || { echo "$how behind call $n of $calls" && return 1; }
  done
  # Before that it ends the process, and nothing has happened.
  prepare
  struck "$changing_calls" 2 term-after "${remove[@]}"
  [ "$code" -eq 143 ]
  again "${remove[@]}"
}

@test "store remove: the same number on purpose takes the generation, and that command is not done twice either" {
  rm -rf out
  cp -r ivf out
  store remove -q --json --document 3 out >first
  [ "$(field generation <first)" -eq 2 ]
  store remove -q --json --document 3 --generation 2 out >second 2>err
  [ ! -s err ]
  [ "$(field generation <second)" -eq 3 ]
  [ "$(field values <first)" != "$(field values <second)" ]
  cp -r out twice
  for generation in 1 2; do
    store remove -q --json --document 3 --generation "$generation" out >receipt 2>err
    cmp <(field values <receipt) <(field values <"$([ "$generation" -eq 1 ] && echo first || echo second)")
    grep -q 'to remove the documents that have this number now: store remove --generation 3 --document 3 out$' err
  done
  store remove -q --json --document 3 out >receipt 2>err
  cmp receipt second
  grep -q 'nothing removed' err
  run -64 --separate-stderr store remove --document 4 --generation 2 out
  [[ $stderr == "store: out: is at generation 3, and "* ]]
  diff -r out twice
  rm -r twice
}

@test "build-datastore: killed behind its commit and run again, rows are added once" {
  last_calls ivf build-datastore -q -j 1 -m model --batch-tokens 64 --append out b.shard.zst
  last_calls '' build-datastore -q -j 1 -m model --batch-tokens 64 --index IVF4,Flat a.shard.zst -o out
}

@test "build-datastore: killed behind its commit and run again, the calibration is that of all rows" {
  seq 3000 7300 | tokenize -q -t bytes --format lines -o long.shard.zst
  build-datastore -q -j 1 -m model long.shard.zst -o calibrated
  local append=(build-datastore -q -j 1 -m model --append out b.shard.zst) n seen=0
  base=calibrated
  undisturbed "${append[@]}"
  [ "$(jq -c .calibration calibrated/store.json)" != "$(jq -c .calibration whole/store.json)" ]
  for ((n = calls - 4; n <= calls; ++n)); do
    prepare
    struck "$changing_calls" "$n" kill-after "${append[@]}"
    [ "$code" -eq 137 ]
    # An addition that is there has its calibration.
    if [ "$(jq .generation out/store.json)" -eq 2 ]; then
      cmp out/store.json whole/store.json
      seen=$((seen + 1))
    fi
    again "${append[@]}" || { echo "killed behind call $n of $calls" && return 1; }
  done
  [ "$seen" -gt 2 ]
}

@test "store merge, store rebuild: killed behind the commit and run again" {
  last_calls '' store merge -q -j 1 --index IVF4,Flat part.1 part.2 -o out
  # A rebuild makes the index anew each time, in a generation of its own.
  like_whole() {
    cmp <(cat out/index*.faiss) <(cat whole/index*.faiss) && cmp out/keys.npy whole/keys.npy && store verify -q out >/dev/null &&
      sed -i 's/"generation":3/"generation":2/' stdout && cmp stdout record
  }
  again() {
    "$@" >stdout 2>stderr </dev/null
    like_whole
  }
  last_calls ivf store rebuild -q -j 1 --json --index IVF2,SQ8 out
}

@test "model export, model import: killed behind the commit and run again" {
  last_calls '' model export -q -j 1 plain --family gpt2 -o out
  last_calls '' model import -q -j 1 "$root/tests/golden/checkpoints/nanogpt.pt" -o out
}

@test "train, build-targets: killed behind the commit and run again" {
  last_calls '' train -q -j 1 --layers 1 --d-model 8 --heads 1 --segment 16 --batch 2 --steps 1 a.shard.zst -o out
  last_calls '' build-targets -q -j 1 --datastore ivf --k 8 --top-k 4 a.shard.zst -o out
}

@test "tokenize, build-ngrams, bm25-search build: killed behind the commit and run again" {
  last_calls '' tokenize -q -j 1 -t bytes "$root/LICENSE" -o out
  last_calls '' build-ngrams -q -j 1 a.shard.zst -o out
  last_calls '' bm25-search build -q -j 1 a.shard.zst -o out
}
