#!/usr/bin/env bats
# eval-ppl: figures that belong together, memories, tuning, reports, and what it refuses.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  "$root"/tests/cli/tiny_gpt2 model
  cats 30 >text
  head -n 15 text | tokenize -t bytes --format lines -o valid.shard.zst
  tail -n 15 text | tokenize -t bytes --format lines -o test.shard.zst
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

@test "perplexity, bits per token, byte and word are one loss; the signature says what they depend on" {
  run --separate-stderr eval-ppl -m model --json --timings timings.json test.shard.zst
  [ "$status" -eq 0 ]
  [ "$(eval-ppl -m model --json test.shard.zst)" = "$output" ] # nothing of the clock
  python3 - "$output" <<'EOF'
import json, math, sys
r = json.loads(sys.argv[1])
tokens, words = 0, 0
assert r["tokens"] == r["bytes"] > 900, r
close = lambda a, b: abs(a - b) < 1e-9 * abs(b)
assert close(r["perplexity"], math.exp(r["loss"]))
assert close(r["bits_per_token"], r["loss"] / math.log(2))
assert close(r["bits_per_byte"], r["bits_per_token"])
assert abs(r["bits_per_word"] * r["words"] - r["bits_per_token"] * r["tokens"]) < r["bits_per_word"]
with open("timings.json") as file: timings = json.load(file)
assert timings["seconds"] > 0 and timings["tokens_per_s"] > 0, timings
parts = dict(p.split(":", 1) for p in r["signature"].split("|"))
assert parts["window"] == parts["stride"] == "64" and parts["memory"] == "none", parts
assert parts["reset"] == "none" and parts["precision"] == "float32" and "version" in parts
EOF
}

@test "--bos: a token before the text is as if the text began with it, and the signature says so" {
  printf a | cat - text | tokenize -t bytes -o begun.shard.zst
  tokenize -t bytes -o plain.shard.zst text
  field() { python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())[sys.argv[1]])' "$1"; }
  [ "$(eval-ppl -m model --bos a --json plain.shard.zst | field loss)" = "$(eval-ppl -m model --json begun.shard.zst | field loss)" ]
  [ "$(eval-ppl -m model --bos none --json plain.shard.zst)" = "$(eval-ppl -m model --json plain.shard.zst)" ]
  [[ $(eval-ppl -m model --bos a --json plain.shard.zst | field signature) == *'|first:scored|bos:a|'* ]]
  run --separate-stderr eval-ppl -m model --bos '<s>' plain.shard.zst
  [ "$status" -eq 64 ]
  [[ $stderr == 'eval-ppl: --bos <s>: not a token of'* ]]
  build-datastore -m model --bos a --index exact -o begun_store plain.shard.zst
  grep -q '"begin": *"a"' begun_store/store.json
}

@test "--bos-at window: each window is as a text of its own that begins with the token" {
  local whole=(-m model --bos a --window 32 --batch-tokens 256) pieces=(--reset document)
  head -c 1024 text | tokenize -q -t bytes -o plain.shard.zst
  head -c 1024 text | split -b 32 - piece.
  tokenize -q -t bytes piece.* -o pieces.shard.zst
  near "$(eval-ppl "${whole[@]}" --bos-at window --json plain.shard.zst | field loss)" \
    "$(eval-ppl "${whole[@]}" "${pieces[@]}" --json pieces.shard.zst | field loss)" 1e-6
  run ! near "$(eval-ppl "${whole[@]}" --json plain.shard.zst | field loss)" \
    "$(eval-ppl "${whole[@]}" "${pieces[@]}" --json pieces.shard.zst | field loss)" 1e-6
  [[ $(eval-ppl "${whole[@]}" --bos-at window --json plain.shard.zst | field signature) == *'|bos:a|bos-at:window|'* ]]
  build-datastore -q "${whole[@]}" --bos-at window --index exact -o whole.store plain.shard.zst
  build-datastore -q "${whole[@]}" "${pieces[@]}" --index exact -o pieces.store pieces.shard.zst
  cmp whole.store/keys.npy pieces.store/keys.npy
  run --separate-stderr eval-ppl -m model --bos none --bos-at window plain.shard.zst
  [ "$status" -eq 64 ]
  [[ $stderr == *'--bos-at window: plain.shard.zst has no BOS token'* ]]
}

