#!/usr/bin/env bats
# Work in parts, each by itself or by a rank of one run, and what puts them together: the bytes of one process.

load helpers
load processes

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  "$root"/tests/cli/tiny_gpt2 model
  cats 30 >text
  head -n 15 text | tokenize -q -t bytes --format lines -o other.shard.zst
  tail -n 15 text | tokenize -q -t bytes --format lines -o test.shard.zst
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

# make_translator: pairs.shard.zst and a model of it, once.
make_translator() {
  [ ! -e translator ] || return 0
  seq 60 | sed 's/^/one two /' >source
  seq 60 | sed 's/$/ drei/' >target
  tokenize -q --learn bpe --vocab-size 300 source target -o pairs.json
  tokenize -q -t pairs.json --pairs source target -o pairs.shard.zst
  train -q --arch encoder-decoder --layers 1 --d-model 16 --heads 2 --steps 4 --batch-tokens 64 -j 1 pairs.shard.zst -o translator
}

# adds_up N OPTIONS...: the sum of N parts, in any order, has the bytes of the whole.
adds_up() {
  local count=$1 part
  shift
  rm -f part.*
  eval-ppl -q -j 1 --json --memory-weights constant "$@" -o whole.json
  for ((part = 1; part <= count; ++part)); do
    eval-ppl -q -j 1 --memory-weights constant --part "$part/$count" "$@" -o "part.$part"
  done
  # shellcheck disable=SC2046  # names without spaces
  eval-ppl --json --sum $(printf '%s\n' part.* | sort -R) >sum.json
  cmp whole.json sum.json || { cat whole.json sum.json && return 1; }
}

@test "2, 3 and 9 parts add up to the bytes of one process, whatever the windows and memories" {
  needs eval-ppl
  local small=(-m model --window 32 --batch-tokens 100)
  adds_up 3 "${small[@]}" test.shard.zst
  adds_up 9 -m model --window 32 --batch-tokens 2000 --stride 8 test.shard.zst # more parts than batches: some are empty
  adds_up 3 "${small[@]}" --reset document test.shard.zst
  adds_up 2 "${small[@]}" --memory local,long --long 50 --cache 30 test.shard.zst
  adds_up 3 "${small[@]}" --memory long --long 7 --reset document --stride 16 --combine interpolate test.shard.zst
  adds_up 3 "${small[@]}" --cache 5000 test.shard.zst other.shard.zst # all that came before
}

@test "State that is carried on is cut between documents alone" {
  needs train
  train -q --arch lstm --layers 1 --d-model 16 --segment 32 --batch 4 --steps 4 -j 1 other.shard.zst -o lstm
  adds_up 3 -m lstm --window 32 --carry on --reset document --memory local,long --long 40 test.shard.zst
  adds_up 2 -m lstm --window 32 --carry on test.shard.zst # one stream: the first part is all
  [ "$(jq .tokens part.1)" -eq "$(jq .tokens whole.json)" ] || [ "$(jq .tokens part.2)" -eq "$(jq .tokens whole.json)" ]
}

@test "pairs, and datastores, in parts" {
  needs train
  needs build-datastore
  build-datastore -q -m model --index exact other.shard.zst -o store
  adds_up 3 -m model --window 32 --batch-tokens 100 --datastore store --k 8 --cache 20 test.shard.zst
  make_translator
  adds_up 2 -m translator --batch-tokens 10 pairs.shard.zst
  adds_up 5 -m translator --batch-tokens 10 pairs.shard.zst
}

@test "which part: a Slurm array's, or a launcher's" {
  eval-ppl -q -m model --window 32 --part 2/3 test.shard.zst -o given
  SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_MIN=4 SLURM_ARRAY_TASK_COUNT=3 eval-ppl -q -m model --window 32 --part launcher \
    test.shard.zst -o array
  cmp given array
  SLURM_STEP_ID=0 SLURM_JOB_ID=7 SLURM_PROCID=1 SLURM_STEP_NUM_TASKS=3 SLURM_STEP_NODELIST=n0 \
    eval-ppl -q -m model --window 32 --part launcher test.shard.zst -o step
  cmp given step
  run -64 eval-ppl -m model --part launcher test.shard.zst
  [[ $output == *"no launcher started this process"* ]]
  run -64 eval-ppl -m model --part 4/3 test.shard.zst
  [[ $output == *"--part: '4/3' is not I/N"* ]]
}

