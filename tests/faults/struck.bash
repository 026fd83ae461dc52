#!/usr/bin/env bash
# Commands that are struck by a fault (tests/faults/faults.cpp), and run again. Who sources it sets $faults, libfaults.so.
# shellcheck disable=SC2034,SC2154  # used there; set there

# The calls that change what is in a folder, and the end of main.
changing_calls=write,rename,create,truncate,mkdir,unlink,exit

# prepare: what stands where a command is to write: a copy of $base, or nothing.
prepare() {
  rm -rf out
  [ -z "$base" ] || cp -r "$base" out
}

# same_output A B: with the same bytes, but for what tells the time.
same_output() { diff -r -x timings.jsonl -x 'events.out.*' "$1" "$2"; }

# struck CALL AT HOW COMMAND...: COMMAND with that fault; its exit code in $code, its words in stdout and stderr. AT 0: none,
# and the number of calls in the file count.
struck() {
  local call=$1 at=$2 how=$3
  shift 3
  code=0
  LD_PRELOAD=$faults FAULT_CALL=$call FAULT_AT=$at FAULT_ERRNO=$how FAULT_COUNT=$PWD/count "$@" >stdout 2>stderr </dev/null || code=$?
}

# undisturbed COMMAND...: makes `whole` of what it writes and `record` of what it prints, and says in $calls how many calls
# there are that change a folder.
undisturbed() {
  rm -rf whole
  prepare
  struck "$changing_calls" 0 5 "$@"
  [ "$code" -eq 0 ] || { echo "exit $code: $(cat stderr)" && return 1; }
  calls=$(cat count)
  mv out whole
  mv stdout record
}

# again COMMAND...: run now it ends as if it had never been disturbed.
again() {
  "$@" >stdout 2>stderr </dev/null || { echo "again: exit $?: $(cat stderr)" && return 1; }
  cmp stdout record || return 1
  like_whole || { echo "again: another output" && return 1; }
}

like_whole() { same_output out whole; }