@test "more context helps no less than less; stdin is read; the figure does not depend on how windows are batched" {
  a=$(eval-ppl -m model --json --window 64 --stride 16 test.shard.zst | field loss)
  b=$(eval-ppl -m model --json --window 64 --stride 16 --batch-tokens 1 -j 1 <test.shard.zst | field loss)
  near "$a" "$b" 1e-5
}

@test "a cache and long memory help on a text that repeats itself" {
  plain=$(eval-ppl -m model --json test.shard.zst | field loss)
  cache=$(eval-ppl -m model --json --cache 500 --cache-lambda 0.3 test.shard.zst | field loss)
  memory=$(eval-ppl -m model --json --memory local,long --long 8seg test.shard.zst | field loss)
  python3 -c "assert $cache < $plain and $memory < $plain, ($plain, $cache, $memory)"
  run eval-ppl -m model --json --memory local,long --long 100 --joint-temperature 1.5 --cache 20 test.shard.zst
  [[ $output == *"|memory:local+long|long:100|combine:joint|temperature:1.5|cache:20|"* ]]
}

@test "--tune alone writes a config that gives the tuned figure, and the signature names the data" {
  run --separate-stderr eval-ppl -m model --memory local --cache 200 --tune valid.shard.zst --tune-lambdas 0,0.2,0.4 -o tuned.conf
  [ "$status" -eq 0 ]
  [ -z "$output" ]
  [[ $stderr == *"perplexity "*"the best of "* ]]
  tuned=$(sed -nE 's/.*perplexity ([0-9.]+), the best.*/\1/p' <<<"$stderr")
  again=$(eval-ppl -m model --config tuned.conf --json valid.shard.zst | field perplexity)
  near "$tuned" "$again" 1e-4
  run --separate-stderr eval-ppl -m model --config tuned.conf --json valid.shard.zst
  [[ $stderr == "eval-ppl: the memories were tuned on the evaluated text, so the result is too good; tune on another text" ]]
  run --separate-stderr eval-ppl -m model --config tuned.conf --json test.shard.zst valid.shard.zst
  [[ $stderr == *"tuned on the evaluated text or a FILE of it"* ]]
  run --separate-stderr eval-ppl -m model --config tuned.conf --json test.shard.zst
  [ -z "$stderr" ]
  [[ $output == *"|tuned-on:$(shard info --json valid.shard.zst | field fingerprint | head -c 12)|"* ]]
}

@test "--tune with a test shard evaluates it with the tuned values and keeps them in --tune-output" {
  run --separate-stderr eval-ppl -m model --memory local --tune valid.shard.zst --tune-temperatures 0.8,1.6 \
    --tune-output kept.conf --json test.shard.zst
  [ "$status" -eq 0 ]
  both=$(field loss <<<"$output")
  near "$both" "$(eval-ppl -m model --config kept.conf --json test.shard.zst | field loss)" 1e-9
  run --separate-stderr eval-ppl -m model --tune valid.shard.zst test.shard.zst
  [ "$status" -eq 64 ]
  [[ $stderr == *"nothing to tune"* ]]
  run --separate-stderr eval-ppl -m model --memory local --joint-temperature 1e-40 test.shard.zst
  [ "$status" -eq 64 ]
  [ "$stderr" = "eval-ppl: --joint-temperature: takes 1e-06 to 1M, or auto, not 1e-40" ]
  run --separate-stderr eval-ppl -m model --memory local --tune valid.shard.zst --tune-temperatures 1e-40
  [ "$status" -eq 64 ]
}

