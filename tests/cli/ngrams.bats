#!/usr/bin/env bats
# build-ngrams and ngrams: what an index says of a text, killing and going on, damage, what is refused; and n-grams as a
# memory of eval-ppl, sample and score.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
  "$root"/tests/cli/tiny_gpt2 model
  cats 40 >text
  head -n 30 text | tokenize -q -t bytes --format lines -o train.shard.zst
  tail -n 10 text | tokenize -q -t bytes --format lines -o test.shard.zst
  build-ngrams -q train.shard.zst -o index >record
}

setup() {
  cd "$BATS_FILE_TMPDIR"
  rm -rf s
}

# refused CODE WORDS COMMAND...: that exit status, and one line on stderr with these words in it.
refused() {
  local code=$1 words=$2
  shift 2
  run --separate-stderr "$@"
  # shellcheck disable=SC2154  # stderr is bats'
  [ "$status" -eq "$code" ] && [[ $stderr == *"$words"* ]] && [ "$(wc -l <<<"$stderr")" -eq 1 ] && [ -z "$output" ] ||
    { echo "$*: exit $status: $stderr" && return 1; }
}

@test "suffixes are all there, in order; the record says what the index holds" {
  zstdcat train.shard.zst >raw
  grep -q "^tokens  *$(wc -c <raw)$" record
  grep -q '^documents  *30$' record
  [ "$(find index | sort | tr '\n' ' ')" = "index index/documents.npy index/firsts.0.npy index/ngrams.json index/suffixes.0.npy index/text.0.npy index/tokenizer.json " ]
  python3 - <<'END'
import struct
raw = open("raw", "rb").read()
elements = lambda name: open(f"index/{name}.npy", "rb").read()
def array(name, letter):
    data = elements(name)
    start = 10 + struct.unpack("<H", data[8:10])[0]
    return struct.unpack(f"<{(len(data) - start) // struct.calcsize(letter)}{letter}", data[start:])
ends, text, suffixes = array("documents", "Q"), array("text.0", "H"), array("suffixes.0", "I")
assert len(ends) == 30 and ends[-1] == len(raw)
begin, whole = 0, []
for end in ends:
    whole += list(raw[begin:end]) + [256]
    begin = end
assert list(text) == whole
places = [i for i, token in enumerate(whole) if token != 256]
assert list(suffixes) == sorted(places, key=lambda i: whole[i:])
END
  ngrams verify --json index | grep -q '"verified":true'
}

@test "find: how often a text stands there, and where" {
  [ "$(ngrams find -i index --json "cat 7," | head -n 1 | field count)" -eq "$(grep -o "cat 7," <(head -n 30 text) | wc -l)" ]
  ngrams find -i index --json --k 100 "the mat; cat 7" >found
  python3 - <<'END'
import json
lines = [json.loads(line) for line in open("found")]
assert lines[0] == {"type": "report", "text": "the mat; cat 7", "tokens": 14, "count": 1}, lines[0]
place = lines[1]
assert place["document"] == 7 and place["offset"] == len("The cat sat on "), place
assert place["before"] == "The cat sat on " and place["after"] == ", mat 49, and th", place
END
  [ "$(ngrams find -i index --json "no such cat" | field type)" = report ]
  run ngrams find -i index "no such cat"
  [ "$status" -eq 0 ]
  [[ $output == *"count"*"0"* ]]
  # Ids where there is no tokenizer.
  shard export -q train.shard.zst -o train.npy
  shard import -q --vocabulary 256 train.npy -o ids.shard.zst
  build-ngrams -q ids.shard.zst -o ids >/dev/null
  [ "$(ngrams find -i ids --json --ids "99 97 116" | head -n 1 | field count)" -eq "$(head -n 30 text | grep -o cat | wc -l)" ]
  refused 64 "give token ids with --ids" ngrams find -i ids cat
  refused 64 "takes token ids separated by spaces" ngrams find -i ids --ids "99 x"
  refused 64 "--ngrams is missing" ngrams find cat
  refused 64 "give a TEXT" ngrams find -i index
}

