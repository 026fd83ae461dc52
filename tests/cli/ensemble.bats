#!/usr/bin/env bats
# --ensemble: further models in the mixture of eval-ppl, score and sample.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
  "$root"/tests/cli/tiny_gpt2 model
  "$root"/tests/cli/tiny_gpt2 other 2
  cats 24 >text
  head -n 12 text | tokenize -q -t bytes --format lines -o valid.shard.zst
  tail -n 12 text | tokenize -q -t bytes --format lines -o test.shard.zst
  train -q --arch lstm --layers 1 --d-model 12 --segment 32 --batch 4 --steps 4 valid.shard.zst -o lstm
  build-ngrams -q valid.shard.zst -o ngrams >/dev/null
  build-datastore -q -m model --index exact valid.shard.zst -o store >/dev/null
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

refused() {
  local code=$1 text=$2
  shift 2
  run --separate-stderr "$@"
  [ "$status" -eq "$code" ]
  [ -z "$output" ]
  [ "$(wc -l <<<"$stderr")" -eq 1 ]
  [[ $stderr == *"$text"* ]]
}

@test "eval-ppl: the log of the mix of per-token files, with models of another architecture, window and stride" {
  eval-ppl -q -m model --window 48 --stride 20 --per-token a.tsv test.shard.zst -o /dev/null
  eval-ppl -q -m other --window 48 --stride 20 --per-token b.tsv test.shard.zst -o /dev/null
  eval-ppl -q -m lstm --window 48 --stride 20 --per-token c.tsv test.shard.zst -o /dev/null
  eval-ppl -q -m model --window 48 --stride 20 --ensemble other:0.3 --ensemble lstm:0.2 --per-token abc.tsv --json test.shard.zst >figures
  python3 - <<'END'
import csv, json, math
column = lambda name: [float(row["nats"]) for row in csv.DictReader((line for line in open(name) if line[0] != "#"), delimiter="\t", quoting=csv.QUOTE_NONE)]
a, b, c, abc = map(column, ("a.tsv", "b.tsv", "c.tsv", "abc.tsv"))
assert len(a) == len(abc) > 700
for x, y, z, m in zip(a, b, c, abc):
    assert abs(m + math.log(0.5 * math.exp(-x) + 0.3 * math.exp(-y) + 0.2 * math.exp(-z))) < 1e-9, (x, y, z, m)
assert len(set(map(round, a))) > 2 and a != b
figures = json.load(open("figures"))
assert abs(figures["loss"] - sum(abc) / len(abc)) < 1e-9
assert "|ensemble-lambda:0.3+0.2|" in figures["signature"], figures
END
}

@test "a model of fewer positions reads as much as it can; without a window each its own" {
  train -q --arch lstm --layers 1 --d-model 8 --segment 16 --batch 4 --steps 2 valid.shard.zst -o first
  eval-ppl -q -m first --window 100 --per-token a.tsv test.shard.zst -o /dev/null
  eval-ppl -q -m model --window 64 --per-token b.tsv test.shard.zst -o /dev/null
  eval-ppl -q -m first --window 100 --ensemble model:0.4 --per-token ab.tsv test.shard.zst -o /dev/null
  python3 - <<'END'
import csv, math
column = lambda name, of="nats": [float(row[of]) for row in csv.DictReader((line for line in open(name) if line[0] != "#"), delimiter="\t", quoting=csv.QUOTE_NONE)]
a, b, ab, own = column("a.tsv"), column("b.tsv"), column("ab.tsv"), column("ab.tsv", "ensemble")
for x, y, m, z in zip(a, b, ab, own):
    assert abs(m + math.log(0.6 * math.exp(-x) + 0.4 * math.exp(-y))) < 1e-9
    assert abs(y - z) < 1e-9
END
  [[ $(eval-ppl -m lstm --ensemble model --memory-weights constant test.shard.zst --json | field signature) == *@64/64'|ensemble-lambda:0.5|'* ]]
}

