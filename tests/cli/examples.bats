#!/usr/bin/env bats
# The examples' Makefiles: what they need stands at their head, and a table never needs gnuplot.

load helpers

setup() {
  unset MAKEFLAGS MAKELEVEL MFLAGS
  cd "$BATS_TEST_TMPDIR"
  mkdir tools
  ln -sf -t tools /usr/local/bin/* /usr/bin/* /bin/*
  rm -f tools/gnuplot
  touch text
  mkdir data && touch data/{train,valid,test}.txt
}

# what_runs EXAMPLE TARGET...: what make would run without gnuplot, from nothing.
what_runs() {
  local example=$1
  shift
  make -nB -C "$root/examples/$example" OUT="$PWD/out" DATA="$PWD/data" STORIES="$PWD/text" \
    VALID="$PWD/text" ARTICLES="$PWD/text" "$@"
}

@test "without gnuplot every example makes its tables; a plot is a target of its own" {
  for plot in mosaic-slots/slots babistories/depth babistories/encyclopaedia babistories/attention trime/length trime/retrieval \
    three-moons/figure4; do
    example=${plot%/*} name=${plot#*/}
    PATH=$PWD/tools what_runs "$example" all >commands
    grep -q eval- commands
    ! grep gnuplot commands || false
    PATH=$PWD/tools what_runs "$example" plots >commands
    grep -q "gnuplot.*$name.svg" commands
    # Where it is there plots are drawn too, but by no table's rule.
    ln -sf /bin/true tools/gnuplot
    PATH=$PWD/tools what_runs "$example" all | grep -q "gnuplot.*$name.svg"
    [ "$example" = three-moons ] || ! PATH=$PWD/tools what_runs "$example" "$PWD/out/$name.tsv" | grep gnuplot || false
    rm tools/gnuplot
  done
}

@test "a plot that fails leaves its table" {
  mkdir out && echo table >out/slots.tsv
  PATH=$PWD/tools run -2 make -C "$root/examples/mosaic-slots" -o "$PWD/out/slots.tsv" OUT="$PWD/out" plots
  [[ $output == *gnuplot* ]]
  [ "$(cat out/slots.tsv)" = table ]
  PATH=$PWD/tools make -C "$root/examples/mosaic-slots" -o "$PWD/out/slots.tsv" OUT="$PWD/out" | grep -qx table
}

@test "what an example calls beyond Tessera stands at the head of its Makefile" {
  for file in "$root"/examples/*/Makefile; do
    sed '/^[^#]/,$d' "$file" >head
    for tool in gnuplot jq sacrebleu; do
      ! cat "${file%/*}"/{Makefile,*.mk} 2>/dev/null | grep -v '^#' | grep -qw "$tool" || grep -qw "$tool" head ||
        { echo "$file: says nothing of $tool" && return 1; }
    done
  done
}