@test "overlap: spans of a text that the index has, by document" {
  printf '%s\n' "The dog sat." "A cat sat on the mat; cat 9 was there." "Nothing of that." | tokenize -q -t bytes --format lines -o other.shard.zst
  ngrams overlap -i index --json --at-least 12 other.shard.zst >overlap
  ngrams overlap -i index --json --at-least 12 --by-span other.shard.zst >spans
  python3 - <<'END'
import json
all, *rows = [json.loads(line) for line in open("overlap")]
assert all["documents"] == 3 and all["with_spans"] == 1 and [row["document"] for row in rows] == [1], all
span = " cat sat on the mat; cat 9"
assert rows[0]["longest"] == rows[0]["known"] == len(span) and rows[0]["spans"] == 1, rows
spans = [json.loads(line) for line in open("spans")][1:]
assert len(spans) == 1 and spans[0]["text"] == span and spans[0]["offset"] == 1, spans
assert spans[0]["there"] == 9 and spans[0]["there_offset"] == len("The") and spans[0]["count"] == 1, spans
END
  # What the index was made of is known to the last token.
  [ "$(ngrams overlap -i index --json train.shard.zst | head -n 1 | field share)" = 1.0 ]
  tokenize -q --learn bpe --vocab-size 300 text -o bpe.json
  tokenize -q -t bpe.json text -o bpe.shard.zst
  refused 65 "has tokenizer" ngrams overlap -i index bpe.shard.zst
}

@test "a text larger than --memory is sorted in parts; the answers are the same, with any -j" {
  zstdcat "$root/examples/novels/the-lost-world.txt.zst" >novel
  tokenize -q -t bytes novel -o novel.shard.zst
  build-ngrams -q -j 1 novel.shard.zst -o whole >/dev/null
  build-ngrams -q --buffer-size 1M -j 2 novel.shard.zst -o s >/dev/null
  [ -e s/suffixes.2.npy ]
  for text in "Challenger" "said Lord John" "the " "of the plateau" "xyzzy"; do
    [ "$(ngrams find -i whole --json "$text" | head -n 1)" = "$(ngrams find -i s --json "$text" | head -n 1)" ]
  done
  [ "$(ngrams find -i whole --json --k 1M "plateau" | sed 's/whole/s/' | sort)" = "$(ngrams find -i s --json --k 1M "plateau" | sort)" ]
  refused 64 "--buffer-size: 64 threads need" build-ngrams --buffer-size 1M -j 64 novel.shard.zst -o small
}

@test "killed at any moment, the same command goes on to the same bytes; done, it has nothing to do" {
  [ -e novel.shard.zst ] || skip "the test before made no text"
  for delay in 0.05 0.1 0.15 0.2 0.3; do
    # It may be done before that.
    timeout --foreground -s KILL "$delay" build-ngrams -q --buffer-size 1M -j 1 novel.shard.zst -o s >/dev/null || [[ $? == @(124|137) ]]
    [ ! -e s/ngrams.json ] || ngrams verify s >/dev/null
  done
  build-ngrams -q --buffer-size 3M -j 2 novel.shard.zst -o s >/dev/null # the parts stay as they were cut
  build-ngrams -q --buffer-size 1M -j 1 novel.shard.zst -o uninterrupted >/dev/null
  diff -r s uninterrupted
  run --separate-stderr build-ngrams novel.shard.zst -o s
  [ "$status" -eq 0 ]
  [[ $stderr == *"nothing to do"* ]]
  diff -r s uninterrupted
}

@test "stopped by a signal it ends with 75 and goes on" {
  [ -e novel.shard.zst ] || skip "the test before made no text"
  build-ngrams -q --buffer-size 1M -j 1 novel.shard.zst -o s >/dev/null &
  pid=$!
  while [ ! -e s/text.0.npy ] && [ -e "/proc/$pid" ]; do sleep 0.01; done
  kill -TERM "$pid" 2>/dev/null || [ ! -e "/proc/$pid" ]
  code=0
  wait "$pid" || code=$?
  [ "$code" -eq 75 ] || [ -e s/ngrams.json ]
  if [ "$code" -eq 75 ]; then
    refused 66 "not complete yet; rerun its build-ngrams" ngrams find -i s the
  fi
  build-ngrams -q novel.shard.zst -o s >/dev/null
  ngrams verify s >/dev/null
}

