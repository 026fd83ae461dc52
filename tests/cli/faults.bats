#!/usr/bin/env bats
# What stays when a call fails or the process is killed: a whole output or none, a documented exit code, one line of
# error, and a next run that works.
#
# FAULTS_EVERY=N: look at every N-th call only [tokenize 1, shard and removals 3, train and build-datastore 23]; 1 is the full loop,
# in which each call fails in every way.

load helpers
source "$root/tests/faults/struck.bash"

setup() {
  unset TESSERA_FORK_SERVERS # calls are made to fail in the front
  faults=$BIN/../tests/libfaults.so
  [ -e "$faults" ] || skip "no $faults (make tests)"
  ! grep -q 'TESSERA_SANITIZE:BOOL=ON' "$BIN/../CMakeCache.txt" || skip "sanitizers want to be preloaded first"
  export OMP_NUM_THREADS=1
  cd "$BATS_TEST_TMPDIR"
  # Several buffers of output, though it is compressed.
  awk 'BEGIN { for (i = 1; i < 200000; ++i) print i * 48271 % 2147483647 }' >x.txt
}

# calls CALL COMMAND...: how many it makes.
calls() {
  local call=$1
  shift
  rm -rf count out
  struck "$call" 0 5 "$@"
  [ "$code" -eq 0 ] && cat count
}

# Exit codes of man tessera that a failing system can give; 0 where the call was not needed; 137: killed.
documented() { # how
  case $code in
    0) ;;
    66 | 71 | 73 | 74) [ "$1" != kill ] && [ "$(wc -l <stderr)" -eq 1 ] ;;
    137) [ "$1" = kill ] ;;
    *) false ;;
  esac
}

# ways CALL N MOST: how the N-th of the MOST calls of a kind that are looked at fails. EIO and ENOSPC take turns where these are
# several. A process that is killed at a call that changes no folder leaves what one leaves that is killed at the next
# that does.
ways() {
  local kill=''
  case $1 in write | rename | mkdir | truncate | unlink) kill=kill ;; esac
  if [ "${FAULTS_EVERY:-}" = 1 ]; then
    echo 5 28 kill
  elif [ "$3" -le 2 ]; then
    echo 5 28 $kill
  else
    echo $(($2 % 2 ? 5 : 28)) $kill
  fi
}

# loop CALLS EVERY COMMAND...: with a fault at every EVERY-th call of each kind the command, which writes `out`, leaves
# nothing there, or what stood there before, or all of it; and run again it is as if nothing had been.
loop() {
  local kinds=$1 every=$2 call how n most seen=0
  shift 2
  rm -rf out && "$@" 2>stderr && mv out whole
  for call in $kinds; do
    most=$(calls "$call" "$@")
    for ((n = 1; n <= most; n += every)); do
      for how in $(ways "$call" "$((n / every + 1))" "$((most / every + 1))"); do
        rm -rf out out.*
        struck "$call" "$n" "$how" "$@"
        documented "$how" || { echo "$call $n $how: exit $code: $(head -n 3 stderr)" && return 1; }
        left_whole || { echo "$call $n $how: exit $code, and a part of the output" && return 1; }
        [ "$how" = kill ] || no_leftovers || { echo "$call $n $how: $(ls)" && return 1; }
        seen=$((seen + 1))
        compgen -G 'out*' >/dev/null || continue # all is as it was before
        "$@" >stdout 2>stderr || { echo "after $call $n $how: exit $?: $(head -n 3 stderr)" && return 1; }
        same_as_whole || { echo "after $call $n $how: another output" && return 1; }
      done
    done
  done
  echo "# $1: $seen faults" >&3
  [ "$seen" -gt 0 ]
}

left_whole() { { [ "$code" -ne 0 ] && [ ! -e out ]; } || cmp -s out whole; }
same_as_whole() { cmp out whole; }

@test "tokenize: whole or nothing, at every call" {
  loop "write fsync rename open mmap read" "${FAULTS_EVERY:-1}" tokenize -q -j 2 -t bytes x.txt -o out
}

@test "tokenize --learn: whole or nothing, at every call" {
  head -n 20000 x.txt >fewer.txt
  loop "write fsync rename open mmap read" "${FAULTS_EVERY:-1}" tokenize -q -j 1 --learn word fewer.txt -o out
}

