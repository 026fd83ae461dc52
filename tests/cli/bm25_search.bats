#!/usr/bin/env bats
# bm25-search: indices of passages, what queries find, what it refuses.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  novel 4000 >text
  tokenize -q --learn bpe --vocab-size 600 text -o bpe.json
  tokenize -q -t bpe.json --format lines text -o lines.shard.zst
  bm25-search build -q lines.shard.zst -o lines.bm25
  bm25-search build -q --passage 30 lines.shard.zst -o windows.bm25
}

setup() { cd "$BATS_FILE_TMPDIR"; }

fails() { # CODE WORDS COMMAND...
  local code=$1 words=$2
  shift 2
  run --separate-stderr -"$code" "$@"
  [[ $stderr == *"$words"* ]] || { echo "$stderr" && return 1; }
}

@test "documents are found by what they say, with the scores of bm25-pack" {
  bm25-pack --unit document --dump hits lines.shard.zst 2>/dev/null >hits
  awk 'length > 60 && NR % 40 == 0 { print NR - 1 }' text >numbers
  [ "$(wc -l <numbers)" -gt 10 ]
  while read -r number; do sed -n "$((number + 1))p" text; done <numbers >queries
  bm25-search find -q -i lines.bm25 --k 20 queries >found
  python3 - <<'END'
import json
hits = {}
for line in open('hits'):
    query, unit, score = line.split()
    hits.setdefault(int(query), []).append(float(score))
numbers = [int(line) for line in open('numbers')]
found = {}
for line in open('found'):
    hit = json.loads(line)
    found.setdefault(hit['query'], []).append(hit)
    assert hit['rank'] == len(found[hit['query']])
text = open('text').read().split('\n')
for query, number in enumerate(numbers):
    own = found[query]
    assert len(own) == len(hits[number]), (query, number)
    for hit, score in zip(own, hits[number]):
        assert abs(hit['score'] - score) <= 1e-5 * score, (hit, score)
        assert hit['text'].strip() == text[hit['document']].strip(), hit
END
}

@test "passages are windows of documents; token ids ask as their text does" {
  bm25-search info --json windows.bm25 >info
  [ "$(field passage <info)" -eq 30 ]
  [ "$(field documents <info)" -eq "$(wc -l <text)" ]
  [ "$(field data <info)" = "$(shard info --json lines.shard.zst | field fingerprint)" ]
  echo 'the professor of comparative anatomy' >query
  bm25-search find -q -i windows.bm25 query >words
  [ "$(wc -l <words)" -eq 10 ]
  python3 -c 'import json, sys; assert all(json.loads(line)["length"] <= 30 for line in sys.stdin)' <words
  tokenize -q -t bpe.json --end-of-document none query -o query.shard.zst
  shard cat query.shard.zst | tr '\n' ' ' | bm25-search find -q --ids -i windows.bm25 | cmp - words
}

@test "the same bytes whatever -j and of a pipe; several shards are one; hits the same whatever -j" {
  bm25-search build -q -j 3 --passage 30 <lines.shard.zst | cmp - windows.bm25
  head -n 50 text | tokenize -q -t bpe.json --format lines -o a.shard.zst
  tail -n +51 text | tokenize -q -t bpe.json --format lines -o b.shard.zst
  bm25-search build -q a.shard.zst b.shard.zst -o both.bm25
  cmp both.bm25 lines.bm25
  bm25-search find -q -j 1 -i lines.bm25 text >one
  bm25-search find -q -j 3 -i lines.bm25 text | cmp - one
}

@test "an index is whole or absent, and what is no index is refused" {
  fails 65 'text: not an index of passages: it is a text file; give a file of bm25-search build' bm25-search find -i text </dev/null
  mkdir folder
  fails 66 'folder: is an empty folder; give a file' bm25-search find -i folder </dev/null
  fails 66 'cannot open' bm25-search find -i nowhere </dev/null
  fails 66 'lake: does not exist; a FILE has queries' bm25-search find -i lines.bm25 lake
  head -c -1 lines.bm25 >cut.bm25
  fails 65 'cut short' bm25-search info cut.bm25
  fails 64 '--index' bm25-search find </dev/null
  fails 65 'stdin:2: with --ids, takes token ids below' bm25-search find -q --ids -i lines.bm25 <<<$'1 2\n1 x'
  fails 65 'no passage with a searchable word' bm25-search build -o none.bm25 <(echo '+ + +' | tokenize -q -t bytes)
  fails 65 'no passage' bm25-search build -o none.bm25 <(tokenize -q -t bytes </dev/null)
  [ ! -e none.bm25 ]
  echo 'what a store holds' >short
  run -74 bm25-search find -q -i lines.bm25 short -o /dev/full
  no_leftovers
}
