#!/usr/bin/env bash
# What the tests of several processes share: `load processes` stands in each, behind `load helpers`. No rank runs in a fork
# server: a rank that is killed must be gone when its front is.

# together N COMMAND...: COMMAND as each of N ranks, which meet by a file in the folder of -o, as under mpirun. What they end
# with: the array codes; what rank R says: said.R. With BEFORE_RANKS=FUNCTION that function first, with the array pids.
together() {
  local size=$1 rank
  shift
  pids=() codes=()
  launches=$((${launches:-0} + 1))
  for ((rank = 0; rank < size; ++rank)); do
    TESSERA_FORK_SERVERS='' OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=$size PMIX_NAMESPACE=$BATS_TEST_NUMBER-$$-$launches \
      "$@" --ranks launcher >"said.$rank" 2>&1 &
    pids+=($!)
  done
  [ -z "${BEFORE_RANKS:-}" ] || "$BEFORE_RANKS"
  for ((rank = 0; rank < size; ++rank)); do
    codes[rank]=0
    wait "${pids[rank]}" || codes[rank]=$?
  done
}

# all_end CODE: every rank did; prints what they said if not.
all_end() {
  local code
  for code in "${codes[@]}"; do
    [ "$code" -eq "$1" ] || { echo "ended with ${codes[*]}, not $1:" && head -n 3 said.* && return 1; }
  done
}

# wait_for FILE: until it is there and has something in it, a minute at most.
wait_for() {
  local i
  for ((i = 0; i < 3000; ++i)); do
    [ ! -s "$1" ] || return 0
    sleep 0.02
  done
  return 1
}