@test "where a protocol leaves tokens out, further models score the same ones" {
  refused 64 "give --window 64" eval-ppl -m lstm --protocol llama.cpp --ensemble model:0.5 test.shard.zst
  eval-ppl -q -m lstm --protocol llama.cpp --window 64 --ensemble model:0.5 --per-token halves.tsv test.shard.zst -o /dev/null
  [ "$(wc -l <halves.tsv)" -gt 300 ]
  ! cut -f "$(sed -n 2p halves.tsv | tr '\t' '\n' | grep -nx ensemble | cut -d : -f 1)" halves.tsv | grep -x -e - || false
  eval-ppl -q -m lstm --protocol hf --ensemble model:0.5 test.shard.zst -o /dev/null
}

@test "one mixture with cache, datastore and n-grams; parts add up to the bytes of the whole" {
  local all=(-m model --window 32 --stride 16 --cache 40 --cache-lambda 0.1 --datastore store --combine interpolate --k 8
    --datastore-lambda 0.2 --ngrams ngrams --ngrams-lambda 0.15 --ensemble other:0.25 --ensemble lstm:0.05 --batch-tokens 96)
  eval-ppl -q "${all[@]}" --per-token all.tsv test.shard.zst --json >whole
  python3 - <<'END'
import csv, math
rows = list(csv.DictReader((line for line in open("all.tsv") if line[0] != "#"), delimiter="\t", quoting=csv.QUOTE_NONE))
for row in rows:
    p = {name: None if row[name] == "-" else math.exp(-float(row[name])) for name in ("joint", "cache", "stores", "ngrams", "ensemble")}
    seen = lambda name: p["joint"] if p[name] is None else p[name]
    inner = 0.4 * p["joint"] + 0.1 * seen("cache") + 0.2 * seen("stores") + 0.3 * p["ensemble"]
    mixture = 0.85 * inner + 0.15 * p["ngrams"] if p["ngrams"] is not None else inner
    assert abs(-math.log(mixture) - float(row["nats"])) < 1e-9, row
END
  for part in 1 2 3; do eval-ppl -q "${all[@]}" --part $part/3 test.shard.zst -o part.$part; done
  [ "$(eval-ppl --sum part.* --json)" = "$(cat whole)" ]
}

@test "--tune chooses the shares; its file gives the tuned figure" {
  run --separate-stderr eval-ppl -m model --ensemble other --ensemble lstm --tune valid.shard.zst --tune-lambdas 0,0.1,0.4,0.7 \
    --tune-ensemble-temperatures 1 -o tuned.conf
  [ "$status" -eq 0 ]
  tuned=$(sed -nE 's/.*perplexity ([0-9.]+), the best of ([0-9]+) settings.*/\1 \2/p' <<<"$stderr")
  [ "${tuned#* }" -eq 13 ]
  near "${tuned% *}" "$(eval-ppl -m model --config tuned.conf --json valid.shard.zst | field perplexity)" 1e-4
  for shares in "0 0" "0.1 0.1" "0.4 0.1" "0.1 0.7" "0 0.7" "0.4 0.4"; do
    read -r a b <<<"$shares"
    found=$(eval-ppl -m model --ensemble "other:$a" --ensemble "lstm:$b" --json valid.shard.zst | field perplexity)
    python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(a > b + 1e-4)' "${tuned% *}" "$found"
  done
}

@test "score: a text is as eval-ppl has it; citations tell what each model gave" {
  head -n 1 text | tr -d '\n' >line
  tokenize -q -t bytes line -o line.shard.zst
  score -q -m model -t bytes --ensemble other:0.3 --ensemble lstm:0.2 --cite --per-token line >answer
  loss=$(eval-ppl -m model --ensemble other:0.3 --ensemble lstm:0.2 --json line.shard.zst | field loss)
  python3 - "$loss" <<'END'
import json, sys
answer = json.loads(open("answer").readline())
assert abs(answer["log_prob"] / answer["tokens"] + float(sys.argv[1])) < 1e-4, answer
for token in answer["citations"]:
    names = [m["model"] for m in token["models"]]
    assert names == ["other", "lstm"] and token["contexts"] == [], token
    assert 0 < sum(m["share"] for m in token["models"]) < 1, token
END
}

