#!/usr/bin/env bash
# Every program that writes, as small commands, and what they may leave behind when a call of theirs fails.
# tools/attack and tests/cli/faults.bats source it, behind struck.bash; both set $root and PATH.
# shellcheck disable=SC2034,SC2054,SC2154  # used there; factories have commas; set there

quick_outputs=(tokenize learn stats merge split import export cat pack pack-part search-build find ngrams
  compare moons induction regbench ruler eval-ruler prompts clean)
slow_outputs=(train train-valid train-tensorboard forecast build build-ivf build-pca append append-calibrated rebuild store-merge targets
  model-import model-export eval per-token tune annotate sample score probe eval-regbench)

# make_quick_inputs: in the working directory, what the quick commands read.
make_quick_inputs() {
  seq 20000 | awk '{ print $1 * 48271 % 2147483647 }' >x.txt
  head -c 30000 "$root/LICENSE" >text
  head -c 1500 text >few
  tokenize -q -t bytes few -o few.shard.zst
  tokenize -q -t bytes --format lines text -o lines.shard.zst
  shard export -q few.shard.zst -o few.npy
  bm25-search build -q lines.shard.zst -o lines.bm25
  awk 'BEGIN {
    print "position\tdocument\ttoken\ttext\thead\tjoint\tmemory\tcache\tnats"
    for (i = 0; i < 1200; ++i) print i "\t" int(i / 20) "\t5\tx\t1\t1\t-\t-\t" 1 + i % 3 / 10
  }' >scores
  gen-ruler -q --task needles -n 3 --length 1500 -o problems.jsonl
  jq -c '{id: .id, text: .outputs[0]}' problems.jsonl >answers.jsonl
  printf '{"story": "Once there was a cat. It sat on a mat. The end."}\n' >stories.jsonl
  mkdir none
}

tiny=(--layers 1 --d-model 8 --heads 1 --segment 16 --batch 2 --steps 4 --checkpoint-every 2 --keep 1)

# make_store_inputs: what the commands of stores read.
make_store_inputs() {
  head -c 300 text | tokenize -q -t bytes --format lines -o tiny.shard.zst
  tail -c 300 few | tokenize -q -t bytes --format lines -o more.shard.zst
  "$root/tests/cli/tiny_gpt2" model
  build-datastore -q -j 1 -m model --batch-tokens 64 --index IVF4,Flat tiny.shard.zst -o ivf
  seq 3000 7300 | tokenize -q -t bytes --format lines -o long.shard.zst
  build-datastore -q -j 1 -m model long.shard.zst -o calibrated
  build-datastore -q -j 1 -m model --part 1/2 tiny.shard.zst -o store.1
  build-datastore -q -j 1 -m model --part 2/2 tiny.shard.zst -o store.2
}

# make_train_inputs: and those of models.
make_train_inputs() {
  train -q -j 1 "${tiny[@]}" tiny.shard.zst -o plain
}

# make_other_inputs: and the others.
make_other_inputs() {
  gen-moons -q --per-unit 20 -n 100 -o moons.shard.zst
  train -q -j 1 --arch mosaic --loss clipped-mse --heads 3 --segment 20 --batch 2 --steps 2 moons.shard.zst -o forecaster
  gen-regbench -q -n 4 --automata automata.jsonl -o regbench.shard.zst
}

