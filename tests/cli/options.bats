#!/usr/bin/env bats
# What every program does with its flags: bounds, the last of several, what nothing takes, and a stdin that is awaited.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
}

setup() {
  cd "$BATS_TEST_TMPDIR"
}

# says CODE WORDS COMMAND...: that exit status, and one line on stderr, PROGRAM: with these words in it.
says() {
  local code=$1 words=$2
  shift 2
  run --separate-stderr "$@"
  # shellcheck disable=SC2154  # stderr is bats'
  [ "$status" -eq "$code" ] && [[ $stderr == "$1: "*"$words"* ]] && [ "$(wc -l <<<"$stderr")" -eq 1 ] ||
    { echo "$*: exit $status: $stderr" && return 1; }
}

@test "every number says what it may be, and its first is refused beyond that: 64 as a flag, 78 in a file" {
  seen=0
  for program in "$BIN"/*; do
    name=${program##*/}
    for verb in '' $("$program" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
      # Options are a command's where a program has commands, and tessera has none.
      # shellcheck disable=SC2086  # no verb is no word
      "$program" $verb --help=all | grep -q -- '--print-config' || continue
      # shellcheck disable=SC2086
      "$name" $verb --print-config | sed 's/^#\([a-z]\)/\1/' >options
      # Below its comment: NAME = NUMBER, numbers, or auto where a number may be.
      unbounded=$(awk '/^#/ { comment = $0; next }
        / = (-?[0-9.e+-]+|\[-?[0-9][^\]]*\])$/ && comment !~ /\((.* to .*|above .*)\)$/' options)
      [ -z "$unbounded" ] || { echo "$name $verb: no bounds: $unbounded" && return 1; }
      first=$(awk '/^#/ { bounded = / to [^ ]*( [^ ]*)?\)$/; next } bounded && / = -?[0-9.e+-]+$/ { print $1; exit }' options)
      [ -n "$first" ] || continue
      seen=$((seen + 1))
      # shellcheck disable=SC2086
      says 64 "--$first: takes " "$name" $verb "--$first=-9E18" </dev/null
      printf '%s = 9E18\n' "$first" >beyond.conf
      # shellcheck disable=SC2086
      says 78 "beyond.conf:1: --$first: takes " "$name" $verb --config beyond.conf </dev/null
    done
  done
  [ "$seen" -gt 5 ]
}

@test "what overflowed: pairs, counts, draws, hypotheses, rows, a time limit" {
  says 64 "--pairs: takes 1 to 500K, not 9E18" gen-induction -q -n 3 --pairs 9E18
  says 64 "--pairs: takes 1 to 500K, not 9223372036854775807" gen-induction -q -n 3 --pairs 9223372036854775807
  says 64 "--count: takes 1 to 1G, not 9E18" gen-moons --count 9E18
  needs train
  says 64 "--context: takes 1 to 16M, not 9E18" train --context 9E18 -o m x
  says 64 "--max-time: '1e10' is more than 30 years" train --max-time 1e10 -o m x
  says 64 "--max-time: '99999999:00:00' is more than 30 years" train --max-time 99999999:00:00 -o m x
  needs sample
  says 64 "--beam: takes 1 to 10K, none or auto, not 9E18" sample -m m --beam 9E18
}

@test "what is left to the program is auto: no epochs, no updates and no stride are refused" {
  needs train
  says 64 "--epochs: takes above 0 to 1G, or auto, not 0" train --epochs 0 -o m x
  says 64 "--steps: takes 1 to 1T, or auto, not 0" train --steps 0 -o m x
  train --print-config | grep -qx '#epochs = "auto"'
  needs eval-ppl
  says 64 "--stride: takes 1 to 16M, or auto, not 0" eval-ppl -m m --stride 0 x
  eval-ppl -m m --stride auto --print-config | grep -qx 'stride = "auto"'
}

