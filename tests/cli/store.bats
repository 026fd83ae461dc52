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
  [ "${#stderr_lines[@]}" -eq 1 ]
  cp -r store s
  rm s/values.npy
  run --separate-stderr store info s
  [ "$status" -eq 65 ]
  [[ "$stderr" == *values.npy* ]]
}

@test "each verb says what the flag of build-datastore says, which goes on with a note" {
  note="build-datastore: store %s does this; the next version has this flag no more"
  for verb in verify recall rebuild; do
    flag=--$verb
    [ "$verb" != rebuild ] || flag=--rebuild-index
    cp -r store s
    cp -r store t
    (cd s && store "$verb" --json .) >new
    (cd t && build-datastore "$flag" --json .) >old 2>err
    cmp new old
    # shellcheck disable=SC2059  # the format is above
    [ "$(cat err)" = "$(printf "$note" "$verb")" ]
    diff -r s t
    rm -r s t
  done
  cp -r store s
  cp -r store t
  store remove --document 3,5 --json s >new
  build-datastore --remove-document 3 --remove-document 5 --json t >old 2>err
  cmp new old
  # shellcheck disable=SC2059
  [ "$(cat err)" = "$(printf "$note" remove)" ]
  diff -r s t
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