# an_output NAME: sets command, which writes `out`; base, what stands there before ("": nothing); and seals, the files of
# a folder without which it is none.
an_output() {
  base='' seals=''
  case $1 in
    tokenize) command=(tokenize -q -j 2 -t bytes x.txt -o out) ;;
    learn) command=(tokenize -q -j 1 --learn bpe --vocab-size 300 few -o out) ;;
    stats) command=(tokenize -q -j 1 --learn word few -o out) ;;
    merge) command=(shard merge -q few.shard.zst lines.shard.zst -o out) ;;
    split) command=(shard split -q -n 3 lines.shard.zst -o out/part.) base=none ;;
    import) command=(shard import -q -t bytes few.npy -o out) ;;
    export) command=(shard export -q few.shard.zst -o out) ;;
    cat) command=(shard cat few.shard.zst -o out) ;;
    pack) command=(bm25-pack -q -j 1 --segment 64 --buffer-size 1M lines.shard.zst -o out) ;;
    pack-part) command=(bm25-pack -q -j 1 --segment 64 --part 1/2 lines.shard.zst -o out) ;;
    search-build) command=(bm25-search build -q -j 1 lines.shard.zst -o out) ;;
    find) command=(bm25-search find -q -j 1 -i lines.bm25 few -o out) ;;
    ngrams) command=(build-ngrams -q -j 1 few.shard.zst -o out) seals=ngrams.json ;;
    compare) command=(compare-ppl -q --json scores scores -o out) ;;
    moons) command=(gen-moons -q -n 200 -o out) ;;
    induction) command=(gen-induction -q -o out) ;;
    regbench) command=(gen-regbench -q -n 30 --automata out/automata -o out/shard) base=none ;;
    ruler) command=(gen-ruler -q --task needles -n 3 --length 1500 -o out) ;;
    eval-ruler) command=(eval-ruler -q --problems problems.jsonl answers.jsonl -o out) ;;
    prompts) command=(gen-babistories-prompts -q -n 200 -o out) ;;
    clean) command=(clean-babistories -q stories.jsonl -o out) ;;
    train) command=(train -q -j 1 "${tiny[@]}" tiny.shard.zst -o out) seals=model.safetensors ;;
    train-valid)
      command=(train -q -j 1 "${tiny[@]}" --valid more.shard.zst --valid-every 2 tiny.shard.zst -o out)
      seals=model.safetensors
      ;;
    train-tensorboard) command=(train -q -j 1 "${tiny[@]}" --tensorboard tiny.shard.zst -o out) seals=model.safetensors ;;
    forecast) command=(train -q -j 1 --arch mosaic --loss clipped-mse --heads 3 --segment 20 --batch 2 --steps 2
      moons.shard.zst -o out) seals=model.safetensors ;;
    build) command=(build-datastore -q -j 1 -m model --batch-tokens 64 tiny.shard.zst -o out) seals=store.json ;;
    build-ivf)
      command=(build-datastore -q -j 1 -m model --batch-tokens 64 --index IVF4,Flat tiny.shard.zst -o out)
      seals=store.json
      ;;
    build-pca)
      command=(build-datastore -q -j 1 -m model --batch-tokens 64 --keys pca:8 --prune merge:2 tiny.shard.zst -o out)
      seals=store.json
      ;;
    append)
      command=(build-datastore -q -j 1 -m model --batch-tokens 64 --append out more.shard.zst) base=ivf
      seals=store.json
      ;;
    append-calibrated)
      command=(build-datastore -q -j 1 -m model --append out more.shard.zst) base=calibrated
      seals=store.json
      ;;
    rebuild) command=(store rebuild -q -j 1 --index IVF2,SQ8 out) base=ivf seals=store.json ;;
    store-merge) command=(store merge -q -j 1 --index IVF4,Flat store.1 store.2 -o out) seals=store.json ;;
    targets) command=(build-targets -q -j 1 --datastore ivf --k 8 --top-k 4 tiny.shard.zst -o out) ;;
    model-import) command=(model import -q -j 1 "$root/tests/golden/checkpoints/nanogpt.pt" -o out) seals=model.safetensors ;;
    model-export) command=(model export -q -j 1 plain --family gpt2 -o out) seals=model.safetensors ;;
    eval) command=(eval-ppl -q -j 1 -m model --json tiny.shard.zst -o out) ;;
    per-token) command=(eval-ppl -q -j 1 -m model --per-token out/tokens tiny.shard.zst -o out/report) base=none ;;
    tune) command=(eval-ppl -q -j 1 -m model --cache 20 --tune more.shard.zst tiny.shard.zst -o out) ;;
    annotate) command=(annotate -q -j 1 -m model -t bytes few -o out) ;;
    sample) command=(sample -q -j 1 -m plain --json --max-tokens 4 --prompt 'The ' -o out) ;;
    score) command=(score -q -j 1 -m plain few -o out) ;;
    probe) command=(probe weights -q -m forecaster -o out) ;;
    eval-regbench) command=(eval-regbench -q -j 1 --ngram 2 --automata automata.jsonl regbench.shard.zst -o out) ;;
    *) return 1 ;;
  esac
}