@test "--per-token has a line for each scored token, and they sum to the loss" {
  eval-ppl -m model --json --memory local --cache 50 --reset document --per-token scores.tsv test.shard.zst >figures
  [ "$(head -n 1 scores.tsv)" = "# $(eval-ppl --version) $(field signature <figures)" ]
  [[ $(eval-ppl --version) == *"(git $(field revision <figures))" ]]
  python3 - "$(cat figures)" scores.tsv <<'EOF'
import json, sys
r = json.loads(sys.argv[1])
rows = [line.rstrip("\n").split("\t") for line in open(sys.argv[2])]
heading, rows = rows[1], rows[2:]
# Between these, each source of probability has a column, used or not.
assert heading[:6] == "position document token text head joint".split() and heading[-1] == "nats", heading
column = {name: i for i, name in enumerate(heading)}
assert len(column) == len(heading), heading
assert len(rows) == r["tokens"]
assert abs(sum(float(x[-1]) for x in rows) / len(rows) - r["loss"]) < 1e-9
assert {x[1] for x in rows} == {str(i) for i in range(15)}
assert rows[0][3] == "h" and rows[0][0] == "1" and rows[0][column["cache"]] == "-", rows[0]
used = {name for name in heading[4:-1] if any(x[column[name]] != "-" for x in rows)}
assert used == {"head", "joint", "cache"}, used
EOF
}

@test "--per-token says inf where a memory gives a token no probability at all; compare-ppl reads it" {
  eval-ppl -q -m model --memory local --combine interpolate --cache 50 --per-token zeros.tsv test.shard.zst -o /dev/null
  python3 - zeros.tsv <<'EOF'
import math, sys
rows = [line.split("\t") for line in open(sys.argv[1])][2:]
for column in 6, 7:
    values = [row[column] for row in rows]
    assert "inf" in values, column
    assert all(float(x) < 1000 for x in values if x not in ("-", "inf")), column
assert all(math.isfinite(float(row[-1])) for row in rows)
EOF
  compare-ppl --json zeros.tsv zeros.tsv >same
  [ "$(field difference <same)" = 0.0 ]
  [ "$(field tokens <same)" -eq $(($(wc -l <zeros.tsv) - 2)) ]
}

@test "--by: tables by frequency, position and document" {
  run --separate-stderr eval-ppl -m model --by document --json test.shard.zst
  [ "${#lines[@]}" -eq 16 ]
  [ "$(field bucket <<<"${lines[15]}")" = 14 ]
  run --separate-stderr eval-ppl -m model --by position test.shard.zst
  [[ $output == *"bucket "*"tokens "*"loss "* && $output == *"16-31 "* ]]
  run --separate-stderr eval-ppl -m model --by frequency --counts valid.shard.zst --json test.shard.zst
  [ "$status" -eq 0 ]
  [ "$(field bucket <<<"${lines[-1]}")" = 100-999 ]
  run eval-ppl -m model --by frequency test.shard.zst
  [ "$status" -eq 64 ]
}

@test "--fail-above answers with the exit code" {
  run eval-ppl -m model --fail-above 1e9 test.shard.zst
  [ "$status" -eq 0 ]
  run eval-ppl -m model --fail-above 2 test.shard.zst
  [ "$status" -eq 1 ]
  [[ $output == *perplexity* ]]
}

@test "a shard of other tokens, a missing model, contradicting options: one line and a documented code" {
  tokenize --learn word text -o words.json
  tokenize -t words.json text -o words.shard.zst
  run --separate-stderr eval-ppl -m model words.shard.zst
  [ "$status" -eq 65 ]
  [ -z "$output" ]
  [ "$(wc -l <<<"$stderr")" -eq 1 ]
  run eval-ppl -m nothing test.shard.zst
  [ "$status" -eq 66 ]
  run eval-ppl -m model nothing.shard.zst
  [ "$status" -eq 66 ]
  run eval-ppl -m model --window 65 test.shard.zst
  [ "$status" -eq 64 ]
  run eval-ppl -m model --memory local --long 5 test.shard.zst
  [ "$status" -eq 64 ]
  run eval-ppl -m model --per-token scores2.tsv nothing.shard.zst
  [ ! -e scores2.tsv ]
  printf 'cache = 5\nchache = 6\n' >bad.conf
  run eval-ppl -m model --config bad.conf test.shard.zst
  [ "$status" -eq 78 ]
}

