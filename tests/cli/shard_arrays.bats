#!/usr/bin/env bats
# shard import and export: token files of llm.c, nanoGPT and Megatron, NumPy's arrays.

load helpers

setup() {
  golden=$root/tests/golden
  cd "$BATS_TEST_TMPDIR"
}

# numbers FORMAT NUMBER...: their bytes, as Python's struct packs them.
numbers() {
  python3 -c 'import struct, sys
sys.stdout.buffer.write(struct.pack("<%d%s" % (len(sys.argv) - 2, sys.argv[1]), *map(int, sys.argv[2:])))' "$@"
}

# expect CODE WORDS COMMAND...: one line on stderr with these words, that exit code, and no shard.
expect() {
  local code=$1 words=$2
  shift 2
  run --separate-stderr "$@" -o x.shard.zst
  [ "$status" -eq "$code" ] && [[ $stderr == "shard: "*"$words"* ]] && [ ! -e x.shard.zst ] ||
    { echo "$*: exit $status: $stderr" && return 1; }
}

zeros() { head -c "$1" /dev/zero; }

peer_with_numpy() {
  [ -n "${TESSERA_PEERS:-}" ] || skip "TESSERA_PEERS is not set"
  "$TESSERA_PEERS" -c 'import numpy' || skip "TESSERA_PEERS has no numpy"
}

@test "what tokenize made goes out to every format and comes back the same" {
  tokenize -q -t "$golden/tokenizers/bpe.json" --format lines "$golden/tokenizers/sample.txt" -o x.shard.zst
  for format in llm.c nanogpt npy; do
    shard export -q --output-format "$format" x.shard.zst -o out
    shard import -q --format "$format" -t "$golden/tokenizers/bpe.json" out -o back.shard.zst
    shard verify -q back.shard.zst
    cmp <(shard cat --by-document x.shard.zst) <(shard cat --by-document back.shard.zst)
    cmp <(shard info x.shard.zst | grep -E '^(words|fingerprint|vocabulary)') \
      <(shard info back.shard.zst | grep -E '^(words|fingerprint|vocabulary)')
    # Through pipes too.
    cmp out <(shard export -q --output-format "$format" <x.shard.zst)
    cmp <(shard cat x.shard.zst) <(shard import -q --format "$format" -t "$golden/tokenizers/bpe.json" <out | shard cat)
  done
  cmp <(tokenize --decode back.shard.zst) <(tokenize --decode x.shard.zst)
}

@test "llm.c's files, as its scripts write them" {
  { numbers i 20240520 1 5 && zeros 1012 && numbers H 9 1 2 9 3; } >a.bin
  { numbers i 20240520 1 2 && zeros 1012 && numbers H 4 9; } >b.bin
  shard import -q --vocabulary 10 --end-of-document 9 a.bin b.bin -o x.shard.zst
  [ "$(shard cat --by-document x.shard.zst)" = $'9 1 2\n9 3 4\n9' ]
  shard export -q --output-format llm.c --config <(shard export --print-config --output-format llm.c) x.shard.zst -o c.bin
  cmp c.bin <(numbers i 20240520 1 7 && zeros 1012 && numbers H 9 1 2 9 3 4 9)
  { numbers i 20240801 7 2 && zeros 1012 && numbers I 128000 5; } >d.bin
  shard import -q --vocabulary 128256 d.bin -o y.shard.zst
  [ "$(shard cat --by-document y.shard.zst)" = '128000 5' ]
  cmp d.bin <(shard export -q --output-format llm.c y.shard.zst)
}

@test "nanoGPT's files: the mark ends a document; --mark says otherwise" {
  numbers H 1 2 9 3 9 4 >train.bin
  shard import -q --format nanogpt --vocabulary 10 --end-of-document 9 train.bin -o x.shard.zst
  [ "$(shard cat --by-document x.shard.zst)" = $'1 2 9\n3 9\n4' ]
  cmp train.bin <(shard export -q --output-format nanogpt x.shard.zst)
  [ "$(shard import -q --format nanogpt --vocabulary 10 --end-of-document 9 --mark first train.bin | shard cat --by-document)" = $'1 2\n9 3\n9 4' ]
  [ "$(shard import -q --format nanogpt --vocabulary 10 train.bin | shard cat --by-document)" = '1 2 9 3 9 4' ]
}

