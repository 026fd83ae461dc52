#!/usr/bin/env bash
# serve/*: 64 clients that ask three questions each behind one system text, beside llama.cpp's server with the same model,
# threads and texts at once: requests a second, the median and the 99th percentile of the time to an answer, and the peak of
# resident memory. Once with the types that both servers store as 8 bits, once with float32. CLIENTS, REQUESTS (of a client),
# TOKENS (of an answer), SLOTS and THREADS change the load, MODEL names another GGUF file.
set -euo pipefail
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

has_peer xllamacpp || exit 0
found=("$(dirname "$0")"/../../.deps/model/*.gguf)
model=${MODEL:-${found[0]}}
[ -e "$model" ] || { echo "serve.sh: no GGUF of SmolLM2; tools/setup model brings one: its figures are left out" >&2 && exit 0; }
here=$(dirname "$0")
work=$(mktemp -d)
threads=${THREADS:-$(nproc)} slots=${SLOTS:-32}
server=
stop() {
  if [ -n "$server" ] && kill -0 "$server" 2>/dev/null; then kill "$server"; fi
  rm -rf "$work"
}
trap stop EXIT
for type in float32 q8_0; do model export -q "$model" --output-format gguf --dtype "$type" -o "$work/$type.gguf" >/dev/null; done

load() { # ADDRESS: the clients' figures
  "$PEERS" "$here/serve_clients.py" "$1" "${CLIENTS:-64}" "${REQUESTS:-3}" "${TOKENS:-32}"
}
ours() { # NAME WEIGHTS
  serve -m "$model" --dtype "$2" -j "$threads" --batch "$slots" --connections 256 --port 0 2>"$work/log" &
  server=$!
  until grep -q 'listening on' "$work/log"; do kill -0 "$server" && sleep 0.2; done
  load "$(sed -n 's/.*listening on //p' "$work/log")" >"$work/$1"
  awk '/^VmHWM/ { print $2 / 1024 }' "/proc/$server/status" >"$work/$1.peak"
  kill "$server" && wait "$server"
  server=
}
theirs() { # NAME FILE
  mkfifo "$work/$1.in" "$work/$1.out"
  "$PEERS" "$here/llama_peer.py" serve "$2" "$threads" "$slots" <"$work/$1.in" >"$work/$1.out" 2>/dev/null &
  server=$!
  exec 8>"$work/$1.in" 9<"$work/$1.out"
  read -r address <&9
  load "$address" >"$work/$1"
  exec 8>&-
  read -r peak <&9
  exec 9<&-
  echo "$peak" >"$work/$1.peak"
  wait "$server"
  server=
}
beside() { # WEIGHTS TYPE NAME
  ours "ours-$1" "$1"
  theirs "theirs-$2" "$work/$2.gguf"
  of() { member "$2" <"$work/$1"; }
  figure "serve/requests-$1" requests/s "$(of "ours-$1" requests_per_s)" "llama.cpp's server $3" "$(of "theirs-$2" requests_per_s)"
  figure "serve/tokens-$1" tokens/s "$(of "ours-$1" tokens_per_s)" "llama.cpp's server $3" "$(of "theirs-$2" tokens_per_s)"
  figure "serve/p50-$1" s "$(of "ours-$1" p50)" "llama.cpp's server $3" "$(of "theirs-$2" p50)" lower
  figure "serve/p99-$1" s "$(of "ours-$1" p99)" "llama.cpp's server $3" "$(of "theirs-$2" p99)" lower
  figure "serve/peak-$1" MB "$(cat "$work/ours-$1.peak")" "llama.cpp's server $3" "$(cat "$work/theirs-$2.peak")" lower
}
beside float32 float32 F32
beside int8 q8_0 Q8_0