@test "what does not belong is refused, and nothing is left behind" {
  refused 64 "-o FOLDER" build-ngrams train.shard.zst
  gen-moons -q --count 2 -o moons.shard.zst
  refused 65 "" build-ngrams moons.shard.zst -o s
  printf '' | tokenize -q -t bytes -o empty.shard.zst
  refused 65 "no tokens" build-ngrams empty.shard.zst -o s
  [ ! -e s ]
  head -c 200 train.shard.zst >cut.shard.zst
  refused 65 "" build-ngrams cut.shard.zst -o s
  [ ! -e s ]
  refused 64 "indexes another text" build-ngrams test.shard.zst -o index
  mkdir s && touch s/mine
  refused 73 "contains mine" build-ngrams train.shard.zst -o s
  [ "$(ls s)" = mine ]
  refused 66 "not an index of n-grams" ngrams find -i s the
  refused 64 "contain the same text" ngrams find -i index -i index the
  [ "$(build-ngrams -q train.shard.zst -o index | head -n 1)" = "$(head -n 1 record)" ]
}

@test "no output takes the place of a file of an index" {
  cp -r index s
  echo "A cat" >requests
  for program in eval-ppl sample score; do needs "$program"; done
  for place in s/ngrams.json s/text.0.npy; do
    refused 64 "" eval-ppl -q -m model --ngrams s test.shard.zst -o "$place"
    refused 64 "" sample -q -m model -t bytes --ngrams s requests -o "$place"
    refused 64 "" score -q -m model -t bytes --ngrams s requests -o "$place"
    refused 64 "" ngrams find -i s cat -o "$place"
    refused 64 "" ngrams overlap -i s test.shard.zst -o "$place"
    refused 64 "" ngrams verify s -o "$place"
  done
  diff -r index s
}

@test "damage is found: in sizes and small files when an index is opened, in every byte by verify" {
  for file in text.0.npy suffixes.0.npy documents.npy firsts.0.npy ngrams.json tokenizer.json; do
    rm -rf s
    cp -r index s
    damage "s/$file" 150
    refused 65 "$file" ngrams verify s
    rm -rf s
    cp -r index s
    head -c 140 "index/$file" >"s/$file"
    refused 65 "$file" ngrams find -i s the
    rm "s/$file"
    missing=$file
    [ "$file" != ngrams.json ] || missing='not an index of n-grams'
    refused 66 "$missing" ngrams find -i s the
  done
}

@test "as a memory: the mixture is what its parts say, tuning lowers the perplexity, another tokenizer is refused" {
  needs eval-ppl
  eval-ppl -q -m model --cache 30 --ngrams index --ngrams-lambda 0.3 --per-token with.tsv --json test.shard.zst >with
  eval-ppl -q -m model --cache 30 --memory-weights constant --per-token without.tsv --json test.shard.zst >without
  python3 - <<'END'
import json, math
rows = [line.split("\t") for line in open("with.tsv")][2:]
bare = [line.split("\t") for line in open("without.tsv")][2:]
assert len(rows) == len(bare) > 500
for row, other in zip(rows, bare):
    p = 0.7 * math.exp(-float(other[-1])) + 0.3 * math.exp(-float(row[10]))
    assert abs(-math.log(p) - float(row[-1])) < 1e-9, (row, other)
assert all(other[10] == "-" for other in bare)
assert "|ngrams:" in json.load(open("with"))["signature"] and "|ngrams-lambda:0.3|" in json.load(open("with"))["signature"]
END
  eval-ppl -q -m model --ngrams index --tune test.shard.zst -o tuned.conf
  grep -q '^ngrams-lambda = \[' tuned.conf
  tuned=$(eval-ppl -q -m model --config tuned.conf --json test.shard.zst | field loss)
  python3 -c 'import sys; sys.exit(not float(sys.argv[1]) < 0.5 * float(sys.argv[2]))' "$tuned" "$(field loss <without)"
  run --separate-stderr eval-ppl -m model --ngrams index --json train.shard.zst
  [ "$status" -eq 0 ]
  [[ $stderr == *"contains the evaluated text"* ]]
  near "$(field loss <<<"$output")" "$(eval-ppl -q -m model --json train.shard.zst | field loss)" 1e-9
  # Of a text in an index of several, and of several of which one is in the index, as much.
  build-ngrams -q train.shard.zst test.shard.zst -o both >/dev/null
  run --separate-stderr eval-ppl -m model --ngrams both --json test.shard.zst
  [[ $stderr == *"contains the evaluated text"* ]]
  near "$(field loss <<<"$output")" "$(eval-ppl -q -m model --ngrams index --json test.shard.zst | field loss)" 1e-9
  run --separate-stderr eval-ppl -m model --ngrams index --json train.shard.zst test.shard.zst
  [[ $stderr == *"contains the evaluated text or a FILE of it"* ]]
  near "$(field loss <<<"$output")" "$(eval-ppl -q -m model --json train.shard.zst test.shard.zst | field loss)" 1e-9
  refused 64 "takes 1 or 20 weights, not 2" eval-ppl -m model --ngrams index --ngrams-lambda 0.1,0.2 test.shard.zst
  tokenize -q --learn bpe --vocab-size 300 text -o bpe.json
  tokenize -q -t bpe.json text | build-ngrams -q -o foreign >/dev/null
  refused 65 "foreign" eval-ppl -m model --ngrams foreign test.shard.zst
}

