#!/usr/bin/env bats
# Texts and JSON lines as they come: byte order marks, other encodings, compressed files, lines that
# are no JSON, numbers of any size; what tokenize and the readers of lines say of them.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
  bpe=$root/tests/golden/tokenizers/bpe.json
  bom=$'\xef\xbb\xbf'
}

# tokens [OPTION...]: the text that tokenize -t bytes makes of its input, documents as JSON lines.
documents() { tokenize -q -t bytes "$@" | tokenize --decode --format jsonl; }

# refused CODE WORDS... -- COMMAND...: its exit code, one line on stderr with these words, no output.
refused() {
  local code=$1 words=()
  shift
  while [ "$1" != -- ]; do words+=("$1") && shift; done
  shift
  run --separate-stderr "$@"
  [ "$status" -eq "$code" ] || { echo "status $status: $stderr" && return 1; }
  [ -z "$output" ]
  [ "${#stderr_lines[@]}" -eq 1 ] || { echo "$stderr" && return 1; }
  for word in "${words[@]}"; do
    [[ $stderr == *"$word"* ]] || { echo "no '$word' in: $stderr" && return 1; }
  done
}

@test "a byte order mark is passed over: text, lines, JSON lines, pairs; files, pipes, compressed" {
  printf '%s{"text":"a"}\n{"text":"b"}\n' "$bom" >b.jsonl
  gzip -k b.jsonl
  zstd -q b.jsonl
  xz -k b.jsonl
  bzip2 -k b.jsonl
  for file in b.jsonl b.jsonl.gz b.jsonl.zst b.jsonl.xz b.jsonl.bz2; do
    [ "$(documents "$file")" = $'{"text":"a"}\n{"text":"b"}' ]
    [ "$(documents --format jsonl - <"$file")" = $'{"text":"a"}\n{"text":"b"}' ]
  done
  [ "$(documents <b.jsonl)" = $'{"text":"a"}\n{"text":"b"}' ]
  printf '%sa\nb\n' "$bom" >b.txt
  [ "$(documents b.txt)" = '{"text":"a\nb\n"}' ]
  [ "$(documents <b.txt)" = '{"text":"a\nb\n"}' ]
  [ "$(documents --format lines b.txt b.txt)" = $'{"text":"a"}\n{"text":"b"}\n{"text":"a"}\n{"text":"b"}' ]
  [ "$(documents --pairs b.txt b.txt)" = $'{"text":"a"}\n{"text":"a"}\n{"text":"b"}\n{"text":"b"}' ]
  # As it is.
  [ "$(documents --invalid keep b.txt)" = "{\"text\":\"${bom}a\\nb\\n\"}" ]
  # Parts of a file with a mark make the whole.
  for i in 1 2 3; do tokenize -q -t bytes --format lines --part $i/3 b.txt -o part.$i; done
  shard merge -q part.1 part.2 part.3 | cmp - <(tokenize -q -t bytes --format lines b.txt)
  tokenize -q --learn word b.txt | cmp - <(printf 'a\nb\n' | tokenize -q --learn word)
  tokenize -q --learn word b.jsonl | cmp - <(printf '{"text":"a"}\n{"text":"b"}\n' | tokenize -q --format jsonl --learn word)
}

@test "readers of lists and lines pass over a byte order mark, and unpack" {
  printf '%snoun dog\nverb run\nadjective red\n' "$bom" | gzip >words.gz
  [ "$(gen-babistories-prompts -n 1 --words words.gz | jq -r '.noun + .verb + .adjective')" = dogrunred ]
  printf '%s"One day a dog ran home."\n' "$bom" >stories
  zstd -q stories
  [ "$(clean-babistories --least-words 1 stories.zst -q | jq -r .)" = 'One day a dog ran home.' ]
  printf 'a b\nc d\n' | tokenize -q --format lines -t bytes -o t.shard.zst
  bm25-search build -q t.shard.zst -o t.index --passage 4
  printf '%sc d\n' "$bom" >queries
  bm25-search find -q -i t.index queries | cmp - <(echo 'c d' | bm25-search find -q -i t.index)
  gzip queries
  bm25-search find -q -i t.index queries.gz | cmp - <(echo 'c d' | bm25-search find -q -i t.index)
  printf '%s{"vocab_size": 260}\n' "$bom" >config.json
  tokenize -q --config config.json --learn bpe --print-config | grep -q '^vocab-size = 260$'
}

