#!/usr/bin/env bats
# The ports of ranks: who can reach them, and what a program that has no business there can do.

load helpers
load processes

setup_file() {
  unset TESSERA_FORK_SERVERS # ranks are killed
  cd "$BATS_FILE_TMPDIR"
  text_shards 3000 600
}

setup() {
  needs train
  data=$BATS_FILE_TMPDIR
  tiny=(--layers 1 --d-model 16 --heads 2 --segment 32 --batch 4 --accumulate 2 --log-every 1 -q -j 1 --rank-timeout 60)
  port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
  stranger=$root/tests/cli/stranger
  export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port
  cd "$BATS_TEST_TMPDIR"
}

# both_start OPTION...: ranks 0 and 1, whose process numbers are in the array pids.
both_start() {
  RANK=0 train "${tiny[@]}" --ranks launcher "$@" "$data/train.shard.zst" 2>said.0 &
  pids=($!)
  RANK=1 train "${tiny[@]}" --ranks launcher "$@" "$data/train.shard.zst" 2>said.1 &
  pids+=($!)
}

# both_end CODE
both_end() {
  local rank code
  for rank in 0 1; do
    code=0
    wait "${pids[rank]}" || code=$?
    [ "$code" -eq "$1" ] || { echo "rank $rank ended with $code" && cat said.* && return 1; }
  done
}

# nobody_enters: both listen on the loopback alone, not at MASTER_PORT, and take no connection.
nobody_enters() {
  local address entry
  "$stranger" listening "${pids[@]}" >listening
  [ -s listening ]
  while read -r address entry; do
    [ "$address" = 127.0.0.1 ]
    [ "$entry" -ne "$port" ]
    run -1 "$stranger" enter "$entry"
  done <listening
}

@test "once ranks are linked, they listen on the loopback alone and nobody else can connect" {
  local way
  for way in auto tcp; do
    export TESSERA_RANKS_MEET=$way
    both_start --steps 1000000 -o "$way"
    wait_for "$way/metrics.jsonl"
    nobody_enters
    kill -TERM "${pids[0]}"
    both_end 75
  done
}

@test "a rank that waits for others on one machine listens on no port" {
  RANK=0 train "${tiny[@]}" --ranks launcher --steps 1 -o model "$data/train.shard.zst" &
  pids=($!)
  for _ in {1..300}; do
    ! grep -q "@tessera-ranks-$(id -u)-$port-" /proc/net/unix || break
    sleep 0.1
  done
  grep -q "@tessera-ranks-$(id -u)-$port-" /proc/net/unix
  [ -z "$("$stranger" listening "${pids[0]}")" ]
  kill -KILL "${pids[0]}"
  wait "${pids[0]}" || [ $? -eq 137 ]
  # The name went with its process.
  both_start --steps 1 -o model
  both_end 0
}

@test "strangers at the port of a meeting: the ranks end with the same bytes, in as much memory" {
  train "${tiny[@]}" --steps 4 -o one "$data/train.shard.zst"
  export TESSERA_RANKS_MEET=tcp TESSERA_RANKS_KEY='only the ranks know it'
  RANK=0 train "${tiny[@]}" --ranks launcher --steps 4 -o two "$data/train.shard.zst" 2>said.0 &
  pids=($!)
  for _ in {1..300}; do
    [ -z "$("$stranger" listening "${pids[0]}")" ] || break
    sleep 0.1
  done
  [ "$("$stranger" listening "${pids[0]}")" = "127.0.0.1 $port" ]
  "$stranger" flood "$port" "${pids[0]}" >grown
  # Some that stay: they connect, say nothing and do not leave.
  python3 -c 'import socket, sys, time
idle = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for i in range(300)]
print("there", flush=True)
time.sleep(600)' "$port" >idle &
  local crowd=$!
  wait_for idle
  RANK=1 train "${tiny[@]}" --ranks launcher --steps 4 -o two "$data/train.shard.zst" 2>said.1 &
  pids+=($!)
  both_end 0
  kill "$crowd"
  same one two
  [ "$(cat grown)" -lt 64 ]
}