@test "sample follows n-grams, and cites where they stand; score has the same probabilities as eval-ppl" {
  needs sample
  follow=(-q -m model -t bytes --ngrams index --ngrams-lambda 0.95 --temperature 0 --max-tokens 20)
  [ "$(sample "${follow[@]}" --prompt "The cat sat on the mat; cat 13,")" = " mat 169, and the ca" ]
  sample "${follow[@]}" --cite --json --prompt "The cat sat on the mat; cat 13," >cited
  python3 - <<'END'
import json
cited = json.load(open("cited"))["citations"]
assert len(cited) == 20
for token in cited[:5]:
    assert token["share"] > 0.9 and token["contexts"][0]["document"] == 13, token
    assert token["contexts"][0]["store"] == "index" and token["contexts"][0]["matched"] >= 30, token
assert cited[0]["contexts"][0]["context"].endswith(" mat; cat 13,"), cited[0]
END
  tail -n 10 text >lines
  eval-ppl -q -m model --reset document --ngrams index --memory-weights constant --per-token scores.tsv test.shard.zst -o /dev/null
  python3 - <<'END' >requests.jsonl
import json
for line in open("lines"):
    print(json.dumps({"context": line[0], "continuation": line[1:-1]}))
END
  score -q -m model -t bytes --ngrams index --memory-weights constant requests.jsonl >scores
  python3 - <<'END'
import json
sums = {}
for line in list(open("scores.tsv"))[2:]:
    row = line.split("\t")
    sums[int(row[1])] = sums.get(int(row[1]), 0) - float(row[-1])
for i, line in enumerate(open("scores")):
    found = json.loads(line)["log_prob"]
    assert abs(found - sums[i]) < 1e-3 * abs(sums[i]), (i, found, sums[i])
END
}

@test "sample says how much of the text n-grams gave, weighted by the length of the match, and whether it was almost nothing" {
  needs sample
  write=(-m model -t bytes --ngrams index --temperature 0 --max-tokens 20 --prompt "The cat sat on the mat; cat 13,")
  run --separate-stderr sample "${write[@]}"
  [ "$status" -eq 0 ]
  [ "$output" = " mat 169, and the ca" ]
  [[ $stderr =~ ^'sample: of 20 tokens, '([0-9.]+)' % from n-grams'$ ]]
  # The last token before a number is not the only one, so that it counts for 0.5; all others for 0.9 and more.
  python3 -c 'import sys; sys.exit(not 75 < float(sys.argv[1]) <= 100)' "${BASH_REMATCH[1]}"
  sample -q "${write[@]}" --cite --json --report figures >cited
  "$root/tests/cli/follows_schema" "$root/man/schemas/sample.json" <cited
  "$root/tests/cli/follows_schema" "$root/man/schemas/sample-report.json" <figures
  jq -es '.[0].memories["n-grams"] - ([.[0].citations[].share] | add / 20) | fabs < 1e-6' cited
  jq -es '.[0].memories == .[1].memories' cited figures
  run --separate-stderr sample "${write[@]}" --ngrams-lambda 0.001 --cache 30
  [[ $stderr =~ ^'sample: of 20 tokens, '[0-9.]+' % from cache, 0.'[0-9]' % from n-grams; less than 1 % is almost nothing: '.*' for n-grams'$ ]]
  run --separate-stderr sample "${write[@]}" --cite
  [[ $stderr != *"of 20 tokens"* ]]
}

