#!/usr/bin/env bats
# shard import and export: token files of llm.c and nanoGPT, NumPy's arrays.

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

zeros() { head -c "$1" /dev/zero; }

peer_with_numpy() {
  [ -n "${TESSERA_PEERS:-}" ] || skip "TESSERA_PEERS is not set"
  "$TESSERA_PEERS" -c 'import numpy' || skip "TESSERA_PEERS has no numpy"
}

@test "what tokenize made goes out to every format and comes back the same" {
  tokenize -q -t "$golden/tokenizers/bpe.json" --format lines "$golden/tokenizers/sample.txt" -o x.shard.zst
  for format in llm.c nanogpt npy; do
    shard export -q --format "$format" x.shard.zst -o out
    shard import -q --format "$format" -t "$golden/tokenizers/bpe.json" out -o back.shard.zst
    shard verify -q back.shard.zst
    cmp <(shard cat --documents x.shard.zst) <(shard cat --documents back.shard.zst)
    cmp <(shard info x.shard.zst | grep -E '^(words|fingerprint|vocabulary)') \
      <(shard info back.shard.zst | grep -E '^(words|fingerprint|vocabulary)')
    # Through pipes too.
    cmp out <(shard export -q --format "$format" <x.shard.zst)
    cmp <(shard cat x.shard.zst) <(shard import -q --format "$format" -t "$golden/tokenizers/bpe.json" <out | shard cat)
  done
  cmp <(tokenize --decode back.shard.zst) <(tokenize --decode x.shard.zst)
}

@test "llm.c's files, as its scripts write them" {
  { numbers i 20240520 1 5 && zeros 1012 && numbers H 9 1 2 9 3; } >a.bin
  { numbers i 20240520 1 2 && zeros 1012 && numbers H 4 9; } >b.bin
  shard import -q --vocabulary 10 --end-of-document 9 a.bin b.bin -o x.shard.zst
  [ "$(shard cat --documents x.shard.zst)" = $'9 1 2\n9 3 4\n9' ]
  shard export -q --format llm.c --config <(shard export --print-config --format llm.c) x.shard.zst -o c.bin
  cmp c.bin <(numbers i 20240520 1 7 && zeros 1012 && numbers H 9 1 2 9 3 4 9)
  { numbers i 20240801 7 2 && zeros 1012 && numbers I 128000 5; } >d.bin
  shard import -q --vocabulary 128256 d.bin -o y.shard.zst
  [ "$(shard cat --documents y.shard.zst)" = '128000 5' ]
  cmp d.bin <(shard export -q --format llm.c y.shard.zst)
}

@test "nanoGPT's files: the mark ends a document; --mark says otherwise" {
  numbers H 1 2 9 3 9 4 >train.bin
  shard import -q --format nanogpt --vocabulary 10 --end-of-document 9 train.bin -o x.shard.zst
  [ "$(shard cat --documents x.shard.zst)" = $'1 2 9\n3 9\n4' ]
  cmp train.bin <(shard export -q --format nanogpt x.shard.zst)
  [ "$(shard import -q --format nanogpt --vocabulary 10 --end-of-document 9 --mark first train.bin | shard cat --documents)" = $'1 2\n9 3\n9 4' ]
  [ "$(shard import -q --format nanogpt --vocabulary 10 train.bin | shard cat --documents)" = '1 2 9 3 9 4' ]
}

@test "NumPy reads what is exported, and is read" {
  peer_with_numpy
  tokenize -q -t "$golden/tokenizers/bpe.json" "$golden/tokenizers/sample.txt" -o x.shard.zst
  shard export -q x.shard.zst -o x.npy
  shard export -q --format nanogpt x.shard.zst -o x.bin
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
  [ "$(shard import -q --vocabulary 6 rows.npy | shard cat --documents)" = $'0 1 2\n3 4 5' ]
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
  expect() { # code words command...
    local code=$1 words=$2
    shift 2
    run --separate-stderr "$@" -o x.shard.zst
    [ "$status" -eq "$code" ] && [[ $stderr == "shard: "*"$words"* ]] && [ ! -e x.shard.zst ] ||
      { echo "$*: exit $status: $stderr" && return 1; }
  }
  expect 65 "a.bin: begins neither" shard import --vocabulary 10 a.bin
  expect 65 "a.bin: id 3 at place 2" shard import --vocabulary 3 --format nanogpt a.bin
  expect 65 "odd.bin: cut short at byte 3" shard import --vocabulary 10 --format nanogpt odd.bin
  expect 65 "short.bin: cut short at byte 1030" shard import --vocabulary 10 short.bin
  expect 64 "give their tokenizer" shard import --format nanogpt a.bin
  expect 64 "not both" shard import -t bytes --vocabulary 3 --format nanogpt a.bin
  expect 66 "nowhere.bin" shard import --vocabulary 3 nowhere.bin
  expect 64 "npy does" shard export --format llm.c "$golden/shard/vectors.shard.zst"
}