@test "what a rank refuses, all ranks refuse before they score, each with its exit code" {
  needs build-datastore
  local rank shared each
  # shellcheck disable=SC2016  # for the inner shells
  local own_store='exec eval-ppl --datastore "own.$OMPI_COMM_WORLD_RANK" --datastore-ranks "$@"' \
    no_file='file=test.shard.zst; [ "$OMPI_COMM_WORLD_RANK" -eq 0 ] || file=nowhere; exec "$@" "$file"'
  for rank in 0 1; do
    sed -n "$((3 * rank + 1)),$((3 * rank + 3))p" text | tokenize -q -t bytes --format lines -o own.shard.zst
    build-datastore -q -m model --index exact own.shard.zst -o "own.$rank"
  done
  for shared in no yes; do
    each=(eval-ppl)
    [ "$shared" = no ] || each=(bash -c "$own_store" one)
    together 2 "${each[@]}" -j 1 -m model --cache 20 --memory-weights online test.shard.zst
    all_end 64
    for rank in 0 1; do grep -q -- '--memory-weights online: the weights depend on all earlier text' "said.$rank" || return 1; done
    together 2 bash -c "$no_file" one "${each[@]}" -j 1 -m model --memory-weights constant
    all_end 66
    grep -q '^eval-ppl: nowhere: ' said.1
  done
}

# ranks_add_up SIZE OPTIONS...: rank 0 of so many has the bytes of one process, and the others say nothing.
ranks_add_up() {
  local size=$1 rank
  shift
  rm -f shared.json
  eval-ppl -q -j 1 --json --memory-weights constant "$@" -o whole.json
  together "$size" eval-ppl -j 1 --json --memory-weights constant "$@" -o shared.json
  all_end 0
  cmp whole.json shared.json || { cat whole.json shared.json && return 1; }
  for ((rank = 1; rank < size; ++rank)); do [ ! -s "said.$rank" ] || return 1; done
}

@test "ranks that score a text together: the first has the bytes of one process" {
  ranks_add_up 2 -m model --window 32 --batch-tokens 100 --memory local,long --long 50 --cache 30 test.shard.zst
  ranks_add_up 3 -m model --window 32 --batch-tokens 100 --reset document test.shard.zst other.shard.zst
  # By default too: the first says so.
  eval-ppl -q -j 1 -m model --window 32 --cache 30 --memory-weights constant test.shard.zst -o whole
  together 2 eval-ppl -j 1 -m model --window 32 --cache 30 test.shard.zst -o shared
  all_end 0
  cmp whole shared
  grep -q '^eval-ppl: parts of a text have constant weights' said.0
  [ ! -s said.1 ]
  eval-ppl -q -j 1 -m model --window 32 test.shard.zst -o whole
  together 2 eval-ppl -q -j 1 -m model --window 32 test.shard.zst
  all_end 0
  cmp whole said.0
}

@test "stores that each rank has for itself: the figures of one process that has them all" {
  needs build-datastore
  local flags=(-q -j 1 -m model --window 32 --batch-tokens 100 --k 8 --memory-weights constant)
  head -n 7 text | tokenize -q -t bytes --format lines -o first.shard.zst
  sed -n 8,15p text | tokenize -q -t bytes --format lines -o second.shard.zst
  build-datastore -q -m model --index exact first.shard.zst -o first
  build-datastore -q -m model --index exact second.shard.zst -o second
  eval-ppl "${flags[@]}" --json --datastore first --datastore second test.shard.zst -o whole.json
  mkdir -p r0 r1
  mv first r0/store && mv second r1/store
  # shellcheck disable=SC2016  # for the inner shell
  each=(bash -c 'exec eval-ppl --datastore "r$OMPI_COMM_WORLD_RANK/store" "$@"' one)
  together 2 "${each[@]}" "${flags[@]}" --json --datastore-ranks test.shard.zst -o shared.json
  all_end 0
  cmp whole.json shared.json || { cat whole.json shared.json && return 1; }
  # The second has less to score than the first, and goes on searching for it; and more k than there are rows.
  eval-ppl "${flags[@]}" --k 300 --json --datastore r0/store --datastore r1/store --stride 8 test.shard.zst -o whole.json
  together 2 "${each[@]}" "${flags[@]}" --k 300 --json --stride 8 --datastore-ranks test.shard.zst -o shared.json
  all_end 0
  cmp whole.json shared.json
  together 2 "${each[@]}" "${flags[@]}" --min-pointers 1000 --datastore-ranks test.shard.zst
  all_end 64
  grep -q 'its rows are on another rank' said.0 && grep -q 'its rows are on another rank' said.1
  # What one rank hides of the text it looks for again, the others meanwhile for what comes next.
  build-datastore -q -m model --append r1/store test.shard.zst
  eval-ppl "${flags[@]}" --json --datastore r0/store --datastore r1/store test.shard.zst -o whole.json
  together 2 "${each[@]}" "${flags[@]}" --json --datastore-ranks test.shard.zst -o shared.json
  all_end 0
  cmp whole.json shared.json
  run -64 eval-ppl "${flags[@]}" --datastore r0/store --datastore-ranks test.shard.zst
  [[ $output == *"--datastore-ranks: requires --ranks launcher"* ]]
  together 2 eval-ppl "${flags[@]}" --datastore-ranks test.shard.zst
  all_end 64
  grep -q 'requires --datastore on each rank' said.1
  together 2 eval-ppl "${flags[@]}" --datastore r0/store --datastore-ranks test.shard.zst
  all_end 64
  grep -q 'contain the same text' said.0
}

