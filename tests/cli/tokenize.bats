#!/usr/bin/env bats
# tokenize: documents into shards and back, learned and imported tokenizers, what it refuses.

load helpers

setup() {
  golden=$root/tests/golden/tokenizers
  cd "$BATS_TEST_TMPDIR"
  printf 'one two\n\nthree four five\n' >lines.txt
}

numbers() { shard cat "$@" | tr '\n' ' ' | sed 's/ $//'; }

@test "the ids of stored files are those of Hugging Face's tokenizers" {
  for name in bpe word; do
    for text in sample hard; do
      tokenize -q -t "$golden/$name.json" --end-of-document none "$golden/$text.txt" -o x.shard.zst
      [ "$(numbers x.shard.zst)" = "$(tr '\n' ' ' <"$golden/$text.$name.ids" | sed 's/ $//')" ]
    done
  done
}

@test "bytes and bpe: any bytes come back, through pipes too" {
  head -c 200000 /dev/urandom >any
  for tokenizer in bytes "$golden/bpe.json"; do
    tokenize -q -t "$tokenizer" --invalid keep any -o any.shard.zst
    tokenize --decode any.shard.zst | cmp - any
    tokenize -q -t "$tokenizer" --invalid keep <any | tokenize -t "$tokenizer" --decode - -o back
    cmp any back
  done
  if command -v zstd >/dev/null; then
    tokenize -q -t bytes any | zstd -dc | cmp - any
  fi
}

@test "word: WikiText's convention" {
  printf ' = Title = \n \n a rare <unk> word \n' >train.txt
  tokenize -q --learn word train.txt -o word.json
  printf ' a word never seen \n' | tokenize --json -t word.json -o x.shard.zst 2>report
  [ "$(field tokens <report)" -eq 5 ]
  [ "$(field words <report)" -eq 5 ]
  [ "$(tokenize --decode x.shard.zst)" = 'a word <unk> <unk>' ]
  [ "$(tokenize -q -t word.json train.txt | tokenize --decode | tail -n 1)" = 'a rare <unk> word' ]
}

@test "text: a file is a document; a separator parts it; special tokens in text are text" {
  printf 'one<|endoftext|>two<|endoftext|>' >a.txt
  tokenize --json -q -t "$golden/bpe.json" a.txt lines.txt -o x.shard.zst 2>report
  [ "$(field documents <report)" -eq 2 ]
  cat a.txt lines.txt | cmp - <(tokenize --decode x.shard.zst)
  tokenize --json -q -t "$golden/bpe.json" --document-separator '<|endoftext|>' a.txt -o y.shard.zst 2>report
  [ "$(field documents <report)" -eq 2 ]
  [ "$(field bytes <report)" -eq 6 ]
  [ "$(tokenize --decode y.shard.zst)" = onetwo ]
  tokenize --decode y.shard.zst --document-separator '<|endoftext|>' | cmp - a.txt
}

@test "after each document stands the tokenizer's mark, another, or none" {
  tokenize -q -t "$golden/bpe.json" --format lines lines.txt -o x.shard.zst
  mark=$(shard cat --by-document x.shard.zst | sed -n 2p)
  [ "$(shard cat --by-document x.shard.zst | awk -v m="$mark" '$NF == m' | wc -l)" -eq 3 ]
  [ "$(tokenize --decode --end-of-document none x.shard.zst)" = \
    'one two<|endoftext|><|endoftext|>three four five<|endoftext|>' ]
  tokenize -q -t "$golden/bpe.json" --format lines --end-of-document none lines.txt -o y.shard.zst
  [ "$(shard cat y.shard.zst | wc -l)" -eq $(($(shard cat x.shard.zst | wc -l) - 3)) ]
  tokenize -q -t "$golden/word.json" --format lines --end-of-document '<eos>' lines.txt | tail -c 1 >/dev/null
  [ "$(tokenize -q -t "$golden/bpe.json" --end-of-document '!' lines.txt | tokenize --decode)" = "$(cat lines.txt)" ]
  run --separate-stderr tokenize -t "$golden/bpe.json" --end-of-document '</s>' lines.txt -o z.shard.zst
  [ "$status" -eq 64 ]
  [[ $stderr == *'</s>'* ]]
  [ ! -e z.shard.zst ]
}

