#!/usr/bin/env bash
# train/ranks: tokens a second of 2 and 4 processes with a thread each beside one process with two threads, and what an update
# sends over the network. Turn by turn; the medians of three rounds are compared. Needs two cores.
set -euo pipefail
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
novels_bpe "$work"
tokenize -q -t "$work/tokenizer.json" "$work/text" -o "$work/text.shard.zst"

updates=8
run() { # THREADS [FLAG...]
  local threads=$1
  shift
  train -q -j "$threads" --layers 4 --d-model 256 --heads 4 --batch 8 --segment 512 --accumulate 4 --dropout 0 \
    --steps "$updates" --log-every 2 "$@" -o "$work/model" "$work/text.shard.zst"
}
sent() { awk '$1 == "lo:" { print $10 }' /proc/net/dev; }
speed() { # NAME: of the run that ended, the reports after the first
  sed 1d "$work/model/timings.jsonl" | member tokens_per_s | median >>"$work/$1.speed"
  rm -rf "$work/model"
}
ranks() { # SIZE
  local rank before
  before=$(sent)
  for ((rank = 1; rank < $1; ++rank)); do
    MASTER_ADDR=127.0.0.1 MASTER_PORT=29517 RANK=$rank WORLD_SIZE=$1 run 1 --ranks launcher &
  done
  MASTER_ADDR=127.0.0.1 MASTER_PORT=29517 RANK=0 WORLD_SIZE=$1 run 1 --ranks launcher
  wait
  echo $((($(sent) - before) / updates)) >>"$work/$1.bytes"
  speed "$1"
}

for _ in 1 2 3; do
  run 2
  speed 1
  ranks 2
  ranks 4
done
for size in 2 4; do
  figure "train/ranks-$size" tokens/s "$(median <"$work/$size.speed")" "one process" "$(median <"$work/1.speed")"
done
figure train/ranks-bytes bytes/update "$(median <"$work/4.bytes")" "two ranks" "$(median <"$work/2.bytes")" lower