@test "ranks that build a store together: every file as one process writes it; stopped, they go on" {
  needs build-datastore
  local flags=(-q -j 1 -m model --window 32 --batch-tokens 100) size
  for index in exact IVF4,Flat; do
    rm -rf whole
    build-datastore "${flags[@]}" --index "$index" test.shard.zst other.shard.zst -o whole >/dev/null
    for size in 2 3; do
      rm -rf shared
      together "$size" build-datastore "${flags[@]}" --json --index "$index" test.shard.zst other.shard.zst -o shared
      all_end 0
      diff -r whole shared
      [ ! -e shared.parts ]
      [ "$(jq .rows said.0)" -eq "$(jq .rows whole/store.json)" ]
      [ ! -s said.1 ]
    done
  done
  # Once more it has nothing to do; another text is another store.
  together 2 build-datastore "${flags[@]}" --index "$index" test.shard.zst other.shard.zst -o shared
  all_end 0
  diff -r whole shared
  together 2 build-datastore "${flags[@]}" --index "$index" test.shard.zst -o shared
  all_end 64
  # Killed, and stopped.
  kill_one() {
    sleep "0.$((RANDOM % 9))"
    kill "-$signal" "${pids[1]}" 2>/dev/null || [ ! -e "/proc/${pids[1]}" ] # it had ended
  }
  for signal in 9 TERM; do
    rm -rf shared
    BEFORE_RANKS=kill_one together 2 build-datastore "${flags[@]}" --index "$index" test.shard.zst other.shard.zst -o shared --rank-timeout 20
    together 2 build-datastore "${flags[@]}" --index "$index" test.shard.zst other.shard.zst -o shared
    all_end 0
    diff -r whole shared
  done
  # One rank is told to stop: all do, long before the end.
  for _ in {1..40}; do cat text; done | tokenize -q -t bytes --format lines -o long.shard.zst
  tell_one() { wait_for slow.parts/2/building.json && kill -TERM "${pids[1]}"; }
  BEFORE_RANKS=tell_one together 2 build-datastore -q -j 1 -m model --window 32 --stride 1 --batch-tokens 64 --rank-timeout 4 long.shard.zst \
    -o slow
  all_end 75
  # Killed between the merge and the calibration: that follows, and the parts go.
  build-datastore "${flags[@]}" test.shard.zst long.shard.zst -o whole.long >/dev/null
  build-datastore "${flags[@]}" --no-calibrate test.shard.zst long.shard.zst -o many >/dev/null
  mkdir many.parts
  for i in 1 2; do build-datastore "${flags[@]}" --part "$i/2" test.shard.zst long.shard.zst -o "many.parts/$i" >/dev/null; done
  together 2 build-datastore "${flags[@]}" test.shard.zst long.shard.zst -o many
  all_end 0
  [ "$(jq .calibration.tokens many/store.json)" -gt 0 ]
  diff -r whole.long many
  [ ! -e many.parts ]
  # What is not theirs they leave.
  rm -rf shared && mkdir -p shared.parts && echo mine >shared.parts/notes
  together 2 build-datastore "${flags[@]}" test.shard.zst -o shared/
  all_end 73
  grep -q 'shared.parts/notes: not a part of 2' said.0
  rm shared.parts/notes && mkdir shared.parts/2 && echo mine >shared.parts/2/notes
  together 2 build-datastore "${flags[@]}" test.shard.zst -o shared/
  all_end 73
  [ "$(cat shared.parts/2/notes)" = mine ]
  rm -rf shared.parts
  together 2 build-datastore "${flags[@]}" test.shard.zst -o model
  all_end 73
  [ ! -e model.parts ]
  together 2 build-datastore "${flags[@]}" --append whole test.shard.zst
  all_end 64
  grep -q -- '--ranks: cannot be combined with --append or --part' said.0
}

