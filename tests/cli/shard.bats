#!/usr/bin/env bats
# shard: what it says, prints, joins and cuts; what it refuses.

load helpers

setup() {
  cp "$root"/tests/golden/shard/*.shard.zst "$BATS_TEST_TMPDIR"
  cd "$BATS_TEST_TMPDIR"
}

fingerprint() {
  shard info --json "$@" | field fingerprint
}

@test "info says what a shard holds, for people and as JSON" {
  run shard info tokens.shard.zst
  [ "$status" -eq 0 ]
  [[ $output == *"kind "*tokens* && $output == *"elements "*200* && $output == *"tokenizer "*BPE* ]]
  [[ $output == *'made by  {"program":"tokenize"'* ]]
  run shard info --json pairs.shard.zst vectors.shard.zst
  [ "${#lines[@]}" -eq 2 ]
  [ "$(field documents <<<"${lines[0]}")" -eq 4 ]
  [ "$(field bytes <<<"${lines[0]}")" -eq 240 ]
  [ "$(field width <<<"${lines[1]}")" -eq 2 ]
  run shard info --json order.shard.zst
  [ "$(field unit <<<"$output")" = segment ]
  [ "$(field data_fingerprint <<<"$output")" = c044be4073bb71f1340036b3f23aa86d ]
}

@test "zstd's own tools open every kind: the elements, little-endian" {
  command -v zstd >/dev/null || skip "zstd is not installed"
  for file in *.shard.zst; do
    zstd -tq "$file"
    cmp <(zstd -dcq "$file") <(shard cat --raw "$file")
  done
  [ "$(zstd -dcq order.shard.zst | od -An -v -tu4 -w4 | tr -d ' ')" = "$(shard cat order.shard.zst)" ]
  [ "$(zstd -dcq bytes.shard.zst | od -An -v -tu1 -w1 | tr -d ' ')" = "$(shard cat bytes.shard.zst)" ]
  run zstd -lv tokens.shard.zst
  [[ $output == *"Skippable Frames: 3"* && $output == *"Decompressed Size: 400 B"* ]]
}

@test "verify: ok for each, exit 65 and the reason for one that is not" {
  run shard verify ./*.shard.zst
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq "$(find . -name '*.shard.zst' | wc -l)" ]
  shard verify <pairs.shard.zst
  size=$(stat -c %s tokens.shard.zst)
  head -c $((size / 2)) tokens.shard.zst >cut
  run --separate-stderr shard verify order.shard.zst cut
  [ "$status" -eq 65 ]
  [[ ${lines[0]} == *": ok,"* && $stderr == "shard: cut: cut short:"* ]]
  run shard verify - <cut
  [ "$status" -eq 65 ]
  [[ $output == *"stdin: cut short"* ]]
}

@test "every program path finds a flipped byte, appended bytes and another version" {
  cat tokens.shard.zst tokens.shard.zst >twice
  run shard cat twice
  [ "$status" -eq 65 ]
  [[ $output == *"use shard merge"* ]]
  run shard info twice
  [ "$status" -eq 65 ]
  [[ $output == *"use shard merge"* ]]
  { head -c 16 tokens.shard.zst && printf '\007' && tail -c +18 tokens.shard.zst; } >version
  run shard info version
  [ "$status" -eq 65 ]
  [[ $output == *"version 7"*"version 1"* ]]
  { head -c 300 tokens.shard.zst && printf '\377\377\377' && tail -c +304 tokens.shard.zst; } >flipped
  for verb in verify cat; do
    run shard "$verb" flipped
    [ "$status" -eq 65 ]
    [[ $output == *"shard: flipped: corrupt at byte "* ]]
  done
  echo text >text
  run shard info text
  [ "$status" -eq 65 ]
  [[ $output == *"not a shard"* ]]
}

@test "cat and head: elements, rows, documents" {
  [ "$(shard cat vectors.shard.zst)" = $'1.5 -2\n0 1e-30\n3 4' ]
  [ "$(shard head -n 1 vectors.shard.zst)" = "1.5 -2" ]
  [ "$(shard cat tokens.shard.zst | wc -l)" -eq 200 ]
  cmp <(shard cat tokens.shard.zst) <(shard cat - <tokens.shard.zst)
  cmp <(shard cat tokens.shard.zst | head -n 7) <(shard head -n 7 <tokens.shard.zst)
  cmp <(shard cat tokens.shard.zst order.shard.zst | head -n 205) <(shard head -n 205 tokens.shard.zst order.shard.zst)
  [ "$(shard head --raw -n 3 order.shard.zst | wc -c)" -eq 12 ]
  [ "$(shard cat --by-document pairs.shard.zst | awk '{ print NF }' | xargs)" = "10 20 0 30" ]
  [ "$(shard head --by-document -n 1 pairs.shard.zst)" = "$(shard head -n 10 pairs.shard.zst | xargs)" ]
  [ -z "$(shard cat empty.shard.zst)" ]
  shard cat tokens.shard.zst | head -n 1 # whoever stops reading is no error
}

@test "cat --text: the text of each document, one after the other" {
  printf 'One two.\nThree\n\nf\303\274r\n' >lines
  tokenize -q -t bytes --format lines lines -o lines.shard.zst
  cmp lines <(shard cat --text lines.shard.zst)
  [ "$(shard head --text -n 2 <lines.shard.zst)" = $'One two.\nThree' ]
  run shard cat --text bytes.shard.zst
  [ "$status" -eq 65 ]
  [[ $output == *"has no tokenizer"* ]]
  run shard cat --text vectors.shard.zst
  [ "$status" -eq 65 ]
}

@test "merge: the parts' elements and documents, the fingerprint of the data set" {
  shard merge tokens.shard.zst tokens.shard.zst -o twice.shard.zst
  shard verify twice.shard.zst
  cmp <(shard cat --by-document tokens.shard.zst tokens.shard.zst) <(shard cat --by-document twice.shard.zst)
  [ "$(fingerprint twice.shard.zst)" != "$(fingerprint tokens.shard.zst)" ]
  shard info twice.shard.zst | grep -q '"program":"shard merge"'
  cmp <(shard merge -j 1 tokens.shard.zst - <tokens.shard.zst) <(shard merge -j 8 tokens.shard.zst tokens.shard.zst)
  run shard merge - - <tokens.shard.zst
  [ "$status" -eq 64 ]
}

@test "merge refuses what does not belong together and names both" {
  run shard merge tokens.shard.zst bytes.shard.zst -o x.shard.zst
  [ "$status" -eq 65 ]
  for word in tokens.shard.zst bytes.shard.zst "$(fingerprint tokens.shard.zst)" "$(fingerprint bytes.shard.zst)"; do
    [[ $output == *"$word"* ]]
  done
  [ ! -e x.shard.zst ]
}

@test "split and merge give the same data back" {
  shard merge tokens.shard.zst tokens.shard.zst tokens.shard.zst -o all.shard.zst -q
  for how in "-n 3" "--parts 5" "--max-documents 5" "--max-bytes 250" "--max-bytes 1"; do
    mkdir parts
    # shellcheck disable=SC2086  # two words
    shard split -q $how -o parts/p- all.shard.zst
    [ "$(find parts -name 'p-0000*.shard.zst' | wc -l)" -gt 1 ]
    shard verify parts/*
    shard merge parts/* -o back.shard.zst
    [ "$(fingerprint back.shard.zst)" = "$(fingerprint all.shard.zst)" ]
    rm -r parts
  done
  shard split -q -n 2 -o p- pairs.shard.zst
  [ "$(shard info --json p-00000.shard.zst | field documents)" -eq 2 ]
}

@test "split refuses a prefix under which more parts stand, before it writes" {
  seq 1 300 | tokenize -q -t bytes --format lines -o all.shard.zst
  shard split -q -n 3 -o p- all.shard.zst
  cp p-00000.shard.zst before
  run -64 shard split -q -n 2 -o p- all.shard.zst
  [[ $output == 'shard: p-00002.shard.zst: '*' 2 parts '* ]]
  cmp before p-00000.shard.zst
  rm p-00002.shard.zst
  shard split -q -n 2 -o p- all.shard.zst
  shard cat p-*.shard.zst | cmp - <(shard cat all.shard.zst)
}

@test "split refuses what cannot be" {
  run shard split -n 5 -o p- tokens.shard.zst
  [ "$status" -eq 64 ]
  [[ $output == *"--parts 5: there are only 4 documents"* ]]
  for flags in "" "-n 2 --max-documents 1" "-n -2"; do
    # shellcheck disable=SC2086  # words
    run shard split $flags -o p- tokens.shard.zst
    [ "$status" -eq 64 ]
  done
  run shard split -n 2 tokens.shard.zst
  [ "$status" -eq 64 ]
  [ -z "$(find . -name 'p-*')" ]
}

@test "exit codes: no input, full disk, no folder" {
  run shard info nowhere.shard.zst
  [ "$status" -eq 66 ]
  run shard info .
  [ "$status" -eq 66 ]
  run shard merge tokens.shard.zst -o nowhere/x.shard.zst
  [ "$status" -eq 73 ]
  [ -e /dev/full ] || skip "no /dev/full here"
  for verb in info cat merge verify; do
    run bash -c "shard $verb tokens.shard.zst >/dev/full"
    [ "$status" -eq 74 ]
    run shard "$verb" tokens.shard.zst -o /dev/full
    [ "$status" -eq 74 ]
  done
}

@test "binary is not written to a terminal" {
  command -v script >/dev/null || skip "script (util-linux) is not installed"
  script -qec true /dev/null >/dev/null 2>&1 || skip "no pseudo-terminal can be opened here"
  for command in "shard merge tokens.shard.zst" "shard cat --raw tokens.shard.zst"; do
    run script -qec "$command" /dev/null
    [ "$status" -eq 64 ]
    [[ $output == *"--force"* ]]
  done
  run script -qec "shard cat order.shard.zst" /dev/null
  [ "$status" -eq 0 ]
}

@test "no temporary file stays, whatever happens" {
  run shard merge tokens.shard.zst bytes.shard.zst -o x.shard.zst
  shard merge tokens.shard.zst -o x.shard.zst
  mkdir tmp
  TMPDIR=$PWD/tmp shard merge -o y.shard.zst <tokens.shard.zst
  cmp x.shard.zst y.shard.zst
  [ -z "$(find . -name '*.tmp.*' -o -path './tmp/*')" ]
}

@test "an error is one line whatever a file's name holds; stdin is read only once" {
  run -66 --separate-stderr shard info $'no\nsuch\e[31mfile'
  [ "$(wc -l <<<"$stderr")" -eq 1 ]
  [[ $stderr == *'no\x0asuch\x1b[31mfile'* ]]
  run -64 shard info - - <tokens.shard.zst
  run -64 shard cat - - <tokens.shard.zst
}
