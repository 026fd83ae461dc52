#!/usr/bin/env bats
# Translation: pairs in, a model of a source and a target out; what does not belong together is refused.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
  # The words of a sentence in the other language, in the same order.
  python3 - <<'EOF'
import random
random.seed(1)
words = {"der": "the", "Hund": "dog", "Katze": "cat", "sieht": "sees", "und": "and", "rot": "red"}
with open("de", "w") as de, open("en", "w") as en:
    for _ in range(300):
        line = random.choices(list(words), k=random.randint(1, 5))
        print(*line, file=de)
        print(*[words[w] for w in line], file=en)
EOF
  cat de en | tokenize -q --learn bpe --vocab-size 300 -o bpe.json -
  tokenize -q -t bpe.json --pairs <(head -n 250 de) <(head -n 250 en) -o train.shard.zst
  tokenize -q -t bpe.json --pairs <(tail -n 50 de) <(tail -n 50 en) -o valid.shard.zst
}

setup() {
  cd "$BATS_FILE_TMPDIR"
  tiny=(--arch encoder-decoder --layers 1 --d-model 32 --heads 2 --dropout 0 --positions sinusoidal --memory-key output
    --batch-tokens 200 --lr 5e-3 -q -j 1)
}

valid_losses() {
  python3 -c '
import json, sys
print(*[r["valid_loss"] for r in map(json.loads, open(sys.argv[1])) if "valid_loss" in r])' "$1/metrics.jsonl"
}

@test "a translation is learned, and is lost where the sources are another's" {
  train "${tiny[@]}" --steps 250 --valid valid.shard.zst -o model train.shard.zst
  tokenize -q -t bpe.json --pairs <(head -n 250 de | shuf --random-source=bpe.json) <(head -n 250 en) -o shuffled.shard.zst
  train "${tiny[@]}" --steps 250 --valid valid.shard.zst -o blind shuffled.shard.zst
  read -ra seeing < <(valid_losses model)
  read -ra blind < <(valid_losses blind)
  echo "${seeing[*]}; ${blind[*]}"
  python3 -c '
import sys
first, last, blind = map(float, sys.argv[1:])
sys.exit(not (last < 0.1 * first and last < 0.1 * blind))' "${seeing[0]}" "${seeing[-1]}" "${blind[-1]}"
}

# the model of the first test, trained again where that did not run
translator() {
  [ -e model/config.json ] || train "${tiny[@]}" --steps 250 --valid valid.shard.zst -o model train.shard.zst
}

@test "sample --source translates lines it never saw, in their order, whatever goes together" {
  translator
  tail -n 50 de >heard
  sample -q -j 1 -m model --source --beam 4 heard >said
  python3 -c '
said, meant = (open(f).read().split("\n") for f in ("said", "en"))
right = sum(a == b for a, b in zip(said, meant[250:]))
assert len(said) == 51 and right > 40, right'
  sample -q -j 1 -m model --source --beam 4 --batch 1 heard | diff - said
  sample -q -j 1 -m model --source heard | diff - said
  # more than are read ahead with so small a batch, with empty lines between, from a pipe, to a file
  for _ in 1 2 3; do
    cat heard
    echo
  done | sample -q -j 1 -m model --source --beam 4 --batch 4 -o again -
  for _ in 1 2 3; do
    cat said
    echo
  done | diff - again
  # greedy is a beam of one; JSON has what the lines have
  sample -q -j 1 -m model --source --temperature 0 heard >greedy
  sample -q -j 1 -m model --source --beam 1 --json heard | jq -r .text | diff - greedy
}

@test "a translation has at most a x + b tokens" {
  translator
  # "der Hund" and its end are 3 tokens
  echo "der Hund der Hund" | sample -q -m model --source --beam 2 --max-len-a 0 --max-len-b 2 --json | jq -e '(.tokens | length) == 2'
  echo "der Hund der Hund" | sample -q -m model --source --beam 2 --max-len-a 0.4 --max-len-b 1.1 --json | jq -e '(.tokens | length) == 3'
}

@test "--source: a line too long is named or cut; what does not belong together is refused" {
  translator
  printf 'der\nHund Katze und rot der Hund\nrot\n' >lines
  run --separate-stderr sample -q -m model --source --beam 2 --max-source 4 lines
  [ "$status" -eq 65 ]
  [[ "$stderr" == *"line 2"*"--truncate-source"* ]]
  run --separate-stderr sample -m model --source --beam 2 --max-source 4 --truncate-source lines
  [ "$status" -eq 0 ]
  [ "${#lines[@]}" -eq 3 ]
  [[ "$stderr" == *"line 2"* ]]
  run --separate-stderr sample -q -m model lines
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"--source"* ]]
  run --separate-stderr sample -q -m model --source --max-tokens 5 lines
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"--max-len-a"* ]]
  run --separate-stderr sample -q -m model --source --max-len-a -1 lines
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"--max-len-a"* ]]
  tokenize -q -t bpe.json --format lines de -o tokens.shard.zst
  train -q -j 1 --layers 1 --d-model 16 --heads 2 --segment 16 --batch 2 --steps 2 -o lm tokens.shard.zst
  run --separate-stderr sample -q -m lm --source lines
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"--source"* ]]
  run --separate-stderr sample -q -m model -t bytes --source lines
  [ "$status" -eq 65 ]
  [[ "$stderr" == *"tokenizer"* ]]
}

