#!/usr/bin/env bats
# compare-ppl: the difference of two models, its interval, and what it refuses.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
  scores a 0 0 >a.tsv
  scores a 0.2 0.1 >better.tsv
  scores a 0 0.5 >chance.tsv
}

# scores NAME BETTER NOISE: 60 documents of 20 tokens
scores() {
  python3 - "$2" "$3" <<'EOF'
import random, sys
base, noise = random.Random(1), random.Random(2)
better, spread = float(sys.argv[1]), float(sys.argv[2])
print("position\tdocument\ttoken\ttext\thead\tjoint\tmemory\tcache\tnats")
for i in range(1200):
    nats = base.expovariate(0.3) + 1
    token = base.randrange(100)
    nats += spread * noise.gauss(0, 1) - better
    print(f"{i}\t{i // 20}\t{token}\tx\t{nats}\t{nats}\t-\t-\t{nats}")
EOF
}

field() {
  python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())[sys.argv[1]])' "$1"
}

@test "a better model: the size of the difference, an interval, a small p" {
  run compare-ppl --json a.tsv better.tsv
  [ "$status" -eq 0 ]
  python3 - "$output" <<'EOF'
import json, math, sys
r = json.loads(sys.argv[1])
assert r["tokens"] == 1200 and r["blocks"] == 60 and r["block"] == "document", r
assert abs(r["difference"] + 0.2) < 0.02 and r["low"] < r["difference"] < r["high"] < 0, r
assert abs(r["perplexity_ratio"] - math.exp(r["difference"])) < 1e-12
assert abs(r["perplexity_b"] / r["perplexity_a"] - r["perplexity_ratio"]) < 1e-9
assert r["p"] < 0.001, r
EOF
}

@test "the answer as an exit code, and the same whatever -j and --seed" {
  run compare-ppl --fail-unless-better a.tsv better.tsv
  [ "$status" -eq 0 ]
  run compare-ppl --fail-unless-better better.tsv a.tsv
  [ "$status" -eq 1 ]
  run compare-ppl --fail-unless-better a.tsv chance.tsv
  [ "$status" -eq 1 ]
  [ "$(compare-ppl -j 1 a.tsv chance.tsv)" = "$(compare-ppl -j 2 a.tsv chance.tsv)" ]
}

@test "blocks of tokens" {
  [ "$(compare-ppl --json --block 100 a.tsv chance.tsv | field blocks)" -eq 12 ]
  [ "$(compare-ppl --json --block 100 a.tsv chance.tsv | field degrees_of_freedom)" = 11.0 ]
  [ "$(compare-ppl --json --block document - chance.tsv <a.tsv | field blocks)" -eq 60 ]
  run compare-ppl --block 5000 a.tsv chance.tsv
  [ "$status" -eq 65 ]
  [[ $output == *"smaller --block"* ]]
}

# in_documents LENGTH...: the lines of stdin, as documents of these numbers of tokens
in_documents() {
  awk -F'\t' -v OFS='\t' -v lengths="$*" 'BEGIN { split(lengths, n, " "); d = 1 }
    NR > 1 { while (seen == n[d]) { d++; seen = 0 } seen++; $2 = d } 1'
}

@test "few documents are compared as documents as soon as they count as six" {
  in_documents 200 200 200 200 200 200 <a.tsv >one.tsv
  in_documents 200 200 200 200 200 200 <chance.tsv >other.tsv
  run --separate-stderr compare-ppl --json one.tsv other.tsv
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "$(field method <<<"$output")" = documents ]
  [ "$(field degrees_of_freedom <<<"$output" | cut -c 1-3)" = 5.0 ]
}

@test "few long documents: no p and a note, unless blocks of tokens are asked for" {
  in_documents 600 500 20 20 20 20 20 <a.tsv >one.tsv
  in_documents 600 500 20 20 20 20 20 <better.tsv >other.tsv
  run --separate-stderr compare-ppl --json --fail-unless-better one.tsv other.tsv
  [ "$status" -eq 1 ]
  [ "$(field p <<<"$output")" = None ]
  [ "$(field high <<<"$output")" = None ]
  [[ $stderr == "compare-ppl: the text's 7 documents count as 2.4 of equal length: "*"p cannot be known"* ]]
  run --separate-stderr compare-ppl --json --block 18 --fail-unless-better one.tsv other.tsv
  [ "$status" -eq 0 ]
  [[ $stderr == *"p is too small"* ]]
  run compare-ppl -q one.tsv other.tsv
  [ "$(awk '$1 ~ /^(standard_error|low|high|ratio_low|ratio_high|p)$/ { print $2 }' <<<"$output" | sort | uniq -c | xargs)" = "6 -" ]
  run compare-ppl --block document one.tsv other.tsv
  [ "$status" -eq 65 ]
  [[ $output == "compare-ppl: --block document: the text has 7 documents, which count as 2.4 of equal length"* ]]
}