@test "sample: draws from the mixture, whose log-probabilities score gives too" {
  train -q --layers 1 --d-model 16 --heads 2 --segment 48 --batch 4 --steps 80 --lr 1e-2 valid.shard.zst -o cats # who writes ASCII
  sample -q -m cats -t bytes --ensemble lstm:0.3 --prompt "The cat" --max-tokens 20 --temperature 0 --json >texts
  python3 - <<'END'
import json
text = json.loads(open("texts").readline())
print(json.dumps({"context": "The cat", "continuation": text["text"]}), file=open("request", "w"))
print(text["log_prob"], file=open("sampled", "w"))
END
  near "$(cat sampled)" "$(score -q -m cats -t bytes --ensemble lstm:0.3 request | field log_prob)" 1e-4
  [ "$(score -q -m cats -t bytes --ensemble lstm:0.3 request | field greedy)" = True ]
  sample -q -m model -t bytes --ensemble other:0.45 --cite --prompt "The cat" --max-tokens 5 2>cited >/dev/null
  [ "$(tail -n +2 cited | cut -f 6-8 | sort | uniq -c | tr -s ' \t' ' ')" = " 5 other - -" ]
  sample -q -m model -t bytes --ensemble other --ensemble lstm --beam 3 --prompt "The cat" --max-tokens 8 >/dev/null
}

@test "default weights of many memories leave the model something; a given weight is not changed" {
  build-datastore -q -m model --no-calibrate valid.shard.zst -o many.store >/dev/null
  local many=(--memory-weights constant --cache 5 --unigram --datastore many.store --combine interpolate --ensemble other)
  eval-ppl -q -m model "${many[@]}" --json test.shard.zst | grep -q '|cache-lambda:0.1|'
  # 0.1, 0.05, 0.25 and twice a third are 1.0667.
  eval-ppl -q -m model "${many[@]}" --ensemble lstm --json test.shard.zst | grep -q '|cache-lambda:0.084375|'
  refused 64 "the weights must sum to less than 1, not 1.067" eval-ppl -m model "${many[@]}" --ensemble lstm --cache-lambda 0.1 test.shard.zst
  rm -r many.store
}

@test "another tokenizer, too large shares, no model: one line and a documented code" {
  tokenize -q --learn word text -o words.json
  tokenize -q -t words.json text -o words.shard.zst
  train -q --layers 1 --d-model 8 --heads 1 --segment 16 --steps 1 words.shard.zst -o words
  refused 65 "--ensemble words: has tokenizer" eval-ppl -m lstm --ensemble words test.shard.zst
  refused 65 "--ensemble words: has a vocabulary of" eval-ppl -m model --ensemble words test.shard.zst
  refused 64 "the weights must sum to less than 1" eval-ppl -m model --ensemble other:0.6 --cache 5 --cache-lambda 0.5 test.shard.zst
  refused 64 "the weights must sum to less than 1" eval-ppl -m model --ensemble other:0.6 --ensemble lstm:0.4 test.shard.zst
  refused 64 "--ensemble other:1.5: takes a weight" sample -m model -t bytes --ensemble other:1.5 --prompt x
  refused 66 "nothing" score -m model -t bytes --ensemble nothing:0.5 text
}