@test "shard merge: whole or nothing, at every call" {
  tokenize -q -t bytes x.txt -o a.shard.zst
  loop "write fsync rename open mmap read" "${FAULTS_EVERY:-3}" shard merge -q a.shard.zst a.shard.zst -o out
}

@test "shard import and export: whole or nothing, at every call" {
  tokenize -q -t bytes x.txt -o a.shard.zst
  shard export -q a.shard.zst -o a.npy
  loop "write fsync rename open mmap read" "${FAULTS_EVERY:-3}" shard import -q -t bytes a.npy -o out
  rm -r whole
  loop "write fsync rename open mmap read" "${FAULTS_EVERY:-3}" shard export -q a.shard.zst -o out
}

@test "an output that is replaced stays what it was until the new one is whole" {
  printf old >old
  for call in write fsync rename open; do
    most=$(calls "$call" tokenize -q -t bytes x.txt -o out)
    for ((n = 1; n <= most; ++n)); do
      for how in 28 kill; do
        cp old out
        struck "$call" "$n" "$how" tokenize -q -t bytes x.txt -o out
        if ! cmp -s out old; then shard verify -q out; fi
      done
    done
  done
}

@test "train: whole or nothing, at every call; the next run ends in the same bytes" {
  [ -x "$BIN/train" ] || skip "train is not built"
  head -c 4000 x.txt | tokenize -q -t bytes -o tiny.shard.zst
  head -c 300 x.txt | tokenize -q -t bytes -o v.shard.zst
  files="config.json metrics.jsonl model.safetensors tokenizer.json"
  left_whole() {
    { [ "$code" -ne 0 ] && [ ! -e out/model.safetensors ]; } || same_as_whole
  }
  same_as_whole() {
    local file
    for file in $files; do cmp -s "out/$file" "whole/$file" || return 1; done
    [ "$(find out -name 'step-*' | sort)" = "$(find whole -name 'step-*' | sed 's/^whole/out/' | sort)" ]
  }
  no_leftovers() { true; } # the next run removes them
  loop "write fsync rename open mmap read truncate mkdir" "${FAULTS_EVERY:-23}" train -q -j 1 --layers 1 --d-model 8 \
    --heads 1 --segment 16 --batch 2 --steps 4 --checkpoint-every 2 --keep 1 --valid v.shard.zst tiny.shard.zst -o out
  [ -z "$(find out -name '*.tmp*')" ]
}

@test "build-datastore: the store is there, whole, or it is not; the next run ends in the same bytes" {
  [ -x "$BIN/build-datastore" ] || skip "build-datastore is not built"
  "$root"/tests/cli/tiny_gpt2 model
  head -c 500 x.txt | tokenize -q -t bytes --format lines -o tiny.shard.zst
  same_as_whole() { diff -r out whole; }
  left_whole() {
    { [ "$code" -ne 0 ] && [ ! -e out/store.json ]; } || store verify -q out
  }
  no_leftovers() { true; } # the next run removes them
  loop "write fsync rename open mmap read truncate mkdir" "${FAULTS_EVERY:-23}" build-datastore -q -j 1 -m model \
    --batch-tokens 64 tiny.shard.zst -o out
}

@test "build-ngrams: the index is there, whole, or it is not; the next run ends in the same bytes" {
  head -c 500 x.txt | tokenize -q -t bytes --format lines -o tiny.shard.zst
  same_as_whole() { diff -r out whole; }
  left_whole() {
    { [ "$code" -ne 0 ] && [ ! -e out/ngrams.json ]; } || ngrams verify -q out
  }
  no_leftovers() { true; } # the next run removes them
  loop "write fsync rename open mmap read truncate mkdir unlink" "${FAULTS_EVERY:-3}" build-ngrams -q -j 1 tiny.shard.zst -o out
}

