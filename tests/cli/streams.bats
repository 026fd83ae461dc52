#!/usr/bin/env bats
# Streams and outputs as shells, daemons and shared folders hand them over: closed and full descriptors, links, names that
# are taken, names that are long, an output that is an input.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
  printf 'some text, some more\n' >t.txt
  tokenize -q -t bytes t.txt -o whole
}

# exits CODE COMMAND...: with stdout, stderr and stdin as the caller has them.
exits() {
  local want=$1 got=0
  shift
  "$@" || got=$?
  [ "$got" -eq "$want" ] || { echo "# $*: exit $got, not $want" >&3 && return 1; }
}

# fails_in_one_line CODE WORDS COMMAND...
fails_in_one_line() {
  local want=$1 words=$2
  shift 2
  exits "$want" "$@" >stdout 2>stderr </dev/null || { cat stderr && return 1; }
  [ "$(wc -l <stderr)" -eq 1 ] && [ ! -s stdout ] && grep -qF -- "$words" stderr || { cat stderr && return 1; }
}

@test "with stdout closed -o FILE is written, and what would go to stdout is an error" {
  exits 0 tokenize -q -t bytes t.txt -o out >&-
  cmp out whole
  exits 0 tokenize -q --learn word t.txt -o learned >&-
  tokenize -q --learn word t.txt | cmp - learned
  exits 0 shard cat whole -o numbers >&-
  shard cat whole | cmp - numbers
  for program in gen-induction gen-moons; do
    exits 0 "$program" -q -o "$program.shard.zst" >&-
    shard verify "$program.shard.zst"
  done
  exits 74 shard cat whole >&- 2>stderr
  grep -q '^shard: stdout: cannot write' stderr
  exits 74 tokenize -t bytes <&- 2>stderr
  grep -q '^tokenize: stdin: cannot read' stderr
}

@test "with all three closed nothing but the output is written" {
  exits 0 tokenize -t bytes t.txt -o out <&- >&- 2>&-
  cmp out whole
  exits 66 tokenize -t bytes nowhere -o out2 <&- >&- 2>&-
  [ ! -e out2 ]
}

@test "every program keeps its exit code when stderr is closed or full" {
  while read -r program; do
    exits 64 "$program" --no-such-flag >/dev/null 2>&-
    [ ! -e /dev/full ] || exits 64 "$program" --no-such-flag >/dev/null 2>/dev/full
  done < <(find "$BIN" -maxdepth 1 -type f -perm -u+x)
  exits 66 tokenize -t bytes nowhere -o out 2>&-
  exits 0 tokenize -t bytes t.txt -o out 2>&-
  cmp out whole
  [ -e /dev/full ] || skip "no /dev/full here"
  exits 66 tokenize -t bytes nowhere -o out 2>/dev/full
  rm out
  exits 0 tokenize -t bytes t.txt -o out 2>/dev/full
  cmp out whole
  exits 0 tokenize --json -t bytes t.txt -o out 2>/dev/full
}

@test "an output that is a symbolic link is what the link names" {
  mkdir there
  printf old >there/x
  ln -s there/x relative
  ln -s "$PWD/relative" chain
  tokenize -q -t bytes t.txt -o chain
  [ -L chain ]
  [ -L relative ]
  [ ! -L there/x ]
  cmp there/x whole
  ln -s there/new dangling
  tokenize -q -t bytes t.txt -o dangling
  [ -L dangling ]
  cmp there/new whole
  ln -s there folder
  tokenize -q -t bytes t.txt -o folder/y
  cmp there/y whole
  ln -s /dev/null nothing
  tokenize -q -t bytes t.txt -o nothing
  [ -L nothing ]
  ln -s circle circle
  fails_in_one_line 73 'circle: cannot create: Too many levels' tokenize -q -t bytes t.txt -o circle
  no_leftovers
}

