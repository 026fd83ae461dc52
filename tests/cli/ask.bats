#!/usr/bin/env bats
# examples/ask: answers from a folder of notes, and the judge.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
  # shellcheck disable=SC2154 # of helpers
  ask=$root/examples/ask
  local found=("$root"/.deps/model/*.gguf)
  smollm2=${TESSERA_SMOLLM2:-${found[0]}}
}

needs_smollm2() {
  [ -e "$smollm2" ] || skip "no GGUF of SmolLM2; tools/setup model brings one, TESSERA_SMOLLM2 names one"
}

@test "passages: paragraphs with their lines, of text, Markdown, HTML and folders; headings and tags are left out" {
  mkdir -p notes/sub notes/.hidden
  printf '# House\n\nThe boiler\nhums.\n\nThe shed is green.\n' >notes/a.md
  printf '<html><head><title>T</title></head><body>\n<h1>Pump</h1>\n<p>It lifts <b>5</b> m\n&amp; more.</p></body>\n' >notes/sub/b.html
  printf 'One page.\r\n\r\n\fThe next page.\r\n' >'notes/c d.txt'
  printf 'no note\n' >notes/.hidden/x.txt
  printf '\0\1' >notes/image.png
  "$ask/indices" passages notes | tr '\t' '|' >got
  cat >expected <<'END'
a.md|3|The boiler hums.
a.md|6|The shed is green.
c d.txt|1|One page.
c d.txt|3|The next page.
sub/b.html|2|Pump
sub/b.html|3|It lifts 5 m & more.
END
  diff got expected
}

@test "passages: what is no text is said and left out; other bytes, odd names, a byte order mark and CDPATH" {
  mkdir -p notes elsewhere/notes
  printf 'no note\n' >elsewhere/notes/x.txt
  printf '\xef\xbb\xbfThe boat.\n' >notes/a.txt
  printf 'Caf\xe9\n' >notes/b.txt
  printf 'a\0b\n' >notes/c.txt
  printf 'The price.\n' >notes/$'d\te.txt'
  printf 'The line.\n' >notes/$'f\ng.txt'
  CDPATH=$PWD/elsewhere "$ask/indices" passages notes 2>said | tr '\t' '|' >got
  printf '%s\n' 'a.txt|1|The boat.' $'b.txt|1|Caf\xe9' 'd?e.txt|1|The price.' 'f?g.txt|1|The line.' >expected
  diff got expected
  printf '%s\n' 'ask: b.txt: is not UTF-8; its other bytes become U+FFFD' 'ask: c.txt: is binary, not a text; left out' >expected
  diff said expected
}

@test "ask: questions at the same time build the indices once" {
  needs_smollm2
  mkdir notes
  printf 'The boiler was serviced on 14 March.\n\nCaf\xe9.\n' >notes/house.txt
  local pids=() i
  for i in 1 2 3; do
    CACHE=$PWD/cache "$ask/ask" "$smollm2" notes 'When was the boiler serviced?' >"answer$i" 2>"said$i" &
    pids+=($!)
  done
  for i in "${pids[@]}"; do wait "$i"; done
  for i in 1 2 3; do grep -q '14 March' "answer$i"; done
  [ "$(cat said? | grep -c 'is not UTF-8')" -eq 1 ]
}

@test "ask: a question is answered from the note, with file and line; changed notes are read again" {
  needs_smollm2
  mkdir notes
  printf 'The boiler was serviced on 14 March.\n\nThe shed is green.\n' >notes/house.md
  CACHE=$PWD/cache "$ask/ask" "$smollm2" notes 'When was the boiler serviced?' >answer
  grep -q '14 March' answer
  [ "$(tail -n 1 answer)" = '  [notes/house.md:1]' ]
  printf '\nThe boat is named Petrel.\n' >>notes/house.md
  CACHE=$PWD/cache "$ask/ask" "$smollm2" notes 'What is the boat named?' >answer
  grep -q Petrel answer
  [ "$(tail -n 1 answer)" = '  [notes/house.md:5]' ]
}

@test "ask: wrong arguments are one line and a status" {
  run -64 "$ask/ask" model
  [ "$output" = 'ask: give MODEL FOLDER QUESTION' ]
  run -66 "$ask/ask" nowhere . 'Why?'
  [ "$output" = 'ask: nowhere: does not exist; give a model' ]
  touch model
  run -66 "$ask/ask" model nowhere 'Why?'
  [ "$output" = 'ask: nowhere: is no folder; give a folder of notes' ]
  mkdir empty
  CACHE=$PWD/cache run -66 "$ask/ask" model empty 'Why?'
  [ "$output" = 'ask: empty: has no text in *.txt, *.md or *.html' ]
}

@test "judge: passages with n-grams answer a twentieth of the questions; the model alone does not" {
  needs_smollm2
  ROWS='^none$|^passages, n-grams$' "$ask/judge" "$smollm2" 20 >table
  right() { awk -F '\t' -v row="$1" '$1 == row { for (i = 2; i <= 5; ++i) { split($i, n, "/"); right += n[1] } } END { print right + 0 }' table; }
  [ "$(wc -l <table)" -eq 3 ]
  [ "$(right none)" -le 1 ]
  [ "$(right 'passages, n-grams')" -ge 8 ]
}