@test "a file named as JSON lines that begins otherwise is refused; an empty one has no documents" {
  printf '%s[{"text":"a"}]' "$bom" >array.jsonl
  gzip -k array.jsonl
  for file in array.jsonl array.jsonl.gz; do
    refused 65 "$file: contains a JSON array" "jq -c '.[]'" -- tokenize -t bytes "$file"
  done
  printf 'prose\n' >prose.ndjson
  refused 65 'prose.ndjson: is named like JSON lines' '--format text' -- tokenize -t bytes prose.ndjson
  [ "$(documents --format text prose.ndjson)" = '{"text":"prose\n"}' ]
  printf ' \n' >blank.jsonl
  tokenize -t bytes --json -q blank.jsonl -o x 2>report
  [ "$(field documents <report)" -eq 0 ]
  for array in '[{"text":"a"}]' $'[\n{"text":"a"}\n]'; do
    refused 65 'stdin:1: ' "jq -c '.[]'" -- tokenize -t bytes --format jsonl <<<"$array"
  done
}

@test "stdin is JSON lines by its first line; other files that begin as JSON get a note" {
  printf '{"id":1e999,"text":"a"}\n{"text":"b"}\n' >x.json
  run --separate-stderr tokenize -t bytes -o x.shard.zst <x.json
  [ "$status" -eq 0 ]
  [[ $stderr == *'stdin: read as JSON lines'* ]]
  [ "$(tokenize --decode x.shard.zst)" = ab ]
  [[ $(shard info --json x.shard.zst | jq -c '.provenance[0].options') == *'"format":"jsonl"'* ]]
  run --separate-stderr tokenize -t bytes x.json -o y.shard.zst
  [ "$status" -eq 0 ]
  [[ $stderr == *'x.json: begins like JSON, but is read as text; for JSON lines give --format jsonl'* ]]
  [ "$(tokenize --decode y.shard.zst)" = "$(cat x.json)" ]
  for text in '[{"text":"a"}]' '{"name":"no text in it"}' $'{\n "text": "a"\n}'; do
    run --separate-stderr tokenize -t bytes -o y.shard.zst <<<"$text"
    [ "$status" -eq 0 ]
    [[ $stderr == *'stdin: begins like JSON'* ]]
  done
  # A format that was asked for is not discussed; prose in brackets is prose.
  [ -z "$(tokenize -t bytes --format text x.json 2>&1 >/dev/null | grep JSON)" ]
  [ -z "$(printf '[a] {b}\n' | tokenize -t bytes 2>&1 >/dev/null | grep JSON)" ]
}

@test "bad JSON lines get one line, also where their format is a guess; marks of files behind another are passed over" {
  printf '{"text":"a"}\n{"text":5}\n' >x.jsonl
  refused 65 'x.jsonl:2: "text" is not a string' -- tokenize -t bytes x.jsonl
  echo '{"txt":"a"}' >x.jsonl
  refused 65 'x.jsonl:1: has no "text"' -- tokenize -t bytes x.jsonl
  printf '\xef\xbb\xbf{"text":"a"}\n' >a.jsonl
  cat a.jsonl a.jsonl >x.jsonl
  [ "$(documents x.jsonl)" = $'{"text":"a"}\n{"text":"a"}' ]
}

@test "a compressed file that ends within its first bytes is no text" {
  printf 'a text' | gzip -c >whole.gz
  printf 'a text' | bzip2 -c >whole.bz2
  printf 'a text' | xz -c >whole.xz
  printf 'a text' | zstd -qc >whole.zst
  for kind in gz bz2 xz zst; do
    for bytes in 1 2 3; do
      head -c "$bytes" "whole.$kind" >"cut.txt.$kind"
      refused 65 "cut.txt.$kind: cut short" -- tokenize -t bytes "cut.txt.$kind"
    done
  done
  head -c 9 whole.bz2 >cut.txt.bz2
  refused 65 'cut.txt.bz2: cut short' -- tokenize -t bytes cut.txt.bz2
  printf B >note.txt
  tokenize -q -t bytes note.txt -o note.shard.zst
}