@test "a place that cannot be written is said before the work; one place takes one output" {
  run -73 eval-ppl -m model --per-token tokens.tsv -o nowhere/x test.shard.zst
  [ ! -e tokens.tsv ]
  run -64 eval-ppl -m model --per-token - test.shard.zst
  run -64 eval-ppl -m model --per-token near -o near test.shard.zst
  run -64 eval-ppl -m model --per-token ./near -o near test.shard.zst
  run -64 eval-ppl -m model --timings near -o near test.shard.zst
  run -64 eval-ppl -m model --timings near --per-token near test.shard.zst
  [[ $output == *"--timings near: is the file of --per-token; give another file"* ]]
  run -64 eval-ppl -m model --tune - --cache 5 -
  # With no FILE nothing else is read.
  eval-ppl -q -m model --tune - --cache 5 <valid.shard.zst | grep -q "^cache-theta"
}

@test "datastores: joint, interpolated, both, two at once, tuned, retrieval; the text itself is left out" {
  command -v build-datastore || skip "build-datastore is not built"
  "$root"/tests/cli/tiny_gpt2 other 2
  head -n 8 text | tokenize -t bytes --format lines -o a.shard.zst
  sed -n 9,15p text | tokenize -t bytes --format lines -o b.shard.zst
  build-datastore -q -m model a.shard.zst -o a >/dev/null
  build-datastore -q -m model b.shard.zst -o b >/dev/null
  build-datastore -q -m other a.shard.zst -o foreign >/dev/null
  build-datastore -q -m model test.shard.zst -o own >/dev/null
  plain=$(eval-ppl -m model --json test.shard.zst | field perplexity)
  for how in joint interpolate both; do
    one=$(eval-ppl -m model --datastore a --k 64 --combine "$how" --json test.shard.zst | field perplexity)
    two=$(eval-ppl -m model --datastore a --datastore b --k 64 --combine "$how" --json test.shard.zst | field perplexity)
    python3 -c 'import sys; p, a, b = map(float, sys.argv[1:]); sys.exit(not (a < p and b < p and a != b))' "$plain" "$one" "$two"
  done
  run --separate-stderr eval-ppl -m model --datastore own --json test.shard.zst
  [[ $stderr == *"contains the evaluated text"* ]]
  near "$(field perplexity <<<"$output")" "$plain" 1e-9
  # Its own entries take no places of others'.
  cp -r a grown
  build-datastore -q -m model --append grown test.shard.zst
  for k in 1 8 200; do
    run -0 --separate-stderr eval-ppl -m model --datastore a --k "$k" --combine interpolate --json test.shard.zst
    others=$(field perplexity <<<"$output")
    run -0 --separate-stderr eval-ppl -m model --datastore grown --k "$k" --combine interpolate --json test.shard.zst
    near "$(field perplexity <<<"$output")" "$others" 1e-9
  done
  # Nor does it see them where the store was made of it and others in one command, or where it is scored among others.
  build-datastore -q -m model a.shard.zst test.shard.zst -o both >/dev/null
  run -0 --separate-stderr eval-ppl -m model --datastore both --k 8 --combine interpolate --json test.shard.zst
  [[ $stderr == *"contains the evaluated text"* ]]
  near "$(field perplexity <<<"$output")" "$(eval-ppl -q -m model --datastore a --k 8 --combine interpolate --json test.shard.zst | field perplexity)" 1e-6
  run -0 --separate-stderr eval-ppl -m model --datastore own --combine interpolate --json test.shard.zst valid.shard.zst
  [[ $stderr == *"contains the evaluated text or a FILE of it"* ]]
  near "$(field perplexity <<<"$output")" "$(eval-ppl -q -m model --json test.shard.zst valid.shard.zst | field perplexity)" 1e-9
  build-datastore -q -m model --prune merge a.shard.zst test.shard.zst -o pruned >/dev/null
  run -0 --separate-stderr eval-ppl -m model --datastore pruned --json test.shard.zst
  [[ $stderr == *"pruned: --prune merged entries of this text with entries of other texts"* ]]
  run -64 eval-ppl -q -m model --datastore both --datastore own valid.shard.zst
  [[ $output == *"contain the same text"* ]]

  eval-ppl -q -m model --datastore a --combine both --k 64 --cache 50 --tune valid.shard.zst -o tuned.conf
  grep -q '^datastore = ' tuned.conf
  eval-ppl -m model --config tuned.conf --retrieval-at 1,64 --json test.shard.zst >record
  python3 - <<'EOF'
import json
r = json.load(open("record"))
assert [x["k"] for x in r["retrieval"]] == [1, 64]
assert 0 < r["retrieval"][0]["share"] < r["retrieval"][1]["share"] <= 1
parts = dict(p.split(":", 1) for p in r["signature"].split("|"))
assert len(parts["stores"]) == 12 and parts["k"] == "64" and parts["stores-combine"] == "both", parts
EOF
  run -65 --separate-stderr eval-ppl -m model --datastore foreign test.shard.zst
  [ "${#stderr_lines[@]}" -eq 1 ]
  [[ $stderr =~ [0-9a-f]{32}.*[0-9a-f]{32} ]]
  run -64 eval-ppl -q -m model --datastore a --datastore a test.shard.zst
  run -64 eval-ppl -q -m model --combine both test.shard.zst
  run -64 eval-ppl -q -m model --datastore a --k 8 --retrieval-at 9 test.shard.zst
  run -66 eval-ppl -q -m model --datastore nowhere test.shard.zst
}

