#!/usr/bin/env bats
# Gates: fitted by --tune, kept in its file, read by eval-ppl, score and sample; searches left out; what is refused.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
  "$root"/tests/cli/tiny_gpt2 model
  cats 45 >text
  head -n 15 text | tokenize -q -t bytes --format lines -o train.shard.zst
  sed -n 16,30p text | tokenize -q -t bytes --format lines -o valid.shard.zst
  tail -n 15 text | tokenize -q -t bytes --format lines -o test.shard.zst
  build-datastore -q -m model --index exact -o store train.shard.zst >/dev/null
  build-ngrams -q train.shard.zst -o ngrams >/dev/null
  # shellcheck disable=SC2054  # no commas between
  eval-ppl -q -m model --cache 50 --cache-lambda gate --datastore store --combine interpolate --k 20 --datastore-lambda gate \
    --ngrams ngrams --ngrams-lambda gate --tune valid.shard.zst -o all.conf
  eval-ppl -q -m model --datastore store --combine interpolate --k 20 --datastore-lambda gate --tune valid.shard.zst -o store.conf
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

refused() { # CODE WORDS COMMAND...
  local code=$1 words=$2
  shift 2
  run --separate-stderr "$@"
  [ "$status" -eq "$code" ] || { echo "exit $status: $stderr" && return 1; }
  [[ $stderr == "$1: "*"$words"* ]]
  [ -z "$output" ]
}

@test "on the text they were fitted on gates are no worse than the best constants, and the report says both" {
  grep -q '^datastore-lambda = "gate"' all.conf
  [ "$(grep -c '^gate = \["cache .*"datastore .*"ngrams .*"search ' all.conf)" -eq 1 ]
  eval-ppl -q -m model --config all.conf --json valid.shard.zst >on_valid
  eval-ppl -q -m model --config all.conf --json test.shard.zst >on_test
  "$root/tests/cli/follows_schema" "$root/man/schemas/eval-ppl.json" <on_test
  python3 - <<'EOF'
import json
valid, test = json.load(open("on_valid")), json.load(open("on_test"))
assert valid["loss"] <= valid["gate"]["constant_loss"] + 1e-6, valid
assert 0 <= test["gate"]["worse"] <= 1, test
assert test["searches"] == {"made": test["tokens"], "followed": 0, "skipped": 0}
assert "|stores-lambda:gate|" in test["signature"] and "|gate:" in test["signature"]
EOF
}

@test "below the threshold nothing is searched for, in eval-ppl and score alike" {
  eval-ppl -q -m model --config store.conf --json test.shard.zst >whole
  eval-ppl -q -m model --config store.conf --datastore-threshold 0.999 --json test.shard.zst >none
  eval-ppl -q -m model --json test.shard.zst >plain
  python3 - <<'EOF'
import json
whole, none, plain = (json.load(open(name)) for name in ("whole", "none", "plain"))
assert none["searches"] == {"made": 0, "followed": 0, "skipped": none["tokens"]}
assert none["gate"]["constant_loss"] is None and none["gate"]["worse"] is None
assert "|threshold:0.999|" in none["signature"]
assert abs(none["loss"] - plain["loss"]) < 1e-6 and abs(whole["loss"] - plain["loss"]) > 1e-3
EOF
  line=$(sed -n 40p text | head -c 60)
  printf '%s' "$line" | tokenize -q -t bytes -o line.shard.zst
  for threshold in 0 0.2 0.999; do
    ours=$(eval-ppl -q -m model --config store.conf --datastore-threshold "$threshold" --json line.shard.zst | field loss)
    printf '{"context": "%s", "continuation": "%s"}\n' "${line:0:1}" "${line:1}" |
      score -q -m model -t bytes --config store.conf --datastore-threshold "$threshold" >scores
    near "$ours" "$(python3 -c 'import json; print(-json.loads(open("scores").readline())["log_prob"] / 59)')" 1e-4
  done
}

@test "--tune says that its figures are without --datastore-threshold" {
  local flags=(-m model --datastore store --combine interpolate --k 20 --datastore-lambda gate --tune valid.shard.zst -o /dev/null)
  run --separate-stderr eval-ppl "${flags[@]}" --datastore-threshold 0.8
  [[ $stderr == *"without --datastore-threshold 0.8"* ]]
  run --separate-stderr eval-ppl "${flags[@]}"
  [[ $stderr == *"with gates"* && $stderr != *"without --datastore-threshold"* ]]
}

@test "sample and score read the file; without gates they say what to do" {
  sample -q -m model -t bytes --config all.conf --temperature 0 --max-tokens 20 --prompt "The cat" >with
  [ -s with ]
  refused 64 "there is no gate yet; fit it with eval-ppl --tune" eval-ppl -q -m model --cache 50 --cache-lambda gate test.shard.zst
  refused 64 "there is no gate yet; fit it with eval-ppl --tune" sample -q -m model -t bytes --cache 50 --cache-lambda gate --prompt "The cat"
  refused 64 "--gate was fitted for cache, datastore, ngrams" eval-ppl -q -m model --config all.conf --cache-lambda 0.1 test.shard.zst
  refused 64 "add --datastore-combine interpolate" eval-ppl -q -m model --datastore store --datastore-lambda gate test.shard.zst
  refused 64 "requires --datastore-lambda gate" eval-ppl -q -m model --datastore store --datastore-threshold 0.1 test.shard.zst
  refused 64 "--cache-lambda: takes 0 to below 1, gate or auto, not gates" eval-ppl -q -m model --cache 5 --cache-lambda gates test.shard.zst
  sed 's/ entropy=/ entropi=/' all.conf >damaged.conf
  refused 64 "no entropy in 'cache " eval-ppl -q -m model --config damaged.conf test.shard.zst
  refused 64 "with gates it takes one" eval-ppl -q -m model --config store.conf --tune valid.shard.zst --tune-nprobes 1,2
}