@test "one document is compared by blocks that fit the text; a rest of a block is none" {
  head -n 981 a.tsv | in_documents 5000 >one.tsv # 980 tokens
  head -n 981 chance.tsv | in_documents 5000 >other.tsv
  run --separate-stderr compare-ppl --json one.tsv other.tsv
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "$(field block <<<"$output")" = 15 ]
  [ "$(field blocks <<<"$output")" -eq 66 ]
  [ "$(field method <<<"$output")" = cosines ]
  [ "$(compare-ppl --json --block 97 one.tsv other.tsv | field degrees_of_freedom)" = 9.0 ]
  head -n 181 one.tsv >shorter.tsv
  head -n 181 other.tsv >short.tsv
  run compare-ppl shorter.tsv short.tsv
  [ "$status" -eq 65 ]
  [[ $output == *"has 180 tokens"*"need at least 512"* ]]
}

# seeds: a1 to a3 and b1 to b3 .tsv, whose losses differ by .03, .01 and .02 and by their seeds
seeds() {
  local i
  for i in 1 2 3; do
    awk -F'\t' -v OFS='\t' -v i=$i 'NR > 1 { $NF += i * i / 10 } 1' a.tsv >a$i.tsv
  done
  set -- 0.03 0.01 0.02
  for i in 1 2 3; do
    awk -F'\t' -v OFS='\t' -v by=${!i} 'NR > 1 { $NF += by + .001 * ((NR - 2) % 7 - 3) } 1' a$i.tsv >b$i.tsv
  done
}

@test "several seeds: Student's t over the pairs, and beside it the text's interval" {
  seeds
  run --separate-stderr compare-ppl --json --a a1.tsv a2.tsv a3.tsv --b b1.tsv b2.tsv b3.tsv
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  python3 - "$output" <<'EOF'
import json, math, sys
r = json.loads(sys.argv[1])
assert r["tokens"] == 1200 and r["seeds"] == 3 and r["method"] == "seeds", r
assert abs(r["difference"] - 0.02) < 1e-4 and abs(r["sd"] - 0.01) < 1e-4, r
assert r["degrees_of_freedom"] == 2 and abs(r["standard_error"] - r["sd"] / math.sqrt(3)) < 1e-9, r
assert abs(r["high"] - r["difference"] - 4.30265 * r["standard_error"]) < 1e-6, r
assert abs(r["ratio_low"] - math.exp(r["low"])) < 1e-12, r
assert 0.07 < r["p"] < 0.08, r
assert r["text_blocks"] == 60 and r["text_method"] == "documents" and r["text_p"] < 1e-6, r
assert abs((r["text_low"] + r["text_high"]) / 2 - r["difference"]) < 1e-9, r
assert r["holds_for"] == "models of other seeds, on this text", r
EOF
  [ "$(compare-ppl --a a1.tsv --a a2.tsv --b b1.tsv --b b2.tsv)" = "$(compare-ppl --b b1.tsv b2.tsv --a a1.tsv a2.tsv)" ]
  # The text alone says that one is better; the seeds do not.
  run compare-ppl --fail-unless-better --b a1.tsv a2.tsv a3.tsv --a b1.tsv b2.tsv b3.tsv
  [ "$status" -eq 1 ]
  run compare-ppl --fail-unless-better --b a1.tsv a2.tsv a3.tsv --a b1.tsv b2.tsv b3.tsv --confidence 0.9
  [ "$status" -eq 0 ]
  [[ $(compare-ppl --a a1.tsv --b b1.tsv) == *"holds_for"*"this pair of models"* ]]
  [ "$(compare-ppl --a a1.tsv --b b1.tsv)" = "$(compare-ppl a1.tsv b1.tsv)" ]
}

@test "one model's seeds: mean and standard deviation" {
  seeds
  compare-ppl --json --a a1.tsv a2.tsv a3.tsv >of_a.json # a's loss plus .1, .4, .9
  compare-ppl --json a.tsv a1.tsv >pair.json
  python3 - of_a.json pair.json <<'EOF'
import json, math, sys
r, pair = (json.load(open(name)) for name in sys.argv[1:])
assert r["seeds"] == 3 and abs(r["loss"] - pair["loss_a"] - 1.4 / 3) < 1e-4, r
assert abs(r["sd"] - 0.404145) < 1e-4, r
assert abs(r["high"] - r["loss"] - 4.30265 * r["sd"] / math.sqrt(3)) < 1e-5, r
assert abs(r["perplexity"] - math.exp(r["loss"])) < 1e-9 and r["perplexity_low"] < r["perplexity"], r
EOF
}

