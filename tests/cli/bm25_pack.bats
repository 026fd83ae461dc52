#!/usr/bin/env bats
# bm25-pack: orders of segments, documents and pairs, what they are worth, what it refuses.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  zstdcat "$root"/examples/novels/the-lost-world.txt.zst >text
  tokenize -q --learn bpe --vocab-size 600 text -o bpe.json
  tokenize -q -t bpe.json text -o text.shard.zst
  bm25-pack --json --segment 64 text.shard.zst -o greedy.shard.zst 2>greedy.report
}

setup() { cd "$BATS_FILE_TMPDIR"; }

# Is every number below N there once?
is_order_of() { # N SHARD
  [ "$(shard cat "$2" | sort -n | tr '\n' ' ')" = "$(seq 0 $(($1 - 1)) | tr '\n' ' ')" ]
}

fails() { # CODE WORDS COMMAND...
  local code=$1 words=$2
  shift 2
  run --separate-stderr -"$code" "$@"
  [[ $stderr == *"$words"* ]] || { echo "$stderr" && return 1; }
}

@test "an order has each segment once and names its data; neighbours are more alike than by chance" {
  n=$(field segments <greedy.report)
  is_order_of "$n" greedy.shard.zst
  [ "$n" -eq $((($(shard info --json text.shard.zst | field elements) + 63) / 64)) ]
  shard info --json greedy.shard.zst >info
  [ "$(field unit <info) $(field unit_length <info)" = 'segment 64' ]
  [ "$(field data_fingerprint <info)" = "$(shard info --json text.shard.zst | field fingerprint)" ]
  [ "$(field fingerprint <info)" = "$(field fingerprint <greedy.report)" ]
  [ $(($(field links <greedy.report) + $(field jumps <greedy.report))) -eq $((n - 1)) ]
  python3 -c 'import sys; assert float(sys.argv[1]) > 2 * float(sys.argv[2])' \
    "$(field bm25_of_neighbours <greedy.report)" "$(field bm25_in_random_order <greedy.report)"
}

@test "paths: fewer jumps and a higher BM25 than greedy; random: neither links nor likeness" {
  for method in paths random; do
    bm25-pack --json --method $method --segment 64 text.shard.zst -o $method.shard.zst 2>$method.report
    is_order_of "$(field segments <greedy.report)" $method.shard.zst
  done
  [ "$(field jumps <paths.report)" -lt "$(field jumps <greedy.report)" ]
  python3 -c 'import sys; assert float(sys.argv[1]) > float(sys.argv[2])' \
    "$(field bm25_of_neighbours <paths.report)" "$(field bm25_of_neighbours <greedy.report)"
  [ "$(field bm25_of_neighbours <random.report)" = "$(field bm25_in_random_order <random.report)" ]
  [ "$(field bm25_in_random_order <paths.report)" = "$(field bm25_in_random_order <greedy.report)" ]
}

@test "the same bytes whatever -j and --buffer-size, and of a pipe; another seed, another order" {
  for method in greedy paths; do
    bm25-pack -q -j1 --method $method --segment 64 text.shard.zst -o one.shard.zst
    bm25-pack -q -j5 --method $method --segment 64 text.shard.zst -o five.shard.zst
    cmp one.shard.zst five.shard.zst
    bm25-pack -q --buffer-size 1 --method $method --segment 64 text.shard.zst -o little.shard.zst
    cmp one.shard.zst little.shard.zst
    bm25-pack -q --method $method --segment 64 <text.shard.zst | cmp - one.shard.zst
  done
  bm25-pack -q --seed 2 --segment 64 text.shard.zst -o two.shard.zst
  run ! cmp -s greedy.shard.zst two.shard.zst
}

@test "little memory is said" {
  bm25-pack --buffer-size 1 --segment 64 text.shard.zst -o little.shard.zst 2>notes
  grep -q 'the terms on disk' notes
}

@test "documents and pairs" {
  printf 'the cat sat\nred green blue\na cat sits\nblue and red\n' >lines
  printf 'un\ndeux\ntrois\nquatre\n' >source
  tokenize -q -t bytes --format lines lines -o lines.shard.zst
  bm25-pack --json --unit document lines.shard.zst -o order.shard.zst 2>report
  is_order_of 4 order.shard.zst
  [ "$(field documents <report) $(field links <report) $(field jumps <report)" = '4 2 1' ]
  tokenize -q -t bytes --pairs source lines -o pairs.shard.zst
  bm25-pack --json pairs.shard.zst -o order.shard.zst 2>report
  is_order_of 4 order.shard.zst
  [ "$(field pairs <report) $(field links <report) $(field jumps <report)" = '4 2 1' ]
  [ "$(shard info --json order.shard.zst | field unit)" = pair ]
  [ "$(bm25-pack --dump terms pairs.shard.zst)" = $'cat sat\nred green blue\ncat sit\nblue red' ]
}