@test "n-grams of the text so far: the mixture is what its parts say, all programs agree, sample and annotate cite it" {
  for program in eval-ppl sample score annotate; do needs "$program"; done
  eval-ppl -q -m model --online-ngrams --online-ngrams-lambda 0.3 --per-token with.tsv --json test.shard.zst >with
  python3 - <<'END'
import json, math
_, heading, *rows = [line.rstrip("\n").split("\t") for line in open("with.tsv")]
assert "|online-ngrams-tokens:65536|online-ngrams-lambda:0.3|" in json.load(open("with"))["signature"]
assert len(rows) > 500
for row in rows:
    nats = dict(zip(heading, row))
    p = 0.7 * math.exp(-float(nats["head"])) + 0.3 * math.exp(-float(nats["online-ngrams"]))
    assert abs(-math.log(p) - float(nats["nats"])) < 1e-9, row
END
  # In parts as in one, and the default is learned and better than the model.
  for i in 1 2 3; do eval-ppl -q -m model --online-ngrams --online-ngrams-lambda 0.3 --part $i/3 test.shard.zst -o part.$i; done
  near "$(eval-ppl -q --sum --json part.1 part.2 part.3 | field loss)" "$(field loss <with)" 1e-12
  learned=$(eval-ppl -q -m model --online-ngrams --json test.shard.zst | field loss)
  alone=$(eval-ppl -q -m model --json test.shard.zst | field loss)
  python3 -c 'import sys; learned, alone = map(float, sys.argv[1:]); sys.exit(not learned < alone - 0.3)' "$learned" "$alone"
  # Tuned with another source by bucket.
  eval-ppl -q -m model --ngrams index --online-ngrams --tune test.shard.zst -o tuned.conf
  grep -q '^online-ngrams-lambda = \[' tuned.conf
  both=$(eval-ppl -q -m model --config tuned.conf --json test.shard.zst | field loss)
  eval-ppl -q -m model --ngrams index --tune test.shard.zst -o one.conf
  one=$(eval-ppl -q -m model --config one.conf --json test.shard.zst | field loss)
  python3 -c 'import sys; both, one = map(float, sys.argv[1:]); sys.exit(not both < one)' "$both" "$one"
  refused 64 "--online-ngrams-lambda gate: not supported" eval-ppl -m model --online-ngrams --online-ngrams-lambda gate test.shard.zst
  refused 64 "--online-ngrams-tokens: requires --online-ngrams" eval-ppl -m model --online-ngrams-tokens 9 test.shard.zst
  # What was written continues what stands in the prompt.
  told='A dog ran 47 miles; a dog ran 47 miles; a dog ran'
  sample -q -m model -t bytes --online-ngrams --online-ngrams-lambda 0.95 --temperature 0 --max-tokens 20 --cite --json --prompt "$told" >cited
  "$root/tests/cli/follows_schema" "$root/man/schemas/sample.json" <cited
  python3 - <<'END'
import json
made = json.load(open("cited"))
assert made["text"] == " 47 miles; a dog ran", made["text"]
for i, token in enumerate(made["citations"]):
    context = token["contexts"][0]
    assert context["store"] == "online-ngrams" and context["matched"] >= 20 and token["share"] > 0.8, token
    assert context["row"] in (29 + i, 30 + i), (i, context)
END
  printf '%s' "$told" >told
  annotate -m model -t bytes --online-ngrams --json told 2>/dev/null >lines
  "$root/tests/cli/follows_schema" "$root/man/schemas/annotate.json" <lines
  jq -es '.[-1].contexts[0].store == "online-ngrams" and .[-1].shares["online-ngrams"] > 0.1' lines
  # score reads the same text.
  jq -cn --arg text "$told" '{context: $text[:1], continuation: $text[1:]}' >request
  score -q -m model -t bytes --online-ngrams --memory-weights constant request >scored
  tokenize -q -t bytes told -o told.shard.zst
  near "$(field log_prob <scored)" \
    "$(eval-ppl -q -m model --online-ngrams --memory-weights constant --json told.shard.zst | jq '-.loss * .tokens')" 1e-3
}
