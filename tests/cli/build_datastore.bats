#!/usr/bin/env bats
# build-datastore: what a store holds, killing and going on, adding, removing, checking, and what is refused.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  "$root"/tests/cli/tiny_gpt2 model
  "$root"/tests/cli/tiny_gpt2 other 2
  cats 40 >text
  head -n 20 text | tokenize -t bytes --format lines -o a.shard.zst
  tail -n 20 text | tokenize -t bytes --format lines -o b.shard.zst
  build-datastore -q -m model a.shard.zst -o store >record
}

setup() {
  cd "$BATS_FILE_TMPDIR"
  rm -rf s
}

elements() { # FILE.npy: without its header
  tail -c +129 "$1"
}

@test "labels are the tokens that follow, a key for each; the record says what there is" {
  zstdcat a.shard.zst | python3 -c '
import sys, struct
tokens = sys.stdin.buffer.read()[1:]
labels = open("store/values.npy", "rb").read()[128:]
assert struct.unpack(f"<{len(tokens)}i", labels) == tuple(tokens)
assert len(open("store/keys.npy", "rb").read()) == 128 + len(tokens) * 16 * 2
documents = struct.unpack("<20q", open("store/documents.npy", "rb").read()[128:])
assert documents[0] == 0 and list(documents) == sorted(set(documents))'
  grep -q '^index  *exact$' record
  grep -q '^metric  *l2$' record # the model was trained without memory
  grep -q '^documents  *20$' record
  store verify --json store | grep -q '"verified":true'
}

@test "with stdin, stdout and stderr closed the store is the same, and the record is left out" {
  build-datastore -m model a.shard.zst -o s <&- >&- 2>&-
  diff -r s store
  build-datastore -q -m model a.shard.zst -o s >&-
  code=0
  build-datastore -q -m model a.shard.zst -o s >/dev/full || code=$?
  [ "$code" -eq 74 ]
  diff -r s store
}

@test "the window and the stride change keys, not labels; stdin is read" {
  build-datastore -q -m model --window 32 --stride 8 -o s <a.shard.zst
  cmp store/values.npy s/values.npy
  run ! cmp -s store/keys.npy s/keys.npy
}

@test "killed at any moment, the same command goes on to the same bytes; done, it has nothing to do" {
  for delay in 0.1 0.3 0.5 0.7; do
    # It may be done before that.
    TESSERA_FORK_SERVERS='' timeout --foreground -s KILL "$delay" build-datastore -q -m model --batch-tokens 64 a.shard.zst -o s >/dev/null || [[ $? == @(124|137) ]]
  done
  build-datastore -q -m model --batch-tokens 64 a.shard.zst -o s
  build-datastore -q -m model --batch-tokens 64 a.shard.zst -o whole
  diff -r s whole
  run --separate-stderr build-datastore -m model --batch-tokens 64 a.shard.zst -o s
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"nothing to do"* ]]
  diff -r s whole
  run build-datastore -q -m model --batch-tokens 64 --window 32 a.shard.zst -o s
  [ "$status" -eq 64 ]
  rm -r whole
}

