#!/usr/bin/env bats
# One name for all programs: tessera.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
}

# says CODE WORDS COMMAND...: that exit status, and on stderr one line with these words.
says() {
  local code=$1 words=$2
  shift 2
  run --separate-stderr "$@"
  # shellcheck disable=SC2154  # stderr is bats'
  [ "$status" -eq "$code" ] && [ -z "$output" ] && [[ $stderr == "tessera: $words" ]] ||
    { echo "$*: exit $status: $stderr" && return 1; }
}

# A place to which tessera was installed, with programs of ours.
installed() {
  mkdir -p put/bin put/libexec/tessera put/share/man/man1 nowhere
  cp "$BIN/tessera" put/bin/
  printf '#!/bin/sh\necho "installed train: $*"\nexit 7\n' >put/libexec/tessera/train
  printf '#!/bin/sh\necho "train beside tessera"\n' >put/bin/train
  printf '#!/bin/sh\necho "shard beside tessera: $*"\n' >put/bin/shard
  chmod +x put/bin/* put/libexec/tessera/*
}

@test "tessera NAME is that program: arguments, streams, exit status" {
  [ "$(tessera shard --version)" = "$(shard --version)" ]
  text='a rose is a rose'
  [ "$(printf '%s' "$text" | tessera tokenize -t bytes | tessera tokenize -t bytes --decode)" = "$text" ]
  run --separate-stderr tessera shard info no-such-file
  [ "$status" -eq 66 ]
  [[ $stderr == "shard: no-such-file: "* ]]
}

@test "tessera knows every program, and says of each what it is" {
  tessera --help >help
  for program in "$BIN"/*; do
    name=${program##*/}
    [ "$name" != tessera ] || continue
    grep -Eq "^  $name +[^ ]+ [^ ]+" help || { echo "no $name" && return 1; }
    tessera "$name" --version | grep -q "^$name "
  done
}

@test "an unknown name is refused with the nearest one" {
  says 64 "trian: no such program; did you mean train?" tessera trian -o m
  says 64 "halp: no such program; did you mean help?" tessera halp
  says 64 "xylophone: no such program; tessera --help lists them" tessera xylophone
  run --separate-stderr -64 tessera
  [[ $stderr == "tessera: give a program; start with: tessera train book.txt -o model, "* ]]
  says 64 "--no-such: no such option; see --help" tessera --no-such
  says 64 "evalppl: no such program; did you mean eval-ppl?" tessera help evalppl
  says 64 "help: takes one program; tessera --help lists them" tessera help
}

@test "an installed tessera runs what stands in libexec, then what stands beside it, from anywhere" {
  installed
  ln -s "$PWD/put/bin/tessera" nowhere/t
  for tessera in put/bin/tessera nowhere/t; do
    run "$tessera" train a 'b c'
    [ "$status" -eq 7 ]
    [ "$output" = "installed train: a b c" ]
  done
  [ "$(PATH=/usr/bin:/bin put/bin/tessera shard x)" = "shard beside tessera: x" ]
  says 69 "tokenize is neither in $PWD/put/libexec/tessera nor beside tessera" put/bin/tessera tokenize
}

@test "tessera help shows the manual; without one, or without man, what --help says" {
  installed
  printf '#!/bin/sh\necho "man: $*"\n' >nowhere/man
  chmod +x nowhere/man
  touch put/share/man/man1/train.1
  [ "$(PATH=$PWD/nowhere put/bin/tessera help train)" = "man: -l $PWD/put/share/man/man1/train.1" ]
  [ "$(PATH=$PWD/nowhere put/bin/tessera help shard)" = "shard beside tessera: --help" ]
  mkdir -p put/share/man/man5 && touch put/share/man/man5/train.5
  [ "$(PATH=$PWD/nowhere put/bin/tessera help 'train(5)')" = "man: -l $PWD/put/share/man/man5/train.5" ]
  [ "$(PATH=$PWD/nowhere put/bin/tessera help train.1)" = "man: -l $PWD/put/share/man/man1/train.1" ]
  rm nowhere/man
  run env PATH="$PWD/nowhere" put/bin/tessera help train
  [ "$output" = "installed train: --help" ]
  PATH=$PWD/nowhere "$BIN/tessera" help shard | grep -q '^Usage: shard '
}