@test "members that are not asked for need only be JSON" {
  {
    echo '{"id":18446744073709551616,"text":"a"}'
    echo '{"id":-123456789012345678901234567890,"x":[1e400,-1e400,1e-400],"text":"b"}'
    echo '{"a":"\ud83d","\udc00":1,"text":"c"}'
    echo '{"text":"d","b":{"\ud800":"\ude00 1e999 NaN \" \\"}}'
    echo '{"text":"\ud83d\ude00 NaN 1e999"}'
  } >x.jsonl
  [ "$(documents x.jsonl)" = $'{"text":"a"}\n{"text":"b"}\n{"text":"c"}\n{"text":"d"}\n{"text":"😀 NaN 1e999"}' ]
  for bad in '{"a":01,"text":"a"}' '{"a":1e,"text":"a"}' '{"a":+1,"text":"a"}' '{"a":.5,"text":"a"}' \
    '{"a":nan,"text":"a"}' '{"a":1e999x,"text":"a"}' '{"text":"a",}' '{"text":"a"' '{"a":1e999,"text":"a"'; do
    refused 65 'stdin:1: not JSON' -- tokenize -t bytes --format jsonl <<<"$bad"
  done
}

@test "--bad-lines: an error, left out, or mended; the counts are told" {
  {
    echo '{"text":"one"}'
    echo '{"score":NaN,"text":"two"}'
    echo '{"text":"\ud83d three"}'
    echo '{"text":'
    echo '{"other":"five"}'
    printf '{"text":"caf\xe9"}\n'
    echo '[-Infinity]'
    echo '{"text":NaN}'
    echo '{"text":"nine"}'
  } >x.jsonl
  # bad N WORDS: line N alone.
  bad() {
    sed -n "$1p" x.jsonl >line.jsonl
    refused 65 "line.jsonl:1: $2" -- tokenize -q -t bytes --format jsonl line.jsonl
  }
  bad 2 "NaN is not JSON, though Python's json.dump writes it; --bad-lines"
  bad 3 '"text" has an unpaired surrogate'
  bad 4 'not JSON: '
  bad 5 'has no "text"; give the field of the text with --field'
  bad 6 'byte 12 (0xe9) is not UTF-8'
  bad 7 '-Infinity'
  tokenize -t bytes --bad-lines skip x.jsonl -o skip 2>notes
  grep -q 'tokenize: 2 documents, 7 tokens, 7 bytes, 2 words, 7 lines left out$' notes
  grep -q 'left out 7 lines; the first: x.jsonl:2: NaN is not JSON' notes
  [ "$(tokenize --decode --format jsonl skip)" = $'{"text":"one"}\n{"text":"nine"}' ]
  tokenize -q -t bytes --json --bad-lines replace x.jsonl -o replace 2>report
  [ "$(tokenize --decode --format jsonl replace)" = \
    $'{"text":"one"}\n{"text":"two"}\n{"text":"\xef\xbf\xbd three"}\n{"text":"caf\xef\xbf\xbd"}\n{"text":"nine"}' ]
  [ "$(jq -c '[.documents, .lines_skipped, .lines_mended, .replaced]' report)" = '[5,4,3,0]' ]
  "$root/tests/cli/follows_schema" "$root/man/schemas/tokenize.json" <report
  for jobs in 1 4; do
    tokenize -q -t bytes --bad-lines replace -j $jobs x.jsonl | cmp - replace
    for i in 1 2 3; do tokenize -q -t bytes -j $jobs --bad-lines replace --part $i/3 x.jsonl -o part.$i; done
    [ "$(shard merge -q part.1 part.2 part.3 | tokenize --decode)" = "$(tokenize --decode replace)" ]
  done
  refused 65 'x.jsonl:2: ' -- tokenize -q --learn word x.jsonl
  tokenize --learn word --bad-lines skip x.jsonl -o words 2>notes
  grep -q 'left out 7 lines; the first: x.jsonl:2' notes
  [ "$(jq -r '.model.vocab | keys_unsorted | join(" ")' words)" = '<eos> <unk> nine one' ]
}

@test "zstd and xz: what a frame looks back at has a bound, and the message says how to go on" {
  head -c 1000 /dev/zero | tr '\0' a >a
  # Without a size in the frame, the window is the whole.
  zstd -q --long=28 --ultra -22 --zstd=wlog=28 <a >a.zst
  refused 65 'a.zst: ' 'zstd -dc --long=31 a.zst' '--decode-memory 2G' -- tokenize -t bytes a.zst
  tokenize -q -t bytes --decode-memory 256M a.zst | tokenize --decode | cmp - a
  zstd -dc --long=31 a.zst | tokenize -q -t bytes | tokenize --decode | cmp - a
  xz -k --lzma2=dict=16MiB a
  tokenize -q -t bytes a.xz | tokenize --decode | cmp - a
  refused 65 'a.xz: ' 'decompression needs 17 MiB' 'limit of 8 MiB' 'xz -dc a.xz' '--decode-memory 17M' -- \
    tokenize -t bytes --decode-memory 8M a.xz
  tokenize -q -t bytes --decode-memory 17M a.xz | tokenize --decode | cmp - a
}