@test "a rank of build-datastore or eval-ppl that was killed: the other ends with 76, long before its work would" {
  needs build-datastore
  local program
  for _ in {1..40}; do cat text; done | tokenize -q -t bytes --format lines -o long.shard.zst
  kill_at_work() {
    if [ "$program" = build-datastore ]; then wait_for killed.parts/2/building.json; else sleep 2; fi
    kill -KILL "${pids[1]}"
  }
  for program in build-datastore eval-ppl; do
    BEFORE_RANKS=kill_at_work together 2 "$program" -q -j 1 -m model --window 32 --stride 1 --batch-tokens 64 \
      --rank-timeout 60 long.shard.zst -o killed
    [ "${codes[0]}" -eq 76 ]
    grep -qE 'another rank was lost|could not join the other ranks' said.0
    [ ! -e killed ]
  done
}

@test "ranks that cannot score together leave alike, and say why" {
  together 2 eval-ppl -m model --by document test.shard.zst -o figures
  all_end 64
  grep -q -- '--ranks: gives the figures alone; leave --by out' said.0
  together 2 eval-ppl -m model --part 1/2 test.shard.zst -o figures
  all_end 64
  grep -q -- '--ranks: cannot be combined with --part' said.1
  mkfifo pipe
  together 2 eval-ppl -m model pipe -o figures
  all_end 64
  grep -q 'pipe: several ranks cannot share a pipe' said.0
  # shellcheck disable=SC2016  # for the inner shell
  together 2 bash -c 'exec eval-ppl -m model --batch-tokens $((100 + OMPI_COMM_WORLD_RANK)) test.shard.zst -o figures "$@"' other
  all_end 64
  grep -q 'batch-tokens: rank 0 has 100, rank 1 has 101' said.1
  together 2 eval-ppl -m model -o figures
  all_end 64
  grep -q 'several ranks cannot share stdin' said.0
  mkdir 0 1
  cp test.shard.zst 0/x.shard.zst
  # shellcheck disable=SC2016  # for the inner shell
  together 2 bash -c 'cd "$OMPI_COMM_WORLD_RANK" && exec eval-ppl -m ../model -o ../figures x.shard.zst "$@"' other
  all_end 66
  grep -q 'rank 0 of 2: rank 1 failed; see its message' said.0
  cp other.shard.zst 1/x.shard.zst
  # shellcheck disable=SC2016  # for the inner shell
  together 2 bash -c 'cd "$OMPI_COMM_WORLD_RANK" && exec eval-ppl -m ../model -o ../figures x.shard.zst "$@"' other
  all_end 64
  grep -q 'rank 1: belongs to another evaluation than rank 0' said.0
  [ ! -e figures ]
}

@test "parts that do not belong together, or are not all there, and figures that parts do not give, are refused" {
  local part
  for part in 1 2 3; do eval-ppl -q -m model --window 32 --part "$part/3" test.shard.zst -o "p.$part"; done
  eval-ppl -q -m model --window 16 --part 3/3 test.shard.zst -o other.3
  eval-ppl -q -m model --window 32 --part 2/2 test.shard.zst -o half.2
  run -64 eval-ppl --sum p.1 p.3
  [[ $output == *"part 2 of 3 is missing"* ]]
  run -64 eval-ppl --sum p.1 p.2 p.2 p.3
  [[ $output == *"p.2: is part 2, like p.2"* ]]
  run -64 eval-ppl --sum p.1 p.2 other.3
  [[ $output == *"other.3: belongs to another evaluation than p.1"* ]]
  run -64 eval-ppl --sum p.1 half.2
  [[ $output == *"half.2: belongs to another evaluation"* ]]
  for part in 1 2 3; do eval-ppl -q -m model --window 32 --batch-tokens 100 --part "$part/3" test.shard.zst -o "small.$part"; done
  run -64 eval-ppl --sum p.1 small.2 p.3
  [[ $output == *"has other boundaries than p.3"* ]]
  sed 's/"tokens":[0-9]*/"tokens":3/' p.2 >changed
  run -65 eval-ppl --sum p.1 changed p.3
  [[ $output == *"changed: corrupt file: checksum mismatch"* ]]
  tokenize -q -t bytes </dev/null -o nothing.shard.zst
  for part in 1 2; do eval-ppl -q -m model --part "$part/2" nothing.shard.zst -o "nothing.$part"; done
  run -65 eval-ppl --sum nothing.1 nothing.2
  run -65 eval-ppl --sum text
  run -66 eval-ppl --sum absent
  run -64 eval-ppl --sum p.1 --part 1/3
  [[ $output == *"--sum: cannot be combined with --part"* ]]
  run -64 eval-ppl --sum --cache 100 p.1 p.2 p.3
  [[ $output == *"--sum: of parts that are there; leave --cache out"* ]]
  run -64 eval-ppl --sum --dtype float64 p.1 p.2 p.3
  [[ $output == *"leave --dtype out"* ]]
  run -64 eval-ppl -m model --part '' test.shard.zst
  [[ $output == *"--part: '' is not I/N"* ]]
  run -64 eval-ppl -m model --part 1/3 --by document test.shard.zst
  [[ $output == *"--part: gives the figures alone; leave --by out"* ]]
  run -64 eval-ppl --json test.shard.zst
  [[ $output == *"--model is missing; see --help"* ]]
}