@test "a removal at every call: one document goes, a receipt is given, nothing older stays on disk" {
  [ -x "$BIN/build-datastore" ] || skip "build-datastore is not built"
  "$root"/tests/cli/tiny_gpt2 model
  head -c 300 x.txt | tokenize -q -t bytes --format lines -o tiny.shard.zst
  build-datastore -q -j 1 -m model tiny.shard.zst -o store
  remove=(store remove -q -j 1 --json --document 3)
  cp -r store whole
  "${remove[@]}" whole >receipt
  local call how n most seen=0 every=${FAULTS_EVERY:-3}
  for call in write fsync rename open truncate unlink; do
    cp -r store out
    struck "$call" 0 5 "${remove[@]}" out
    most=$(cat count)
    for ((n = 1; n <= most; n += every)); do
      for how in $(ways "$call" "$((n / every + 1))" "$((most / every + 1))"); do
        # Behind every call that changes a folder it is killed in commit_windows.bats; here in the middle of writes.
        [ "$how" != kill ] || [ "$call" = write ] || [ "${FAULTS_EVERY:-}" = 1 ] || continue
        rm -rf out
        cp -r store out
        struck "$call" "$n" "$how" "${remove[@]}" out
        documented "$how" || { echo "$call $n $how: exit $code: $(cat stderr)" && return 1; }
        # What gave no receipt is run again.
        [ -s stdout ] || "${remove[@]}" out >stdout
        cmp stdout receipt
        diff -r -x building.json out whole || { echo "after $call $n $how" && return 1; }
        seen=$((seen + 1))
      done
    done
  done
  echo "# removal: $seen faults" >&3
}

@test "a full disk: exit 74, nothing under the name, and room again is enough" {
  mkdir disk
  mount -t tmpfs -o size=256k tmpfs disk 2>/dev/null || skip "cannot mount a small tmpfs here (root is needed)"
  head -c 2000000 /dev/urandom >noise
  code=0
  tokenize -q -t bytes noise -o disk/x.shard.zst 2>stderr || code=$?
  left=$(ls disk)
  head -c 1000 x.txt | tokenize -q -t bytes -o disk/y.shard.zst 2>>stderr || code=$((code + 1000))
  shard verify -q disk/y.shard.zst || code=$((code + 1000))
  umount disk
  [ "$code" -eq 74 ]
  [ -z "$left" ]
  [ "$(wc -l <stderr)" -eq 1 ]
  grep -q '^tokenize: disk/x.shard.zst: cannot write: No space left' stderr
}

@test "two processes on one output: one wins whole, the other says so" {
  mkfifo pipe
  tokenize -q -t bytes - -o out <pipe &
  exec 9>pipe
  printf 'begun' >&9
  # Until the file is not only there but locked; at most 5 s where /proc/locks does not tell.
  for _ in {1..100}; do
    ! grep -qs ":$(stat -c %i out.tmp.tessera 2>/dev/null || echo none) " /proc/locks || break
    sleep 0.05
  done
  code=0
  tokenize -q -t bytes x.txt -o out 2>stderr || code=$?
  [ "$code" -eq 73 ]
  [ "$(cat stderr)" = "tokenize: out: another process is writing it; wait for it" ]
  [ ! -e out ]
  exec 9>&-
  wait $!
  [ "$(shard cat --text out)" = begun ]
  no_leftovers

  # And at any moment of the first.
  tr 0-9 a-j <x.txt >y.txt
  tokenize -q -t bytes x.txt -o a
  tokenize -q -t bytes y.txt -o b
  for _ in 1 2 3 4 5; do
    rm -f out
    first=0 second=0
    tokenize -q -t bytes x.txt -o out 2>stderr &
    tokenize -q -t bytes y.txt -o out 2>stderr2 || second=$?
    wait $! || first=$?
    case $first,$second in
      0,0 | 0,73 | 73,0) ;;
      *) echo "exit $first and $second: $(cat stderr stderr2)" && return 1 ;;
    esac
    cmp -s out a || cmp out b
    no_leftovers
  done
}

# each NAME...: the rest of the test's body, from the words behind --, for each program; what goes wrong is printed.
each() {
  local names=() name
  while [ "$1" != -- ]; do names+=("$1") && shift; done
  shift
  tried=0
  for name in "${names[@]}"; do "$1" "$name" "${@:2}"; done
  echo "# $tried faults of ${#names[@]} programs" >&3
  [ "$tried" -gt 0 ]
}

# use_outputs [store] [train]: a folder with what those commands of outputs.bash read; made once for all tests.
use_outputs() {
  local kind
  source "$root/tests/faults/outputs.bash"
  mkdir outputs
  cd outputs
  for kind in quick "$@"; do
    if [ ! -d "$BATS_FILE_TMPDIR/$kind" ]; then
      "make_${kind}_inputs"
      cp -r . "$BATS_FILE_TMPDIR/$kind"
    fi
    cp -r "$BATS_FILE_TMPDIR/$kind/." .
  done
}