@test "an addition is the rows behind those that are there, once" {
  cp -r store s
  build-datastore -q -m model --append s b.shard.zst
  cmp <(elements s/values.npy) <(zstdcat a.shard.zst | python3 -c '
import subprocess, sys, struct
out = b""
for shard in "a", "b":
    tokens = subprocess.run(["zstdcat", shard + ".shard.zst"], stdout=subprocess.PIPE).stdout[1:]
    out += struct.pack(f"<{len(tokens)}i", *tokens)
sys.stdout.buffer.write(out)')
  [ "$(store verify --json s | field documents)" -eq 40 ]
  run --separate-stderr build-datastore -m model --append s b.shard.zst
  [ "$status" -eq 0 ]
  [[ "$stderr" == *"nothing to do"* ]]
  # What it has is not added beside something else, nor through other windows.
  cp -r s before
  build-datastore -q -m model a.shard.zst b.shard.zst -o both
  for what in "-m model --append s a.shard.zst --window 32" "-m model --append both b.shard.zst"; do
    # shellcheck disable=SC2086  # words
    run -64 build-datastore $what
    [[ "$output" == *"already contains text of "[ab]".shard.zst, which would count twice"* ]]
  done
  diff -r s before
  rm -r before both
  run build-datastore -q -m other --append s b.shard.zst
  [ "$status" -eq 65 ]
  model=$(python3 -c 'import json; print(json.load(open("s/store.json"))["model"])')
  [[ "$output" == *"s: was built with the model $model, not with "* ]]
}

@test "a removed document is gone, its receipt says what it was" {
  for index in exact IVF4,Flat IVF4,PQ8x4fs; do
    rm -rf s
    build-datastore -q -m model --index "$index" a.shard.zst -o s
    before=$(python3 -c 'import json; print(json.load(open("s/store.json"))["rows"])')
    receipt=$(store remove --json --document 3 s)
    rows=$(field rows <<<"$receipt")
    [ "$(field document <<<"$receipt")" -eq 3 ]
    [ "$(store verify --json s | field rows)" -eq $((before - rows)) ]
    [ "$(store verify --json s | field documents)" -eq 19 ]
    [ ! -e s/keys.npy ]
    [ ! -e s/index.faiss ]
    run store remove --document 19 s
    [ "$status" -eq 64 ]
  done
}

@test "damage is found: in a row by store verify, in the index whenever the store is opened" {
  cp -r store s
  damage s/keys.npy 1000
  run store verify s
  [ "$status" -eq 65 ]
  [[ "$output" == *keys.npy* ]]
  rm -r s
  build-datastore -q -m model --index IVF4,Flat a.shard.zst -o s
  store recall --k 10 --nprobe 4 --json s | python3 -c '
import json, sys
r = json.loads(sys.stdin.readline())
assert r["recall"] > 0.99 and r["k"] == 10 and r["nprobe"] == 4, r'
  for offset in 0 5 500; do
    damage s/index.faiss "$offset"
    run store recall s
    [ "$status" -eq 65 ]
    [[ "$output" == *index.faiss* ]]
    damage s/index.faiss "$offset"
  done
  rm s/store.json
  run store recall s
  [ "$status" -eq 66 ]
}

@test "what is said of a store never takes the place of its files, nor stands beside them" {
  cp -r store s
  ln -s s/keys.npy link
  for place in s/keys.npy s/store.json s/new link; do
    run -64 store verify -q s -o "$place"
    run -64 store recall -q s -o "$place"
    run -64 store rebuild -q s -o "$place"
    run -64 store remove -q --document 0 s -o "$place"
  done
  diff -r s store
  store verify -q s -o said
  [ -s said ]
  (cd s && store verify -q . >../said.there)
  [ -s said.there ]
}

@test "a folder of other things is refused, and what is not a store's stays in a store's folder" {
  mkdir -p d/step-3
  for file in index.html documents.txt keys.txt values.csv index.backup.tar store.json.bak keys.npy other.txt step-3/x; do
    echo mine >"d/$file"
  done
  cp -r d before
  run build-datastore -m model a.shard.zst -o d
  [ "$status" -eq 73 ]
  [[ "$output" == "build-datastore: d: not a datastore, and contains documents.txt; "* ]]
  diff -r d before

  cp -r store s
  rm d/keys.npy
  cp -r d/* s/
  mkdir s/index.9.faiss.tmp.7
  echo mine | tee s/keys.01.npy s/keys..npy s/values.2.npy.old s/x.tmp.tessera >s/index.2.faiss.tmp
  cp -r s after
  touch s/keys.8.npy s/index.4.faiss s/index.trained.faiss s/index.4.faiss.tmp.tessera # of a command that was stopped
  build-datastore -q -m model a.shard.zst -o s
  diff -r s after
  build-datastore -q -m model --append s b.shard.zst
  store remove -q --document 0 s
  for file in $(cd d && find . -type f) keys.01.npy keys..npy values.2.npy.old x.tmp.tessera index.2.faiss.tmp; do
    [ "$(cat "s/$file")" = mine ]
  done
  [ -d s/index.9.faiss.tmp.7 ]
  rm -r d before after
}

@test "--skip-known leaves out what eval-ppl says the model knows, and goes on to the same bytes" {
  build-datastore -q -m model --skip-known 0.0025 a.shard.zst -o s
  eval-ppl -q -m model --per-token scores.tsv a.shard.zst -o /dev/null
  python3 - <<'END'
import json, math, struct
def read(name, kind, size):
    data = open(name, "rb").read()[128:]
    return struct.unpack(f"<{len(data) // size}{kind}", data)
lines = [line.split("\t") for line in open("scores.tsv").read().splitlines() if not line.startswith("#")]
at = lines[0].index("nats")
known = [float(line[at]) < -math.log(0.0025) for line in lines[1:]]
near = [abs(float(line[at]) + math.log(0.0025)) < 1e-4 for line in lines[1:]]
places, all_values = read("s/places.npy", "q", 8), read("store/values.npy", "i", 4)
assert len(known) == len(all_values) and not any(near)
assert list(places) == [i for i, out in enumerate(known) if not out]
assert 0.1 < len(places) / len(known) < 0.9, len(places) / len(known)
assert list(read("s/values.npy", "i", 4)) == [all_values[i] for i in places]
keys, whole = open("s/keys.npy", "rb").read()[128:], open("store/keys.npy", "rb").read()[128:]
assert keys == b"".join(whole[32 * i:32 * i + 32] for i in places)
first = read("store/documents.npy", "q", 8)
assert list(read("s/documents.npy", "q", 8)) == [sum(p < f for p in places) for f in first]
assert json.load(open("s/store.json"))["files"]["places"] == "places.npy"
END
  for delay in 0.2 0.4 0.6; do
    TESSERA_FORK_SERVERS='' timeout --foreground -s KILL "$delay" build-datastore -q -m model --batch-tokens 64 --skip-known 0.0025 a.shard.zst -o t >/dev/null || [[ $? == @(124|137) ]]
  done
  build-datastore -q -m model --batch-tokens 64 --skip-known 0.0025 a.shard.zst -o t
  build-datastore -q -m model --batch-tokens 64 --skip-known 0.0025 a.shard.zst -o u
  diff -r t u
  rm -r t u
}

@test "--keys pca stores what its projection makes of the keys, and goes on to the same bytes" {
  build-datastore -q -m model --keys pca:6 a.shard.zst -o s
  python3 - <<'END'
import json, struct
def halves(name):
    data = open(name, "rb").read()[128:]
    return struct.unpack(f"<{len(data) // 2}e", data)
manifest = json.load(open("s/store.json"))
assert manifest["width"] == 6 and manifest["model_width"] == 16
matrix, whole, keys = halves("s/projection.npy"), halves("store/keys.npy"), halves("s/" + manifest["files"]["keys"])
rows = len(whole) // 16
assert len(matrix) == 6 * 16 and len(keys) == 6 * rows
for row in range(0, rows, 7):
    for j in range(6):
        true = sum(matrix[16 * j + i] * whole[16 * row + i] for i in range(16))
        assert abs(keys[6 * row + j] - true) < 2e-3 * (1 + abs(true)), (row, j)
END
  [ "$(find s -type f | wc -l)" -eq 5 ]
  cmp store/values.npy s/values.npy
  store verify --json s | grep -q '"width":6,'
  store info --json s | grep -q '"query_width":16,'
  # All components turn the keys: distances, and so the figures, stay.
  build-datastore -q -m model --keys pca:15 a.shard.zst -o t
  [ "$(store search --json -t bytes -m model --k 1 t "The cat sat" | tail -n 1 | field row)" -eq "$(store search --json -t bytes -m model --k 1 store "The cat sat" | tail -n 1 | field row)" ]
  rm -r t
  for delay in 0.2 0.4 0.6; do
    TESSERA_FORK_SERVERS='' timeout --foreground -s KILL "$delay" build-datastore -q -m model --keys pca:6 a.shard.zst -o t >/dev/null || [[ $? == @(124|137) ]]
  done
  build-datastore -q -m model --keys pca:6 a.shard.zst -o t
  diff -r s t
  rm -r t
}

@test "--prune merges entries: weights stand for all, alone, with pca and skip-known, and of merged parts" {
  build-datastore -q -j 1 -m model --batch-tokens 64 --prune merge:4 a.shard.zst -o s
  rows=$(store verify --json s | field rows)
  [ "$rows" -lt "$(field rows <<<"$(store info --json store)")" ]
  python3 - <<'END'
import json, struct
manifest = json.load(open("s/store.json"))
def read(name, kind, size):
    data = open("s/" + manifest["files"][name], "rb").read()[128:]
    return struct.unpack(f"<{len(data) // size}{kind}", data)
weights, places = read("weights", "i", 4), read("places", "q", 8)
assert sum(weights) == (len(open("store/values.npy", "rb").read()) - 128) // 4
assert len(places) == len(weights) == manifest["rows"] == manifest["sources"][0]["rows"]
assert list(places) == sorted(set(places)) and min(weights) == 1 < max(weights)
END
  for part in 1 2; do
    build-datastore -q -j 1 -m model --batch-tokens 64 --part $part/2 a.shard.zst -o part.$part
  done
  store merge -q --prune merge:4 part.1 part.2 -o t
  diff -r s t
  rm -r t part.1 part.2
  build-datastore -q -m model --skip-known 0.0025 --keys pca:6 --prune merge --index IVF4,Flat a.shard.zst -o t
  store verify -q t >/dev/null
  eval-ppl -q -m model --datastore t b.shard.zst -o /dev/null
  run --separate-stderr store remove --document 1 s
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"s: entries of several documents were merged with --prune"* ]]
  build-datastore -q -j 1 -m model --batch-tokens 64 --prune merge:4 a.shard.zst -o s
  for other in merge:2 none; do
    run -64 build-datastore -q -j 1 -m model --batch-tokens 64 --prune $other a.shard.zst -o s
    [[ $output == *"contains a store of other data or options"* ]]
  done
  run -64 build-datastore -q -m model --append s b.shard.zst
  run -64 build-datastore -q -m model --prune merge:0 a.shard.zst -o u
  run -64 build-datastore -q -m model --prune merge --part 1/2 a.shard.zst -o u
  damage s/weights.2.npy 130
  run store verify s
  [ "$status" -eq 65 ]
  [[ "$output" == *weights* ]]
  rm -r t
}

@test "--keys none keeps the index's codes and not the keys: same loss; what needs keys is refused" {
  build-datastore -q -m model --index IVF4,SQ8 a.shard.zst -o s
  build-datastore -q -m model --index IVF4,SQ8 --keys none --json a.shard.zst -o t >receipt
  grep -q '"keys":"none"' receipt
  [ ! -e t/keys.npy ]
  [ "$(find t -type f | sort | tr '\n' ' ')" = "t/documents.npy t/index.faiss t/store.json t/values.npy " ]
  cmp s/index.faiss t/index.faiss
  store info --json t | grep -q '"keys":"none"'
  store verify --json t | grep -q '"verified":true'
  for store in s t; do
    eval-ppl -m model --datastore $store --combine interpolate --per-token $store.tsv --json b.shard.zst >/dev/null
    store search --json -t bytes -m model --k 3 $store "The cat sat" >$store.found
  done
  cmp <(grep -v '^#' s.tsv) <(grep -v '^#' t.tsv)
  cmp s.found t.found
  cp -r t before
  for command in "eval-ppl -q -m model --datastore t --rescore b.shard.zst" \
    "eval-ppl -q -m model --datastore t --min-pointers 1 b.shard.zst" \
    "store search -t bytes -m model --rescore t The" "store rebuild t" "store rebuild --index IVF4,Flat t" \
    "store recall t" "store remove --document 1 t" "store merge t -o u" "build-targets --datastore t a.shard.zst -o u"; do
    # shellcheck disable=SC2086  # words
    run -64 --separate-stderr $command
    [[ "$stderr" == *"t: its keys were not kept (--keys none), and "*" needs them; "* ]]
    [ "$(wc -l <<<"$stderr")" -eq 1 ]
    [ ! -e u ]
  done
  run -64 --separate-stderr build-datastore -q -m model --append t b.shard.zst
  [[ "$stderr" == *"t: --append cannot be combined with --keys none; build a new store, since its keys were not kept" ]]
  run -64 --separate-stderr build-datastore -q -m model --keys none --append s b.shard.zst
  [[ "$stderr" == *"--append: cannot be combined with --keys none" ]]
  run -64 --separate-stderr build-datastore -q -m model --keys none --index exact a.shard.zst -o u
  [[ "$stderr" == *"--keys none: "*"index"* ]]
  [ ! -e u ]
  # The default index of few rows has codes, also where the rows have become fewer while the store was built.
  for less in "" "--prune merge" "--skip-known 0.1"; do
    # shellcheck disable=SC2086  # words
    build-datastore -q -m model --keys none $less a.shard.zst -o u >/dev/null
    grep -q '"index": "SQ8"' u/store.json
    run ! test -e u/keys.npy
    [ -n "$(eval-ppl -q -m model --memory none --datastore u --json b.shard.zst | field loss)" ]
    rm -r u
  done
  # Calibrating a store that is complete is said.
  for _ in {1..12}; do cat text; done | tokenize -q -t bytes --format lines -o long.shard.zst
  build-datastore -q -m model --keys none --no-calibrate long.shard.zst -o u >/dev/null
  run --separate-stderr build-datastore -m model --keys none long.shard.zst -o u
  [[ "$stderr" == *"; calibrated on "* ]]
  [[ "$stderr" != *"nothing to do"* ]]
  run --separate-stderr build-datastore -m model --keys none long.shard.zst -o u
  [[ "$stderr" == *"nothing to do"* ]]
  rm -r u
  run -64 --separate-stderr build-datastore -q -m model --index IVF4,SQ8 --keys none --part 1/2 a.shard.zst -o u
  [[ "$stderr" == *"--part; give them to store merge" ]]
  diff -r t before
  # Linked keys of the same rows rescore what is found; those of other rows are refused.
  ln -s ../s t/keys
  for store in s t; do
    store search --json -t bytes -m model --k 3 --rescore $store "The cat sat" >$store.found
  done
  cmp s.found t.found
  eval-ppl -q -m model --datastore t --rescore b.shard.zst -o /dev/null
  rm t/keys
  build-datastore -q -m model b.shard.zst -o u
  ln -s ../u t/keys
  run --separate-stderr eval-ppl -q -m model --datastore t b.shard.zst
  [ "$status" -eq 65 ]
  [[ "$stderr" == *"t/keys: does not have the keys of t; link a store of the same rows" ]]
  rm -r t/keys u
  for delay in 0.2 0.4 0.6; do
    TESSERA_FORK_SERVERS='' timeout --foreground -s KILL "$delay" build-datastore -q -m model --index IVF4,SQ8 --keys none a.shard.zst -o v >/dev/null || [[ $? == @(124|137) ]]
  done
  build-datastore -q -m model --index IVF4,SQ8 --keys none a.shard.zst -o v
  diff -r t v
  damage t/values.npy 140
  run store verify t
  [ "$status" -eq 65 ]
  [[ "$output" == *values.npy* ]]
  rm -r t v before
}

@test "a store of principal components: parts, adding, removing, damage, and what is refused" {
  for part in 1 2; do
    build-datastore -q -j 1 -m model --batch-tokens 64 --part $part/2 a.shard.zst -o part.$part
  done
  build-datastore -q -j 1 -m model --batch-tokens 64 --keys pca:6 a.shard.zst -o s
  store merge -q --keys pca:6 part.1 part.2 -o t
  diff -r s t
  rm -r t part.1 part.2
  cp -r s t
  build-datastore -q -j 1 -m model --batch-tokens 64 --append t b.shard.zst
  [ "$(store verify --json t | field documents)" -eq 40 ]
  cmp <(elements s/keys.2.npy) <(elements t/keys.2.npy | head -c "$(elements s/keys.2.npy | wc -c)")
  store remove -q --document 0 t >/dev/null
  [ "$(store verify --json t | field documents)" -eq 39 ]
  eval-ppl -q -m model --datastore t b.shard.zst -o /dev/null
  damage s/projection.npy 140
  run store recall s
  [ "$status" -eq 65 ]
  [[ "$output" == *projection.npy* ]]
  damage s/projection.npy 140
  for keys in pca:16 pca:0 pca: pca:6x half; do
    run build-datastore -q -m model --keys $keys a.shard.zst -o u
    [ "$status" -eq 64 ]
    [ ! -e u/store.json ]
    rm -rf u
  done
  run -64 build-datastore -q -m model --keys pca:5 --append s b.shard.zst
  run -64 build-datastore -q -m model --keys pca:5 a.shard.zst -o s
  run -64 build-datastore -q -m model --keys pca:6 --part 1/2 a.shard.zst -o u
  cp -r store v
  run -64 build-datastore -q -m model --keys pca:6 --append v b.shard.zst
  rm -r t v
}

@test "a store that leaves positions out: removing, adding, checking, and what does not go with it" {
  build-datastore -q -m model --skip-known 0.0025 a.shard.zst -o s
  cp -r s t
  build-datastore -q -m model --skip-known 0.0025 --append t b.shard.zst
  store verify --json t | grep -q '"documents":40'
  run -64 build-datastore -q -m model --append t b.shard.zst
  build-datastore -q -m model --skip-known 0.0025 b.shard.zst -o u
  cmp <(elements t/values.npy) <(elements s/values.npy && elements u/values.npy)
  store remove -q --document 3 t >/dev/null
  store verify --json t | grep -q '"documents":39'
  damage t/places.2.npy 200 2>/dev/null || damage t/places.3.npy 200
  run store verify t
  [ "$status" -eq 65 ]
  [[ "$output" == *places* ]]
  eval-ppl -q -m model --datastore s b.shard.zst -o /dev/null
  cp -r store v
  run --separate-stderr build-datastore -q -m model --skip-known 0.0025 --append v b.shard.zst
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"was built without --skip-known"* ]]
  run --separate-stderr build-datastore -q -m model --skip-known 0.0025 --part 1/2 a.shard.zst -o w
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"--skip-known: cannot be combined with --part"* ]]
  [ ! -e w ]
  rm -r t u v
}

@test "what does not go together is refused before anything is done" {
  for arguments in "-m model a.shard.zst" "a.shard.zst -o s" "-m model --index Bogus7 a.shard.zst -o s" \
    "-m model --metric cosine a.shard.zst -o s" \
    "-m model --append store -o s b.shard.zst"; do
    # shellcheck disable=SC2086
    run build-datastore $arguments
    [ "$status" -eq 64 ]
    [ ! -e s ]
  done
  run build-datastore -m model a.shard.zst -o store/keys.npy
  [ "$status" -eq 73 ]
}

@test "keys beyond float16 are refused with a scale that fits; with it scores are as the model's keys give them" {
  "$root"/tests/cli/tiny_llama large 64 1e6
  run --separate-stderr build-datastore -m large --index exact a.shard.zst -o s
  [ "$status" -eq 65 ]
  [ -z "$output" ]
  [[ $stderr =~ ^'build-datastore: s: keys reach '[0-9.e+]+', beyond the range of float16, 65504, with --key-scale 1; rebuild the store with --key-scale '(0\.00[0-9]+)$ ]]
  scale=${BASH_REMATCH[1]}
  run --separate-stderr build-datastore -q -m large --key-scale 0.3 a.shard.zst -o s
  [ "$status" -eq 64 ]
  [[ $stderr == *'--key-scale 0.3: takes a power of 2'* ]]
  build-datastore -q -m large --key-scale "$scale" --index exact a.shard.zst -o s
  build-datastore -q -m large --append s b.shard.zst
  store verify -q s
  [ "$(store info --json s | head -n 1 | field key_scale)" = "$scale" ]
  # A score is that of the model's keys, whatever the scale.
  less=$(python3 -c 'import sys; print(float(sys.argv[1]) / 8)' "$scale")
  build-datastore -q -m large --key-scale "$less" --index exact a.shard.zst -o t
  build-datastore -q -m large --append t b.shard.zst
  score_in() { store search --json -t bytes -m large --k 2 "$1" "The cat sat" | tail -n 1 | field score; }
  near "$(score_in s)" "$(score_in t)" 1e-3
  rm -r t
}

@test "where the first document is empty, the token without an entry is the second's" {
  printf '\nabc\ndefg\n' | tokenize -q -t bytes --format lines -o empty-first.shard.zst
  build-datastore -q -j 1 -m model --index exact empty-first.shard.zst -o empty-first
  [ "$(tail -c 24 "empty-first/$(jq -r .files.documents empty-first/store.json)" | od -An -v -td8 -w24 | tr -s ' ')" = " 0 0 2" ]
}