@test "other names of a descriptor are the descriptor" {
  [ -e /proc/self/fd/1 ] || skip "no /proc here"
  ln -s /proc/self/fd/1 standin
  # The stand-in first: a program that replaced links would otherwise replace the machine's own.
  for name in standin /dev/stdout /dev/fd/1 /proc/self/fd/1; do
    tokenize -q -t bytes t.txt -o "$name" >out
    [ -L standin ]
    cmp out whole
    tokenize -q -t bytes t.txt -o "$name" | cmp - whole
  done
  printf front >out
  tokenize -q -t bytes t.txt -o /dev/fd/7 7>>out
  cat <(printf front) whole | cmp - out
  tokenize -q -t bytes t.txt -o /dev/stderr 2>out
  cmp out whole
  fails_in_one_line 73 '/dev/fd/9: cannot open: Bad file descriptor' tokenize -q -t bytes t.txt -o /dev/fd/9 9>&-
  no_leftovers
}

@test "what stands under the temporary name is neither followed, nor written, nor waited for" {
  printf victim >victim
  for how in 'ln -s victim' 'ln victim' 'ln -s nowhere' 'ln -s /dev/null' mkfifo 'cp whole'; do
    rm -f out
    $how out.tmp.tessera
    timeout 20 tokenize -q -t bytes t.txt -o out
    [ ! -L out ]
    [ "$(stat -c %h out)" -eq 1 ]
    cmp out whole
    [ "$(cat victim)" = victim ]
    [ ! -e nowhere ]
    no_leftovers
  done
  rm out
  mkdir out.tmp.tessera
  fails_in_one_line 73 'out.tmp.tessera: already exists and cannot be removed' tokenize -q -t bytes t.txt -o out
}

@test "a temporary file that is taken away or replaced meanwhile never becomes the output" {
  mkfifo pipe
  tokenize -q -t bytes - -o out <pipe 2>stderr &
  exec 9>pipe
  printf '%200000d' 0 >&9 # more than a pipe holds: once it is read, the output was begun
  rm out.tmp.tessera
  printf mine >out.tmp.tessera
  exec 9>&-
  code=0
  wait $! || code=$?
  [ "$code" -eq 73 ]
  grep -q 'out.tmp.tessera was removed or replaced' stderr
  [ ! -e out ]
  [ "$(cat out.tmp.tessera)" = mine ]
}

@test "any name that a file may have is a name for an output" {
  for length in 243 244 250 255; do
    name=$(printf 'x%.0s' $(seq "$length"))
    tokenize -q -t bytes t.txt -o "$name"
    cmp "$name" whole
    rm "$name"
  done
  name=$(printf 'é%.0s' {1..127})
  tokenize -q -t bytes t.txt -o "$name"
  cmp "$name" whole
  # Two long names that begin alike have each a temporary file of its own.
  a=$(printf 'x%.0s' {1..254})a b=$(printf 'x%.0s' {1..254})b
  mkfifo pipe
  tokenize -q -t bytes - -o "$a" <pipe &
  exec 9>pipe
  tokenize -q -t bytes t.txt -o "$b"
  cat t.txt >&9
  exec 9>&-
  wait $!
  cmp "$a" whole && cmp "$b" whole
  fails_in_one_line 73 'File name too long' tokenize -q -t bytes t.txt -o "x$a"
  no_leftovers
}

@test "too many open files is said as what it is" {
  files=()
  for i in {1..40}; do
    cp whole "$i.shard.zst"
    files+=("$i.shard.zst")
  done
  (ulimit -n 16 && fails_in_one_line 71 'too many open files; raise ulimit -n' shard merge -q "${files[@]}" -o out)
  shard merge -q "${files[@]}" -o out
}

