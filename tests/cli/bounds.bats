#!/usr/bin/env bats
# Absurd input: sizes of a terabyte, deep JSON, shapes that no machine holds, weights that are no numbers, ids beyond the
# vocabulary. Each is one line that names the file, exit 65 (78 of a configuration), in little memory.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
}

setup() {
  cd "$BATS_TEST_TMPDIR"
  golden=$root/tests/golden
}

# refuses CODE WORDS COMMAND...: in one line, and within 300 MB of address space (programs that link torch: 16 GB).
refuses() {
  local code=$1 words=$2 most=300000 # KiB
  shift 2
  case $1 in train | eval-ppl | sample) most=16000000 ;; esac
  run --separate-stderr bash -c 'ulimit -v "$0" && exec "$@"' "$most" "$@"
  # shellcheck disable=SC2154  # stderr is bats'
  [ "$status" -eq "$code" ] && [[ $stderr == "$1: "*"$words"* ]] && [ "$(wc -l <<<"$stderr")" -eq 1 ] && [ -z "$output" ] ||
    { echo "$*: exit $status: $stderr" && return 1; }
}

# put FILE OFFSET FORMAT NUMBER: writes a number as Python's struct packs it.
put() {
  python3 -c 'import struct, sys
with open(sys.argv[1], "r+b") as file:
    file.seek(int(sys.argv[2]))
    file.write(struct.pack("<" + sys.argv[3], int(sys.argv[4])))' "$@"
}

deep() { # levels
  python3 -c 'import sys; n = int(sys.argv[1]); print("[" * n + "]" * n)' "$1"
}

@test "a terabyte in a shard's header, trailer and seek table" {
  cp "$golden/shard/tokens.shard.zst" good
  for at in 4 20 24; do # bytes of the header frame, of its JSON, of its tokenizer
    cp good x
    put x "$at" I 4294967295
    refuses 65 "x: " shard info x
    refuses 65 "x: " shard verify x
    refuses 65 "stdin: " shard cat - <x
  done
  size=$(stat -c %s good)
  cp good x
  put x $((size - 9)) I 4294967295 # frames in the seek table
  refuses 65 "x: " shard info x
  tail=$(grep -abo TESSTAIL good | cut -d : -f 1)
  for field in 8 16; do # elements, documents
    cp good x
    put x $((tail + field)) Q 1099511627776
    refuses 65 "x: " shard info x
    refuses 65 "stdin: " shard verify - <x
  done
}

@test "a terabyte in an array's header" {
  printf "\x93NUMPY\x01\x00\x76\x00%-117s\n" "{'descr': '<u2', 'fortran_order': False, 'shape': (549755813888,), }" >x.npy
  refuses 65 "x.npy: cut short" shard import --vocabulary 10 x.npy
  head -c 1024 /dev/zero >x.bin
  put x.bin 0 I 20240801
  put x.bin 4 I 7
  put x.bin 8 I 2147483647
  refuses 65 "x.bin: cut short" shard import --vocabulary 10 x.bin
}

@test "deep JSON" {
  deep 1000000 >deep.json
  refuses 65 "deep.json: " tokenize -t deep.json /dev/null
  echo '{"text": '"$(deep 100000)"'}' >deep.jsonl
  refuses 65 "deep.jsonl:1: " tokenize -t bytes --format jsonl deep.jsonl
  { printf 'names = ' && deep 100000; } >deep.conf
  refuses 78 "deep.conf:1: " shard info --config deep.conf
  { printf '{"seed": ' && deep 100000 && printf '}'; } | tr -d '\n' >deep.conf
  refuses 78 "deep.conf: " shard info --config deep.conf
}

@test "a tokenizer with an id beyond all bounds, ids beyond the tokenizer" {
  printf '{"a": 0, "b": 4000000000}' >encoder.json
  printf '#version: 0.2\n' >vocab.bpe
  refuses 65 "encoder.json" tokenize --import encoder.json vocab.bpe
  python3 -c 'import base64
for i in range(256): print(base64.b64encode(bytes([i])).decode(), i if i < 255 else 99999999999)' >x.tiktoken
  refuses 65 "x.tiktoken" tokenize --import x.tiktoken
  printf '\1\2' >x.bin
  refuses 65 "x.bin: id 513 at position 0 is not below the vocabulary size 256" shard import --format nanogpt -t bytes x.bin
}