@test "eval-ppl scores targets given their sources, with stores too: kNN-MT, TRIME" {
  translator
  eval-ppl -q -j 1 -m model --json valid.shard.zst >plain
  "$root/tests/cli/follows_schema" "$root/man/schemas/eval-ppl.json" <plain
  # the best loss that train saw
  python3 -c '
import json, sys
r = json.load(open("plain"))
assert abs(r["loss"] - float(sys.argv[1])) < 1e-4, r
assert r["words"] == sum(len(line.split()) for line in open("en").readlines()[250:]), r
assert "unit:pair" in r["signature"], r' "$(valid_losses model | tr ' ' '\n' | sort -g | head -n 1)"
  eval-ppl -q -j 1 -m model --batch-tokens 1 --per-token scores.tsv --json valid.shard.zst |
    jq -e --slurpfile plain plain '(.loss - $plain[0].loss | fabs) < 1e-5'
  for metric in l2 ip; do build-datastore -q -j 1 -m model --metric $metric --index exact train.shard.zst -o store.$metric; done >/dev/null
  knn="--datastore store.l2 --k 8 --datastore-combine interpolate --datastore-lambda 0.2 --datastore-temperature 100"
  trime="--datastore store.ip --k 8 --datastore-combine joint --joint-temperature 15"
  tail -n 50 de >heard
  for memory in "$knn" "$trime" "--memory local --cache 20"; do
    read -ra words <<<"$memory"
    eval-ppl -q -j 1 -m model "${words[@]}" --json valid.shard.zst | jq -e '.perplexity > 1 and .perplexity < 3'
    sample -q -j 1 -m model --source --beam 4 "${words[@]}" heard >said
    python3 -c '
said, meant = (open(f).read().split("\n") for f in ("said", "en"))
right = sum(a == b for a, b in zip(said, meant[250:]))
assert right > 30, right'
  done
  # the published formula gives scores, not probabilities
  sample -q -j 1 -m model --source --beam 4 --datastore store.ip --k 8 --datastore-combine released --joint-temperature 15 heard >said
  [ "$(wc -l <said)" -eq 50 ]
  run --separate-stderr eval-ppl -q -m model --datastore store.ip --datastore-combine released valid.shard.zst
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"released"* ]]
  run --separate-stderr eval-ppl -q -m model --window 8 valid.shard.zst
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"--window"* ]]
}

@test "a store of new pairs teaches what the model never saw, and --cite names the pair" {
  translator
  # rot becomes blue in the new pairs
  tokenize -q -t bpe.json --pairs <(head -n 250 de) <(head -n 250 en | sed 's/red/dog cat/g') -o new.shard.zst
  build-datastore -q -j 1 -m model --metric l2 --index exact new.shard.zst -o new.store >/dev/null
  memory=(--datastore new.store --k 4 --datastore-combine interpolate --datastore-lambda 0.9 --datastore-temperature 1)
  echo "Hund rot" | sample -q -j 1 -m model --source --beam 4 "${memory[@]}" --cite --json >cited
  "$root/tests/cli/follows_schema" "$root/man/schemas/sample.json" <cited
  python3 -c '
import json
r = json.load(open("cited"))
assert r["text"] == "dog dog cat", r
assert [c["token"] for c in r["citations"]] == r["tokens"]
targets = [line.replace("red", "dog cat") for line in open("en").read().split("\n")]
contexts = [(token["text"], c) for token in r["citations"] for c in token["contexts"]]
assert len(contexts) >= 3, r
for text, c in contexts:
    assert c["store"] == "new.store"
    assert (targets[c["document"]] + "<|endoftext|>").startswith(c["context"] + text), (text, c)'
  train "${tiny[@]}" --seed 2 --steps 2 -o other train.shard.zst
  run --separate-stderr sample -q -m other --source --datastore new.store heard
  [ "$status" -eq 65 ]
  [[ "$stderr" == *"new.store"* ]]
}

@test "--plan tells the tokens of an update" {
  train "${tiny[@]}" --steps 20 --plan --json train.shard.zst >plan
  python3 -c '
import json
plan = json.load(open("plan"))
assert 100 < plan["tokens_per_step"] <= 200, plan'
}

