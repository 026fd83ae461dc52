#!/usr/bin/env bash
# tokenize/*: MB of text a second. The whole program, from JSON lines to a shard, one thread, beside tiktoken's and
# tokenizers' encode alone: GPT-2, and its merges behind the splitters of Llama 3 and of Qwen 2 (with the NFC that goes before
# it, which tiktoken leaves to others); every kind of tokenizer; decoding; learning a BPE beside tokenizers' trainer. CPU
# seconds are compared where one thread works, since whatever else runs then counts less.
#
# tokenize/worst-*: the slowest of texts that are one long run of something, WORST_MB [10] MB each, beside as much English.
#
# TESSERA_DATA: a folder with enwiki-text/train.jsonl.zst and gpt2-tokenizer; without it the rest is not measured.
set -euo pipefail
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

root=$(cd "$(dirname "$0")/../.." && pwd)
data=${TESSERA_DATA:-$root/../shared/data}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
peer=$(dirname "$0")/tokenize_peer.py
TIMEFORMAT='%U %S %R'

# Texts as worst cases: NAME and what is repeated.
long_run() { python3 -c 'import sys; s = sys.argv[1].encode(); sys.stdout.buffer.write(s * (int(sys.argv[2]) // len(s)))' "$@"; }
worst_bytes=$((${WORST_MB:-10} * 1000000))
novels_bpe "$work"
while [ "$(stat -c %s "$work/text")" -lt "$worst_bytes" ]; do
  cat "$work/text" "$work/text" >"$work/twice" && mv "$work/twice" "$work/text"
