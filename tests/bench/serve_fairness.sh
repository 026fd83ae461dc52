#!/usr/bin/env bash
# serve/longest-wait-*: the longest time between two tokens of a stream while another client's long request is answered, beside
# the stream alone: a prompt that fills the window, log-probabilities of SCORED tokens, and several prompts at once. And
# serve/memory-after-burst: resident memory after CLIENTS clients of 4 MB bodies, beside before. The model is a Llama of bytes
# with random weights of WIDTH and LAYERS; MODEL names another folder or GGUF file, DTYPE another --dtype. THREADS are the server's.
set -euo pipefail
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

here=$(dirname "$0")
work=$(mktemp -d)
server=
stop() {
  if [ -n "$server" ] && kill -0 "$server" 2>/dev/null; then kill "$server"; fi
  rm -rf "$work"
}
trap stop EXIT
width=${WIDTH:-768} layers=${LAYERS:-12} window=${WINDOW:-2048}
model=${MODEL:-$work/model}
[ -n "${MODEL:-}" ] || "$here"/../cli/tiny_llama "$model" "$window" 1 "{\"vocab_size\": 32768, \"hidden_size\": $width,
  \"intermediate_size\": $((width * 3)), \"num_hidden_layers\": $layers, \"num_attention_heads\": 12, \"num_key_value_heads\": 12}"
tokenizer=()
[ -n "${MODEL:-}" ] || tokenizer=(-t bytes)
: >"$work/log"
serve -m "$model" "${tokenizer[@]}" --dtype "${DTYPE:-float32}" -j "${THREADS:-$(nproc)}" --max-tokens 1000000 --connections 128 --port 0 2>"$work/log" &
server=$!
until grep -q 'listening on' "$work/log"; do kill -0 "$server" && sleep 0.2; done
python3 "$here/serve_fairness.py" "$(sed -n 's/.*listening on //p' "$work/log")" "$server" "${SCORED:-20000}" "${CLIENTS:-64}" >"$work/told"
of() { member "$1" <"$work/told"; }
for what in prompt prompts scored; do
  figure "serve/longest-wait-$what" s "$(of "$what")" 'the stream alone' "$(of alone)" lower
done
figure serve/memory-after-burst MB "$(of after)" before "$(of before)" lower