@test "tessera that was started by a C library of its own starts the others by it" {
  installed
  mkdir -p put/lib/tessera/glibc
  for file in $(ldd "$(command -v env)" | grep -oE '/[^ ]*/(libc\.so\.6|ld-linux[^ ]*)'); do cp -L "$file" put/lib/tessera/glibc/; done
  mv put/bin/tessera put/libexec/tessera/
  cp "$(command -v env)" put/libexec/tessera/train
  loader=$PWD/put/lib/tessera/glibc/ld-linux-x86-64.so.2
  run "$loader" --library-path "$PWD/put/lib/tessera/glibc" put/libexec/tessera/tessera train printf '%s;' a 'b c'
  [ "$status" -eq 0 ]
  [ "$output" = 'a;b c;' ]
  cp "$(command -v sleep)" put/libexec/tessera/train
  "$loader" --library-path "$PWD/put/lib/tessera/glibc" put/libexec/tessera/tessera train 60 &
  for _ in {1..100}; do
    tr '\0' ' ' <"/proc/$!/cmdline" >line
    ! grep -q 'train 60' line || break
    sleep 0.05
  done
  exe=$(readlink "/proc/$!/exe")
  kill $!
  [ "$exe" = "$loader" ]
}

@test "what is installed stands in libexec, with a link in bin for each program, and needs nothing of the build" {
  command -v cmake >/dev/null || skip "cmake is not installed"
  [ -e "$BIN/../cmake_install.cmake" ] || skip "$BIN is not in a build folder"
  cmake --install "$BIN/.." --prefix "$PWD/put" >log || { tail -n 5 log && return 1; }
  mv put moved
  for program in "$BIN"/*; do
    name=${program##*/}
    "moved/bin/tessera" "$name" --version 2>/dev/null | grep -q "^$name " || [ "$name" = tessera ]
    for shell in bash-completion/completions/ zsh/site-functions/_ fish/vendor_completions.d/; do
      file=moved/share/$shell$name
      [ -s "$file" ] || [ -s "$file.fish" ]
    done
    [ -s "moved/share/man/man1/$name.1" ]
    ! readelf -d "$(realpath "moved/bin/$name")" | grep RUNPATH | grep -qF "$root/build" || { echo "$name looks into the build" && return 1; }
  done
  [ "$(readlink moved/bin/shard)" = ../libexec/tessera/shard ]
  # The novels of the manuals' pages, and what another program needs to use the rooms: find_package and pkg-config.
  [ -s moved/share/tessera/novels/the-lost-world.txt ]
  [ -x moved/share/tessera/demo/demo ]
  # The interface: headers that include nothing but each other and the C++ library.
  [ "$(ls moved/include/tessera | wc -l)" -le 40 ]
  ! grep -hE '^#include' moved/include/tessera/* | grep -vE '<[a-z_]+>|"tessera/[a-z]+\.h"' || return 1
  cmake -S "$root/examples/embed" -B embed -DCMAKE_PREFIX_PATH="$PWD/moved" >log && cmake --build embed >>log || { tail -n 5 log && return 1; }
  sed -n 1,60p moved/share/tessera/novels/the-lost-world.txt >train.txt
  sed -n 61,80p moved/share/tessera/novels/the-lost-world.txt >test.txt
  embed/remember train.txt test.txt ' the' >said 2>notes
  # Its figures are those of the programs.
  figure() { moved/bin/tessera eval-ppl -q -m model --json "$@" test.txt | jq .perplexity; }
  [ "$(awk '$1 == "model" { printf "%.6g", $2 }' said)" = "$(printf %.6g "$(figure)")" ]
  [ "$(awk '$1 == "store" { printf "%.6g", $2 }' said)" = "$(printf %.6g "$(figure --datastore store)")" ]
  moved/bin/tessera sample -q -m model --datastore store --temperature 0 --max-tokens 12 --prompt ' the' >text
  [ "$(sed -n '/^text\t/,$s/^text\t//p' said | head -n 1)" = "$(head -n 1 text)" ]
  [ "$(grep -c '^next' said)" -eq 3 ]
  run -66 embed/remember nothing test.txt x
  [[ $output == *'remember: nothing: '* ]]
  PKG_CONFIG_PATH=moved/lib/pkgconfig pkg-config --libs tessera | grep -q -- '-ltessera '
}