# Slurm's variables of the array task I, from 4 on by 2, of N.
as_task() { # I N COMMAND...
  local index=$1 count=$2
  shift 2
  SLURM_ARRAY_TASK_ID=$((4 + 2 * (index - 1))) SLURM_ARRAY_TASK_MIN=4 SLURM_ARRAY_TASK_STEP=2 SLURM_ARRAY_TASK_COUNT=$count \
    "$@" --part launcher
}

fails() { # CODE WORDS COMMAND...
  local code=$1 words=$2
  shift 2
  run --separate-stderr -"$code" "$@"
  [[ $stderr == *"$words"* ]] && [ "$(wc -l <<<"$stderr")" -eq 1 ] || { echo "$*: $stderr" && return 1; }
}

# packs N OPTIONS...: the order of N parts' hits, given in any order, has the bytes of the whole.
packs() {
  local count=$1 part hits=()
  shift
  rm -f hits.*
  bm25-pack -q --json "$@" -o whole.order 2>whole.report
  for ((part = 1; part <= count; ++part)); do
    bm25-pack -q --part "$part/$count" "$@" -o "hits.$part"
    hits=(--hits "hits.$part" "${hits[@]}")
  done
  bm25-pack -q --json "$@" "${hits[@]}" -o order 2>report
  cmp whole.order order && cmp whole.report report
}

@test "bm25-pack: the hits of 1, 3 and 300 parts make the order that one process makes" {
  novel 500 | tokenize -q -t bytes -o pack.shard.zst
  local small=(--segment 200 pack.shard.zst)
  packs 1 "${small[@]}"
  packs 3 "${small[@]}"
  packs 3 --method paths -j 3 --k 7 "${small[@]}"
  packs 3 --buffer-size 1 --seed 5 "${small[@]}" # terms on disk, the index in parts
  packs 3 --unit document other.shard.zst test.shard.zst
  packs 300 "${small[@]}" # more parts than segments
  # Hits serve every method that searches, and every seed.
  packs 2 --seed 1 "${small[@]}"
  bm25-pack -q --method paths "${small[@]}" -o whole.order
  bm25-pack -q --method paths --seed 9 --hits hits.1 --hits hits.2 "${small[@]}" -o order
  cmp whole.order order
  as_task 2 3 bm25-pack -q "${small[@]}" -o task.2
  bm25-pack -q --part 2/3 "${small[@]}" -o given.2
  cmp given.2 task.2
}

@test "bm25-pack: hits that are damaged, not all there or of another search are refused, and nothing is written" {
  local part small=(--segment 200 pack.shard.zst)
  novel 250 | tokenize -q -t bytes -o pack.shard.zst
  for part in 1 2 3; do bm25-pack -q --part "$part/3" "${small[@]}" -o "h.$part"; done
  bm25-pack -q --part 2/2 "${small[@]}" -o half.2
  bm25-pack -q --part 3/3 --k 5 "${small[@]}" -o top.3
  bm25-pack -q --part 3/3 --segment 200 test.shard.zst -o data.3
  fails 64 'part 2 of 3 is missing' bm25-pack --hits h.1 --hits h.3 "${small[@]}" -o x
  fails 64 'h.1: is part 1, like h.1' bm25-pack --hits h.1 --hits h.1 --hits h.2 "${small[@]}" -o x
  fails 64 'half.2: is one of 2 parts, but h.1 is one of 3' bm25-pack --hits h.1 --hits half.2 "${small[@]}" -o x
  fails 64 'top.3: contains the hits of another search: k 5, now 20' bm25-pack --hits h.1 --hits h.2 --hits top.3 "${small[@]}" -o x
  fails 64 'data.3: contains the hits of another search: data' bm25-pack --hits h.1 --hits h.2 --hits data.3 "${small[@]}" -o x
  head -c 200 h.2 >short
  fails 65 'short: cut short' bm25-pack --hits short "${small[@]}" -o x
  fails 65 'text: not a file of bm25-pack --part' bm25-pack --hits text "${small[@]}" -o x
  fails 66 'absent' bm25-pack --hits absent "${small[@]}" -o x
  fails 64 '--hits: cannot be combined with --part' bm25-pack --hits h.1 --part 1/3 "${small[@]}" -o x
  fails 64 'cannot be combined with --dump' bm25-pack --part 1/3 --dump hits "${small[@]}" -o x
  fails 64 'which replaces the search' bm25-pack --hits h.1 --timings t "${small[@]}" -o x
  fails 64 '--part: cannot be combined with --method random' bm25-pack --part 1/3 --method random "${small[@]}" -o x
  fails 64 "'0/3' is not I/N" bm25-pack --part 0/3 "${small[@]}" -o x
  fails 64 "'' is not I/N" bm25-pack --part '' "${small[@]}" -o x
  [ ! -e x ]
  no_leftovers
}