@test "not set is a word, auto or none: shown, printed, read back, and its old number is refused" {
  says 64 "--jobs: takes 1 to 1024, or auto, not 0" gen-moons -j 0
  gen-moons --help | grep -q -- '-j,--jobs N=auto '
  says 64 "--max-bytes: takes 1 to 1024T, or none, not 0" shard split --max-bytes 0 x
  shard split --help | grep -q -- '--max-bytes BYTES=none '
  needs train
  # words COMMAND...: --print-config has each NAME=WORD of expected, and reads back as it was printed.
  words() {
    local pair
    "$@" --print-config | sed 's/^#\([a-z]\)/\1/' >printed.conf
    for pair in "${expected[@]}"; do
      grep -qxF "${pair%%=*} = ${pair#*=}" printed.conf || { echo "$*: no $pair" && return 1; }
    done
    "$1" --config printed.conf --print-config | cmp - printed.conf
  }
  expected=(lr='"auto"' clip='"none"' lora='"none"' d-ff='"auto"' 'attention-window=["none", 64]' clamp-length='"none"' valid-every='"auto"')
  words train --clip none --attention-window none,64
  says 64 "--clip: takes above 0 to 1T, or none, not 0" train --clip 0 -o m x
  says 64 "--d-ff: takes 1 to 16M, or auto, not 0" train --d-ff 0 -o m x
  says 64 "--attention-window: takes 1 to 16M, or none, not 0" train --attention-window 64,0 -o m x
  echo 'lora = 0' >old.conf
  says 78 "old.conf:1: --lora: takes 1 to 65536, or none, not 0" train --config old.conf -o m x
  echo '{"lora": "none", "d_ff": "auto"}' >json.conf
  train --config json.conf --print-config | grep -qx 'lora = "none"'
  needs eval-ppl
  expected=(clamp-length='"auto"' context-slots='"none"' window='"auto"' joint-temperature='"auto"' unigram-half-life='"none"' fail-above='"none"')
  words eval-ppl
  expected=(clamp-length='"none"' window=64)
  words eval-ppl --clamp-length none --window 64
  for old in 0 -1; do
    says 64 "--clamp-length: takes 1 to 16M, none or auto, not $old" eval-ppl -m m --clamp-length "$old" x
  done
  says 64 "--min-pointers: takes 1 to 65536, or none, not 0" eval-ppl -m m --min-pointers 0 x
  says 64 "--min-pointers: takes 1 to 65536, or none, not auto" eval-ppl -m m --min-pointers auto x
}

@test "a model that a command needs is shown as required" {
  local command
  needs train
  for command in eval-ppl build-datastore "store search" "probe weights" "probe attention" eval-regbench eval-forecast sample score serve; do
    # shellcheck disable=SC2086  # a program and its verb
    $command --help=all | grep -q -- '^  -m,--model .*\[required' || { echo "$command" && return 1; }
  done
}

@test "no help explains a number that is no quantity" {
  # A port is that of the system, a temperature of 0 the limit of small ones, equal lengths have no deviation.
  local program verb
  for program in "$BIN"/*; do
    for verb in '' $("$program" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
      # shellcheck disable=SC2086  # no verb is no word
      "$program" $verb --print-flags 2>/dev/null | grep -E '[;[] ?(0|-1): ' | grep -vE -- '--(port|temperature|segment-deviation)\b' &&
        { echo "$program $verb" && return 1; }
    done
  done
  return 0
}

@test "a word that a help explains is a value of the option" {
  local program verb seen=0
  for program in "$BIN"/*; do
    for verb in '' $("$program" --help | sed -n '/^Subcommands:/,/^$/s/^  \([a-z-]*\) .*/\1/p'); do
      # shellcheck disable=SC2086  # no verb is no word
      "$program" $verb --print-flags 2>/dev/null >flags || continue
      # One of several words, or a number; any text may be a word.
      wrong=$(awk -F '\t' '$3 ~ /[|]/ || $3 == "N" || $3 == "X" {
        for (i = split("auto none all", words, " "); i > 0; i--)
          if ($5 ~ "(^|[ ;[])" words[i] ": ") {
            values = $3 ~ /[|]/ ? $3 : $5
            gsub("(^|[ ;[])" words[i] ": ", "", values)
            if (values !~ "(^|[^a-z-])" words[i] "([^a-z-]|$)") print $2, words[i]
          }
      }' flags)
      [ -z "$wrong" ] || { echo "$program $verb: $wrong" && return 1; }
      seen=$((seen + 1))
    done
  done
  [ "$seen" -ge 1 ]
}