@test "an output that is also an input is refused, and the input stays" {
  cp whole s
  ln s hard
  ln -s s soft
  for out in s ./s hard soft; do
    fails_in_one_line 64 'is also an input' shard export -q s -o "$out"
    fails_in_one_line 64 'is also an input' shard merge -q whole s -o "$out"
    cmp s whole
  done
  cp t.txt text
  fails_in_one_line 64 'text: is also an input' tokenize -q -t bytes t.txt text -o text
  fails_in_one_line 64 'text: is also an input' tokenize -q --learn word text -o text
  cmp text t.txt
  exits 64 tokenize -q -t bytes -o text <text 2>stderr
  exits 64 tokenize -q -t bytes text >>text 2>stderr
  grep -q '^tokenize: stdout: is also an input' stderr
  cmp text t.txt
  cp whole part-00000.shard.zst
  fails_in_one_line 64 'part-00000.shard.zst: is also an input' shard split -q -n 1 -o part- part-00000.shard.zst
  tokenize -q -t bytes t.txt -o /dev/null
  exits 0 tokenize -q -t bytes /dev/null -o /dev/null
}

@test "names and texts of strangers move no cursor" {
  name=$'a\nb\e[31m\xc2\x9b5n\x9b\x7fé'
  escaped='a\x0ab\x1b[31m\xc2\x9b5n\x9b\x7fé'
  fails_in_one_line 66 "$escaped" shard info "$name"
  cp whole "$name"
  shard info "$name" | grep -qF "$escaped"
  shard verify "$name" | grep -qF "$escaped"
  shard info --json "$name" | head -n 1 | grep -qF 'a\nb\u001b[31m'
  shard merge -q whole "$name" -o /dev/null
  shard split -n 1 "$name" -o "$name" 2>&1 | grep -qF "$escaped"
  [ "$(shard info "$name" | tr -d '[:print:]\n\303\251' | wc -c)" -eq 0 ]
}

@test "an output that an option names as an input is refused, and the input stays" {
  tokenize -q --learn word t.txt -o words.json
  cp words.json kept
  fails_in_one_line 64 'words.json: is also an input' tokenize -q -t words.json t.txt -o words.json
  fails_in_one_line 64 'words.json: is also an input' tokenize -q -t words.json --export json -o ./words.json
  cmp words.json kept
  printf 'noun lamp\nverb sing\nadjective red\n' >parts
  cp parts kept
  fails_in_one_line 64 'parts: is also an input' gen-babistories-prompts -q -n 1 --words parts -o parts
  cmp parts kept
}

@test "no output takes the place of a model's file, or of a shard that an option names" {
  needs eval-ppl
  # shellcheck disable=SC2154  # helpers.bash sets root
  "$root"/tests/cli/tiny_gpt2 model
  for out in model/config.json model/model.safetensors; do
    fails_in_one_line 64 "$out: is also an input" eval-ppl -q -m model whole -o "$out"
  done
  cp whole counted
  fails_in_one_line 64 'counted: is also an input' eval-ppl -q -m model --by frequency --counts counted whole -o counted
  fails_in_one_line 64 'counted: is also an input' eval-ppl -q -m model --tune counted --cache 9 -o counted
  cmp counted whole
  eval-ppl -q -m model whole -o figures
}

@test "a seed is a number from 0 to 4e18" {
  fails_in_one_line 64 '--seed: takes 0 to' gen-induction --seed -1
  fails_in_one_line 64 '--seed: takes 0 to' gen-induction --seed 4100000000000000000
  gen-induction -q --seed 1700000000000000000 -n 2 -o seeded
}

@test "no program makes the parents of its output" {
  printf 'one two three four five six seven\n' >p.txt
  tokenize -q -t bytes p.txt -o p.shard.zst
  fails_in_one_line 73 'nowhere/p.zst' tokenize -q -t bytes p.txt -o nowhere/p.zst
  fails_in_one_line 73 'no folder nowhere/deep; make it first' train -q -j 1 --layers 1 --d-model 8 --heads 1 --steps 1 p.shard.zst \
    -o nowhere/deep/model
  fails_in_one_line 73 'no folder nowhere; make it first' build-ngrams -q -j 1 p.shard.zst -o nowhere/ngrams
  [ ! -e nowhere ]
}