@test "--other-documents: no hit shares a document with its unit; parts say so, and one document is refused" {
  awk -v RS= '{ gsub("\n", " "); print }' text >lines
  tokenize -q -t bpe.json --format lines lines -o lines.shard.zst
  segments=(--segment 16 --k 5)
  bm25-pack -q "${segments[@]}" --other-documents --dump hits lines.shard.zst -o others
  bm25-pack -q "${segments[@]}" --dump hits lines.shard.zst -o all
  awk -F'\t' '$1 == $2 { n++ } END { exit n < 100 }' all
  awk -F'\t' '$1 == $2 { exit 1 } { n++ } END { exit n < 100 }' others
  bm25-pack -q "${segments[@]}" --other-documents lines.shard.zst -o whole.shard.zst
  bm25-pack -q "${segments[@]}" --other-documents --part 1/2 lines.shard.zst -o first
  bm25-pack -q "${segments[@]}" --other-documents --part 2/2 lines.shard.zst -o second
  bm25-pack -q "${segments[@]}" --other-documents --hits first --hits second lines.shard.zst -o joined.shard.zst
  cmp whole.shard.zst joined.shard.zst
  fails 64 'other_documents true, now false' \
    bm25-pack -q "${segments[@]}" --hits first --hits second lines.shard.zst -o x
  fails 65 'is one document' bm25-pack -q --other-documents text.shard.zst -o x
  [ ! -e x ]
}

@test "--dump terms: a line a unit; end-of-document tokens are no text" {
  printf 'Running dogs ran.\n\nThe DOG runs: runs\n' >lines
  tokenize -q --end-of-document '<|endoftext|>' -t bpe.json --format lines lines -o lines.shard.zst
  [ "$(bm25-pack --dump terms --unit document lines.shard.zst)" = $'run dog ran\n\ndog run run' ]
}

@test "--dump hits: each unit finds itself first; a sample of the queries has the hits of all" {
  bm25-pack --dump hits --k 5 --segment 64 text.shard.zst -o hits
  awk -F'\t' '$1 != last { if ($1 != $2) exit 1; last = $1; n++ } END { exit n < 100 }' hits
  bm25-pack --json --dump hits --queries 7 --k 5 --segment 64 text.shard.zst -o some 2>report
  [ "$(field queries <report)" -eq 7 ]
  [ "$(cut -f 1 some | sort -u | wc -l)" -eq 7 ]
  [ -z "$(sort some | comm -23 - <(sort hits))" ]
}

@test "train takes the order, and refuses it for other data or segments" {
  [ -x "$(command -v train)" ] || skip "train is not built"
  train --help=all | grep -q -- --order || skip "this train takes no order"
  small=(--layers 1 --d-model 16 --heads 2 --segment 64 --batch 4 --steps 2 --memory ext)
  train -q "${small[@]}" --order greedy.shard.zst text.shard.zst -o model
  [ -e model/model.safetensors ]
  bm25-pack -q --segment 32 text.shard.zst -o short.shard.zst
  fails 64 'use --segment 32' train -q "${small[@]}" --order short.shard.zst text.shard.zst -o other
}

@test "units that have nothing in common: exit 65, and no order" {
  printf 'one\ntwo\nthree\n' >lines
  tokenize -q -t bytes --format lines lines -o lines.shard.zst
  fails 65 'use other units' bm25-pack -q --unit document lines.shard.zst -o none.shard.zst
  [ ! -e none.shard.zst ]
  bm25-pack -q --method random --unit document lines.shard.zst -o random.shard.zst
  is_order_of 3 random.shard.zst
}

@test "a report is the same every time; what depends on the clock goes to --timings" {
  for run in 1 2; do
    bm25-pack --json --segment 64 text.shard.zst -o order.shard.zst --timings "timings.$run" 2>"report.$run"
    bm25-pack --json --dump hits --queries 3 --segment 64 text.shard.zst -o hits 2>>"report.$run"
  done
  cmp report.1 report.2
  [ "$(field queries_per_s <timings.1 | cut -d. -f1)" -gt 0 ]
  [ "$(field queries <timings.1)" -gt 3 ]
}

@test "wrong usage and unfit data" {
  fails 64 '--k' bm25-pack --k 0 text.shard.zst -o x
  fails 64 '--b' bm25-pack --b 1.5 text.shard.zst -o x
  fails 64 '--segment' bm25-pack --segment 0 text.shard.zst -o x
  fails 64 '--queries' bm25-pack --queries 3 text.shard.zst -o x
  fails 64 'use --unit segment' bm25-pack --unit pair text.shard.zst -o x
  fails 65 'order' bm25-pack greedy.shard.zst -o x
  fails 66 'nowhere' bm25-pack nowhere -o x
  tokenize -q -t bytes /dev/null -o empty.shard.zst
  fails 65 'has no segment' bm25-pack empty.shard.zst -o x
  head -c 1000 text.shard.zst >cut.shard.zst
  fails 65 'cut.shard.zst' bm25-pack cut.shard.zst -o x
  [ ! -e x ]
}