@test "lines and JSON lines, there and back" {
  printf '{"id": 1, "text": "one\\ntwo \\u00e9"}\n\n{"text": ""}\n' >a.jsonl
  tokenize -q -t bytes --format jsonl a.jsonl -o x.shard.zst
  [ "$(tokenize --decode --format jsonl x.shard.zst)" = $'{"text":"one\\ntwo é"}\n{"text":""}' ]
  tokenize -q -t bytes --format lines lines.txt -o y.shard.zst
  tokenize --decode --format lines y.shard.zst | cmp - lines.txt
  # Of a member that is there twice the last counts, as to jq.
  printf '{"text": "first", "text": "last"}\n' | tokenize -q -t bytes --format jsonl | tokenize --decode | grep -qx last
  printf '{"body": "b"}\n' | tokenize -q -t bytes --format jsonl --field body | tokenize --decode | grep -qx b
}

@test "a bad JSON line: file and line, exit 65, no output" {
  printf '{"text": "a"}\n{"text": 3}\n' >bad.jsonl
  run --separate-stderr tokenize -t bytes --format jsonl bad.jsonl -o x.shard.zst
  [ "$status" -eq 65 ]
  [[ $stderr == 'tokenize: bad.jsonl:2: '* ]]
  [ -z "$output" ]
  [ -z "$(find . -name 'x.shard*')" ]
  run --separate-stderr tokenize -t bytes --format jsonl --field other bad.jsonl -o x.shard.zst
  [[ $stderr == 'tokenize: bad.jsonl:1: '*other* ]]
}

@test "a file named .jsonl, and stdin whose first line is such JSON, is JSON lines, with a note, unless --format is given" {
  printf '{"text": "one"}\n{"text": "two"}\n' >a.jsonl
  tokenize -t bytes a.jsonl -o x.shard.zst 2>notes
  grep -q 'a.jsonl: read as JSON lines.*"text".*--format text' notes
  cmp x.shard.zst <(tokenize -q -t bytes --format jsonl a.jsonl)
  tokenize -t bytes --format auto a.jsonl 2>notes | cmp - x.shard.zst
  grep -q 'a.jsonl: read as JSON lines' notes
  tokenize -t bytes --format auto --print-config >settings
  tokenize -q --config settings a.jsonl | cmp - x.shard.zst
  zstd -q a.jsonl && gzip -k a.jsonl
  tokenize -q -t bytes a.jsonl.zst | cmp - x.shard.zst
  tokenize -q -t bytes a.jsonl.gz | cmp - x.shard.zst
  tokenize -t bytes --format text a.jsonl 2>notes | tokenize --decode | cmp - a.jsonl
  ! grep 'JSON lines' notes || false
  tokenize -q -t bytes <a.jsonl | cmp - x.shard.zst
  tokenize -q -t bytes --format text <a.jsonl | tokenize --decode | cmp - a.jsonl
  cp a.jsonl a.txt
  tokenize -q -t bytes a.txt | tokenize --decode | cmp - a.jsonl
  tokenize -q --learn word --min-count 1 a.jsonl | cmp - <(tokenize -q --learn word --format jsonl a.jsonl)
  run --separate-stderr tokenize -t bytes a.jsonl lines.txt
  [ "$status" -eq 64 ]
  [[ $stderr == *a.jsonl*lines.txt*--format* ]]
}

@test "zstd and gzip are read as what they hold, wherever a text is read" {
  for _ in $(seq 400); do cat "$golden/sample.txt"; done >big.txt
  zstd -q big.txt && gzip -k big.txt && zstd -q lines.txt && gzip -k lines.txt
  tokenize --json -q -t "$golden/bpe.json" big.txt lines.txt -o x.shard.zst 2>report
  for packed in zst gz; do
    tokenize --json -q -t "$golden/bpe.json" big.txt.$packed lines.txt.$packed -o y.shard.zst 2>packed_report
    cmp x.shard.zst y.shard.zst
    cmp report packed_report
    tokenize -q -t bytes <lines.txt.$packed | tokenize --decode | cmp - lines.txt
    tokenize -q -t bytes --pairs lines.txt.$packed lines.txt | cmp - <(tokenize -q -t bytes --pairs lines.txt lines.txt)
    tokenize -q --learn word lines.txt.$packed | cmp - <(tokenize -q --learn word lines.txt)
  done
  head -c 50 lines.txt.gz >cut.gz
  head -c 40 big.txt.zst >cut.zst
  for cut in cut.gz cut.zst; do
    run --separate-stderr tokenize -t bytes $cut -o z.shard.zst
    [ "$status" -eq 65 ]
    [[ $stderr == "tokenize: $cut: cut short"* ]]
    [ ! -e z.shard.zst ]
  done
  run --separate-stderr tokenize -t bytes x.shard.zst -o z.shard.zst
  [ "$status" -eq 65 ]
  [[ $stderr == *'x.shard.zst: is a shard'*--decode* ]]
}

