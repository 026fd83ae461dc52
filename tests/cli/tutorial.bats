#!/usr/bin/env bats
# tessera-tutorial(7): its commands run as they stand, at the smallest scale; and the pages that are made of the manuals.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
}

# commands PAGE: the literal text of a page's source, unescaped.
commands() {
  sed -n '/^```/,/^```/{/^```/!p}' "$1" | sed 's/\\\(.\)/\1/g'
}

@test "every command of the tutorial runs, and says what the page says that it says" {
  needs train
  needs eval-ppl
  command -v jq >/dev/null || skip "jq is not installed"
  ln -s "$root/examples" .
  commands "$root/man/tessera-tutorial.7.scd" >typed
  grep -q '^updates=' typed && grep -q '^zstdcat' typed
  {
    echo 'set -euo pipefail'
    # A text, a model and a training of seconds; what is drawn goes to the script of the sources.
    echo 'plot() { if command -v gnuplot >/dev/null; then examples/plot/plot "$@"; else echo "SKIP plot: no gnuplot" >&2; fi; }'
    sed -e 's/^updates=.*/updates=3/' -e 's/--d-model 128/--d-model 16/' -e 's/--layers 4/--layers 1/' \
      -e 's/^zstdcat.*/& \&\& sed -i 800q book.txt/' -e 's/--vocab-size 2000/--vocab-size 300/' typed
  } >script
  OMP_NUM_THREADS=1 bash script >out 2>err || { tail -n 5 err && return 1; }
  # The table: a line a memory, in the page's order.
  [ "$(grep -E '^(none|cache|datastore|ngrams|local|long|all)'$'\t' out | cut -f 1 | tr '\n' ' ')" = 'none cache datastore ngrams local long all ' ]
  [ "$(sed 1d reach.tsv | wc -l)" -eq 6 ]
  [ "$(grep -c 'p ' out)" -ge 3 ]
  if command -v gnuplot >/dev/null; then grep -q '<svg' reach.svg && grep -q '<svg' curves.svg; fi
}

@test "every command of the page on one's own model runs on a tiny Llama" {
  needs train
  needs score
  command -v jq >/dev/null || skip "jq is not installed"
  zstdcat "$root/examples/novels/the-lost-world.txt.zst" | sed 800q >book.txt
  tokenize -q --learn bpe --vocab-size 300 book.txt -o tokenizer.json
  tokenize -q -t tokenizer.json book.txt -o book.shard.zst
  train -q --layers 1 --d-model 16 --heads 2 --positions rope --norm-kind rms --feed-forward gated --activation silu --no-bias \
    --no-scale-embedding --no-tied --init gpt2 --segment 32 --batch 2 --steps 2 book.shard.zst -o shape
  model export shape --family llama -o llama >/dev/null
  jq -Rc 'select(length > 0) | {text: .}' book.txt | sed 200q >docs.jsonl
  {
    echo 'set -euo pipefail'
    commands "$root/man/tessera-your-model.7.scd" | sed -e 's/^model=.*/model=llama/' -e 's/^updates=.*/updates=2/' -e 's/--max-tokens 40/--max-tokens 5/'
  } >script
  OMP_NUM_THREADS=1 bash script >out 2>err || { tail -n 5 err && return 1; }
  [ "$(grep -E '^(alone|store|ngrams)'$'\t' out | cut -f 1 | tr '\n' ' ')" = 'alone store ngrams ' ]
  [ "$(jq '.citations | length' written.jsonl)" -gt 0 ]
  [ "$(model info --json mine-for-transformers | field family)" = llama ]
}

@test "plot: figures that are not there and flags that are not its own are named" {
  command -v gnuplot >/dev/null || skip "gnuplot is not installed"
  command -v jq >/dev/null || skip "jq is not installed"
  plot=$root/examples/plot/plot
  printf '{"type":"report","loss":3}\n{"type":"part","bucket":"0","loss":2.5}\n{"type":"part","bucket":"1-3","loss":2}\n' >by.json
  "$plot" by by.json -o by.svg
  grep -q '<svg' by.svg && grep -q '1-3' by.svg
  "$plot" bars "$root/examples/plot/memories.tsv" -o bars.svg
  grep -q '<svg' bars.svg && grep -q '130.1' bars.svg
  for line in "64 plot by by.json" "64 plot nothing by.json -o x.svg" "65 plot curves by -o x.svg" "65 plot table by.json -o x.svg" "65 plot bars by.json -o x.svg"; do
    read -r code _ arguments <<<"$line"
    # shellcheck disable=SC2086  # several
    run --separate-stderr "$plot" $arguments
    [ "$status" -eq "$code" ] || { echo "$line: $status" && return 1; }
    # shellcheck disable=SC2154  # stderr is bats'
    [[ $stderr == plot:* ]] && [ "$(wc -l <<<"$stderr")" -eq 1 ]
    [ ! -e x.svg ]
  done
}

@test "the README's picture has the figures of the tutorial" {
  [ "$(wc -l <"$root/examples/plot/memories.tsv")" -eq 7 ]
  grep -qF '](examples/plot/memories.svg)' "$root/README.md"
  cut -f 2 "$root/examples/plot/memories.tsv" | while read -r perplexity; do
    grep -qx ":  $perplexity" "$root/man/tessera-tutorial.7.scd" || { echo "no $perplexity" && return 1; }
    grep -q ">.*$(printf %.1f "$perplexity")" "$root/examples/plot/memories.svg" || { echo "not drawn: $perplexity" && return 1; }
  done
}

@test "make html: a page a manual, in good form, whose links lead to pages" {
  command -v mandoc >/dev/null && command -v lowdown >/dev/null || skip "mandoc or lowdown is not installed"
  needs train
  BUILD=$BIN/.. "$root/tools/html"
  pages=$BIN/../html
  for page in "$root"/man/*.scd; do
    grep -q "<h1 class=\"Sh\"" "$pages/$(basename "$page" .scd).html"
  done
  grep -oh 'href="[^"#:]*"' "$pages"/*.html | sed 's/href="//; s/"$//' | sort -u | while read -r address; do
    [ -e "$pages/$address" ] || { echo "no $address" && return 1; }
  done
  grep -q '<a href="shard.5.html"><b>shard</b>(5)</a>' "$pages/train.1.html"
}
