#!/usr/bin/env bats
# Every example runs at its smallest scale, on novels that the project ships, and its tables have a figure in each place.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  local novels=$root/examples/novels
  zstdcat "$novels"/the-lost-world.txt.zst >novel
  # A paragraph a line, words apart, as WikiText has them.
  zstdcat "$novels"/the-hound-of-the-baskervilles.txt.zst >hound
  cat hound novel | awk -v RS= '{ gsub("\n", " "); print } NR % 60 == 0 { print " = Chapter " NR / 60 " = " }' |
    sed -E -f "$root/examples/trime/as-wikitext" >words
  mkdir data books
  sed -n 1,1400p words >data/train.txt
  sed -n 1401,1500p words >data/valid.txt
  sed -n 1501,1600p words >data/test.txt
  for part in train:1,1500 valid:1501,1700 test:1701,1900; do
    sed -n "${part#*:}p" hound | jq -cRs '{text: .}' >"books/${part%:*}.jsonl"
  done
  # Paragraphs as stories; chapters as articles.
  awk -v RS= '{ gsub("\n", " "); print; print "<|endoftext|>" }' novel >stories
  awk -v RS= '{ gsub("\n", " "); print; print "<|endoftext|>" }' hound >others
  split -b 20000 hound article.
  for article in article.*; do jq -cRs '{text: .}' "$article"; done >articles.jsonl
  # A language of the other one's words, backwards.
  mkdir pairs
  awk -v RS= '{ gsub("\n", " "); print }' novel | grep -oE '[A-Z][^.!?]{10,60}[.!?]' | head -n 430 >sentences
  sed -n 1,400p sentences >pairs/train.en
  sed -n 401,420p sentences >pairs/test.en
  for part in train test; do rev pairs/$part.en >pairs/$part.de; done
}

setup() {
  unset MAKEFLAGS MAKELEVEL MFLAGS
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
}

# runs EXAMPLE VARIABLE=... TARGET...
runs() {
  local example=$1
  shift
  make -s -C "$root/examples/$example" SCALE=ci J=1 BIN="$BIN" OUT="$BATS_TEST_TMPDIR/out" "$@" >"$BATS_TEST_TMPDIR/said" 2>&1 ||
    { tail -n 20 "$BATS_TEST_TMPDIR/said" && return 1; }
}

# recorded ROW...: each row has a record in out/records.tsv, of a form that tools/verdicts reads, and of this build.
recorded() {
  local records=$BATS_TEST_TMPDIR/out/records.tsv git
  git=$(eval-ppl --version | sed -E 's/.*\(git (.*)\)/\1/')
  for row; do
    awk -F '\t' -v row="$row" -v git="$git" '$1 == row && NF == 9 && $2 == "out" && $4 + 0 > 0 && $6 > 0 && $7 ~ /^make .*SCALE=ci/ && $8 == git { found = 1 }
      END { exit !found }' "$records" || { echo "no record of $row" && return 1; }
  done
  mkdir -p "$BATS_TEST_TMPDIR/examples/some"
  cp "$records" "$BATS_TEST_TMPDIR/examples/some/records.tsv"
  printf 'some/\ttools\n' >"$BATS_TEST_TMPDIR/examples/exercises.tsv"
  printf 'paper\tplace\tclaim\tpublished\tsetting\ttest\tnote\n' >"$BATS_TEST_TMPDIR/examples/claims.tsv"
  TESSERA_EXAMPLES=$BATS_TEST_TMPDIR/examples "$root/tools/verdicts" --counts >/dev/null
  ! grep -F "$BATS_TEST_TMPDIR" "$records" || false
}

# tables FILE...: each has lines below its heading, of as many columns, and no field is empty.
tables() {
  for table; do
    awk -F '\t' -v table="$table" 'NR == 1 { columns = NF } NF != columns { print table ":" NR ": " NF " columns"; exit 1 }
      { for (i = 1; i <= NF; ++i) if ($i == "") { print table ":" NR ": column " i " is empty"; exit 1 } }
      END { exit NR < 2 }' "$BATS_TEST_TMPDIR/out/$table"
  done
}