@test "an option of a memory that does not take part is refused, as a flag and in a config file, unless it was tuned" {
  run -64 --separate-stderr eval-ppl -q -m model --memory none --tune valid.shard.zst
  local kinds="${stderr#*; add }" checked=0 option value flag
  eval-ppl --print-config | sed 's/^#\([a-z]\)/\1/' >all.conf
  # The tables of memories; those options of them that name no memory themselves, and are not of all memories.
  sed -n '/^\[memories\]/,/^\[tuning\]/p' all.conf | sed -nE 's/^([a-z-]+) = "?([^"]*)"?$/\1 \2/p' >options
  while read -r option value; do
    [[ " ${kinds//,/} " != *" --$option "* ]] || continue
    case $option in memory-weights | gate | tuned-on) continue ;; esac
    case $value in true) flags=("--no-$option") ;; false) flags=("--$option") ;; *) flags=("--$option="{2,0.5,0,interpolate,retrieval}) ;; esac
    for flag in "${flags[@]}"; do # another value than the default's, if it is one
      run -64 --separate-stderr eval-ppl -q -m model --memory none "$flag" test.shard.zst
      [[ $stderr != "eval-ppl: --$option"*": requires --"* && $stderr != *"--$option"*" does not include"* ]] || break
    done
    [[ $stderr == "eval-ppl: --$option"*": requires --"* || $stderr == *"--$option"*" does not include"* ]] || {
      echo "$option: $stderr"
      return 1
    }
    checked=$((checked + 1))
  done <options
  [ "$checked" -gt 20 ]
  eval-ppl -q -m model --memory none --json test.shard.zst >plain
  eval-ppl -q --config all.conf -m model --memory none --json test.shard.zst | cmp - plain
  echo 'k = 3' >unused.conf
  run -64 --separate-stderr eval-ppl -q -m model --memory none --config unused.conf test.shard.zst
  [ "$stderr" = 'eval-ppl: --k: requires --datastore' ]
  printf 'tuned-on = "0123456789abcdef"\nensemble-temperature = [2]\ncache-theta = 0.5\nk = 3\n' >tuned.conf
  eval-ppl -q -m model --memory none --config tuned.conf --json test.shard.zst >out
  jq 'del(.signature)' out | cmp - <(jq 'del(.signature)' plain)
  run -64 --separate-stderr eval-ppl -q -m model --memory none --config tuned.conf --cache-theta 2 test.shard.zst
  [ "$stderr" = 'eval-ppl: --cache-theta: requires --cache' ]
  echo "The cat" >line
  for program in score annotate sample; do
    run -64 --separate-stderr "$program" -q -m model -t bytes --memory none --ensemble-temperature 2 line
    [[ $stderr == *": --ensemble-temperature: requires --ensemble" ]]
  done
}