# index TYPE LENGTHS BEGINS STARTS: an index of Megatron's, each list in one argument.
index() {
  python3 -c 'import struct, sys
lengths, begins, starts = ([int(n) for n in text.split()] for text in sys.argv[2:])
sys.stdout.buffer.write(b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, int(sys.argv[1]), len(lengths), len(starts))
  + struct.pack("<%di" % len(lengths), *lengths) + struct.pack("<%dq" % len(begins), *begins)
  + struct.pack("<%dq" % len(starts), *starts))' "$@"
}

@test "Megatron's pairs come in with their documents and go out the same" {
  index 8 '2 1 3' '0 4 6' '0 1 1 3' >a.idx
  numbers H 1 2 3 4 5 6 >a.bin
  run -0 shard import --vocabulary 50257 a.idx -o x.shard.zst
  [[ $output == *'6 elements in 3 documents' ]]
  [ "$(shard cat --by-document x.shard.zst)" = $'1 2\n\n3 4 5 6' ]
  for name in a a.bin a.idx; do
    [ "$(shard import -q --format megatron --vocabulary 50257 "$name" | shard cat --by-document)" = $'1 2\n\n3 4 5 6' ]
  done
  # A document that was several sequences is one afterwards.
  shard export -q --output-format megatron x.shard.zst -o y.bin
  cmp y.bin a.bin
  cmp y.idx <(index 8 '2 4' '0 4' '0 1 1 2')
  index 8 '2 1 3' '0 4 6' '0 3' >a.idx
  [[ $(shard import --vocabulary 10 a.idx 2>&1 >/dev/null) == *'1 document; 2 boundaries between sequences'* ]]
  index 8 '2 1 3' '0 4 6' '0 1 1 3' >a.idx
  # Of every type of integers.
  for type in 1:B 2:b 3:h 4:i 5:q 8:H; do
    bytes=$(numbers "${type#*:}" 0 | wc -c)
    index "${type%:*}" '2 4' "0 $((2 * bytes))" '0 1 1 2' >t.idx
    numbers "${type#*:}" 1 2 3 4 5 6 >t.bin
    cmp <(shard import -q --vocabulary 7 t.idx | shard cat --by-document) <(shard cat --by-document x.shard.zst)
  done
  # Bytes are uint8, ids of a large vocabulary int32; other formats go before and after.
  printf 'ab\ncd' >text
  tokenize -q -t bytes --format lines text -o b.shard.zst
  shard export -q --output-format megatron b.shard.zst -o b
  cmp b.idx <(index 1 '2 2' '0 2' '0 1 2')
  cmp b.bin <(printf abcd)
  [ "$(shard import -q -t bytes b.idx | shard cat --text)" = $'ab\ncd' ]
  { numbers i 20240801 7 2 && zeros 1012 && numbers I 128000 5; } >d.bin
  [ "$(shard import -q --vocabulary 128256 d.bin a.idx d.bin | tee w.shard.zst | shard cat --by-document)" = $'128000 5\n1 2\n\n3 4 5 6\n128000 5' ]
  shard export -q --output-format megatron w.shard.zst -o w
  [ "$(head -c 18 w.idx | tail -c 1)" = $'\4' ]
  cmp w.bin <(numbers i 128000 5 1 2 3 4 5 6 128000 5)
}

@test "a pair of Megatron's that is wrong is refused by name, and nothing is written" {
  index 8 '2' '0' '0 1' >a.idx
  numbers H 1 >a.bin
  expect 65 "a.bin: cut short at byte 2" shard import --vocabulary 10 a.idx
  numbers H 1 2 3 >a.bin
  expect 65 "a.bin: has data after the 2 numbers" shard import --vocabulary 10 a.idx
  expect 65 "a.bin: neither a file of llm.c nor .npy" shard import --vocabulary 10 a.bin
  numbers H 1 77 >a.bin
  expect 65 "a.bin: id 77 at position 1" shard import --vocabulary 10 a.idx
  numbers h 1 -2 >s.bin
  index 3 '2' '0' '0 1' >s.idx
  expect 65 "s.bin: number 1 is negative" shard import --vocabulary 10 s.idx
  index 7 '2' '0' '0 1' >f.idx
  expect 65 "f.idx: numbers of type 7 (float32)" shard import --vocabulary 10 f.idx
  cp a.idx other
  expect 65 "other: is an index of Megatron; rename it to NAME.idx" shard import --vocabulary 10 other
  rm s.bin
  expect 66 "s.bin" shard import --vocabulary 10 s.idx
  expect 64 "not stdin" shard import --vocabulary 10 --format megatron - <a.idx
  run -64 shard import --vocabulary 100 a.idx -o a.bin
  [[ $output == *a.bin* ]]
  tokenize -q -t bytes a.idx -o x.shard.zst
  run -64 shard export --output-format megatron x.shard.zst
  [[ $output == *"-o NAME is missing"* ]]
  run -64 shard export --output-format megatron "$golden/shard/vectors.shard.zst" -o v
  [[ $output == *"use npy"* ]]
  [ ! -e v.bin ]
  [ ! -e v.idx ]
}

