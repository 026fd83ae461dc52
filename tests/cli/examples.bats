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
    VALID="$PWD/text" ARTICLES="$PWD/text" XML="$PWD/text" BOOKS="$PWD/data" "$@"
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

@test "your-model: a model and a text, with every memory, trained on and given back" {
  for program in model tokenize train eval-ppl build-datastore build-ngrams sample score; do needs "$program"; done
  command -v jq >/dev/null || skip "jq is not there"
  export OMP_NUM_THREADS=1
  make -s -C "$root/examples/your-model" OUT="$PWD/out" BIN="$BIN" >shown
  [ "$(wc -l <out/table.tsv)" -eq 8 ]
  # A text's own words help by far, here where the model knows none.
  awk -F '\t' 'NR > 1 { p[NR] = $2 } END { exit !(p[3] < p[2] / 2 && p[4] < p[2] / 2 && p[6] < p[2] / 2 && p[8] < p[2] / 2) }' out/table.tsv
  [ "$(wc -l <out/questions.tsv)" -eq 5 ]
  python3 -c 'import json, sys; assert json.loads(open(sys.argv[1]).readline())["citations"]' out/cited.jsonl
  [ "$(model info --json out/exported | field family)" = llama ]
  eval-ppl -q -m out/trime --json out/test.shard.zst >ours
  eval-ppl -q -m out/exported --json out/test.shard.zst >theirs
  [ "$(field loss <ours)" = "$(field loss <theirs)" ]
  # The default rate of fine-tuning lowers the perplexity of held-out text.
  make -s -C "$root/examples/your-model" OUT="$PWD/out" BIN="$BIN" tuned >shown
  awk -F '\t' 'NR == 2 { before = $2 } NR == 3 { after = $2 } END { exit !(NR == 3 && after > 1 && after < before) }' out/tuned.tsv
  # Another model: its folder, and what is missing, is told at once.
  run -2 make -s -C "$root/examples/your-model" OUT="$PWD/out" MODEL="$PWD/nothing"
  [[ $output == *"MODEL='$PWD/nothing': no config.json there"* ]]
  run -2 make -s -C "$root/examples/your-model" OUT="$PWD/other" BIN="$BIN" SCALE=small MODEL="$root/tests/golden/families/llama" \
    TEXT="$root/LICENSE"
  [[ $output == *"no tokenizer.json in it; give TOKENIZER"* ]]
}

@test "never-worse: no memory makes a text less probable than the model alone, or make says which" {
  for program in tokenize train eval-ppl build-datastore build-ngrams; do needs "$program"; done
  command -v jq >/dev/null || skip "jq is not there"
  export OMP_NUM_THREADS=1
  make -s -C "$root/examples/never-worse" OUT="$PWD/out" BIN="$BIN" >shown
  [ "$(cut -f 3 out/table.tsv | paste -s -d " ")" = "memory memory cache unigram datastore ngrams online-ngrams all memory datastore all alone all" ]
  # Each text's difference is a record, and the table has their mean.
  mean=$(awk -F '\t' '$1 == "tiny-dynamic-all" { n++; sum += $4 } END { print n, sum / n }' out/records.tsv)
  [[ $mean == '4 -'* ]]
  near "${mean#4 }" "$(awk -F '\t' '$2 $3 == "dynamicall" { print $4 }' out/table.tsv)" 1e-3
  run -2 make -s -C "$root/examples/never-worse" OUT="$PWD/out" BIN="$BIN" LIMIT=-9
  [[ $output == *"tiny joint cache: worse by "*" nats a token on text-"* ]]
  run -2 make -s -C "$root/examples/never-worse" OUT="$PWD/other" BIN="$BIN" DATA="$PWD/nothing"
  [[ $output == *"give a folder with *.txt or *.jsonl"* ]]
}

