#!/usr/bin/env bats
# bats file_tags=nightly
# tokenize beside tiktoken and Hugging Face's tokenizers, on real text.
#
# TESSERA_PEERS: a python with those modules; TESSERA_DATA: a folder of real text.
# TESSERA_FULL=1 compares whole files instead of their first half MiB, and 100,000 random texts instead of 5,000.

bats_require_minimum_version 1.5.0

setup() {
  root=$(cd "$BATS_TEST_DIRNAME/../../.." && pwd)
  BIN=${BIN:-$root/build/bin}
  PATH=$BIN:$PATH
  python=${TESSERA_PEERS:-$root/build/peers/bin/python}
  [ -x "$python" ] || python=python3
  data=${TESSERA_DATA:-$root/../shared/data}
  bytes=524288
  [ -z "${TESSERA_FULL:-}" ] || bytes=1000000000
  cd "$BATS_TEST_TMPDIR"
}

need_module() {
  "$python" -c "import $1" 2>/dev/null || skip "python module $1 is missing (TESSERA_PEERS names a python that has it)"
}

need_data() {
  [ -e "$data/$1" ] || skip "$1 is missing (TESSERA_DATA names a folder that has it)"
}

peer() {
  "$python" "$BATS_TEST_DIRNAME/peer.py" "$@"
}

# The ids of tokenize as uint32.
ids() { # tokenizer file
  tokenize -q -t "$1" --end-of-document none "$2" | shard cat |
    "$python" -c 'import array, sys; array.array("I", map(int, sys.stdin)).tofile(sys.stdout.buffer)'
}

gpt2() {
  tokenize -q --import "$data/gpt2-tokenizer/encoder.json" "$data/gpt2-tokenizer/vocab.bpe" -o gpt2.json
}

# Samples of every text there is.
samples() {
  local file
  while read -r file; do
    peer sample "$file" "$bytes" >"$(basename "$file").sample"
  done < <(find "$data" -type f ! -name '*.u16.zst' ! -name '*.md' ! -path '*/gpt2-tokenizer/*' | sort)
}

@test "GPT-2: the stored ids of the sample" {
  need_data gpt2-tokenizer
  gpt2
  for text in sample hard; do
    tokenize -q -t gpt2.json --end-of-document none "$BATS_TEST_DIRNAME/$text.txt" | shard cat | tr '\n' ' ' |
      cmp - <(tr '\n' ' ' <"$BATS_TEST_DIRNAME/$text.gpt2.ids")
  done
}

@test "GPT-2: stories that others encoded" {
  need_data gpt2-tokenizer
  need_data tinystories
  command -v zstd >/dev/null || skip "zstd is not installed"
  gpt2
  for part in train valid; do
    zstd -dc "$data/tinystories/$part.txt.zst" |
      tokenize -q -t gpt2.json --document-separator '<|endoftext|>' | zstd -dc |
      cmp - <(zstd -dc "$data/tinystories/$part.gpt2.u16.zst")
  done
}

@test "GPT-2: tiktoken's ranks make the same tokenizer as the two files" {
  need_data gpt2-tokenizer
  gpt2
  tokenize -q --import "$data/gpt2-tokenizer/r50k_base.tiktoken" | cmp - gpt2.json
}

@test "WikiText-2: tokens and types" {
  need_data wikitext-2
  command -v zstd >/dev/null || skip "zstd is not installed"
  for part in train valid test; do zstd -dcq "$data/wikitext-2/$part.txt.zst" -o $part.txt; done
  tokenize --learn word train.txt -o word.json 2>notes
  grep -q ' 33278 tokens' notes
  for part in train:2088628 valid:217646 test:245569; do
    tokenize -q --json -t word.json ${part%:*}.txt -o x.shard.zst 2>report
    grep -q "\"tokens\":${part#*:}," report
    grep -q "\"words\":${part#*:}," report
  done
}

@test "GPT-2: tiktoken's ids of every text" {
  need_module tiktoken
  need_data gpt2-tokenizer
  gpt2
  samples
  for text in *.sample; do
    ids gpt2.json "$text" >ours
    peer tiktoken "$data/gpt2-tokenizer/r50k_base.tiktoken" "$text" | cmp - ours || { echo "$text" && return 1; }
  done
}