@test "--min-pointers none is as without it; more are followed the fewer pointers it takes" {
  local flags=(-q -m model --datastore store --combine interpolate --k 20)
  [ "$(eval-ppl "${flags[@]}" --json test.shard.zst)" = "$(eval-ppl "${flags[@]}" --min-pointers none --json test.shard.zst)" ]
  for n in 1 8; do eval-ppl "${flags[@]}" --min-pointers "$n" --json test.shard.zst >"follow.$n"; done
  "$root/tests/cli/follows_schema" "$root/man/schemas/eval-ppl.json" <follow.1
  python3 - <<'EOF'
import json
one, eight = (json.load(open(f"follow.{n}")) for n in (1, 8))
for r in one, eight:
    assert r["searches"]["made"] + r["searches"]["followed"] == r["tokens"], r
    assert r["searches"]["skipped"] == 0 < r["searches"]["followed"], r
assert one["searches"]["made"] < eight["searches"]["made"]
assert "|min-pointers:1|" in one["signature"]
EOF
  local words=(-m model -t bytes --datastore store --combine interpolate --k 20 --temperature 0 --max-tokens 30 --prompt "The cat")
  sample -q "${words[@]}" >plain
  sample -q "${words[@]}" --min-pointers none | cmp - plain
  sample -q "${words[@]}" --min-pointers 1 >followed
  [ -s followed ]
}

@test "l2 distances of shortened and of whole keys are not compared" {
  build-datastore -q -m model --index exact --metric l2 --keys pca:4 -o short train.shard.zst >/dev/null
  for metric in l2 ip; do build-datastore -q -m model --index exact --metric "$metric" -o "$metric" valid.shard.zst >/dev/null; done
  build-datastore -q -m model --index exact --metric ip --keys pca:4 -o short_ip train.shard.zst >/dev/null
  refused 64 "all stores need the same width" eval-ppl -q -m model --datastore short --datastore l2 --combine interpolate --k 20 test.shard.zst
  eval-ppl -q -m model --datastore short_ip --datastore ip --combine interpolate --k 20 test.shard.zst -o /dev/null
}

@test "a store that has not every key as the model gave it cannot be followed, which is said before anything else" {
  build-datastore -q -m model --index exact --skip-known 0.5 -o known train.shard.zst >/dev/null
  build-datastore -q -m model --index exact --keys pca:4 -o narrow train.shard.zst >/dev/null
  for store in known narrow; do
    local flags=(-q -m model --datastore "$store" --combine interpolate --k 20)
    # So many pointers, or so short a text, that there would be nothing to follow.
    refused 64 "which following pointers needs" eval-ppl "${flags[@]}" --min-pointers 1000 test.shard.zst
    refused 64 "which following pointers needs" score "${flags[@]}" -t bytes --min-pointers 1000 text
    refused 64 "which following pointers needs" sample "${flags[@]}" -t bytes --min-pointers 1000 --prompt The
    refused 64 "which following pointers needs" sample "${flags[@]}" -t bytes --copy-spans 2 --max-tokens 1 --prompt The
  done
}

@test "parts together report gates and searches as one process does" {
  for more in "" "--datastore-threshold 0.2" "--min-pointers 1"; do
    # shellcheck disable=SC2086
    eval-ppl -q -m model --config store.conf --batch-tokens 64 $more --json test.shard.zst >whole
    for part in 1 2 3; do
      # shellcheck disable=SC2086
      eval-ppl -q -m model --config store.conf --batch-tokens 64 $more --part $part/3 -o part.$part test.shard.zst
    done
    eval-ppl -q --sum --json part.3 part.1 part.2 >sum
    grep -q '"searches"' whole
    cmp whole sum
  done
}

@test "reports of a text that is not scored are refused" {
  refused 64 "--tune: without a FILE, nothing is scored; leave --per-token out" eval-ppl -q -m model --tune valid.shard.zst --per-token unscored
  refused 64 "leave --retrieve-log out" eval-ppl -q -m model --part 1/2 --retrieve nowhere --retrieve-log hits test.shard.zst
  [ ! -e unscored ]
}

@test "a unigram has a gate too, which knows how much of the text it has counted" {
  eval-ppl -q -m model --unigram --unigram-lambda gate --tune valid.shard.zst -o unigram.conf
  grep -q '^gate = \["unigram .* read=' unigram.conf
  eval-ppl -q -m model --config unigram.conf --json valid.shard.zst >gated
  python3 -c 'import json, sys; r = json.load(open("gated")); sys.exit(not r["loss"] <= r["gate"]["constant_loss"] + 1e-6)'
}