@test "babistories" {
  { sed -n '$p' "$root/examples/babistories/prompts.tsv" && echo 'The dog said'; } >"$BATS_TEST_TMPDIR/prompts"
  runs babistories STORIES="$PWD/stories" VALID="$PWD/others" ARTICLES="$PWD/articles.jsonl" PROMPTS="$BATS_TEST_TMPDIR/prompts" all plan
  tables stories.tsv sweep.tsv depth.tsv continuations.tsv encyclopaedia.tsv attention.tsv lambda.tsv
  # A prompt's kind, or none.
  [ "$(cut -f 1 "$BATS_TEST_TMPDIR/out/continuations.tsv" | paste -sd ' ')" = 'kind context -' ]
  [[ "$(cut -f 2 "$BATS_TEST_TMPDIR/out/continuations.tsv")" == $'prompt\nDiva was hungry'*$'\nThe dog said' ]]
}

@test "memory-decoder" {
  runs memory-decoder
  tables table.tsv
  grep -q ^perplexity_ratio "$BATS_TEST_TMPDIR/out/against-plain.txt"
  recorded alone plain taught store
  runs memory-decoder DATA="$PWD/data" OUT="$BATS_TEST_TMPDIR/out/words" tokens
}

@test "memories" {
  runs memories PYTHON=false all trained
  tables table.tsv trained.tsv frequency.tsv
  [ "$(wc -l <"$BATS_TEST_TMPDIR/out/trained.tsv")" -eq 21 ]
  [ "$(wc -l <"$BATS_TEST_TMPDIR/out/table.tsv")" -eq 17 ]
  runs memories archs='transformer hybrid' seeds='1 2' ci.grid='--layers 1 --d-model 16 --heads 2 --segment 32 --batch 2 --steps 2' architectures
  tables architectures.tsv
  [ "$(grep -c '±' "$BATS_TEST_TMPDIR/out/architectures.tsv")" -eq 2 ]
  recorded transformer-none hybrid-local hybrid-store
}

@test "long-range-memory" {
  runs long-range-memory DATA="$PWD/novel" SEEDS=1 ci.arrangements='all interleaved middle first-half' all plan
  tables arrangements.tsv curves.tsv sweep.tsv lengths.tsv srupp.tsv
  recorded all interleaved short-4 all-at-32 srupp-trime-32
  # Lengths are in the order of numbers.
  [ "$(cut -f 2 "$BATS_TEST_TMPDIR/out/lengths.tsv" | paste -sd ' ')" = 'long at test 32 64 128 32 64 128' ]
}

@test "long-range-memory: words" {
  runs long-range-memory KIND=words DATA="$PWD/data" SEEDS=1 ci.arrangements='all interleaved' ci.shorts=4 ci.srupp.segments=16 all plan
  tables arrangements.tsv curves.tsv sweep.tsv lengths.tsv srupp.tsv
  head -n 1 "$BATS_TEST_TMPDIR/out/sweep.tsv" | grep -qx $'short\tperplexity'
  head -n 1 "$BATS_TEST_TMPDIR/out/arrangements.tsv" | grep -q 'from the 1024th'
}

@test "mosaic-slots" {
  runs mosaic-slots all
  tables slots.tsv
}

@test "regbench" {
  runs regbench all plan
  tables table-4.tsv induction.tsv
  recorded 3-gram-ood mosaic-16-iid
  [ "$(awk -F '\t' '$4 == "valid"' "$BATS_TEST_TMPDIR/out/regbench.tsv" | wc -l)" -gt 0 ]
}

@test "ruler" {
  runs ruler all states plan
  tables table.tsv states.tsv
  [ "$(cut -f 1 "$BATS_TEST_TMPDIR/out/states.tsv" | paste -sd ' ')" = 'model gla delta.segments lstm.fenwick' ]
  grep -q $'^delta.segments-1024\tout\t1\t' "$BATS_TEST_TMPDIR/out/records.tsv"
}