@test "pairs: source, target, source, target; sides of different length are an error" {
  printf 'ein Haus\nzwei\n' >de
  printf 'a house\ntwo\n' >en
  tokenize -q -t bytes --pairs de en -o x.shard.zst
  [ "$(shard info --json x.shard.zst | field kind)" = pairs ]
  [ "$(tokenize --decode --format lines x.shard.zst)" = $'ein Haus\na house\nzwei\ntwo' ]
  printf 'three\n' >>en
  run --separate-stderr tokenize -t bytes --pairs de en -o y.shard.zst
  [ "$status" -eq 65 ]
  [[ $stderr == *en:3*de* ]]
  [ ! -e y.shard.zst ]
  run tokenize -t bytes --pairs de -o y.shard.zst
  [ "$status" -eq 64 ]
}

@test "any -j: the same bytes" {
  for _ in $(seq 400); do cat "$golden/sample.txt" "$golden/hard.txt"; done >big.txt
  for tokenizer in bytes "$golden/bpe.json" "$golden/word.json"; do
    tokenize -q -j1 -t "$tokenizer" big.txt -o one.shard.zst
    tokenize -q -j4 -t "$tokenizer" - -o four.shard.zst <big.txt
    cmp one.shard.zst four.shard.zst
  done
  for kind in word bpe; do
    tokenize -q -j1 --learn $kind --vocab-size 500 big.txt -o one.json
    tokenize -q -j4 --learn $kind --vocab-size 500 big.txt -o four.json
    cmp one.json four.json
  done
}

@test "a shard says which program made it of what, and nothing of where" {
  tokenize -q -t "$golden/bpe.json" --format lines lines.txt -o x.shard.zst
  entry=$(shard info --json x.shard.zst | python3 -c 'import json, sys; print(json.dumps(json.load(sys.stdin)["provenance"]))')
  [[ $entry == *'"program": "tokenize"'* && $entry == *'"format": "lines"'* && $entry == *'"end_of_document": "<|endoftext|>"'* ]]
  [[ $entry != *lines.txt* && $entry != *jobs* ]]
  cp lines.txt other.txt
  tokenize -q -t "$golden/bpe.json" --format lines <other.txt >y.shard.zst
  cmp x.shard.zst y.shard.zst
}

@test "learn: sizes, counts, defaults" {
  tokenize --learn bpe --vocab-size 300 "$golden/sample.txt" -o a.json 2>notes
  grep -q '300 tokens' notes
  tokenize --learn word --min-count 3 "$golden/sample.txt" -o b.json 2>notes
  tokenize --learn word --vocab-size 10 "$golden/sample.txt" -o c.json 2>notes
  grep -q '10 tokens' notes
  tokenize -q --learn bpe "$golden/sample.txt" -o d.json
  cmp <(tokenize -q --learn bpe --min-count 2 --vocab-size 32768 "$golden/sample.txt") d.json
  cmp d.json <(tokenize -q --export json -t "$golden/bpe.json")
  run tokenize --learn bpe --vocab-size 200 "$golden/sample.txt"
  [ "$status" -eq 64 ]
  run tokenize --learn unigram "$golden/sample.txt"
  [ "$status" -eq 64 ]
}