@test "weights are learned where no share is given: never far above the model alone; constant in parts, with a note" {
  local options
  alone=$(eval-ppl -q -m model --memory none --json test.shard.zst | field loss)
  tokens=$(eval-ppl -q -m model --memory none --json test.shard.zst | field tokens)
  for options in '--cache 50 --cache-theta 40' '--memory local --cache 50 --combine interpolate --joint-temperature 0.01'; do
    # shellcheck disable=SC2086  # several options
    eval-ppl -q -m model $options --json test.shard.zst >learned
    [[ $(field signature <learned) == *"|weights:online|"* ]]
    python3 -c "assert $(field loss <learned) < $alone + 0.6932 / $tokens, '$options'"
    # shellcheck disable=SC2086
    run -64 --separate-stderr eval-ppl -q -m model $options --memory-weights online --part 1/2 test.shard.zst
    [[ $stderr == "eval-ppl: --memory-weights online: "*"; give constant, or tuned weights (--config)" ]]
    for part in 1 2; do
      # shellcheck disable=SC2086
      run -0 --separate-stderr eval-ppl -m model $options --part "$part/2" test.shard.zst -o "part.$part"
      [[ $stderr == *"parts of a text have constant weights (--memory-weights constant), since"* ]]
    done
    # shellcheck disable=SC2086
    cmp <(eval-ppl --json --sum part.1 part.2) <(eval-ppl -q -m model $options --memory-weights constant --json test.shard.zst)
  done
  # shellcheck disable=SC2086
  eval-ppl -q -m model $options --memory-weights constant --json test.shard.zst >constant
  [[ $(field signature <constant) != *"weights:online"* ]]
}

@test "weights that are learned: the formulas of the manual give the printed probabilities" {
  local options
  for options in '--memory local --cache 50' '--cache 50 --unigram' '--memory local'; do
    # shellcheck disable=SC2086  # several options
    eval-ppl -q -m model $options --per-token learned.tsv test.shard.zst -o /dev/null
    python3 - "$options" <<'END'
import math, sys
_, heading, *lines = (line.rstrip("\n").split("\t") for line in open("learned.tsv", encoding="utf-8"))
own = [name for name in ("cache", "unigram") if "--" + name in sys.argv[1]]
n, given = 2 + len(own), 0.05 * len(own)
first = [0.05 * (1 - given), 0.95 * (1 - given)] + [0.05] * len(own)
w, alone, learned, worst = first, 0, 0, 0
rate = lambda t: min(0.5, math.sqrt(math.log(n) / (2 * n * t)))
for t, line in enumerate(lines, 1):
    nats = dict(zip(heading, line))
    said = lambda name, other: other if nats[name] == "-" else math.exp(-float(nats[name]))
    p = [said("head", None)]
    p.append(said("joint", p[0]))
    p += [said(name, p[1]) for name in own]
    q = sum(a * b for a, b in zip(w, p))
    u = (1 + math.tanh((alone - learned) / 2)) / 2
    worst = max(worst, abs(-math.log(u * p[0] + (1 - u) * q) - float(nats["nats"])))
    alone, learned = alone + math.log(p[0]), learned + math.log(q)
    r = rate(t + 1) / rate(t)
    w = [r * a * (1 - rate(t) + rate(t) * b / q) + (1 - r) * c for a, b, c in zip(w, p, first)]
assert len(lines) > 200 and worst < 1e-3, (len(lines), worst)
END
  done
}