@test "gzip, xz and bzip2: one stream after the other, zeros behind them, cut short, damaged" {
  printf 'one ' >one
  seq 1 40000 >many
  for tool in gzip xz bzip2 zstd; do
    $tool -qc <one >x
    $tool -qc <many >>x
    cat one many | cmp - <(tokenize -q -t bytes x | tokenize --decode)
    cat one many | cmp - <(tokenize -q -t bytes <x | tokenize --decode)
    for cut in 20 1000 $(($(wc -c <x) - 3)); do
      head -c $cut x >cut
      refused 65 'cut: cut short' -- tokenize -t bytes cut
    done
    [ $tool != zstd ] || continue
    { cat x && head -c 300000 /dev/zero; } >padded
    cat one many | cmp - <(tokenize -q -t bytes padded | tokenize --decode)
    { cat x && echo text without a magic; } >longer
    refused 65 "longer: begins like $tool, but cannot be decompressed" -- tokenize -t bytes longer
    { cat x && printf '\0\0\0\0' && cat x; } >gap
    if [ $tool = xz ]; then
      $tool -dc <gap | cmp - <(tokenize -q -t bytes gap | tokenize --decode)
      { cat gap && printf '\0'; } >odd
      refused 65 "odd: begins like $tool" -- tokenize -t bytes odd
    else
      refused 65 "gap: begins like $tool" -- tokenize -t bytes gap
    fi
    { head -c 30000 x && printf 'damage damage' && tail -c +30007 x; } >damaged
    refused 65 "damaged: begins like $tool" -- tokenize -t bytes damaged
    $tool -qc </dev/null >none
    [ -z "$(tokenize -q -t bytes none | tokenize --decode)" ]
  done
}

@test "text of another kind is named, with its byte and what to do" {
  printf 'Once upon a time there was a dog.\n' >x.txt
  # kind FILE WORDS...: refused by an encoder, a learner, as JSON lines and in pairs.
  kind() {
    local file=$1
    shift
    refused 65 "$file: byte " "$@" -- tokenize -q -t "$bpe" "$file"
    refused 65 "stdin: byte " "$@" -- tokenize -q -t "$bpe" <"$file"
    refused 65 "$file: byte " "$@" -- tokenize -q --learn word "$file"
    refused 65 "$file: byte " "$@" -- tokenize -q -t "$bpe" --pairs x.txt "$file"
    tokenize -q -t bytes "$file" | tokenize --decode | cmp - "$file"
    tokenize -q -t "$bpe" --invalid keep "$file" | tokenize --decode | cmp - "$file"
  }
  for code in UTF-16 UTF-16LE UTF-16BE UTF-32 UTF-32LE UTF-32BE; do
    iconv -f UTF-8 -t $code x.txt >$code.txt
    kind $code.txt "byte 0: ${code:0:6} (" 'not UTF-8; convert it: iconv -f UTF-'
    refused 65 iconv -- tokenize -q -t bytes --format jsonl --invalid error $code.txt
    how=$(sed 's/.*convert it: //' <<<"$stderr")
    $how $code.txt | tokenize -q -t "$bpe" | tokenize --decode | cmp - x.txt
  done
  run --separate-stderr tokenize -t bytes UTF-16.txt -o x
  [ "$status" -eq 0 ]
  [[ $stderr == *'UTF-16.txt: UTF-16 (little-endian), not UTF-8'*'encoded unchanged'* ]]
  printf 'PK\3\4abc' >x.zip
  kind x.zip 'zip archive' 'unzip -p'
  printf '%%PDF-1.5\n' >x.pdf
  kind x.pdf PDF pdftotext
  printf '7z\xbc\xaf\x27\x1c' >x.7z
  kind x.7z 7-Zip
  tar -cf x.tar x.txt
  kind x.tar tar
  iconv -f UTF-8 -t ISO-8859-1 <<<'un café noir' >latin.txt
  kind latin.txt 'byte 6 (0xe9) is not UTF-8' 'iconv -f WINDOWS-1252 -t UTF-8' '--invalid replace'
  refused 65 'byte 6 (0xe9)' -- tokenize -q -t "$bpe" --format lines latin.txt
  printf 'abc\xe2\x82' >cut.txt
  kind cut.txt 'byte 3 (0xe2) is not UTF-8' 'the file ends within a character' 'iconv -f WINDOWS-1252'
  # The byte is counted in the file: behind a mark, and over blocks.
  { printf '%s' "$bom" && head -c 3000000 /dev/zero | tr '\0' e && printf '\xff'; } >far.txt
  refused 65 'far.txt: byte 3000003 (0xff)' -- tokenize -q -t "$bpe" far.txt -o x
}

