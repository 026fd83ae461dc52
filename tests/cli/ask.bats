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

# File, line and text of the passages.
read_notes() { "$ask/indices" passages notes | cut -f 1-3 | tr '\t' '|'; }

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
  read_notes >got
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
  CDPATH=$PWD/elsewhere read_notes 2>said >got
  printf '%s\n' 'a.txt|1|The boat.' $'b.txt|1|Caf\xe9' 'd?e.txt|1|The price.' 'f?g.txt|1|The line.' >expected
  diff got expected
  printf '%s\n' 'ask: b.txt: is not UTF-8; its other bytes become U+FFFD' 'ask: c.txt: is binary, not a text; left out' >expected
  diff said expected
}

@test "passages: headings stand before their texts, rows of a table behind its columns, and # in code or a text is no heading" {
  mkdir notes
  printf '# call Bob 555-1234\n' >notes/a.txt
  cat >notes/b.md <<'END'
# House
```sh
# every night
backup
```

## Cellar
### Boiler ###

Serviced in March.

| tool | place |
|---|---|
| hammer | drawer 3 |
| drill | drawer 5 |

The end.

| bare | columns |
|---|---|

## Call Bob

# Call Ann
END
  printf '<h2>Tools</h2><table>\n<tr><th>tool<th>place\n<tr><td>hammer<td>drawer 3\n<tr><td>\n<p>drill</p>\n<td>drawer 5</table>\n' >notes/c.html
  read_notes >got
  cat >expected <<'END'
a.txt|1|# call Bob 555-1234
b.md|3|# every night backup
b.md|10|Cellar: Boiler: Serviced in March.
b.md|14|tool, place: hammer, drawer 3
b.md|15|tool, place: drill, drawer 5
b.md|17|The end.
b.md|19|bare, columns
b.md|22|Call Bob
b.md|24|Call Ann
c.html|3|Tools: tool, place: hammer, drawer 3
c.html|4|tool, place: drill, drawer 5
END
  diff got expected
}

@test "passages: HTML as it is read: an open head, < in a text, entities, tags over lines; no scripts, styles and comments" {
  mkdir notes
  cat >notes/a.html <<'END'
<!DOCTYPE html>
<head><title>T</title>
<style>
p { color: red }
</style>
<body>
<p>5 < 7 and the plum costs 3 euros, 9 > 4.</p>
<script>
if (a < b) document.write("<p>script</p>");
</script>
<!-- a comment
over lines -->
<a
  href="x"
  >Caf&eacute;</a> M&uuml;l&shy;ler&#8217;s: &euro;840&mdash;<b>9</b>00
END
  printf '<p>The oar.</p>\n<script>let x\n' >notes/b.html
  printf '<title>T</title><div id="app"></div>\n' >notes/c.html
  read_notes >got 2>said
  cat >expected <<'END'
a.html|7|5 < 7 and the plum costs 3 euros, 9 > 4.
a.html|15|Café Müller’s: €840—900
b.html|1|The oar.
END
  diff got expected
  printf 'ask: %s\n' 'b.html:2: <script> does not end; what follows is left out' 'c.html: has no text that is read' >expected
  diff said expected
}

@test "passages: links to files and folders are read, once, and links to nothing are said" {
  mkdir -p notes/sub store/deep
  printf 'The oar.\n' >store/oar.txt
  printf 'The sail.\n' >store/deep/SAIL.TXT
  printf 'The hull.\n' >notes/hull.md
  ln -s ../store/oar.txt notes/oar.txt
  ln -s ../store/deep notes/linked
  ln -s .. notes/sub/loop
  ln -s hull.md notes/again.md
  ln -s nowhere $'notes/lo\nst.md'
  read_notes >got 2>said
  printf '%s\n' 'hull.md|1|The hull.' 'linked/SAIL.TXT|1|The sail.' 'oar.txt|1|The oar.' >expected
  diff got expected
  [ "$(cat said)" = 'ask: lo?st.md: No such file or directory; left out' ]
}