@test "--ablate: each source by itself, and all, of one pass" {
  eval-ppl -q -m model --memory none --cache 50 --unigram --ensemble model --json --ablate test.shard.zst >table
  eval-ppl -q -m model --memory none --json test.shard.zst >none
  eval-ppl -q -m model --memory none --cache 50 --json test.shard.zst >cache
  python3 - none cache table <<'EOF2'
import json, sys
none, cache = (json.load(open(f)) for f in sys.argv[1:3])
report, *rows = map(json.loads, open(sys.argv[3]))
rows = {row["sources"]: row for row in rows}
assert list(rows) == ["none", "cache", "unigram", "ensemble", "all"], rows
assert abs(rows["none"]["loss"] - none["loss"]) < 1e-9
assert abs(rows["all"]["loss"] - report["loss"]) < 1e-9
assert abs(rows["cache"]["loss"] - cache["loss"]) < 2e-3
assert rows["cache"]["low"] <= rows["cache"]["difference"] <= rows["cache"]["high"]
EOF2
  # Documents by themselves: each begins with the first weights, in the table as in the figures, however many are read together.
  for batch in 100 4000; do
    eval-ppl -q -m model --memory none --cache 50 --unigram --reset document --batch-tokens $batch --json --ablate test.shard.zst >$batch
    near "$(head -n 1 $batch | field loss)" "$(tail -n 1 $batch | field loss)" 1e-9
  done
  near "$(head -n 1 100 | field loss)" "$(head -n 1 4000 | field loss)" 1e-5
  run -64 --separate-stderr eval-ppl -m model --memory none --ablate test.shard.zst
  [[ $stderr == *"no memory to leave out"* ]]
}

@test "--dtype int8: the probabilities of the packed weights, near float32's, with every memory, and in less memory" {
  "$root"/tests/cli/tiny_llama large 64 1 '{"hidden_size": 768, "intermediate_size": 2304,
    "num_hidden_layers": 5, "num_attention_heads": 8, "num_key_value_heads": 8}' # 150 MB of float32
  head -c 300 "$root/LICENSE" >few
  tokenize -q -t bytes few -o few.shard.zst
  peak() { # FLAG...: MB
    TESSERA_FORK_SERVERS='' python3 -c 'import resource, subprocess, sys
subprocess.run(["eval-ppl", "-q", "-m", "large", "--window", "32", "--json", "-j", "1", *sys.argv[1:], "few.shard.zst"], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000)' "$@"
  }
  wide=$(peak) byte=$(peak --dtype int8)
  echo "MB: $wide, $byte"
  ((wide - byte > 50)) # of 150 and 38 MB of weights
  eval-ppl -q -m large --window 32 few.shard.zst --json >wide
  eval-ppl -q -m large --window 32 --dtype int8 few.shard.zst --json >narrow
  jq -e --slurpfile w wide '.tokens == $w[0].tokens and (.loss / $w[0].loss - 1 | fabs < 0.01) and .loss != $w[0].loss' narrow
  # A part of the text, other windows' batches and score have the same numbers.
  eval-ppl -q -m large --window 32 --dtype int8 --batch-tokens 32 few.shard.zst --json |
    jq -e --slurpfile n narrow '.loss / $n[0].loss - 1 | fabs < 1e-7'
  jq -cRs "{text: .}" few | score -q -m large -t bytes --window 1000 --dtype int8 - >scored
  eval-ppl -q -m large --window 1000 --dtype int8 few.shard.zst --json |
    jq -e --slurpfile s scored '.loss * .tokens + $s[0].log_prob | fabs < 0.01'
  eval-ppl -q -m large --window 32 --dtype int8 --cache 100 --unigram --memory local few.shard.zst --json | jq -e '.perplexity > 1'
  eval-ppl -q -m large --window 32 --dtype int8 --carry on few.shard.zst --json | jq -e '.perplexity > 1'
  run --separate-stderr eval-ppl -q -m large --dtype int8 --context-slots 4 few.shard.zst
  [ "$status" -ne 0 ]
  [ "$(wc -l <<<"$stderr")" -eq 1 ]
}