@test "characters across blocks are whole; --invalid replace writes what browsers write" {
  # Blocks have 1 MiB: a character begins 0 to 3 bytes before their ends.
  for n in 1048573 1048574 1048575 1048576; do
    { head -c $n /dev/zero | tr '\0' e && printf '😀€é\n' && head -c 1048570 /dev/zero | tr '\0' f && printf '😀'; } >x
    tokenize -q -t "$bpe" x | tokenize --decode | cmp - x
    tokenize -q -t "$bpe" --invalid replace x | tokenize --decode | cmp - x
    { head -c $n /dev/zero | tr '\0' e && printf '\xf0\x9f\x98'; } >y
    [ "$(tokenize -q -t "$bpe" --invalid replace y | tokenize --decode | tail -c 6)" = $'eee\xef\xbf\xbd' ]
  done
  printf 'a\xff\xc0\xafb\xe2\x82c\xed\xa0\x80d\xf0\x9f\x98' >z
  tokenize -t "$bpe" --json -q --invalid replace z -o z.shard.zst 2>report
  u=$'\xef\xbf\xbd'
  [ "$(tokenize --decode z.shard.zst)" = "a$u$u${u}b${u}c$u$u${u}d$u" ]
  [ "$(jq .replaced report)" -eq 8 ]
  tokenize -t "$bpe" --invalid replace z -o z.shard.zst 2>&1 | grep -q '8 times U+FFFD'
  # Parts of a text that grows by replacing make the whole.
  for i in $(seq 40); do printf '\xff\xff\xff\xff %d\n' "$i"; done >w
  for i in 1 2 3; do tokenize -q -t "$bpe" --format lines --invalid replace --part $i/3 w -o part.$i; done
  [ "$(shard merge -q part.1 part.2 part.3 | tokenize --decode)" = "$(tokenize -q -t "$bpe" --format lines --invalid replace w | tokenize --decode)" ]
  [ "$(shard merge -q part.1 part.2 part.3 | shard info --json - | jq .documents)" -eq 40 ]
}

@test "CRLF and NUL bytes are told once; --newlines lf" {
  printf 'a\r\nb\r\n\rc\r' >crlf
  cp crlf crlf2
  run --separate-stderr tokenize -t bytes crlf crlf2 -o x
  [ "$status" -eq 0 ]
  [[ $stderr == *'tokenize: crlf and 1 more file: 4 lines with CRLF at the end'*'--newlines lf'* ]]
  cat crlf crlf | cmp - <(tokenize --decode x)
  run --separate-stderr tokenize -t bytes --newlines lf crlf -o x
  [[ $stderr != *CRLF* ]]
  printf 'a\nb\n\rc\r' | cmp - <(tokenize --decode x)
  [ "$(documents --format lines --newlines lf crlf)" = $'{"text":"a"}\n{"text":"b"}\n{"text":"\\rc\\r"}' ]
  [ "$(tokenize -q --learn word --newlines lf crlf)" = "$(printf 'a\nb\n\rc\r' | tokenize -q --learn word)" ]
  # Over the end of a block.
  { head -c 1048575 /dev/zero | tr '\0' e && printf '\r\nf'; } >far
  tokenize -t bytes far -o x 2>&1 | grep -q 'far: 1 line with CRLF at the end'
  tokenize -q -t bytes --newlines lf far | tokenize --decode | cmp - <(tr -d '\r' <far)
  # To JSON lines it is white space, and their texts stay as they are.
  printf '{"text":"a"}\r\n' >x.jsonl
  [ -z "$(tokenize -t bytes x.jsonl -o x 2>&1 | grep CRLF)" ]
  run --separate-stderr -64 tokenize -t bytes --newlines lf x.jsonl -o y
  [ "$stderr" = 'tokenize: --newlines lf: cannot be combined with JSON lines, whose texts are kept as they are' ]
  run --separate-stderr -64 tokenize -t bytes --format lines --document-separator x crlf -o y
  [[ $stderr == *"--document-separator: requires --format text"* ]]
  printf 'one two three\0four five' >nul
  tokenize -t "$bpe" nul -o x 2>&1 | grep -q 'nul: 1 NUL byte; is it a text?'
  tokenize --decode x | cmp - nul
}