@test "a model: absurd shapes, a terabyte of weights, weights that are no numbers, another vocabulary" {
  needs train
  needs eval-ppl
  needs sample
  head -c 2000 "$golden/tokenizers/sample.txt" | tokenize -q -t bytes -o x.shard.zst
  train -q -j 1 --layers 1 --d-model 8 --heads 1 --segment 16 --batch 2 --steps 1 x.shard.zst -o good
  with() { # KEY VALUE: a copy of the model whose configuration says so
    rm -rf model && cp -r good model
    python3 -c 'import json, sys
with open("model/config.json") as file: config = json.load(file)
shape = config["tessera"]["model"]
assert sys.argv[1] in shape, shape
shape[sys.argv[1]] = int(sys.argv[2])
with open("model/config.json", "w") as file: json.dump(config, file)' "$@"
  }
  for key in layers d_model d_ff; do
    for value in 1000000000 9000000000000000000 -1; do
      with "$key" "$value"
      for program in "eval-ppl -m model x.shard.zst" "sample -m model --prompt a --max-tokens 1"; do
        # shellcheck disable=SC2086  # words
        run --separate-stderr bash -c 'ulimit -v 16000000 && exec $0' "$program"
        [[ $status == 65 || $status == 78 ]] && [ "$(wc -l <<<"$stderr")" -eq 1 ] ||
          { echo "$key $value: $program: exit $status: $stderr" && return 1; }
      done
    done
  done
  rm -rf model && cp -r good model
  put model/model.safetensors 0 Q 1099511627776
  refuses 65 "model/model.safetensors: " eval-ppl -m model x.shard.zst
  rm -rf model && cp -r good model
  size=$(stat -c %s model/model.safetensors)
  put model/model.safetensors $((size - 4)) I 2143289344 # NaN
  refuses 65 "model/model.safetensors: " eval-ppl -m model x.shard.zst
  refuses 65 "model/model.safetensors: " sample -m model --prompt a
  refuses 65 "model/model.safetensors: " train --from model x.shard.zst -o y
  shard cat --raw x.shard.zst >x.bytes
  head -c $(($(stat -c %s x.bytes) / 2 * 2)) x.bytes >x.bin
  shard import -q --format nanogpt --vocabulary 50257 <(tr '\200-\377' '\0' <x.bin) -o wide.shard.zst
  refuses 65 "wide.shard.zst" eval-ppl -m good wide.shard.zst
  [ ! -e y/model.safetensors ]
}

@test "flags beyond all bounds" {
  needs train
  head -c 2000 "$golden/tokenizers/sample.txt" | tokenize -q -t bytes -o x.shard.zst
  for flags in "--layers 1000000000" "--d-model 1000000000000" "--segment 1T" "--batch 1T" \
    "--d-ff 9000000000000000000" "--layers 60000 --d-model 16M"; do
    # shellcheck disable=SC2086  # words
    run --separate-stderr bash -c 'ulimit -v 16000000 && exec "$@"' bash train $flags --steps 1 x.shard.zst -o z
    [[ $status == 64 || $status == 71 || $status == 78 ]] && [ "$(wc -l <<<"$stderr")" -eq 1 ] ||
      { echo "$flags: exit $status: $stderr" && return 1; }
    rm -rf z
  done
}

# under KIB COMMAND...: within so much address space: 0, or 71 in one line, with nothing half-written.
under() {
  local most=$1
  shift
  rm -rf out
  run --separate-stderr bash -c 'ulimit -v "$0" && exec timeout 20 "$@"' "$most" "$@"
  if [ "$status" -eq 71 ]; then
    [ "$(wc -l <<<"$stderr")" -eq 1 ] && [[ $stderr == "$1: "* ]] && [ -z "$(find . -name 'out*')" ] && return
  fi
  [ "$status" -eq 0 ] || { echo "$most KiB, $*: exit $status: $stderr" && return 1; }
}

@test "tokenize in little address space: fewer threads, or 71" {
  head -c 1000000 /dev/zero >zeros
  tokenize -q -t bytes -j 4 zeros -o whole
  local ok=0 out_of_memory=0
  for most in {9000..12000..250} 14000 20000 40000 80000 200000 800000; do
    bash -c 'ulimit -v "$0" && exec tokenize --help' "$most" >help 2>&1 || continue # the loader needs more
    under "$most" tokenize -q -t bytes -j 4 zeros -o out
    case $status in
    0) cmp out whole && ok=$((ok + 1)) ;;
    71) out_of_memory=$((out_of_memory + 1)) ;;
    esac
  done
  echo "$ok written, $out_of_memory out of memory"
  [ "$ok" -gt 0 ]
  [ "$out_of_memory" -gt 0 ]
}

@test "model import in little address space: 71, and no folder" {
  needs model
  "$root"/tests/cli/pickled_gpt2 small 5
  "$root"/tests/cli/pickled_gpt2 large 20000000
  local most
  for most in 600000 800000 1200000; do # what LibTorch needs to load
    bash -c 'ulimit -v "$0" && exec timeout 10 "$@"' "$most" model import -q small -o "small.$most" && break
  done
  under "$most" model import -q large -o out
  [ "$status" -eq 71 ]
}

@test "without a thread to be had: the work is done in one" {
  needs train
  head -c 3000 "$golden/tokenizers/sample.txt" >text
  threadless() { bash -c 'ulimit -s 8000000 && ulimit -v 4000000 && exec "$@"' bash "$@"; } # a thread needs a stack
  tokenize -q -t bytes text -o x.shard.zst
  threadless tokenize -q -t bytes -j 4 text -o y.shard.zst
  cmp x.shard.zst y.shard.zst
  threadless train -q -j 1 --layers 1 --d-model 8 --heads 1 --segment 16 --batch 2 --steps 2 x.shard.zst -o trained
  [ -e trained/model.safetensors ]
}