@test "three-moons" {
  runs three-moons all
  [ -s "$BATS_TEST_TMPDIR/out/record.tsv" ]
  runs three-moons RELIABLE=2 reliable
  tables reliable.tsv
  # 12 of 20: 0.387 to 0.781 by Wilson; of the other eight 1,000 updates bring four.
  local judged=$'seed\tleast share\tdisentangled\n' answer
  for answer in {1..12}:yes {13..20}:no; do judged+=${answer%:*}$'\t0.9\t'${answer#*:}$'\n'; done
  printf '%s' "$judged" >judged.500
  printf '%s' "$judged" | awk -F '\t' -v OFS='\t' 'NR == 1 || $1 > 12 { if ($1 + 0 > 16) $3 = "yes"; print }' >judged.1000
  run awk -f "$root/examples/wilson.awk" -f "$root/examples/three-moons/reliable.awk" judged.500 judged.1000
  [ "${lines[1]}" = $'500\t20\t12\t0.600\t0.387\t0.781\t13 14 15 16 17 18 19 20' ]
  [ "${lines[3]}" = $'500 or 1000\t20\t16\t0.800\t0.584\t0.919\t13 14 15 16' ]
}

@test "translation" {
  # One that counts the lines of both, and says what sacrebleu says.
  cat >"$BATS_TEST_TMPDIR/sacrebleu" <<'EOF'
#!/bin/bash
[ "$(wc -l)" -eq "$(wc -l <"$1")" ] || exit 1
printf '{\n "name": "BLEU",\n "score": 1.25,\n "signature": "nrefs:1|case:mixed|version:2.6.0",\n "verbose_score": "2.0/1.0"\n}\n'
EOF
  chmod +x "$BATS_TEST_TMPDIR/sacrebleu"
  runs translation DATA="$PWD/pairs" SACREBLEU="$BATS_TEST_TMPDIR/sacrebleu" all
  tables table.tsv
  [ "$(grep -c $'\t1.25\tnrefs:1|case:mixed|version:2.6.0$' "$BATS_TEST_TMPDIR/out/table.tsv")" -eq 7 ]
  [ "$(wc -l <"$BATS_TEST_TMPDIR/out/data/valid.en")" -eq 17 ]
  [ "$(awk -F '\t' '$1 == "base" && $4 == 1.25 && $5 == "BLEU"' "$BATS_TEST_TMPDIR/out/records.tsv" | wc -l)" -eq 1 ]
}

@test "trime" {
  runs trime DATA="$PWD/data" XML="$PWD/novel" BOOKS="$PWD/books" all
  cd "$BATS_TEST_TMPDIR/out"
  [ "$(wc -l <main.tsv)" -eq 15 ]
  # Orders of the text, of articles and of other ones; a line a model, then means of the seeds.
  tables orders.tsv
  [ "$(cut -f 1-3 orders.tsv | paste -sd ' ')" = "$(printf 'order\tp\tseed bm25\t0.9\t1 others\t0.9\t1 random\t0.9\t1 %s' \
    "$(printf '%s\t0.9\tmean of 1 ' bm25 others random)" | sed 's/ $//')" ]
  [ "$(awk -F '\t' '$1 == "order-bm25-0.9-both" && $3 == 1' records.tsv | wc -l)" -eq 1 ]
  grep -q '^f-vanilla-1' records.tsv
  tables length.tsv far.tsv neighbours.tsv speed.tsv retrieval.tsv frequency.tsv reach.tsv temperatures.tsv
  [ "$(cut -f 1 frequency.tsv | sort -u | wc -l)" -eq 7 ]
  [ "$(cut -f 1 length.tsv | paste -sd ' ')" = 'tokens 0 16 256' ]
  # A memory beyond the micro-batch, of models trained with a narrow and a wide one; kNN-LM by the number of neighbours.
  [ "$(cut -f 1 far.tsv | paste -sd ' ')" = 'tokens 256 512' ]
  [ "$(awk -F '\t' 'NR > 1 && $2 != $3' far.tsv | wc -l)" -eq 2 ]
  jq -se 'map(.perplexity) | length == 3 and (unique | length) == 3' row/neighbours-{1,8,16}.json
  # Of each model the reach with the lowest perplexity on the validation text is the one that is chosen.
  awk -F '\t' 'NR > 1 { ++n; if (!($1 in best) || $3 < best[$1]) best[$1] = $3; if ($4 == "yes") { ++chosen; is[$1] = $3 } }
    END { for (m in best) if (best[m] != is[m]) exit 1; exit !(n == 6 && chosen == 3) }' reach.tsv
  # A memory shorter than the window is no longer than it says: not what local memory gives.
  jq -se 'map(.perplexity) | length == 4 and (unique | length) == 4' row/length-{0,16,256}.json row/b-long-local.json
  # kNN-LM's stores are of squared distances, TRIME's of products.
  grep -q '"metric":"l2"\|"metric": *"l2"' store/plain/store.json
  grep -q '"metric":"ip"\|"metric": *"ip"' store/ext/store.json
}

@test "trime: checkpoints as the authors' are, beside what is published of theirs, and the size of the data" {
  cd "$BATS_TEST_TMPDIR"
  mkdir released few
  for name in knnlm trimelm trimelm-long trimelm-ext trimelm-150m trimelm-150m-long; do
    cp "$root/tests/golden/checkpoints/fairseq_plain.pt" "released/$name.pt"
    for i in $(seq 36); do echo "w$i $((40 - i))"; done >"released/$name.dict.txt"
  done
  cp "$root/tests/golden/checkpoints/xl_table.pt" released/xl-wikitext-103.pt
  for i in $(seq 36); do printf 'w%d ' "$i"; done | tokenize -q --learn word -o released/xl-wikitext-103.json
  awk 'BEGIN { srand(1); for (i = 0; i < 120; i++) { if (i % 20 == 0) print " = w1 w2 = "
    for (j = 0; j < 12; j++) printf " w%d", 1 + int(36 * rand() * rand()); print "" } }' >few/train.txt
  head -n 40 few/train.txt >few/valid.txt
  tail -n 40 few/train.txt >few/test.txt
  runs trime RELEASED="$PWD/released" DATA="$PWD/few" released statistics
  tables released.tsv statistics.tsv
  [ "$(cut -f 1,4 out/released.tsv | paste -sd ' ')" = "$(printf 'model\tpublished knnlm\t18.65 knnlm-store\t16.12 trimelm\t17.76 %s' \
    "$(printf '%s\t%s ' trimelm-long 17.64 trimelm-ext 15.46 trimelm-150m 25.60 trimelm-150m-long 22.66 xl-wikitext-103 18.3 | sed 's/ $//')")" ]
  grep -q '|memory:local|combine:joint|temperature:1.17|' out/released.tsv
  grep -q '^knnlm-store.*|rescore:yes|stores-combine:interpolate|stores-temperature:1|stores-lambda:0.25|' out/released.tsv
  grep -q '|memory:local+long|long:256|combine:both|temperature:1.25|.*|stores-temperature:10.5|' out/released.tsv
  grep -q '|layer-memory:1600|clamp-length:1000|same-length:on' out/released.tsv
  # Titles make documents of the training text alone.
  [ "$(cut -f 2,6 out/statistics.tsv | paste -sd ' ')" = $'part\tdocuments train\t7 valid\t1 test\t1' ]
}

@test "wikitext-2" {
  runs wikitext-2 DATA="$PWD/data"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/out/table.tsv")" -gt 3 ]
  recorded plain cache local long
}

@test "a sweep's best point is chosen by the validation automata for new ones, and by the training automata for theirs" {
  cd "$BATS_TEST_TMPDIR"
  mkdir -p regbench/build/paper/{a,b} cluster
  heading=$'model\tautomata\tseed\ttest\taccuracy'
  printf '%s\nmosaic\t100\t1\tvalid\t.8\nmosaic\t100\t1\tood\t.1\nmosaic\t100\t1\tiid\t.5\nmosaic\t100\t1\tiid-valid\t.6\n' \
    "$heading" >regbench/build/paper/a/regbench.tsv
  printf '%s\nmosaic\t100\t1\tvalid\t.7\nmosaic\t100\t1\tood\t.9\nmosaic\t100\t1\tiid\t1\nmosaic\t100\t1\tiid-valid\t.9\n' \
    "$heading" >regbench/build/paper/b/regbench.tsv
  cd regbench
  [ "$(bash "$root/examples/regbench/array.sbatch" best)" = $'b\tmosaic\t100\t1\tiid\t1\na\tmosaic\t100\t1\tood\t.1' ]
}