@test "seeds that make no comparison are refused" {
  seeds
  refused() {
    local words=$1
    shift
    run compare-ppl "$@"
    [ "$status" -eq 64 ]
    [[ $output == *"$words"* ]]
  }
  refused "--a has 2 files and --b has 1" --a a1.tsv a2.tsv --b b1.tsv
  refused "at least 2 seeds" --a a1.tsv
  refused "--a is missing" --b a1.tsv
  refused "A is missing"
  refused "B is missing" a1.tsv
  refused "give A and B, or --a and --b" a.tsv better.tsv --a a1.tsv
  refused "requires --b" --fail-unless-better --a a1.tsv a2.tsv
  refused "only one file can be -" --a - a1.tsv --b - b1.tsv
  run compare-ppl --a a1.tsv a2.tsv --b b1.tsv b1.tsv
  [ "$status" -eq 0 ]
  run compare-ppl --a a1.tsv a1.tsv --b b1.tsv b1.tsv
  [ "$status" -eq 65 ]
  [[ $output == *"the 2 seeds have the same losses"* ]]
  cp a1.tsv again.tsv
  for files in "--a a1.tsv a1.tsv a2.tsv --b b1.tsv b1.tsv b2.tsv" "--a a1.tsv again.tsv a2.tsv --b b1.tsv b2.tsv b3.tsv" \
    "--a a1.tsv a1.tsv a2.tsv" "--a a1.tsv a2.tsv a3.tsv --b b1.tsv b2.tsv b1.tsv"; do
    read -ra flags <<<"$files"
    run -65 compare-ppl "${flags[@]}"
    [[ $output == *".tsv: has the scores of "?"1.tsv, and is no further seed" ]]
  done
  run compare-ppl --a a1.tsv a2.tsv -o a2.tsv
  [ "$status" -eq 64 ]
  [ "$(wc -l <a2.tsv)" -eq 1201 ]
}

@test "the line that names program and signature is not compared" {
  sed '1i # eval-ppl 0.1.0 (git 1a2b3c4) data:4be1c2d90f3a' a.tsv >of_a
  sed '1i # eval-ppl 0.2.0 (git 5d6e7f8-dirty) data:4be1c2d90f3a' better.tsv >of_better
  compare-ppl of_a of_better >named
  compare-ppl a.tsv better.tsv | cmp - named
  compare-ppl of_a better.tsv | cmp - named
  tail -n +3 of_a >headless
  run compare-ppl headless of_a
  [ "$status" -eq 65 ]
  [[ $output == *"headless:1: has no column"* ]]
  sed '7s/\t0\t[0-9]*\t/\t0\t999\t/' of_better >other
  run compare-ppl a.tsv other
  [ "$status" -eq 65 ]
  [[ $output == *"a.tsv:6: has token "*"other:7 has token 999"* ]]
}

@test "files of different tokens are refused by name and line" {
  sed '7s/\t0\t[0-9]*\t/\t0\t999\t/' better.tsv >other.tsv
  run compare-ppl a.tsv other.tsv
  [ "$status" -eq 65 ]
  [[ $output == "compare-ppl: a.tsv:7: has token "*"other.tsv:7 has token 999"*"different tokens" ]]
  head -n 1000 better.tsv >short.tsv
  run compare-ppl a.tsv short.tsv
  [ "$status" -eq 65 ]
  [[ $output == *"short.tsv ends after line 1000, but a.tsv continues"* ]]
  sed '9s/[^\t]*$/inf/' a.tsv >zero.tsv
  run compare-ppl a.tsv zero.tsv
  [ "$status" -eq 65 ]
  [ "$output" = "compare-ppl: zero.tsv:9: nats is not finite" ]
  run compare-ppl a.tsv /dev/null
  [ "$status" -eq 65 ]
  run compare-ppl a.tsv nothing.tsv
  [ "$status" -eq 66 ]
  run compare-ppl - -
  [ "$status" -eq 64 ]
  # The same tokens in other documents.
  sed '8s/^\([0-9]*\)\t0\t/\1\t7\t/' better.tsv >split.tsv
  run -65 compare-ppl a.tsv split.tsv
  [[ $output == "compare-ppl: a.tsv:8: is of document 0, but split.tsv:8 is of document 7"* ]]
  run -64 compare-ppl --block x a.tsv better.tsv
  [[ $output == "compare-ppl: --block: takes auto"* ]]
}

# bats test_tags=nightly
@test "the error rates of simulated equal models, in 20,000 comparisons a case" {
  TESSERA_SIMULATED=20000 "$BIN/../tests/unit_task" -tc='*few seeds*,*few long documents*'
}