@test "passages: a long paragraph is cut after sentences wherever they end, and each passage has its first sentence's line" {
  mkdir notes
  for i in {1..40}; do echo "the shelf $i of the archive has letters. On line $i begins" >>notes/a.txt; done
  { tr '\n' ' ' <notes/a.txt && printf '\n<p>The last.'; } >notes/b.html
  seq 400 | tr '\n' ' ' >notes/c.txt
  read_notes >got
  awk -F '|' '{ if (length($3) > 720) exit 1; n[$1]++ } $1 == "a.txt" && $2 > 1 && $3 !~ "^On line " $2 " begins" { exit 1 }
    END { exit !(n["a.txt"] == 4 && n["b.html"] == 5 && n["c.txt"] == 3) }' got
  [ "$(tail -n 4 got | head -n 1)" = 'b.html|2|The last.' ]
}

@test "ask: the line cited is that of the sentence that the answer has most words of" {
  mkdir notes
  printf 'The boiler hums. It was\nserviced on 14 March by Bob. The key\nhangs in the hall.\n' >notes/a.txt
  "$ask/indices" passages notes >table
  cited() { jq -nc --arg text "$1" '{$text, prompt: "Where?", retrieved: [{passages: [{document: 0}]}]}' | "$ask/passages.py" cite notes table; }
  [ "$(cited 'It was serviced on 14 March.')" = '  [notes/a.txt:1]' ]
  [ "$(cited 'In the hall.')" = '  [notes/a.txt:2]' ]
  [ "$(cited 'No word')" = '  [notes/a.txt:1]' ]
}

@test "ask: folders and models with odd names, and a question that begins with -" {
  needs_smollm2
  ln -s "$smollm2" ./-model
  mkdir -p -- '-odd\tdir'
  printf 'The boat is named Petrel.\n' >'-odd\tdir/a.txt'
  CACHE='' HOME=$PWD "$ask/ask" -model '-odd\tdir' '-What is the boat named?' >answer 2>said
  grep -q Petrel answer
  [ "$(tail -n 1 answer)" = '  [-odd\tdir/a.txt:1]' ]
  [ ! -s said ]
  [ -d .cache/tessera-ask ]
}

@test "ask: questions at the same time build the indices once, and what was not read is said to each" {
  needs_smollm2
  mkdir notes bin
  printf '#!/bin/sh\necho built >>"%s"\nPATH=${PATH#*:} exec tokenize "$@"\n' "$PWD/built" >bin/tokenize
  chmod +x bin/tokenize
  printf 'The boiler was serviced on 14 March.\n\nCaf\xe9.\n' >notes/house.txt
  local pids=() i
  for i in 1 2 3; do
    BIN=$PWD/bin CACHE=$PWD/cache "$ask/ask" "$smollm2" notes 'When was the boiler serviced?' >"answer$i" 2>"said$i" &
    pids+=($!)
  done
  for i in "${pids[@]}"; do wait "$i"; done
  for i in 1 2 3; do grep -q '14 March' "answer$i"; done
  [ "$(cat said? | grep -c 'is not UTF-8')" -eq 3 ]
  [ "$(wc -l <built)" -eq 1 ]
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

@test "ask: a question that the notes do not answer is not answered, but with --retrieve-evidence none" {
  needs_smollm2
  CACHE=$PWD/cache run -1 --separate-stderr "$ask/ask" "$smollm2" "$ask/notes" 'Which paint protects the wooden handle?'
  [ -z "$output" ]
  [ "$stderr" = 'ask: the notes do not say it: none has the words of the question, or words like them' ]
  CACHE=$PWD/cache "$ask/ask" "$smollm2" "$ask/notes" 'Which paint protects the wooden handle?' --retrieve-evidence none >answer
  [ "$(wc -l <answer)" -ge 2 ]
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