@test "import and export: GPT-2's files in either order, dict.txt, codes" {
  tokenize -q --export gpt2 -t "$golden/bpe.json" -o gpt2
  [ "$(ls gpt2)" = $'merges.txt\nvocab.json' ]
  tokenize -q --import gpt2/vocab.json gpt2/merges.txt -o a.json
  tokenize -q --import gpt2/merges.txt gpt2/vocab.json -o b.json
  cmp a.json b.json
  cmp a.json <(tokenize -q --export json -t "$golden/bpe.json")

  printf 'the 500\nof 3 #fairseq:overwrite\n' >dict.txt
  tokenize -q --import dict.txt -o dict.json
  [ "$(printf 'of the sea\n' | tokenize -q -t dict.json | numbers)" = '5 4 3 2' ]

  printf '#version: 0.2\nl o\nlo w</w>\n' >codes
  tokenize -q --import codes -o codes.json
  [ "$(printf 'low l lol\n' | tokenize -q --format lines -t codes.json | tokenize --decode)" = 'low l lol' ]
  [ "$(printf 'low' | tokenize -q --end-of-document none -t codes.json | numbers | wc -w)" -eq 1 ]
  printf 'low 9\nlo@@ 5\nl 2\n' >units.txt
  tokenize -q --import codes units.txt -o units.json
  [ "$(printf 'low lol\n' | tokenize -q --format lines -t units.json | numbers)" = '4 5 6 2' ]

  refused() { # pattern, arguments
    local pattern=$1
    shift
    run --separate-stderr tokenize "$@"
    [ "$status" -eq 65 ] && [[ $stderr == $pattern ]] && [ -z "$output" ] || { echo "tokenize $*: $status: $stderr" && return 1; }
  }
  # One of GPT-2's two files says which the other is.
  refused '*merges.txt: GPT-2*vocabulary*--import encoder.json vocab.bpe*' --import gpt2/merges.txt
  refused '*merges.txt: GPT-2*vocabulary*--import encoder.json vocab.bpe*' --import gpt2/merges.txt dict.txt
  refused '*merges.txt: GPT-2*vocabulary*--import encoder.json vocab.bpe*' -t gpt2/merges.txt lines.txt
  refused '*vocab.json: GPT-2*merges*--import encoder.json vocab.bpe*' --import gpt2/vocab.json
  refused '*vocab.json: GPT-2*merges*--import encoder.json vocab.bpe*' -t gpt2/vocab.json lines.txt
  refused '*codes: subword-nmt*--import*' -t codes lines.txt
  # Each line ends with a number, as in fairseq's dict.txt.
  printf '%s\n' "1 '\\x00' 1" "2 '\\x01' 1" >world.txt
  refused "*world.txt: RWKV's vocabulary*--import*" -t world.txt lines.txt
  refused '*world.txt: no token for byte 2*' --import world.txt
  { for b in {0..255}; do printf "%d b'\\x%02x' 1\n" $((b + 1)) "$b"; done && echo "257 ' the' 4"; } | sed "1s/ b/ /" >world.txt
  tokenize -q --import world.txt -o world.json
  [ "$(printf 'a the the' | tokenize -q -t world.json | numbers)" = '98 257 257 0' ]

  run --separate-stderr tokenize --import lines.txt
  [ "$status" -eq 65 ]
  run --separate-stderr tokenize --import codes codes
  [ "$status" -eq 65 ]
  [[ $stderr == *'can be imported'* ]]
}

@test "tokenizers of other people's models: the text comes back, added tokens and all; unknown steps are named" {
  for name in llama3 llama2 o200k smollm; do
    for text in sample hard; do
      tokenize -q -t "$golden/pipelines/$name.json" "$golden/$text.txt" -o x.shard.zst
      tokenize --decode x.shard.zst | cmp - "$golden/$text.txt" || { echo "$name" && return 1; }
    done
  done
  # However the text is read: at once, and through a pipe in batches.
  for _ in $(seq 400); do cat "$golden/sample.txt" "$golden/hard.txt"; done >big.txt
  for name in llama2 qwen2 deepseek; do
    tokenize -q -j1 -t "$golden/pipelines/$name.json" big.txt -o one.shard.zst
    tokenize -q -j4 -t "$golden/pipelines/$name.json" - -o four.shard.zst <big.txt
    cmp one.shard.zst four.shard.zst
    python3 -c 'import json, sys
print(json.dumps({"text": open(sys.argv[1], encoding="utf-8", newline="").read()}))' big.txt >big.jsonl
    tokenize -q -t "$golden/pipelines/$name.json" big.jsonl -o whole.shard.zst
    cmp <(shard cat whole.shard.zst) <(shard cat one.shard.zst)
  done
  sed 's/"type":"NFC"/"type":"Nmt"/' "$golden/pipelines/qwen2.json" >nmt.json
  run --separate-stderr tokenize -t nmt.json lines.txt -o y.shard.zst
  [ "$status" -eq 65 ]
  [[ $stderr == 'tokenize: nmt.json: the normalizer Nmt is not supported'* ]]
  [ ! -e y.shard.zst ]
}