# stores N OPTIONS...: N parts, merged in any order, are the store that one process makes, each file.
stores() {
  local count=$1 part
  shift
  rm -rf whole merged store.*
  build-datastore -q -j 1 -m model "$@" -o whole >whole.record
  for ((part = 1; part <= count; ++part)); do
    build-datastore -q -j 1 -m model --part "$part/$count" "$@" --index exact -o "store.$part" >/dev/null
  done
  # shellcheck disable=SC2046  # names without spaces
  store merge -q -j 1 --index "$(jq -r .index whole/store.json)" $(printf '%s\n' store.* | sort -R) -o merged >record
  diff -r whole merged
  diff <(sed 1d whole.record) <(sed 1d record)
}

@test "build-datastore: 1, 3 and 9 parts merge into the store of one process, whatever the windows" {
  needs build-datastore
  local small=(--window 32 --batch-tokens 100)
  stores 1 "${small[@]}" test.shard.zst
  stores 3 "${small[@]}" --stride 8 test.shard.zst
  stores 9 -m model --window 32 --batch-tokens 2000 other.shard.zst test.shard.zst # more parts than batches: some are empty
  stores 3 "${small[@]}" --reset document --metric l2 test.shard.zst
  as_task 2 3 build-datastore -q -j 1 -m model "${small[@]}" --reset document --metric l2 test.shard.zst -o task --index exact >/dev/null
  diff -r store.2 task
}

@test "build-datastore: indexes, carried State and pairs, in parts" {
  needs train
  needs build-datastore
  stores 3 --window 32 --batch-tokens 100 --index IVF4,Flat test.shard.zst
  stores 2 --window 32 --batch-tokens 100 --index IVF4,PQ8x4fs --stride 16 test.shard.zst
  [ -e lstm ] || train -q --arch lstm --layers 1 --d-model 16 --segment 32 --batch 4 --steps 4 -j 1 other.shard.zst -o lstm
  stores 4 -m lstm --window 32 --carry on --reset document test.shard.zst
  stores 2 -m lstm --window 32 --carry on test.shard.zst # one stream: one part is all
  make_translator
  stores 3 -m translator --batch-tokens 10 pairs.shard.zst
}

@test "build-datastore: a part, or a merge, that was killed goes on to the same bytes" {
  needs build-datastore
  local delay small=(-m model --window 32 --batch-tokens 40 --stride 4)
  stores 2 "${small[@]}" test.shard.zst
  for delay in 0.1 0.2 0.3 0.4 0.5; do
    # It may be done before that.
    TESSERA_FORK_SERVERS='' timeout --foreground -s KILL "$delay" build-datastore -q -j 1 "${small[@]}" --part 2/2 --index exact test.shard.zst -o killed.2 >/dev/null ||
      [[ $? -eq 137 || $? -eq 124 ]] # 124: it ended as timeout was about to
    TESSERA_FORK_SERVERS='' timeout --foreground -s KILL "$delay" store merge -q -j 1 store.1 store.2 -o killed >/dev/null ||
      [[ $? -eq 137 || $? -eq 124 ]]
  done
  build-datastore -q -j 1 "${small[@]}" --part 2/2 --index exact test.shard.zst -o killed.2 >/dev/null
  diff -r store.2 killed.2
  store merge -q -j 1 store.1 store.2 -o killed >/dev/null
  diff -r whole killed
  run --separate-stderr build-datastore "${small[@]}" --part 2/2 --index exact test.shard.zst -o killed.2
  [[ $stderr == *"nothing to do"* ]]
}