@test "counts are decimal, sizes of memory binary" {
  [ "$(gen-moons -n 2K | shard info --json - | grep -o '"elements":[0-9]*')" = '"elements":96000' ]
  bm25-pack --buffer-size 2K --print-config | grep -qx 'buffer-size = 2048'
  bm25-pack --segment 2K --print-config | grep -qx 'segment = 2000'
}

@test "an option of --help stands under its own heading, and bytes as one types them" {
  # heading FLAG: the last line without indentation before the flag.
  heading() { awk -v flag="  $1 " '/^[A-Z]/ { last = $0 } index($0, flag) == 1 { print last }' help; }
  sample --help=all >help
  [ "$(heading --layer-memory)" = "Memory of layers:" ]
  [ "$(heading --device)" = "Computing:" ]
  [ "$(heading --copy-spans)" = "Spans:" ]
  [ "$(heading --report)" = Options: ]
  [ "$(heading --seed)" = 'Shared by all programs:' ]
  build-ngrams --help >help
  grep -q -- '--buffer-size BYTES=2G .*(1M to 64T)$' help
}

@test "the last of a flag given twice wins, before and behind a file's" {
  [ "$(gen-moons -n 5 -n 7 -j 1 -j 2 -q -q -o a -o - | shard info --json - | grep -o '"elements":[0-9]*')" = '"elements":336' ]
  [ ! -e a ]
  echo 'count = 9' >one.conf
  echo 'count = 3' >two.conf
  gen-moons --config one.conf --config two.conf --print-config | grep -qx 'count = 3'
}

@test "a flag, key or command that nothing takes names the nearest" {
  says 64 "--perods: no such option; did you mean --periods?" gen-moons --perods 3
  says 64 "--perods: no such option; did you mean --periods?" gen-moons --perods=3
  says 64 "--colour: no such option; see --help" gen-moons --colour
  says 64 "--vocab: no such option; did you mean --vocab-size or --tokenizer?" tokenize --vocab 4000
  says 64 "--separator: no such option; did you mean --document-separator?" tokenize --separator x
  says 64 "a: unexpected argument" gen-moons a b
  says 64 "list: no such command; there are info, verify, cat, head, merge, split, import, export" shard list a
  says 64 "marge: no such command; did you mean merge?" shard marge a
  says 64 "--jsn: no such option; did you mean --json?" shard info --jsn a
  says 64 "--json: must follow the command" shard --json info a
  says 64 "give a command: info, verify" shard
  echo 'perods = 3' >c.conf
  says 78 'c.conf:1: unknown key "perods"; did you mean periods?' gen-moons --config c.conf
  printf '[bm52]\nk1 = 1\n' >c.conf
  says 78 'c.conf:1: unknown table [bm52]; did you mean [bm25]?' bm25-pack --config c.conf
  printf '[parts]\nk1 = 1\n' >c.conf
  says 78 'c.conf:2: "k1" is not in [parts]; move it to [bm25] or above all tables' bm25-pack --config c.conf
  printf 'method = greedy\n' >c.conf
  says 78 "c.conf:1: not TOML: " bm25-pack --config c.conf
  says 64 "--split: 'Valid' is not one of train, valid; did you mean valid?" gen-moons --split Valid
  says 64 "'validation' is not one of train, valid; did you mean valid?" gen-moons --split validation
  says 64 "--split: its value is missing; see --help" gen-moons --split
  says 64 "--phase: '50%' is not a number; write 0.5" gen-moons --phase 50%
  says 66 "on: does not exist; a switch takes no value: give --NAME or --no-NAME" shard info --json on
  needs sample
  says 64 "--temprature: no such option; did you mean --temperature?" sample -m m --temprature 1
  says 64 "--stream: no such option; see --help" sample -m m --stream
  says 64 "--repeat-penalty: no such option; there is no penalty of repetitions" sample -m m --repeat-penalty 1.1
}

@test "numbers as people type them" {
  gen-moons -n 1_0 --phase .5 -o a
  gen-moons -n +10 --phase 5e-1 -o b
  cmp a b
}

@test "a prompt where a file belongs is sent to --prompt" {
  needs sample
  says 66 "the President of the: cannot open: No such file or directory; use --prompt for a prompt as text" \
    sample -m m "the President of the"
}