@test "readers of lines name a file that is no text" {
  printf 'one\n' | iconv -t UTF-16 >u16
  printf 'a b\n' | tokenize -q -t bytes -o t.shard.zst
  bm25-search build -q t.shard.zst -o t.index --passage 4
  refused 65 'u16: byte 0: UTF-16' iconv -- bm25-search find -i t.index u16
  gzip -c u16 >u16.gz
  refused 65 'stdin: byte 0: compressed by gzip' 'gzip -dc' -- bm25-search find -i t.index <<<"$(printf '\x1f\x8bx')"
  refused 65 'u16: byte 0: UTF-16' -- clean-babistories u16
  refused 65 'u16: byte 0: UTF-16' -- gen-babistories-prompts -n 1 --names u16
}

@test "score, sample and annotate: UTF-8, and members that are not asked for need only be JSON" {
  needs score
  needs sample
  needs annotate
  export OMP_NUM_THREADS=1
  "$root"/tests/cli/tiny_gpt2 model 1 0.3 0 260
  yes 'a cat' | head -n 50 | tokenize -q --learn bpe --vocab-size 260 -o cats.json
  {
    printf '%s{"id":123456789012345678901234567890,"x":1e400,"text":"a cat"}\n' "$bom"
    echo '{"id":"\ud800","\udfff":"\udfff","text":"a cat"}'
    echo '{"id":3,"text":"\ud83d cat"}'
    echo '{"id":4,"x":NaN,"text":"a cat"}'
    printf '{"id":5,"text":"caf\xe9"}\n'
    echo '{"id":6,"text":"\ud83d\ude00"}'
  } >x.jsonl
  xz -k x.jsonl
  run --separate-stderr score -q -m model -t cats.json --keep-going x.jsonl.xz -o answers
  [ "$status" -eq 65 ]
  [ "$(wc -l <answers)" -eq 6 ]
  grep -q '^{"id":123456789012345678901234567890,"log_prob"' answers
  grep -q '^{"id":"\\ufffd","log_prob"' answers
  grep -q '^{"id":3,.*x.jsonl.xz:3: \\"text\\" has an unpaired surrogate' answers
  grep -q '^{"id":4,.*x.jsonl.xz:4: NaN is not JSON' answers
  grep -q '^{"id":5,.*x.jsonl.xz:5: byte 19 (0xe9) is not UTF-8' answers
  grep -q '^{"id":6,"log_prob"' answers
  [ "$(jq -s length answers)" -eq 6 ]
  printf '[{"text":"a cat"}]\n' >array.jsonl
  refused 65 'array.jsonl: is named like JSON lines' "jq -c '.[]'" -- score -q -m model -t cats.json array.jsonl
  head -n 2 x.jsonl >two.jsonl
  sample -q -m model -t cats.json --field text --max-tokens 1 --json two.jsonl -o texts
  grep -q '"id":123456789012345678901234567890,' texts
  grep -q '"id":"\\ufffd",' texts
  [ "$(jq -s length texts)" -eq 2 ]
  sed -n 3p x.jsonl >lone.jsonl
  refused 65 'lone.jsonl:1: "text" has an unpaired surrogate' -- \
    sample -q -m model -t cats.json --field text --max-tokens 1 --json lone.jsonl
  printf 'caf\xe9 noir\n' >latin.txt
  refused 65 'latin.txt:1: byte 3 (0xe9)' iconv -- sample -q -m model -t cats.json latin.txt
  refused 65 'latin.txt:1: byte 3 (0xe9)' iconv -- score -q -m model -t cats.json latin.txt
  refused 65 'latin.txt: byte 3 (0xe9)' iconv -- annotate -q -m model -t cats.json latin.txt
}