@test "datastores of parts are searched as one, cite the document, and hide a text from itself" {
  needs build-datastore
  needs sample
  local parts=(--datastore store.1 --datastore store.2 --datastore store.3)
  stores 3 -m model --window 32 --batch-tokens 100 other.shard.zst
  for options in '--k 8' '--k 2000 --combine both' '--k 8 --combine interpolate'; do
    # shellcheck disable=SC2086
    eval-ppl -q -j 1 -m model --window 32 --json --datastore whole $options test.shard.zst | jq 'del(.signature)' >one.json
    # shellcheck disable=SC2086
    eval-ppl -q -j 1 -m model --window 32 --json "${parts[@]}" $options test.shard.zst | jq 'del(.signature)' >several.json
    cmp one.json several.json
  done
  # The text that is scored sees nothing of itself, in whatever part it lies.
  eval-ppl -q -j 1 -m model --window 32 --json other.shard.zst | jq .loss >alone
  eval-ppl -j 1 -m model --window 32 --json "${parts[@]}" --k 2000 other.shard.zst 2>notes | jq .loss >hidden
  cmp alone hidden
  grep -q 'a datastore contains the evaluated text' notes
  # Rows are counted in the store, documents in the text.
  sample -m model -t bytes --prompt 'The cat sat' --max-tokens 8 --temperature 0 --k 4 --combine both --cite --json --datastore whole |
    jq -c '.citations[].contexts[].document' >one.cited
  sample -m model -t bytes --prompt 'The cat sat' --max-tokens 8 --temperature 0 --k 4 --combine both --cite --json "${parts[@]}" |
    jq -c '.citations[].contexts[].document' >several.cited
  [ -s one.cited ]
  cmp one.cited several.cited
  # What would count twice.
  fails 64 'contain the same text' eval-ppl -m model --datastore store.2 --datastore store.2 test.shard.zst
  fails 64 'contain the same text' eval-ppl -m model --datastore store.2 --datastore whole test.shard.zst
  build-datastore -q -j 1 -m model --window 32 --batch-tokens 100 --part 1/2 other.shard.zst -o half >/dev/null
  fails 64 'contain the same text' eval-ppl -m model --datastore half --datastore store.2 test.shard.zst
  eval-ppl -q -m model --window 32 --datastore half --datastore store.3 test.shard.zst -o /dev/null
  rm -r half
}

@test "build-datastore: parts that do not belong together, or are not all there, are refused by name" {
  needs build-datastore
  local small=(-m model --window 32 --batch-tokens 100)
  stores 3 "${small[@]}" test.shard.zst
  "$root"/tests/cli/tiny_gpt2 model2 2
  build-datastore -q -m model2 --window 32 --batch-tokens 100 --part 2/3 test.shard.zst -o model.2 >/dev/null
  build-datastore -q -m model --window 16 --batch-tokens 100 --part 2/3 test.shard.zst -o windows.2 >/dev/null
  build-datastore -q "${small[@]}" --part 2/3 other.shard.zst -o data.2 >/dev/null
  build-datastore -q "${small[@]}" --part 2/4 test.shard.zst -o four.2 >/dev/null
  cp -r store.2 removed.2
  store remove -q --document 3 removed.2 >/dev/null
  cp -r store.2 damaged.2
  printf 'x' | dd of=damaged.2/keys.npy bs=1 seek=1000 conv=notrunc status=none
  fails 64 'part 2 of 3 is missing' store merge store.1 store.3 -o x
  fails 64 'store.2: is part 2, like store.2' store merge store.1 store.2 store.2 -o x
  fails 64 'model.2: belongs to another store than store.1: model' store merge store.1 model.2 store.3 -o x
  fails 64 'windows.2: belongs to another store than store.1: windows' store merge store.1 windows.2 -o x
  fails 64 'data.2: belongs to another store than store.1: data' store merge store.1 data.2 -o x
  fails 64 'four.2: belongs to another store than store.1: number of parts 4, not 3' store merge store.1 four.2 store.3 -o x
  fails 64 'removed.2: documents were removed' store merge store.1 removed.2 store.3 -o x
  fails 64 'whole: not a part of a store' store merge whole -o x
  fails 64 '--index' store merge store.1 store.2 store.3 --index Bogus7 -o x
  fails 66 'absent' store merge store.1 absent store.3 -o x
  fails 64 'it takes -o STORE' store merge store.1 store.2 store.3
  fails 64 'contains a store of other data or options' store merge store.1 store.2 store.3 -o store.1
  fails 64 'leave --append out' build-datastore "${small[@]}" --part 1/3 --append whole other.shard.zst
  fails 64 "'4/3' is not I/N" build-datastore "${small[@]}" --part 4/3 test.shard.zst -o x
  fails 64 "'' is not I/N" build-datastore "${small[@]}" --part '' test.shard.zst -o x
  [ ! -e x ]
  no_leftovers
  # Damage is seen when rows are read; nothing is left of what was begun.
  fails 65 'damaged.2: damaged: its rows do not match its store.json' store merge -q store.1 damaged.2 store.3 -o x
  [ ! -e x ]
  # A merge that the disk ended goes on.
  run -74 bash -c 'trap "" XFSZ; ulimit -f 8; exec store merge -q store.1 store.2 store.3 -o x'
  fails 66 'not complete yet' store verify x
  fails 64 'was begun with store merge' build-datastore "${small[@]}" test.shard.zst -o x
  store merge -q store.1 store.2 store.3 -o x >/dev/null
  diff -r whole x
  fails 64 'contains a store of other data or options' build-datastore "${small[@]}" --part 1/3 test.shard.zst -o whole
  fails 64 'store.1: is part 1/3 of the text, not part 1/2' build-datastore "${small[@]}" --part 1/2 test.shard.zst -o store.1
  rm -r x
}