@test "wrong usage: 64; missing: 66; not a tokenizer: 65; each in one line" {
  expect() { # code, pattern, arguments
    local code=$1 pattern=$2
    shift 2
    run --separate-stderr tokenize "$@"
    [ "$status" -eq "$code" ] && [ "${#stderr_lines[@]}" -eq 1 ] && [[ $stderr == tokenize:*$pattern* ]] && [ -z "$output" ] ||
      { echo "tokenize $*: $status: $stderr" && return 1; }
  }
  expect 64 -t lines.txt
  expect 64 'give one' --decode --import lines.txt
  expect 64 format -t bytes --format xml lines.txt
  expect 66 absent -t absent.json lines.txt
  expect 66 absent -t bytes absent.txt -o x
  expect 65 'lines.txt: not a tokenizer' -t lines.txt lines.txt
  expect 64 stdin -t bytes - - -o x
  echo '{"model":{"type":"Unigram"}}' >unigram.json
  expect 65 'no list "vocab"' -t unigram.json lines.txt
  echo '{"model":{"type":"BPE","vocab":{},"merges":[]}}' >empty.json
  expect 65 'empty.json: an empty vocabulary' -t empty.json lines.txt
  tokenize -q -t bytes lines.txt -o x.shard.zst
  expect 65 'encoded by another' -t "$golden/bpe.json" --decode x.shard.zst
  expect 73 nowhere -t bytes lines.txt -o nowhere/x
  head -c 100 x.shard.zst >cut.shard.zst
  expect 65 cut --decode cut.shard.zst
  run tokenize -t bytes lines.txt -o /dev/full
  [ "$status" -eq 74 ]
  [ -z "$(find . -name '*.tmp.*')" ]
}

@test "a tokenizer that makes too much of a text, or takes too many steps, is an error; one that is linear is not" {
  changed() { jq -c "$1" "$golden/pipelines/qwen2.json" >"$2"; }
  changed '.normalizer = {type: "Sequence", normalizers: [range(34) | {type: "Replace", pattern: {String: "a"}, content: "aa"}]}' growth.json
  changed '.pre_tokenizer.pretokenizers[0].pattern.Regex = "a*b|."' quadratic.json
  changed '.pre_tokenizer.pretokenizers[0].pattern.Regex = "\\p{N}{1,3}(?=(?:\\p{N}{3})*(?:\\P{N}|$))|\\P{N}+"' groups.json
  changed '.added_tokens[3] += {content: " ", lstrip: true}' spaces.json
  changed '.added_tokens[3].id = 340' gap.json
  printf '%01000000d' 1 >digits
  printf '%1000000s' x >spaces
  tr 0 a <digits >letters
  for name in growth quadratic; do
    run --separate-stderr timeout 60 tokenize -t "$name.json" letters -o x.shard.zst
    [ "$status" -eq 65 ]
    [ "${#stderr_lines[@]}" -eq 1 ]
    [ ! -e x.shard.zst ]
  done
  [[ $stderr == *'a*b|. takes more than 100 steps for each byte'* ]]
  timeout 60 tokenize -q -t quadratic.json lines.txt | tokenize --decode | cmp - lines.txt
  timeout 60 tokenize -q -t groups.json digits | tokenize --decode | cmp - digits
  timeout 60 tokenize -q -t spaces.json spaces -o x.shard.zst
  tokenize -t gap.json lines.txt -o x.shard.zst 2>notes
  grep -q '^tokenize: added token </think> has id 340 as in the file; .* would give it 333$' notes
}

