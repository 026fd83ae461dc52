#!/usr/bin/env bats
# store: what its verbs say and do, beside the flags of build-datastore that did it before them.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  needs store
  export OMP_NUM_THREADS=1
  "$root"/tests/cli/tiny_gpt2 model
  cats 40 >text
  tokenize -q -t bytes --format lines text -o x.shard.zst
  build-datastore -q -m model x.shard.zst -o store >record
}

setup() {
  cd "$BATS_FILE_TMPDIR"
  needs store
  rm -rf s t
}

@test "info says what store.json says, the bytes of the files, and where the rows are from" {
  store info --json store >said
  [ "$(wc -l <said)" -eq 2 ]
  python3 - <<'END'
import json, os
report, source = map(json.loads, open("said"))
manifest = json.load(open("store/store.json"))
for key in "rows", "width", "documents", "vocabulary", "metric", "index", "model", "generation":
    assert report[key] == manifest[key], key
assert report["bytes"] == sum(os.path.getsize("store/" + name) for name in os.listdir("store"))
assert source["data"] == manifest["sources"][0]["data"] and source["windows"] == manifest["sources"][0]["windows"]
END
  store info store store | grep -c '^generation  *1$' | grep -qx 2
  store info store | grep -q '^data  '
  run --separate-stderr store info .
  [ "$status" -eq 66 ]
  [ "$(wc -l <<<"$stderr")" -eq 1 ]
  cp -r store s
  rm s/values.npy
  run --separate-stderr store info s
  [ "$status" -eq 65 ]
  [[ "$stderr" == *values.npy* ]]
}

@test "merge makes the store that one process makes" {
  for part in 1 2; do
    build-datastore -q -j 1 -m model --batch-tokens 64 --index exact --part $part/2 x.shard.zst -o part.$part
  done
  build-datastore -q -j 1 -m model --batch-tokens 64 x.shard.zst -o s
  store merge -q part.2 part.1 -o t
  diff -r s t
  run --separate-stderr store merge part.1 -o u
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"part 2 of 2 is missing"* ]]
  run -64 store merge part.1 part.2
  rm -r part.1 part.2
}

@test "damage is found, and what is said never stands in the store" {
  cp -r store s
  damage s/keys.npy 1000
  run --separate-stderr store verify store s
  [ "$status" -eq 65 ]
  [[ "$stderr" == *keys.npy* ]]
  [ -z "$output" ]
  rm -r s
  cp -r store s
  for verb in verify recall rebuild "remove --document 0"; do
    # shellcheck disable=SC2086  # a verb and its option
    run -64 store $verb s -o s/keys.npy
    # shellcheck disable=SC2086
    run -64 store $verb
  done
  run -64 store remove s
  run -64 store remove --document 40 s
  run -64 store rebuild s store
  run -64 store rebuild --index Bogus7 s
  diff -r s store
}

@test "search finds the rows nearest to a context by the store's own keys, with their text" {
  # Contexts at the front of the text: the key of each is a row of the store.
  head -c 20 text >c20
  head -c 33 text >c33
  store search --json -t bytes -m model --k 7 --around 12 store "$(cat c20)" "$(cat c33)" >found
  (cat c20 && echo && cat c33) | store search --json -t bytes -m model --k 7 --around 12 store | cmp found -
  python3 - <<'END'
import json, struct
rows = (len(open("store/values.npy", "rb").read()) - 128) // 4
values = struct.unpack(f"<{rows}i", open("store/values.npy", "rb").read()[128:])
numbers = struct.unpack(f"<{16 * rows}e", open("store/keys.npy", "rb").read()[128:])
keys = [numbers[16 * i:16 * i + 16] for i in range(rows)]
lines = [json.loads(line) for line in open("found")]
text = bytes([open("text", "rb").read(1)[0]]) + bytes(values)
for n, context in (20, lines[:8]), (33, lines[8:]):
    assert context[0]["type"] == "report" and context[0]["tokens"] == n, context[0]
    query = keys[n - 1]
    scores = [-sum((a - b) ** 2 for a, b in zip(query, key)) for key in keys]
    best = sorted(range(rows), key=lambda row: -scores[row])
    assert [part["row"] for part in context[1:]][0] == n - 1
    for part, row in zip(context[1:], best):
        assert abs(part["score"] - scores[row]) < 1e-2, (part, scores[row])
        assert abs(scores[part["row"]] - scores[row]) < 1e-2
        assert part["token"] == values[part["row"]] and part["value"] == chr(part["token"])
        assert part["before"].encode() == text[max(1, part["row"] - 11):part["row"] + 1][-12:] or part["document"] > 0
END
  store search -t bytes -m model --k 2 store "$(cat c20)" | grep -q 'score  *token  *value'
  run --separate-stderr store search -m model store </dev/null
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  store search --json -m model --k 1 --ids store "84 104 101" | grep -q '"tokens":3'
  run -64 store search -m model --ids store "84 x"
  run -64 store search -t bytes -m model store ""
  run -64 store search store "The"
  run -64 store search -m model
  "$root"/tests/cli/tiny_gpt2 other 2
  run --separate-stderr store search -t bytes -m other store "The"
  [ "$status" -eq 65 ]
  [[ "$stderr" == *"was built with the model"* ]]
}

@test "plan says the bytes that an exact store comes to" {
  rows=$(store info --json store | field rows)
  store plan --json --index exact --entries "$rows" --width 16 --documents 40 >said
  [ "$(field keys_bytes <said)" -eq "$(stat -c %s store/keys.npy)" ]
  [ "$(field values_bytes <said)" -eq "$(stat -c %s store/values.npy)" ]
  [ "$(field documents_bytes <said)" -eq "$(stat -c %s store/documents.npy)" ]
  store plan --entries 1M --width 64 | grep -q '^index  *IVF1024,SQ8$'
  store plan --entries 103M --width 1024 | grep -q '^index  *IVF16384,PQ256x4fs$'
  store plan -j 1 --entries 10G --width 1024 >said
  grep -qE '^fill_s  *[0-9.e+]+ \([0-9.]+ h\)$' said
  grep -qE '^build_memory  *[0-9]+ \([0-9.]+ [GT]iB\)$' said
  run -64 store plan --entries 1M
  run -64 store plan --entries 1M --width 64 --index Bogus7
}