@test "bad input: tokens for a model of pairs, pairs for one of tokens, a shard that ends without its token" {
  tokenize -q -t bpe.json --format lines de -o tokens.shard.zst
  run --separate-stderr train "${tiny[@]}" -o refused tokens.shard.zst
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"encoder-decoder"*"pairs"* ]]
  run --separate-stderr train -q --layers 1 --d-model 32 --heads 2 -o refused train.shard.zst
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"transformer"*"tokens"* ]]
  run --separate-stderr train "${tiny[@]}" --batches shuffled -o refused train.shard.zst
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"--batches"* ]]
  tokenize -q -t bpe.json --end-of-document none --pairs de en -o endless.shard.zst
  run --separate-stderr train "${tiny[@]}" -o refused endless.shard.zst
  [ "$status" -eq 65 ]
  [[ "$stderr" == *"end-of-document"* ]]
  run --separate-stderr train "${tiny[@]}" --positions learned --context 3 -o refused train.shard.zst
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"pair "*"--context"* || "$stderr" == *"--context"*"pair "* ]]
  run --separate-stderr train "${tiny[@]}" --valid tokens.shard.zst -o refused train.shard.zst
  [ "$status" -eq 65 ]
  [[ "$stderr" == *"tokens.shard.zst"* ]]
}

@test "a datastore of pairs has an entry a target token, and a document a pair" {
  train "${tiny[@]}" --steps 5 -o few train.shard.zst
  build-datastore -m few --index exact -q train.shard.zst -o store --json >report
  python3 - <<'EOF'
import json
report = json.load(open("report"))
words = [len(line.split()) for line in open("en")][:250]
assert report["documents"] == 250, report
assert report["rows"] >= sum(words) + 250, report
EOF
  run --separate-stderr build-datastore -m few --window 8 -q train.shard.zst -o refused
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"--window"* ]]
  head -n 100 de | tokenize -q --learn bpe --vocab-size 280 -o other.json -
  tokenize -q -t other.json --pairs de en -o other.shard.zst
  run --separate-stderr build-datastore -m few -q other.shard.zst -o refused
  [ "$status" -eq 65 ]
  [[ "$stderr" == *"other.shard.zst"* && "$stderr" == *tokenizer* ]]
  tokenize -q -t bpe.json --format lines de | train -q -j 1 --layers 1 --d-model 32 --heads 2 --steps 2 -o reader
  run --separate-stderr build-datastore -m reader -q train.shard.zst -o refused
  [ "$status" -eq 65 ]
  [[ "$stderr" == *"pairs"* && "$stderr" == *"transformer"* ]]
}

@test "label smoothing is refused where it has no meaning" {
  run --separate-stderr train "${tiny[@]}" --label-smoothing 0.1 --memory ext -o refused train.shard.zst
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"--label-smoothing"*"--memory"* ]]
  run --separate-stderr train "${tiny[@]}" --label-smoothing 0.1 --cutoffs 100 -o refused train.shard.zst
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"--label-smoothing"*"--cutoffs"* ]]
  run --separate-stderr train "${tiny[@]}" --label-smoothing 1 -o refused train.shard.zst
  [ "$status" -eq 64 ]
  [[ "$stderr" == *"--label-smoothing"* ]]
}

@test "--valid-command chooses the model; one that fails is one line, and nothing is lost" {
  run --separate-stderr train "${tiny[@]}" --steps 4 --valid-every 2 --valid-command 'exit 7' -o chosen train.shard.zst
  [ "$status" -eq 65 ]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [[ "$stderr" == *"--valid-command"*"status 7: exit 7"* ]]
  [ -d chosen/step-2 ]
  [ ! -e chosen/model.safetensors ]
  train "${tiny[@]}" --steps 4 --valid-every 2 --valid-command 'sample -q -m {} --source <de | head -n 20 | wc -c' -o chosen train.shard.zst
  [ "$(grep -c valid_score chosen/metrics.jsonl)" -eq 2 ]
  [ -f chosen/model.safetensors ]
  [ -z "$(ls -d chosen/valid* chosen/step-* 2>/dev/null)" ]
}

@test "TRIME for translation: pairs in the order of their targets' words, memory of the batch's other pairs" {
  bm25-pack -q -j 1 train.shard.zst -o order.shard.zst
  train "${tiny[@]}" --steps 120 --valid valid.shard.zst --order order.shard.zst --memory ext --memory-top-k 8 \
    --memory-temperature 2 -o trime train.shard.zst
  read -ra losses < <(valid_losses trime)
  python3 -c 'import sys; a, b = map(float, sys.argv[1:]); sys.exit(not b < 0.7 * a)' "${losses[0]}" "${losses[-1]}"
  python3 -c 'import json; assert json.load(open("trime/config.json"))["tessera"]["memory"] == "ext"'
}

@test "sides of different length are refused, and nothing is written" {
  run --separate-stderr tokenize -t bpe.json --pairs de <(head -n 299 en) -o refused.shard.zst
  [ "$status" -eq 65 ]
  [ ! -e refused.shard.zst ]
  [[ "$stderr" == *"299"* || "$stderr" == *"300"* ]]
}