@test "dynamic evaluation: rate 0 gives the figures of the model, the defaults lower the loss, what cannot follow is refused" {
  options=(-q -m model --memory none --window 32 --stride 16 --json)
  eval-ppl "${options[@]}" --batch-tokens 1 --per-token plain.tokens test.shard.zst >plain
  loss_of() { # FLAG...
    eval-ppl "${options[@]}" --dynamic-evaluation "$@" test.shard.zst | field loss
  }
  for weights in all norms lora; do
    eval-ppl "${options[@]}" --dynamic-evaluation --dynamic-rate 0 --dynamic-weights $weights --per-token still.tokens test.shard.zst >still
    cmp <(tail -n +2 plain.tokens) <(tail -n +2 still.tokens)
    [ "$(field signature <still | sed "s/|dynamic:$weights:adam:0:0//")" = "$(field signature <plain)" ]
    [ "$(field signature <still)" != "$(field signature <plain)" ]
  done
  plain=$(field loss <plain)
  for more in '' '--dynamic-optimiser sgd --dynamic-rate 0.05' '--dynamic-rate 0.003 --dynamic-decay 0.01' \
    '--dynamic-rate 0.01 --dynamic-weights norms' '--dynamic-rate 0.01 --dynamic-weights lora'; do
    # shellcheck disable=SC2086  # several options
    learned=$(loss_of $more)
    # shellcheck disable=SC2086
    [ "$(loss_of $more)" = "$learned" ]
    python3 -c 'import sys; learned, plain = map(float, sys.argv[1:]); sys.exit(not learned < plain)' "$learned" "$plain"
  done
  # Documents begin with the weights of the file where they are asked to.
  [ "$(loss_of --dynamic-rate 0.01 --reset document)" != "$(loss_of --dynamic-rate 0.01)" ]
  for refused in '--part 1/2' '--ranks launcher' '--tune test.shard.zst' '--dtype bfloat16' '--dtype int8'; do
    # shellcheck disable=SC2086
    run -64 --separate-stderr eval-ppl -q -m model --memory none --dynamic-evaluation $refused test.shard.zst
    [[ $stderr == *"--dynamic-evaluation"* ]]
    [ "$(wc -l <<<"$stderr")" -eq 1 ]
  done
  run -64 --separate-stderr eval-ppl -m model --dynamic-rate 1 test.shard.zst
  [[ $stderr == *"--dynamic-rate: requires --dynamic-evaluation"* ]]
  # A text of one window, and weights that diverge.
  printf 'The cat sat' | tokenize -q -t bytes -o short.shard.zst
  run -0 --separate-stderr eval-ppl -m model --memory none --dynamic-evaluation short.shard.zst
  [[ $stderr == *"--dynamic-evaluation changes no figure of a text of one window; give a shorter --window"* ]]
  run -65 --separate-stderr eval-ppl -q -m model --memory none --dynamic-evaluation --dynamic-optimiser sgd --dynamic-rate 10 test.shard.zst
  [[ $stderr == *"--dynamic-rate may be too high"* ]]
  run -64 --separate-stderr serve -m model --dynamic-evaluation
  [[ $stderr == *"--dynamic-evaluation"* ]]
}

@test "dynamic evaluation needs the memory of one window, however long the text is" {
  "$root"/tests/cli/tiny_llama broad 64 1 '{"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 4}'
  for n in 300 3000; do cats 100 | head -c $n | tokenize -q -t bytes - -o $n.shard.zst; done
  peak() { # FILE: MB
    TESSERA_FORK_SERVERS='' python3 -c 'import resource, subprocess, sys
subprocess.run(["eval-ppl", "-q", "-m", "broad", "--window", "64", "-j", "1", "--dynamic-evaluation", sys.argv[1]], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000)' "$1"
  }
  few=$(peak 300.shard.zst) many=$(peak 3000.shard.zst)
  echo "MB: $few, $many"
  ((many < few + 30))
}