@test "--tune finds a temperature of each further model, and its file gives the tuned figure" {
  models=(--ensemble other --ensemble lstm)
  run --separate-stderr eval-ppl -j 1 -m model "${models[@]}" --tune valid.shard.zst -o tempered.conf
  [ "$status" -eq 0 ]
  grep -q '^ensemble-temperature = \[' tempered.conf
  tuned=$(sed -nE 's/.*perplexity ([0-9.]+), the best.*/\1/p' <<<"$stderr")
  near "$tuned" "$(eval-ppl -q -j 1 -m model --config tempered.conf --json valid.shard.zst | field perplexity)" 1e-3
  plain=$(eval-ppl -j 1 -m model "${models[@]}" --tune valid.shard.zst --tune-ensemble-temperatures 1 -o /dev/null 2>&1 |
    sed -nE 's/.*perplexity ([0-9.]+), the best.*/\1/p')
  python3 -c 'import sys; sys.exit(not float(sys.argv[1]) <= float(sys.argv[2]) + 1e-3)' "$tuned" "$plain"
  # At 1,000,000 all tokens of the further model are alike: half of 1/256 each.
  eval-ppl -q -j 1 -m model --per-token a.tsv test.shard.zst -o /dev/null
  eval-ppl -q -j 1 -m model --ensemble other:0.5 --ensemble-temperature 1000000 --per-token ab.tsv --json test.shard.zst >figures
  python3 - <<'END'
import csv, json, math
column = lambda name: [float(row["nats"]) for row in csv.DictReader((line for line in open(name) if line[0] != "#"), delimiter="\t", quoting=csv.QUOTE_NONE)]
for x, m in zip(column("a.tsv"), column("ab.tsv"), strict=True):
    assert abs(m + math.log(0.5 * math.exp(-x) + 0.5 / 256)) < 1e-3, (x, m)
assert "|ensemble-temperature:1" in json.load(open("figures"))["signature"]
END
  refused 64 "takes 1 or 2 temperatures, not 3" eval-ppl -m model "${models[@]}" --ensemble-temperature 1,1,1 test.shard.zst
}

@test "beside gates a further model keeps its share of the rest, in eval-ppl and annotate alike" {
  eval-ppl -q -m model --ensemble other --cache 50 --cache-lambda gate --ngrams ngrams --ngrams-lambda gate --tune valid.shard.zst -o gates.conf
  eval-ppl -q -m model --config gates.conf --json valid.shard.zst >figures
  eval-ppl -q -m model --config gates.conf --per-token gates.tsv test.shard.zst -o /dev/null
  annotate -q -m model -t bytes --config gates.conf --json test.shard.zst >lines
  python3 - <<'END'
import csv, json
figures = json.load(open("figures"))
assert figures["loss"] <= figures["gate"]["constant_loss"] + 1e-6, figures
nats = {int(row["position"]): float(row["nats"]) for row in csv.DictReader((line for line in open("gates.tsv") if line[0] != "#"), delimiter="\t", quoting=csv.QUOTE_NONE)}
given = 0
for line in map(json.loads, open("lines")):
    if "nats" in line:
        assert abs(line["nats"] - nats[line["number"]]) < 1e-4, line
        assert abs(sum(line["shares"].values()) - 1) < 1e-5, line
        given += line["shares"]["other"]
assert given > 1
END
}

@test "--ensemble MODEL:gate: fitted by --tune, no worse than the constant, read by eval-ppl, score and sample" {
  eval-ppl -q -m model --ensemble other:gate --ensemble lstm:0.1 --tune valid.shard.zst -o gate.conf
  grep -q '^ensemble = \["other:gate", *"lstm:0' gate.conf
  grep -q '^gate = \["ensemble shares=' gate.conf
  eval-ppl -q -m model --config gate.conf --json valid.shard.zst >figures
  head -n 1 text | tr -d '\n' >line
  tokenize -q -t bytes line -o line.shard.zst
  loss=$(eval-ppl -q -m model --config gate.conf --json line.shard.zst | field loss)
  score -q -m model -t bytes --config gate.conf line >answer
  python3 - "$loss" <<'END'
import json, sys
figures, answer = json.load(open("figures")), json.load(open("answer"))
assert figures["loss"] <= figures["gate"]["constant_loss"] + 1e-6, figures
assert "|ensemble-lambda:gate+" in figures["signature"], figures
assert abs(answer["log_prob"] / answer["tokens"] + float(sys.argv[1])) < 1e-4, answer
END
  [ "$(sample -q -m model -t bytes --config gate.conf --prompt "The cat" --max-tokens 5 --json | jq '.tokens | length')" -eq 5 ]
  refused 64 "--ensemble gate: there is no gate yet" eval-ppl -q -m model --ensemble other:gate test.shard.zst
  refused 64 "only one model may have a gate" eval-ppl -q -m model --ensemble other:gate --ensemble lstm:gate test.shard.zst
}