@test "an empty stdin says that no FILE was given" {
  says 65 "no FILE given and stdin is empty" shard info </dev/null
  says 65 "no FILE given and stdin is empty" shard verify - </dev/null
  needs train
  says 65 "no FILE given and stdin is empty" train -o m </dev/null
  [ ! -e m ]
}

@test "a program that waits for the terminal says so, not with -q" {
  script -qec true /dev/null >/dev/null 2>&1 || skip "no pseudo-terminal can be opened here"
  wait_for() { script -qec "$*" /dev/null </dev/null | tr -d '\r'; }
  [[ "$(wait_for shard info)" == *"shard: reading from the terminal; Ctrl-D ends the input"* ]]
  [[ "$(wait_for shard info -q)" != *"reading from the terminal"* ]]
}

@test "fewer tokens than asked for are explained" {
  printf 'a rose is a rose is a rose\n' >rose
  run --separate-stderr tokenize --learn bpe --vocab-size 8000 rose -o t.json
  [ "$status" -eq 0 ]
  [[ $stderr == *"learned fewer tokens than --vocab-size 8000: no further pairs occur 2 times; give more text, or a lower --min-count"* ]]
  run --separate-stderr tokenize --learn word rose -o t.json
  [[ $stderr != *"fewer"* ]]
}

@test "what a file or an argument holds makes no message longer than a screen" {
  { head -c 500000 /dev/zero | tr '\0' 9 | sed 's/^/seed = "/' && echo '"'; } >"$BATS_TEST_TMPDIR/long"
  run --separate-stderr -78 gen-moons --config "$BATS_TEST_TMPDIR/long" -o "$BATS_TEST_TMPDIR/x"
  [ "${#stderr_lines[@]}" -eq 1 ]
  [ "${#stderr}" -lt 3000 ]
  [[ $stderr == "gen-moons: "*"/long:1: --seed: '9999"*" ... "*"999' is not a number"* ]]
}

@test "--help shows the options used most, --help=all all, --help=GROUP those of a group, wrapped on a terminal" {
  for program in train eval-ppl sample; do
    needs "$program"
    "$program" --help >short
    [ "$(wc -l <short)" -le 45 ]
    grep -q '^  --help=all  .*: .*, shared-by-all-programs$' short
    "$program" --help=all >all
    [ "$(wc -l <all)" -gt 90 ]
    # Nothing is in the short one that is not in the long one.
    grep '^  -' short | grep -v '^  --help=all' | grep -vxFf all && return 1
  done
  train --help=batches >batches
  grep -q '^  --segment N=' batches
  ! grep -q '^  --layers' batches || false
  train --help=bat | cmp - batches
  says 64 "--help=colours: no group of options; there are all, options, " train --help=colours
  grep -q '^  -o,--output PATH *folder of the model' short || train --help | grep -q '^  -o,--output PATH *folder of the model'
}

@test "an option that has no use without another is refused without it, from a file too" {
  local program flag needed
  while read -r program flag needed; do
    run -64 --separate-stderr "$program" -m nowhere "${flag%=*}" "${flag#*=}"
    [ "$stderr" = "$program: ${flag%=*}: requires --$needed" ] || { echo "$program $flag: $stderr" && return 1; }
  done <<END
sample --cite-k=2 cite
sample --max-len-a=2 source
sample --max-len-b=2 source
sample --max-source=9 source
sample --span-gamma=0.5 copy-spans
sample --retrieve-every=3 retrieve
sample --retrieve-tokens=9 retrieve
sample --system=x chat
serve --retrieve-tokens=9 retrieve
serve --cite-k=2 cite
score --cite-k=2 cite
eval-ppl --retrieve-mix=2 retrieve
eval-ppl --retrieve-log=x retrieve
eval-ppl --tune-lambdas=0.5 tune
eval-ppl --tune-thetas=1 tune
END
  echo 'cite-k = 2' >"$BATS_TEST_TMPDIR/file"
  run -64 --separate-stderr sample -m nowhere --config "$BATS_TEST_TMPDIR/file" x
  [ "$stderr" = 'sample: --cite-k: requires --cite' ]
  echo 'cite-k = 3' >"$BATS_TEST_TMPDIR/file" # the default
  run -66 sample -m nowhere --config "$BATS_TEST_TMPDIR/file" x
}