@test "RWKV's World: the ids that RWKV's own tokenizer gives, of every text" {
  need_module rwkv
  local vocabulary
  vocabulary=$("$python" -c 'import rwkv; print(rwkv.__path__[0])')/rwkv_vocab_v20230424.txt
  tokenize -q --import "$vocabulary" -o world.json
  samples
  for text in *.sample "$BATS_TEST_DIRNAME"/{sample,hard}.txt; do
    ids world.json "$text" >ours
    peer world "$vocabulary" "$text" | cmp - ours || { echo "$text" && return 1; }
  done
}

@test "bytes, word, bpe, GPT-2: the ids that tokenizers gives with the same tokenizer.json" {
  need_module tokenizers
  need_data tinystories
  samples
  cat ./*.sample | head -c 3000000 >all
  tokenize -q --learn bpe --vocab-size 8000 all -o bpe.json
  tokenize -q --learn word --vocab-size 20000 all -o word.json
  tokenize -q --export json -t bytes -o bytes.json
  gpt2
  for name in bytes word bpe gpt2; do
    peer hf $name.json ./*.sample >theirs
    for text in ./*.sample; do ids $name.json "$text"; done | cmp - theirs || { echo "$name" && return 1; }
  done
}

@test "units: the ids that tokenizers gives with the same tokenizer.json" {
  need_module tokenizers
  printf '#version: 0.2\nt h\nth e</w>\ni n\nr e\nin g</w>\nth e\nl l\no n\n' >codes
  tokenize -q --import codes -o units.json
  for text in sample hard; do
    peer hf units.json "$BATS_TEST_DIRNAME/$text.txt" | cmp - <(ids units.json "$BATS_TEST_DIRNAME/$text.txt")
  done
}

# Every pipeline that people's models have, with vocabularies of the very texts that are hard: where a text is split matters
# then. The tokenizer as it is written here must mean the same to tokenizers.
@test "pipelines of other people: the ids that tokenizers gives, on hard text and random Unicode" {
  need_module tokenizers
  pipelines() { "$python" "$BATS_TEST_DIRNAME/pipelines.py" "$@"; }
  local n=5000
  [ -z "${TESSERA_FULL:-}" ] || n=100000
  pipelines random 1 $((n < 20000 ? n : 20000)) >train.jsonl
  "$python" -c 'import json, sys
sys.stdout.reconfigure(encoding="utf-8", newline="")
for line in open(sys.argv[1], encoding="utf-8"): sys.stdout.write(json.loads(line)["text"])' train.jsonl >train.txt
  mkdir learned
  pipelines make learned 20000 train.txt "$BATS_TEST_DIRNAME/sample.txt"
  { pipelines texts "$BATS_TEST_DIRNAME/hard.txt" "$BATS_TEST_DIRNAME/sample.txt" && pipelines random 2 "$n"; } >texts.jsonl
  for tokenizer in learned/*.json; do
    pipelines ids "$tokenizer" texts.jsonl >theirs
    tokenize -q -t "$tokenizer" --end-of-document none texts.jsonl -o x.shard.zst
    shard cat --by-document x.shard.zst | cmp - theirs || { echo "$tokenizer" && return 1; }
    tokenize -q --export json -t "$tokenizer" -o again.json
    head -n 1000 texts.jsonl >some.jsonl
    pipelines ids again.json some.jsonl | cmp - <(head -n 1000 theirs) || { echo "$tokenizer written again" && return 1; }
  done
}

@test "learned bpe: the merges of Hugging Face's trainer" {
  need_module tokenizers
  need_data tinyshakespeare
  peer sample "$data/tinyshakespeare/input.txt.zst" 400000 >text
  tokenize -q --learn bpe --vocab-size 3000 text | tokenize -q --export gpt2 -t - -o gpt2
  peer train 3000 text | cmp - <(tail -n +2 gpt2/merges.txt)
}

@test "exported files: transformers' GPT-2 tokenizer gives the same ids" {
  need_module transformers
  tokenize -q --export gpt2 -t "$BATS_TEST_DIRNAME/bpe.json" -o gpt2
  "$python" - gpt2 "$BATS_TEST_DIRNAME" <<'PY'
import sys
from transformers import GPT2Tokenizer

tokenizer = GPT2Tokenizer(sys.argv[1] + "/vocab.json", sys.argv[1] + "/merges.txt")
with open(sys.argv[2] + "/hard.txt", encoding="utf-8", newline="") as file:
    ids = tokenizer.encode(file.read())
with open(sys.argv[2] + "/hard.bpe.ids", encoding="ascii") as file:
    assert ids == [int(number) for number in file.read().split()]
PY
}