@test "tasks: questions of a novel, asked with a cache and a datastore too" {
  for program in tokenize train eval-ppl build-datastore score compare-ppl jq; do
    command -v "$program" >/dev/null || skip "$program is not there"
  done
  export OMP_NUM_THREADS=1
  make -s -C "$root/examples/tasks" OUT="$PWD/out" BIN="$BIN" >shown
  # Three rows; each task has as many answers as questions, each question a right answer among four.
  [ "$(awk -F '\t' 'NF == 11' out/table.tsv | wc -l)" -eq 4 ]
  for row in alone cache store; do
    [ "$(jq -s length out/last-words-$row.jsonl)" -eq 60 ]
    jq -se 'length == 60 and all(.[]; (.choices | length) == 4 and (.correct | has("mutual_information")))' out/endings-$row.jsonl
  done
  jq -se 'all(.[]; (.continuation + " ") as $word | " " + .context + " " | contains($word))' out/last-words.jsonl
  grep -q '^p ' out/last-words-store.txt
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

# A program that is given a command's options says whether it takes them, and does nothing: options are read before any file is.
program_that_only_parses() { # NAME
  cat >"$parsers/$1" <<EOF
#!/bin/bash
options="$1 \${*/"$PWD/"*/}" # without the files
[[ \$(<"$PWD/parsed") != *"|\$options|"* ]] || exit
echo "|\$options|" >>"$PWD/parsed"
"$BIN/$1" "\$@" --print-config >/dev/null 2>"$PWD/said" || { echo "$1 \$*" && cat "$PWD/said"; } >>"$PWD/refused"
EOF
  chmod +x "$parsers/$1"
}

@test "at the published scale every command is one that its program takes" {
  touch data/{train,valid,test}.{de,en}
  parsers=$PWD/parsers
  mkdir "$parsers"
  for program in "$BIN"/*; do program_that_only_parses "${program##*/}"; done
  ln -s /bin/true "$parsers/sacrebleu"
  for run in babistories long-range-memory 'long-range-memory KIND=words' memory-decoder mosaic-slots regbench ruler three-moons translation \
    trime wikitext-2; do
    read -ra words <<<"$run"
    example=${words[0]} scale=paper
    [ -e "$root/examples/$example/scale/paper.mk" ] || grep -q '^paper\.' "$root/examples/$example/Makefile" || scale=small
    SCALE=$scale what_runs "${words[@]}" all >commands
    ! grep -q '^plan:' "$root/examples/$example/Makefile" || SCALE=$scale what_runs "${words[@]}" plan >>commands
    rm -f refused
    : >parsed
    # What stands between the programs has nothing to read, and may fail.
    echo : >>commands
    env -C "$root/examples/$example" PATH="$parsers:$PATH" bash "$PWD/commands" </dev/null >/dev/null 2>&1
    [ "$(wc -l <parsed)" -gt 3 ]
    [ ! -e refused ] || { echo "$run:" && cat refused && return 1; }
  done
}

# takes OPTION COMMAND...: what a program makes of an option of its command line.
takes() {
  local option=$1
  shift
  "$@" --print-config 2>/dev/null | sed -n "s/^#\{0,1\}$option = //p"
}

@test "at the published scale each model has what is published of it" {
  export SCALE=paper
  # Memory Mosaics' rate and dropout are not those of RegBench's baselines.
  what_runs regbench all | grep -- '--segment 1024' >commands
  for model in mosaic:0.0005:0.05:0.05 transformer:0.00025:0.1:0.1 gla:0.00025:0.1:0 lstm:0.00025:0.1:0; do
    IFS=: read -r arch lr dropout attention <<<"$model"
    command=$(grep -m 1 -- "train .*--arch $arch " commands)
    for field in "lr $lr" "dropout $dropout" "attention-dropout $attention"; do
      near "$(takes ${field% *} $command)" "${field#* }" 1e-6
    done
  done
  # Without dropout is without that of attention.
  what_runs babistories sweep >commands
  for option in dropout attention-dropout; do
    [ "$(takes "$option" $(grep -- 'train .*/model/dropout ' commands))" = 0 ]
    [ "$(takes "$option" $(grep -- 'train .*/model/half ' commands))" = 0.05 ]
  done
  # What array.sbatch trains, and no seed more.
  for kind in characters words; do
    what_runs long-range-memory KIND=$kind all | grep 'train .*--arch transformer-xl' >commands
    [ "$(grep -c -- '--seed 1 ' commands)" -eq "$(wc -l <commands)" ]
  done
  what_runs long-range-memory SEEDS=2 "$PWD/out/all-2/model.safetensors" | grep -q 'train .*--seed 2 '
  # 5 of 50 epochs.
  touch data/{train,test}.{de,en}
  [ "$(what_runs translation all | grep -c -- 'train .*--plain-warmup 0.1 .*--memory ext')" -eq 1 ]
}

@test "translation: a pair is held out after those that are left out, and is in one set only" {
  rm -r data && mkdir data
  for n in {1..60}; do
    # Every third has nothing on one side, or is too long there.
    case $((n % 6)) in 0) echo ;; 3) echo "Satz $n ist viel zu lang" ;; *) echo "Satz $n" ;; esac >>data/train.de
    echo "Sentence $n" >>data/train.en
  done
  make -s -C "$root/examples/translation" SCALE=paper DATA="$PWD/data" OUT="$PWD/out" "$PWD"/out/data/{seen,valid}.{de,en}
  # The 23rd of 1, 2, 4, 5, 7, ...
  [ "$(cat out/data/valid.de)" = 'satz 34' ]
  [ "$(cat out/data/valid.en)" = 'sentence 34' ]
  [ "$(wc -l <out/data/seen.en)" -eq 39 ]
  ! grep -q 'sentence 34$' out/data/seen.en || false
  # A validation text of one's own is taken, and every pair learned from.
  echo Ja >data/valid.de && echo Yes >data/valid.en
  make -s -C "$root/examples/translation" SCALE=paper DATA="$PWD/data" OUT="$PWD/own" "$PWD"/own/data/{seen,valid}.{de,en}
  [ "$(cat own/data/valid.de own/data/valid.en)" = $'ja\nyes' ]
  [ "$(wc -l <own/data/seen.en)" -eq 40 ]
}