done
mkdir "$work/worst"
head -c "$worst_bytes" "$work/text" | iconv -c -f utf-8 -t utf-8 >"$work/english"
long_run a "$worst_bytes" >"$work/worst/letters"
long_run 1 "$worst_bytes" >"$work/worst/digits"
long_run ' ' "$worst_bytes" >"$work/worst/spaces"
long_run $'\n' "$worst_bytes" >"$work/worst/newlines"
long_run "'" "$worst_bytes" >"$work/worst/quotes"
long_run $'e\u0301\u0323' "$worst_bytes" >"$work/worst/marks"
long_run $'\U1F469\u200D' "$worst_bytes" >"$work/worst/emoji"
seconds() { # TOKENIZER FILE
  { time tokenize -q -j1 --format text -t "$1" "$2" -o "$work/x.shard.zst" 2>&3; } 3>&2 2>&1 | awk '{ print $1 + $2 }'
}
# worst NAME TOKENIZER: the row of a tokenizer.
worst() {
  local text english slowest=0 took
  english=$(seconds "$2" "$work/english")
  for text in "$work"/worst/*; do
    took=$(seconds "$2" "$text")
    slowest=$(printf '%s\n' "$slowest" "$took" | sort -g | tail -n 1)
  done
  figure "tokenize/worst-$1" MB/s "$(awk -v b="$worst_bytes" -v s="$slowest" 'BEGIN { print b / 1e6 / s }')" "English text" \
    "$(awk -v b="$worst_bytes" -v s="$english" 'BEGIN { print b / 1e6 / s }')"
}
worst gpt2 "$work/tokenizer.json"
for splitter in llama3 qwen2 o200k deepseek; do
  python3 "$peer" with "$work/tokenizer.json" "$splitter" >"$work/worst-$splitter.json"
  worst "$splitter" "$work/worst-$splitter.json"
done
# Digits from the right, by a machine; words, numbers and the rest, by PCRE2.
python3 "$peer" pattern "$work/tokenizer.json" '\p{N}{1,3}(?=(?:\p{N}{3})*(?:\P{N}|$))|\P{N}+' >"$work/groups.json"
worst digit-groups "$work/groups.json"
python3 "$peer" pattern "$work/tokenizer.json" ' ?\p{L}+| ?\p{N}{1,4}|\s+(?!\S)|\s+|[^\s\p{L}\p{N}]+' >"$work/pattern.json"
worst pcre2 "$work/pattern.json"

[ -e "$data/enwiki-text/train.jsonl.zst" ] || {
  echo "tokenize.sh: $data/enwiki-text is missing (TESSERA_DATA): its figures are left out" >&2
  exit 0
}
gpt2=$data/gpt2-tokenizer
zstd -dcq "$data/enwiki-text/train.jsonl.zst" >"$work/text.jsonl"
tokenize -q --import "$gpt2/encoder.json" "$gpt2/vocab.bpe" -o "$work/gpt2.json"
tokenize -q --learn word --vocab-size 50000 --format jsonl "$work/text.jsonl" -o "$work/word.json"
bytes=$(tokenize --json -q -t bytes --format jsonl "$work/text.jsonl" -o "$work/bytes.shard.zst" 2>&1 | member bytes)

for splitter in llama3 qwen2; do python3 "$peer" with "$work/gpt2.json" "$splitter" >"$work/$splitter.json"; done

# rate NAME WHICH COMMAND...: MB of text a second of CPU time (cpu) or of the clock (real), added to the file NAME.
rate() {
  local name=$1 which=$2
  shift 2
  { time "$@" >/dev/null 2>&1; } 2>&1 | awk -v bytes="$bytes" -v which="$which" \
    '{ print bytes / 1e6 / (which == "cpu" ? $1 + $2 : $3) }' >>"$work/$name.rates"
}
best() { sort -g "$work/$1.rates" | tail -n 1; }
theirs() { "$PEERS" "$peer" "$@" "$work/text.jsonl" >>"$work/$1.rates"; }

jsonl=(--format jsonl "$work/text.jsonl")
for _ in 1 2 3; do
  rate gpt2 cpu tokenize -q -j1 -t "$work/gpt2.json" "${jsonl[@]}" -o "$work/gpt2.shard.zst"
  has_peer tiktoken && theirs tiktoken "$gpt2/r50k_base.tiktoken"
  for splitter in llama3 qwen2; do
    rate "ours-$splitter" cpu tokenize -q -j1 -t "$work/$splitter.json" "${jsonl[@]}" -o "$work/x.shard.zst"
    has_peer tiktoken && theirs "$splitter" "$gpt2/r50k_base.tiktoken"
  done
  rate gpt2-j1 real tokenize -q -j1 -t "$work/gpt2.json" "${jsonl[@]}" -o "$work/x.shard.zst"
  rate gpt2-all real tokenize -q -t "$work/gpt2.json" "${jsonl[@]}" -o "$work/x.shard.zst"
  rate bytes cpu tokenize -q -j1 -t bytes "${jsonl[@]}" -o "$work/x.shard.zst"
  rate word cpu tokenize -q -j1 -t "$work/word.json" "${jsonl[@]}" -o "$work/x.shard.zst"
  rate decode cpu tokenize -q --decode "$work/gpt2.shard.zst" -o "$work/back"
  rate copy cpu shard merge "$work/gpt2.shard.zst" -o "$work/x.shard.zst"
done
rate learn real tokenize -q -j1 --learn bpe --vocab-size 32000 "${jsonl[@]}" -o "$work/learned.json"

if has_peer tiktoken; then
  figure tokenize/gpt2 MB/s "$(best gpt2)" "tiktoken encode" "$(best tiktoken)"
fi
for splitter in llama3 qwen2; do
  if has_peer tiktoken; then figure "tokenize/$splitter" MB/s "$(best "ours-$splitter")" "tiktoken encode" "$(best "$splitter")"; fi
done
figure "tokenize/gpt2-$(nproc)-threads" MB/s "$(best gpt2-all)" "one thread" "$(best gpt2-j1)"
# What reading and writing the same shard costs is the bound of these.
for name in bytes word decode; do
  figure "tokenize/$name" MB/s "$(best "$name")" "shard merge of GPT-2's ids" "$(best copy)"
done
if has_peer tokenizers; then
  theirs tokenizers "$work/gpt2.json"
  figure tokenize/gpt2-tokenizers MB/s "$(best gpt2)" "tokenizers encode" "$(best tokenizers)"
  theirs parallel "$work/gpt2.json"
  figure tokenize/gpt2-parallel MB/s "$(best gpt2-all)" "tokenizers encode_batch, $(nproc) threads" "$(best parallel)"
  theirs train 32000
  figure tokenize/learn-bpe MB/s "$(best learn)" "tokenizers trainer" "$(best train)"
fi