# told: one line that begins with the program's name and names a file, and a documented code.
told() {
  case $code in
    73 | 74) ;;
    137) [ "$how" = kill ] && return ;; # says nothing
    66) [[ $how != 28 ]] || return 1 ;; # no disk is too full to read
    *) return 1 ;;
  esac
  one_line
}

# same_whole: what is there is `whole`. A rebuild makes the index anew each time, in a generation of its own.
same_whole() {
  if [ "${command[0]} ${command[1]}" != 'store rebuild' ]; then
    same_output out whole
    return
  fi
  cmp <(cat out/index*.faiss) <(cat whole/index*.faiss) && store verify -q out >/dev/null &&
    diff -r -x 'index*.faiss' -x store.json -x timings.jsonl out whole
}

# one_line: stderr is a line of the program that names a file which is there, or one of the output's.
one_line() {
  local line
  [ "$(wc -l <stderr)" -eq 1 ] || return 1
  line=$(<stderr)
  [[ $line == "${command[0]}: "*": "* ]] || return 1
  line=${line#*: }
  line=${line%%: *}
  [[ $line != . && ($line == *out* || $line == 'temporary file' || -e $line || $line == */tessera[.-]*) ]]
}

# left_whole: nothing under a final name but what stood there or what the command makes of it.
left_whole() {
  local file from
  while read -r file; do
    from=${file#out}
    [ -e "whole$from" ] && cmp -s "$file" "whole$from" && continue
    [ -n "$base" ] && [ -e "$base$from" ] && cmp -s "$file" "$base$from" && continue
    # What is begun in a folder counts for nothing without its seal.
    [ -n "$seals" ] && [ "${from#/}" != "$seals" ] && continue
    echo "a part of $file"
    return 1
  done < <(find out -type f ! -name '*.tmp*' 2>/dev/null)
}

# whole_output NAME: as an_output; and makes `whole`, what the command writes.
whole_output() {
  an_output "$1"
  rm -rf whole
  prepare
  "${command[@]}" >stdout 2>stderr </dev/null || { echo "$1: exit $?: $(cat stderr)" && return 1; }
  mv out whole
}

# spread CALL MOST: how many such calls the command makes in $total, and in $step at which of them MOST are spread over all.
spread() {
  prepare
  struck "$1" 0 5 "${command[@]}"
  total=$(cat count)
  step=$(((total + $2 - 1) / $2))
}

# temporaries: the temporary files that are there.
temporaries() { find . -name '*.tmp*' -printf '%p '; }

# as_before: what stands where the command writes is what stood there before it ran.
as_before() {
  [ -z "$(temporaries)" ] || return 1
  if [ -n "$base" ]; then diff -rq "$base" out >/dev/null 2>&1; else [ ! -e out ]; fi
}

# every_fault NAME CALLS HOWS MOST: with a fault at every call of each kind, or at MOST calls spread over all, the command
# says so, leaves nothing half-written and nothing temporary, and run again, where it left anything, writes what it writes
# without. HOWS are numbers of errors, or kill, which may leave temporary files until the next run. Adds to $tried; prints what is otherwise, and returns 1.
every_fault() {
  local name=$1 calls=$2 hows=$3 most=$4 call n total how step wrong=0
  whole_output "$name" || return 1
  for call in $calls; do
    spread "$call" "$most"
    for ((n = 1; n <= total; n += step)); do
      for how in $hows; do
        prepare
        struck "$call" "$n$([ "$how" != 28 ] || echo +)" "$how" "${command[@]}"
        tried=$((tried + 1))
        if [ "$code" -ne 0 ]; then
          told || { echo "$name: $call $n of $total, $how: exit $code: $(head -n 3 stderr)" && wrong=1; }
          left_whole || { echo "$name: $call $n of $total, $how: exit $code" && wrong=1; }
        fi
        # What is left in a folder that the next run goes on with is the next run's to remove.
        [ "$how" = kill ] || [ -n "$seals" ] || [ -z "$(temporaries)" ] ||
          { echo "$name: $call $n of $total, $how: exit $code, leaves $(temporaries)" && wrong=1; }
        [ -n "$seals$base" ] || [ "$code" -eq 0 ] || [ ! -e out ] || cmp -s out whole || { echo "out is there" && wrong=1; }
        [ "$code" -eq 0 ] || ! as_before || continue
        # Where all is there though the command failed, at the sync of its folder, none is run again.
        if [ "$code" -ne 0 ] && ! { same_whole && [ -z "$(temporaries)" ]; } >stdout 2>&1; then
          [ -z "$base" ] || [ -n "$seals" ] || prepare
          "${command[@]}" >stdout 2>stderr </dev/null ||
            { echo "$name: after $call $n of $total, $how: exit $?: $(head -n 3 stderr)" && wrong=1; }
        fi
        same_whole || { echo "$name: after $call $n of $total, $how: another output" && wrong=1; }
        [ -z "$(temporaries)" ] || { echo "$name: after $call $n, $how: leftovers" && wrong=1; }
        find . -name '*.tmp*' -exec rm -rf {} +
      done
    done
  done
  return "$wrong"
}

# holds PID: until the process is stopped, as a fault of `stop` leaves it, or has ended; 100 s at most.
holds() {
  local i fields
  for ((i = 0; i < 5000; ++i)); do
    fields=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    [[ ${fields##*) } != [TZ]* ]] || break
    sleep 0.02
  done
  [[ ${fields##*) } == T* ]]
}

# both NAME CALLS MOST: the command is stopped at a call, the same command runs beside it, and the first goes on. One of
# them at least writes the whole output; the other writes it too or is refused. Adds to $tried.
both() {
  local name=$1 calls=$2 most=$3 call n total step first second wrong=0 pid
  whole_output "$name" || return 1
  for call in $calls; do
    spread "$call" "$most"
    for ((n = 1; n <= total; n += step)); do
      prepare
      LD_PRELOAD=$faults FAULT_CALL=$call FAULT_AT=$n FAULT_ERRNO=stop "${command[@]}" >first.stdout 2>first.stderr </dev/null &
      pid=$!
      first=0 second=0
      holds "$pid" || { echo "$name: is not stopped at $call $n" && wrong=1 && kill -9 "$pid"; }
      "${command[@]}" >stdout 2>stderr </dev/null || second=$?
      kill -CONT "$pid" 2>/dev/null || wrong=1
      wait "$pid" || first=$?
      tried=$((tried + 1))
      case $first,$second in
        0,0) ;;
        0,73) one_line || { echo "$name: $call $n: $(cat stderr)" && wrong=1; } ;;
        73,0) cp first.stderr stderr && { one_line || { echo "$name: $call $n: $(cat stderr)" && wrong=1; }; } ;;
        *) echo "$name: $call $n of $total: exit $first and $second: $(cat first.stderr stderr)" && wrong=1 ;;
      esac
      same_whole || { echo "$name: $call $n of $total: another output" && wrong=1; }
      [ -z "$(temporaries)" ] || { echo "$name: $call $n: leaves $(temporaries)" && wrong=1; }
      find . -name '*.tmp*' -exec rm -rf {} +
    done
  done
  return "$wrong"
}