@test "more than 2^31 ids of Megatron's, in sparse files" {
  index 1 '2147483647 5' '0 2147483647' '0 1 2' >big.idx
  truncate -s 2147483652 big.bin
  run -0 shard import --vocabulary 3 big.idx -o big.shard.zst
  [[ $output == *'2147483652 elements in 2 documents'* ]]
  [ "$(shard info --json big.shard.zst | jq -c '[.elements, .documents]')" = '[2147483652,2]' ]
}

# bats test_tags=nightly
@test "NumPy reads what is exported, and is read" {
  peer_with_numpy
  tokenize -q -t "$golden/tokenizers/bpe.json" "$golden/tokenizers/sample.txt" -o x.shard.zst
  shard export -q x.shard.zst -o x.npy
  shard export -q --output-format nanogpt x.shard.zst -o x.bin
  shard export -q "$golden/shard/vectors.shard.zst" -o v.npy
  "$TESSERA_PEERS" -c '
import numpy as np
a = np.load("x.npy", mmap_mode="r")
assert a.dtype == np.uint16 and (a == np.memmap("x.bin", dtype=np.uint16, mode="r")).all()
np.savetxt("x.ids", a, fmt="%d")
v = np.load("v.npy")
assert v.dtype == np.float32 and v.shape == (3, 2) and v[0, 0] == 1.5
for name, x in {"i8": a.astype(np.int64), "u1": np.arange(256, dtype=np.uint8), "rows": np.arange(6).reshape(2, 3),
                "f2": v.astype(np.float16), "fortran": np.asfortranarray(v), "be": a.astype(">u2")}.items():
    np.save(name + ".npy", x)'
  cmp x.ids <(shard cat x.shard.zst)
  cmp x.ids <(shard import -q --vocabulary 65536 i8.npy | shard cat)
  cmp <(seq 0 255) <(shard import -q -t bytes u1.npy | shard cat)
  [ "$(shard import -q --vocabulary 6 rows.npy | shard cat --by-document)" = $'0 1 2\n3 4 5' ]
  [ "$(shard import -q f2.npy | shard cat)" = $'1.5 -2\n0 0\n3 4' ]
  for name in fortran be; do
    run shard import -q --vocabulary 65536 "$name.npy" -o y.shard.zst
    [ "$status" -eq 65 ]
    [[ $output == "shard: $name.npy: "* ]]
  done
  [ ! -e y.shard.zst ]
}

@test "what is wrong with a file is one line that names the place, and no shard" {
  numbers H 1 2 3 >a.bin
  { numbers i 20240520 1 5 && zeros 1012 && numbers H 1 2 3; } >short.bin
  printf abc >odd.bin
  expect 65 "a.bin: neither a file of llm.c nor .npy" shard import --vocabulary 10 a.bin
  expect 65 "a.bin: id 3 at position 2" shard import --vocabulary 3 --format nanogpt a.bin
  expect 65 "odd.bin: cut short at byte 3" shard import --vocabulary 10 --format nanogpt odd.bin
  expect 65 "short.bin: cut short at byte 1030" shard import --vocabulary 10 short.bin
  expect 64 "give their tokenizer" shard import --format nanogpt a.bin
  expect 64 "give one" shard import -t bytes --vocabulary 3 --format nanogpt a.bin
  expect 66 "nowhere.bin" shard import --vocabulary 3 nowhere.bin
  expect 64 "use npy" shard export --output-format llm.c "$golden/shard/vectors.shard.zst"
}