@test "a full disk, whatever program writes: one line, nothing half-written or temporary, and later the same bytes" {
  use_outputs
  each "${quick_outputs[@]}" -- every_fault "write fsync rename create mkdir truncate" 28 4
}

@test "what may not be read or made, whatever program: one line that names it, and nothing half-written" {
  use_outputs
  each "${quick_outputs[@]}" -- every_fault "open mkdir rename" 13 3
}

@test "stores on a full disk: one line, nothing under a final name, and later the same bytes" {
  needs build-datastore
  use_outputs store
  each store-merge rebuild -- every_fault "write create" 28 2
  each append per-token -- every_fault "fsync rename" 122 2
}

@test "models on a full disk: one line, nothing under a final name, and later the same bytes" {
  needs train
  needs build-datastore
  use_outputs store train
  each train-tensorboard model-export -- every_fault "write create" 28 2
  each model-import targets -- every_fault "fsync rename" 122 2
}

@test "two processes with one output, the first held at a call: one is whole, the other too or refused" {
  use_outputs
  each tokenize learn split search-build ngrams -- both "create rename" 2
}

@test "two processes with one store: one is whole, the other too or refused" {
  needs build-datastore
  use_outputs store
  each build append rebuild -- both create 1
}

@test "two processes with one model: one is whole, the other too or refused" {
  needs train
  needs build-datastore
  use_outputs store train
  each train model-import model-export -- both create 1
}

@test "a limit on the size of files: exit 74, one line, nothing left" {
  head -c 300000 /dev/urandom >noise
  code=0
  (ulimit -f 100 && exec tokenize -q -t bytes noise -o out) 2>stderr || code=$?
  [ "$code" -eq 74 ]
  [ "$(cat stderr)" = "tokenize: out: cannot write: File too large" ]
  [ ! -e out ]
  no_leftovers
}

@test "outputs have the modes that umask leaves; a folder that nobody may list is written to" {
  umask 077
  tokenize -q -t bytes x.txt -o private
  build-ngrams -q -j 1 private -o index
  [ -z "$(find private index -perm /077)" ]
  umask 022
  tokenize -q -t bytes x.txt -o public
  [ "$(stat -c %a public)" = 644 ]
  mkdir -m 0333 box
  chmod 755 "$BATS_TEST_TMPDIR"
  as_other=()
  [ "$(id -u)" -ne 0 ] || as_other=(setpriv --reuid=65534 --regid=65534 --clear-groups)
  "${as_other[@]}" "$BIN/tokenize" --version || skip "another user cannot run programs of $BIN"
  "${as_other[@]}" "$BIN/tokenize" -q -t bytes -o box/out <x.txt
  cmp box/out public
}

@test "a run that is told to stop twice at once, or that sleeps for a while, ends in the same bytes" {
  needs train
  head -c 4000 x.txt | tokenize -q -t bytes -o tiny.shard.zst
  run=(train -q -j 1 --layers 1 --d-model 8 --heads 1 --segment 16 --batch 2 --steps 300 tiny.shard.zst -o)
  "${run[@]}" whole
  for signals in 'TERM TERM' 'HUP TERM' 'STOP CONT' 'STOP TERM CONT'; do
    rm -rf run
    code=0
    "${run[@]}" run &
    pid=$!
    while [ ! -s run/metrics.jsonl ] && [ -e "/proc/$pid" ]; do sleep 0.02; done
    for signal in $signals; do kill -"$signal" "$pid" 2>/dev/null || break; done # it has ended
    wait "$pid" || code=$?
    case $code,$signals in
      0,* | 75,*TERM*) ;; # it may have been at its end
      *) echo "$signals: exit $code" && return 1 ;;
    esac
    "${run[@]}" run
    same run whole
  done
}

@test "a file that is read as memory and cut short meanwhile: exit 74, and a line that names it" {
  tokenize -q -t bytes --format lines x.txt -o x.shard.zst
  bm25-search build -q x.shard.zst -o index
  mkfifo questions
  bm25-search find -q -i index questions >found 2>stderr &
  exec 9>questions # waits for the reader
  for _ in {1..500}; do grep -q "$PWD/index" "/proc/$!/maps" && break || sleep 0.02; done
  truncate -s 0 index
  printf '48271\n' >&9
  exec 9>&-
  code=0
  wait $! || code=$?
  [ "$code" -eq 74 ]
  [ "$(cat stderr)" = "bm25-search: $PWD/index: was cut short while it was read" ]
}