@test "one megabyte of one character: every byte comes back" {
  for unit in a ' ' 7 😀 $'\xff' $'\n'; do
    printf '%s' "$unit" >big
    while [ "$(stat -c %s big)" -lt 1000000 ]; do cat big big >bigger && mv bigger big; done
    tokenize -q -t "$golden/bpe.json" --invalid keep big | tokenize --decode | cmp - big
  done
}

@test "--report: the figures as a JSON line in a file of their own, said before the work where it cannot be" {
  printf "one, two" >a.txt
  tokenize --json -t bytes a.txt -o x.shard.zst --report figures 2>report
  cmp figures report
  tokenize -q -t bytes a.txt --report figures >x.shard.zst # the note is left out, the file is not
  cmp figures report
  run --separate-stderr tokenize -t bytes a.txt -o y.shard.zst --report nowhere/figures
  [ "$status" -eq 73 ]
  [ ! -e y.shard.zst ]
  run --separate-stderr tokenize -t bytes a.txt -o y.shard.zst --report -
  [ "$status" -eq 64 ]
  [[ $stderr == "tokenize: --report: takes a file"* ]]
  run --separate-stderr tokenize --decode x.shard.zst --report figures
  [ "$status" -eq 64 ]
  [[ $stderr == "tokenize: --report: this run has no results"* ]]
  shard export x.shard.zst -o x.npy --output-format npy
  shard import -t bytes x.npy -o z.shard.zst --json --report figures 2>report
  cmp figures report
}

@test "--recursive: each text of a folder is a document with its name, through merge, split and --part" {
  mkdir -p notes/b notes/.git
  printf 'two\n' >notes/b/2.txt
  printf 'one\n' >notes/a.txt
  printf 'last' | gzip >notes/c.gz
  printf '\x89PNG\r\n\x1a\n\0\0' >notes/picture.png
  printf 'hidden' >notes/.git/config
  run --separate-stderr tokenize -t bytes --recursive notes -o x.shard.zst
  [ "$status" -eq 0 ]
  [[ $stderr == *'notes/.git: left out: hidden'* && $stderr == *'notes/picture.png: left out: no text'* ]]
  [[ $stderr == *'3 documents, 12 tokens'* ]]
  [ "$(shard cat --names x.shard.zst)" = $'a.txt\nb/2.txt\nc.gz' ]
  [ "$(shard cat --text x.shard.zst)" = $'one\ntwo\nlast' ]
  [ "$(shard info --json x.shard.zst | jq .named)" -eq 3 ]
  # Data are the same without names; where the folder is does not matter.
  tokenize -q -t bytes notes/a.txt notes/b/2.txt notes/c.gz -o y.shard.zst
  [ "$(shard info --json x.shard.zst | jq .fingerprint)" = "$(shard info --json y.shard.zst | jq .fingerprint)" ]
  [ "$(shard info --json y.shard.zst | jq .named)" = null ]
  mkdir else && cp -r notes else/where
  tokenize -q -j 1 -t bytes --recursive else/where | cmp - x.shard.zst
  shard merge -q y.shard.zst x.shard.zst -o z.shard.zst
  [ "$(shard cat --names z.shard.zst)" = $'\n\n\na.txt\nb/2.txt\nc.gz' ]
  shard split -q --max-documents 4 z.shard.zst -o part-
  [ "$(shard head -n 1 --names part-00001.shard.zst)" = 'b/2.txt' ]
  rm notes/c.gz
  tokenize -q -t bytes --recursive notes -o whole.shard.zst
  for i in 1 2; do tokenize -q -t bytes --recursive notes --part "$i/2" -o "p$i.shard.zst"; done
  shard merge -q p2.shard.zst p1.shard.zst | cmp - whole.shard.zst
  # A tokenizer is learned from the same texts.
  tokenize -q --learn word --recursive notes | cmp - <(cat notes/a.txt notes/b/2.txt | tokenize -q --learn word)
  run -66 tokenize -t bytes --recursive notes/a.txt
  run -64 tokenize -t bytes --recursive
  run -64 tokenize -t bytes --recursive --format lines notes
  run -64 tokenize --decode --recursive notes
  mkdir empty
  run -65 tokenize -t bytes --recursive empty
}