# shards N OPTIONS...: N parts, merged, are the shard that one process writes.
shards() {
  local count=$1 part
  shift
  rm -f shard.*
  tokenize -q "$@" -o whole.shard
  for ((part = 1; part <= count; ++part)); do tokenize -q --part "$part/$count" "$@" -o "shard.$part"; done
  shard verify -q shard.* >/dev/null
  shard merge -q shard.* -o joined # in the order of the names: 1, 10, 11, ..., 2
  cmp whole.shard joined
}

@test "tokenize: 1, 3 and 40 parts merge into the shard of one process, of every format" {
  local i
  for ((i = 0; i < 30; ++i)); do printf '{"text": "cat %d\\nand mat", "n": %d}\n\n' $((i * i * i)) "$i"; done >x.jsonl
  printf 'red|green||blue|' >separated
  : >empty
  shards 1 -t bytes --format lines text
  shards 3 -t bytes --format lines text separated empty x.jsonl
  shards 12 -t bytes --format lines -j 3 text separated
  shards 40 -t bytes x.jsonl # jsonl by its name; more parts than documents
  shards 3 -t bytes --document-separator '|' separated separated
  shards 5 -t bytes text empty separated x.jsonl --format text # a document a file
  shards 2 -t bytes empty
  seq 60 >source
  seq 60 | sed 's/$/ drei/' >target
  shards 3 -t bytes --pairs source target
  shards 70 -t bytes --pairs source target
  as_task 2 3 tokenize -q -t bytes --format lines text -o task.2
  tokenize -q -t bytes --format lines text --part 2/3 -o given.2
  cmp task.2 given.2
  # As one data set too parts stand in their order.
  shards 12 -t bytes --format lines text
  cmp <(bm25-pack -q --method random --unit document shard.*) <(bm25-pack -q --method random --unit document whole.shard)
  [ "$(shard verify --json joined | field fingerprint)" = "$(shard verify --json whole.shard | field fingerprint)" ]
}

@test "tokenize: a large text is cut anywhere, and a mistake is told with its line, by the part that has it" {
  local i
  for ((i = 0; i < 20; ++i)); do novel 5000; done >large
  tokenize -q --learn bpe --vocab-size 400 text -o bpe.json
  shards 3 -t bpe.json --document-separator 'the' large text
  shards 2 -t bpe.json --format lines large
  shards 3 -t bytes --pairs large large
  { seq 200 | sed 's/.*/{"text": "&"}/' && echo wrong && seq 200 | sed 's/.*/{"text": "&"}/'; } >x.jsonl
  tokenize -q -t bytes --part 1/3 x.jsonl -o third.1
  fails 65 'x.jsonl:201: not JSON' tokenize -q -t bytes --part 2/3 x.jsonl -o third.2
  tokenize -q -t bytes --part 3/3 x.jsonl -o third.3
  [ ! -e third.2 ]
  no_leftovers
}

@test "tokenize: what cannot be cut, and parts that are not all there, are refused" {
  local part
  zstd -q text -o text.zst
  fails 64 'stdin is compressed or not a regular file' tokenize -t bytes --part 1/2 -o x <text
  fails 64 'text.zst is compressed or not a regular file' tokenize -t bytes --part 1/2 text text.zst -o x
  fails 64 'is compressed or not a regular file' tokenize -t bytes --part 1/2 <(cat text) -o x
  fails 66 'absent' tokenize -t bytes --part 1/2 absent -o x
  fails 64 '--part: requires encoding' tokenize --learn bpe --vocab-size 300 --part 1/2 text -o x
  fails 64 '--part: requires encoding' tokenize --decode --part 1/2 test.shard.zst -o x
  fails 64 "'3/2' is not I/N" tokenize -t bytes --part 3/2 text -o x
  fails 64 "'' is not I/N" tokenize -t bytes --part '' text -o x
  for part in 1 2 3; do tokenize -q -t bytes --format lines --part "$part/3" text -o "q.$part"; done
  fails 64 'q.1: is one of 3 parts, of which part 2 is missing' shard merge q.1 q.3 -o x
  fails 64 'q.2: this part is given twice' shard merge q.1 q.2 q.2 -o x
  fails 64 'test.shard.zst: belongs to another command than q.1' shard merge q.1 q.2 q.3 test.shard.zst -o x
  tokenize -q -t bytes --format lines --part 2/3 source -o other.2
  fails 64 'other.2: belongs to another command than q.1' shard merge q.1 other.2 q.3 -o x
  [ ! -e x ]
  no_leftovers
}
