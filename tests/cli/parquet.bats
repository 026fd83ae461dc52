#!/usr/bin/env bats
# tokenize --format parquet: texts out of tables.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
  golden=$root/tests/golden/parquet
  library=$(dirname "$(command -v tokenize)")/../lib/tessera/libtessera_parquet.so
}

with_arrow() { [ -e "$library" ] || skip "this build has no Arrow: tools/setup parquet"; }

@test "rows are documents, of every type of text, found by the file's first bytes" {
  with_arrow
  cp "$golden/rows.parquet" table
  run --separate-stderr tokenize -t bytes --bad-lines skip table -o t.shard.zst
  [ "$status" -eq 0 ]
  [[ $stderr == *'table: read as Parquet; the "text" of each row is a document'* ]]
  [[ $stderr == *'left out 1 row without a text'* ]]
  [ "$(shard info --json t.shard.zst | jq .documents)" -eq 4 ]
  printf '%s\n' '{"text":"A cat sat."}' '{"text":"Zwei Öfen\nund mehr"}' '{"text":""}' '{"text":"The end."}' >same.jsonl
  tokenize -q -t bytes same.jsonl -o same.shard.zst
  cmp <(shard cat --by-document t.shard.zst) <(shard cat --by-document same.shard.zst)
  texts() { tokenize -q -t bytes "$@" "$golden/rows.parquet" | tokenize --decode --format lines | tr '\n' ,; }
  [ "$(texts --column large)" = x,yy,zzz,w,v, ]
  [ "$(texts --bad-lines skip --column words)" = a,b,a,b, ]
  # Several files are one table; threads change nothing.
  tokenize -q -t bytes --bad-lines skip -j 1 "$golden"/{more,rows}.parquet -o one.shard.zst
  tokenize -q -t bytes --bad-lines skip -j 4 "$golden"/{more,rows}.parquet -o four.shard.zst
  cmp one.shard.zst four.shard.zst
  [ "$(shard info --json one.shard.zst | jq .documents)" -eq 7 ]
  # A vocabulary is learned from it too.
  tokenize -q --learn bpe --vocab-size 260 --column large "$golden/rows.parquet" -o learned.json
}

@test "a short file of long texts takes the memory of some of them, whatever its encoding" {
  with_arrow
  little_memory() { bash -c 'ulimit -v 1500000 && exec "$@"' bash tokenize -q -t bytes "$@" "$golden/repeated.parquet"; }
  for column in category pages delta; do little_memory -j 1 --column "$column" -o "$column"; done
  [ "$(shard info --json category | jq -c '[.documents, .elements]')" = '[64,512000000]' ]
  shard verify -q category
  cmp <(shard info --json category | jq .fingerprint) <(shard info --json pages | jq .fingerprint)
  cmp <(shard info --json category | jq .fingerprint) <(shard info --json delta | jq .fingerprint)
  # The limit is for all that is decoded.
  run -65 --separate-stderr tokenize -q -t bytes --decode-memory 9M --column category "$golden/repeated.parquet" -o little
  [[ $stderr == "tokenize: "*"/repeated.parquet: decoding needs more than --decode-memory 9437184; raise it" ]]
}

@test "what is wrong with a table is one line, and nothing is written" {
  with_arrow
  wrong() { # CODE WORDS ARGUMENT...
    local code=$1 words=$2
    shift 2
    run --separate-stderr tokenize -q -t bytes "$@" -o wrong.shard.zst
    [ "$status" -eq "$code" ] && [ "${#stderr_lines[@]}" -eq 1 ] && [[ $stderr == "tokenize: "*"$words"* ]] && [ ! -e wrong.shard.zst ] ||
      { echo "$*: $status: $stderr" && return 1; }
  }
  wrong 65 'rows.parquet: row 4: has no text' "$golden/rows.parquet"
  wrong 65 'no column body; give --column, one of: id, text, words, large, lists' --column body "$golden/rows.parquet"
  wrong 65 'column id does not contain texts, but int64' --column id "$golden/rows.parquet"
  wrong 65 'column lists does not contain texts' --column lists "$golden/rows.parquet"
  echo text >text
  wrong 65 'text: not a Parquet file' --format parquet text
  wrong 64 'stdin' --format parquet -
  wrong 64 '--part' --part 1/2 --format parquet "$golden/rows.parquet"
  wrong 64 'text is not' "$golden/rows.parquet" text
  wrong 66 absent --format parquet absent
}

@test "damaged tables: exit 65 or the rows that are left, never a crash" {
  with_arrow
  python3 - "$golden/rows.parquet" <<'END'
import random, sys
data = open(sys.argv[1], "rb").read()
random.seed(7)
for n in range(60):
    bad = bytearray(data)
    if n % 3 == 0: bad = bad[:random.randrange(4, len(bad))]
    else:
        for _ in range(1 + n % 4): bad[random.randrange(4, len(bad))] = random.randrange(256)
    open(f"bad{n}", "wb").write(bad)
END
  for n in {0..59}; do
    run timeout 20 tokenize -q -t bytes --bad-lines skip --format parquet "bad$n" -o out.shard.zst
    [ "$status" -eq 0 ] || [ "$status" -eq 65 ] || { echo "bad$n: $status: $output" && return 1; }
  done
}

@test "a build without Arrow says how to get it" {
  [ ! -e "$library" ] || skip "this build has Arrow"
  run --separate-stderr tokenize -q -t bytes --format parquet "$golden/rows.parquet" -o t.shard.zst
  [ "$status" -eq 69 ]
  [[ $stderr == *'tools/setup parquet'* ]]
  [ ! -e t.shard.zst ]
}
