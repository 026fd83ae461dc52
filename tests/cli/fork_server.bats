#!/usr/bin/env bats
# A run in a fork server (cmd/front/fork_server.h) is like a run of its own: the same bytes, exit codes, signals and descriptors.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  server=$BIN/../tests/fork_server
  export servers=$BATS_FILE_TMPDIR/servers OMP_NUM_THREADS=1
  unset TESSERA_FORK_SERVERS
  text_shards 3000 1000
  train -q -j 1 --layers 1 --d-model 8 --heads 2 --context 32 --segment 16 --batch 4 --steps 3 train.shard.zst -o model
  [ -x "$server" ] || return 0
  mkdir servers
  "$server" "$servers" "$BIN/../lib/tessera/libtessera.so" </dev/null >server.log 2>&1 3>&- &
  echo $! >server.pid
  for _ in {1..600}; do
    [ -z "$(ls servers)" ] || break
    sleep 0.1
  done
}

teardown_file() { [ ! -e "$BATS_FILE_TMPDIR/server.pid" ] || kill "$(cat "$BATS_FILE_TMPDIR/server.pid")"; }

setup() {
  [ -x "$BIN/../tests/fork_server" ] || skip "no fork_server: make tests builds it"
  cd "$BATS_TEST_TMPDIR"
  in=$BATS_FILE_TMPDIR
}

forks() { pgrep -P "$(cat "$in/server.pid")"; }

# both COMMAND...: run in an empty folder by itself and in the server: the same output, exit code, files and modes of files.
both() {
  local way code
  for way in alone forked; do
    rm -rf work $way && mkdir work
    code=0
    (
      cd work
      [ $way = alone ] || export TESSERA_FORK_SERVERS=$servers
      "$@" >out 2>err </dev/null
    ) || code=$?
    echo "$code" >work/code
    (cd work && find . -type f ! -name timings.jsonl -printf '%p %m %s\n' | sort) >$way.files
    mv work $way
  done
  diff alone.files forked.files
  same alone forked
}

shell() { both bash -c "$1"; }

@test "the same bytes and exit codes" {
  both train -q -j 1 --layers 1 --d-model 8 --heads 2 --context 32 --segment 16 --steps 4 --checkpoint-every 2 --keep 2 "$in/train.shard.zst" -o m
  [ "$(cat alone/code)" -eq 0 ]
  both eval-ppl -m "$in/model" --cache 20 --per-token scores "$in/valid.shard.zst"
  both sample -m "$in/model" -t bytes --prompt 'The work' --max-tokens 20 --seed 5
  both eval-ppl -m "$in/model" --json "$in/nowhere"
  [ "$(cat alone/code)" -eq 66 ]
  both train "$in/train.shard.zst" -o "$in/train.shard.zst/m"
  both eval-ppl --nothing
  both sample --help
  both store info "$in/model"
}

@test "descriptors, pipes, the folder, umask and the environment are those of the front" {
  shell "echo 'The work' | sample -q -m '$in/model' -t bytes --max-tokens 5 --temperature 0"
  shell "eval-ppl -q -m '$in/model' --json '$in/valid.shard.zst' >/dev/full"
  [ "$(cat alone/code)" -eq 74 ]
  shell "eval-ppl -q -m '$in/model' --json '$in/valid.shard.zst' >&-"
  [ "$(cat alone/code)" -ne 0 ]
  shell "eval-ppl -q -m '$in/model' --json <(cat '$in/valid.shard.zst') 3>&- 5>five -o /dev/fd/5"
  shell "eval-ppl -q -m '$in/model' --config <(echo 'window = 16') --json '$in/valid.shard.zst'"
  shell "mkdir a && cd a && umask 077 && eval-ppl -q -m '$in/model' --json '$in/valid.shard.zst' -o ../figures"
  grep -q 'figures 600' alone.files
  shell "TMPDIR=\$PWD/nowhere build-datastore -q -m '$in/model' '$in/valid.shard.zst' -o s; TMPDIR=\$PWD train -q -m x"
  shell "while :; do echo The work; done | sample -m '$in/model' -t bytes --max-tokens 5 | head -n 3; echo \${PIPESTATUS[*]} | sed 's/^[0-9]* //'"
  grep -q '^141 0$' alone/out
}

@test "the front's signals reach the run, and the run's end the front" {
  long=(train -q -j 1 --layers 1 --d-model 8 --heads 2 --context 32 --segment 16 --steps 1000000 --log-every 1 "$in/train.shard.zst")
  export TESSERA_FORK_SERVERS=$servers
  for signal in TERM INT; do
    stops_at $signal "run.$signal" env --default-signal=INT "${long[@]}" -o "run.$signal"
  done
  stops_at TERM ignores bash -c "trap '' INT; exec \"\$@\"" in "${long[@]}" -o ignores
  # Killed, the front ends at once, and so does the run.
  "${long[@]}" -o killed &
  pid=$!
  while [ ! -s killed/metrics.jsonl ]; do sleep 0.02; done
  run=$(forks)
  [ -n "$run" ]
  kill -KILL $pid
  wait $pid || [ $? -eq 137 ]
  for _ in {1..500}; do
    [ -e "/proc/$run" ] || break
    sleep 0.02
  done
  [ ! -e "/proc/$run" ]
  # A run that is killed ends its front in the same way.
  "${long[@]}" -o killed &
  pid=$!
  until run=$(forks); do sleep 0.02; done
  kill -SEGV "$run"
  wait $pid || code=$?
  [ "$code" -eq 139 ]
}

@test "what a library reads when it is loaded, limits and namespaces: no server that differs is used" {
  export TESSERA_FORK_SERVERS=$servers
  held=(sample -q -m "$in/model" -t bytes --max-tokens 3) # waits for its text
  # uses COMMAND...: does it run in the server, and not load the library itself?
  uses() {
    local code=''
    rm -f text
    mkfifo text
    "$@" "${held[@]}" <text >/dev/null &
    exec 7>text
    until [ -n "$code" ]; do
      [ -z "$(forks)" ] || code=0
      ! grep -q libtessera.so "/proc/$!/maps" || code=1
    done
    echo 'The work' >&7
    exec 7>&-
    wait $!
    return "$code"
  }
  uses env
  run -1 uses env OMP_NUM_THREADS=2
  run -1 uses env -u OMP_NUM_THREADS
  run -1 uses env ATEN_CPU_CAPABILITY=default
  run -1 uses env MALLOC_ARENA_MAX=1
  run -1 uses bash -c 'ulimit -n 500 && exec "$@"' in
  run -1 uses env LD_PRELOAD=libm.so.6
  # This one removes LD_PRELOAD from the environment.
  run -1 uses env LD_PRELOAD="$BIN/../tests/libfaults.so"
  uses env TESSERA_ANYTHING=1
}
