#!/usr/bin/env bats
# What --json prints follows man/schemas; each schema is held against a real output.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
  mkdir held
  head -c 4000 "$root/tests/golden/tokenizers/sample.txt" | tr -d '\r' >x.txt
  tokenize -t bytes --format lines --json x.txt -o x.shard.zst 2>tokenize.json
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

# follows NAME <LINES: and NAME was held against something.
follows() {
  "$root/tests/cli/follows_schema" "$root/man/schemas/$1.json" && touch "held/$1"
}

@test "tokenize and shard" {
  follows tokenize <tokenize.json
  shard info --json x.shard.zst "$root"/tests/golden/shard/*.shard.zst | follows shard-info
  head -c 300 x.shard.zst >cut
  run --separate-stderr shard verify --json x.shard.zst cut
  [ "${#lines[@]}" -eq 2 ]
  follows shard-verify <<<"$output"
  shard export -q x.shard.zst -o x.npy
  shard import --json -t bytes x.npy -o y.shard.zst 2>import.json
  follows shard-import <import.json
}

@test "bm25-pack" {
  needs bm25-pack
  bm25-pack --segment 16 --json x.shard.zst -o order.shard.zst 2>pack.json
  bm25-pack --segment 16 --method random --json x.shard.zst -o order.shard.zst 2>>pack.json
  bm25-pack --segment 16 --dump hits --json x.shard.zst -o hits 2>>pack.json
  follows bm25-pack <pack.json
}

@test "train, eval-ppl, compare-ppl, score and sample" {
  needs train
  needs eval-ppl
  needs sample
  small=(--layers 1 --d-model 8 --heads 1 --segment 16 --batch 2 --steps 4 --log-every 2 --valid x.shard.zst)
  train "${small[@]}" --plan --json x.shard.zst -o model | follows train-plan
  train -q "${small[@]}" x.shard.zst -o model
  follows metrics <model/metrics.jsonl
  follows timings <model/timings.jsonl
  eval-ppl -m model --per-token a.tsv --by document --json x.shard.zst | follows eval-ppl
  eval-ppl -q -m model --part 2/3 x.shard.zst | follows eval-ppl-part
  shard import -q --vocabulary 256 x.npy -o unknown.shard.zst
  eval-ppl -m model --json unknown.shard.zst | follows eval-ppl
  eval-ppl -q -m model --cache 100 --per-token b.tsv x.shard.zst -o /dev/null
  compare-ppl --json a.tsv b.tsv | follows compare-ppl
  compare-ppl --json --a a.tsv b.tsv --b b.tsv a.tsv | follows compare-ppl
  compare-ppl --json --a a.tsv b.tsv | follows compare-ppl
  sample -m model --prompt "A" --max-tokens 4 -n 2 --report sample-report.json --json | follows sample
  follows sample-report <sample-report.json
  annotate -q -m model --json --beside a.tsv x.shard.zst | follows annotate
  printf '%s\n' '{"id": 1, "text": "A b"}' '{"context": "A", "choices": ["b", "c"], "gold": 0}' '{"id": 2}' >requests.jsonl
  run score -q -m model --keep-going --per-token --domain-context "So" --json --report report.json requests.jsonl -o answers.jsonl
  [ "$status" -eq 65 ]
  follows score <answers.jsonl
  follows score-report <report.json
  needs build-datastore
  {
    build-datastore -m model --index exact --json x.shard.zst -o store
    needs store
    store verify --json store
    store recall --k 3 --queries 5 --json store
    store rebuild --json store
    store remove --document 1 --json store
  } | follows build-datastore
  store info --json store | follows store-info
  store plan --json --entries 1M --width 64 | follows store-plan
  store search --json -m model store "A b" | follows store-search
}

@test "bm25-search" {
  bm25-search build -q --passage 20 x.shard.zst -o x.bm25
  printf 'the\nno such word, qqq\nsoftware and the code\n' | bm25-search find -i x.bm25 | follows bm25-search-find
  bm25-search info --json x.bm25 | follows bm25-search-info
}

@test "build-ngrams and ngrams" {
  {
    build-ngrams --json x.shard.zst -o index
    ngrams verify --json index
  } | follows build-ngrams
  {
    ngrams find -i index --json the
    ngrams find -i index --json "no such text in it"
  } | follows ngrams-find
  {
    ngrams overlap -i index --json x.shard.zst
    ngrams overlap -i index --json --by-span x.shard.zst
    ngrams overlap -i index --json --at-least 1M x.shard.zst
  } | follows ngrams-overlap
}

@test "model" {
  needs model
  golden=$root/tests/golden
  train -q --layers 1 --d-model 8 --heads 1 --segment 16 --batch 2 --steps 4 x.shard.zst -o looked_at
  model info --json looked_at "$golden"/families/* | follows model-info
  mkdir broken && cp "$golden"/families/llama/* broken && echo '{}' >broken/tokenizer.json
  run --separate-stderr model verify --json looked_at broken
  [ "${#lines[@]}" -eq 2 ]
  follows model-verify <<<"$output"
  model export --json looked_at --family gpt2 -o exported | follows model-export
  model import --json "$golden/checkpoints/nanogpt.pt" -o imported | follows model-import
}

@test "gen-babistories-prompts and clean-babistories" {
  {
    gen-babistories-prompts -n 2
    gen-babistories-prompts -n 2 --ask openings
    gen-babistories-prompts -n 2 --request openai --model some
    gen-babistories-prompts -n 2 --opening-in answer --request openai --model some
  } | follows gen-babistories-prompts
  printf '%s\n' '"A cat sat. The end."' '"See www.example.org"' |
    clean-babistories --least-words 2 --json -o /dev/null 2>clean.json
  follows clean-babistories <clean.json
}

@test "gen-ruler and eval-ruler" {
  gen-ruler -n 3 --length 600 -o problems.jsonl
  { gen-ruler -n 2 --output-format answered; gen-ruler -n 2 --output-format completions; } | cat problems.jsonl - | follows gen-ruler
  jq -c '{id, text: .outputs[0]}' problems.jsonl | eval-ruler --problems problems.jsonl --json | follows eval-ruler
}

@test "eval-regbench" {
  needs eval-regbench
  gen-regbench -n 2 --automata automata.jsonl -o languages.shard.zst
  eval-regbench --ngram 2 --automata automata.jsonl --json languages.shard.zst | follows eval-regbench
}

@test "every schema was held against an output" {
  needs train
  needs build-datastore
  needs eval-regbench
  [ "$(ls held)" = "$(basename -as .json "$root"/man/schemas/*.json | sort)" ]
}

@test "an output that does not follow its schema is told" {
  told() { # words line
    run follows shard-verify <<<"$2"
    [ "$status" -eq 1 ] && [[ $output == *"$1"* ]] || { echo "$2: $output" && return 1; }
  }
  whole='"file": "x", "ok": true, "elements": 1, "fingerprint": "00000000000000000000000000000000"'
  follows shard-verify <<<"{$whole}"
  told "more is not described" "{$whole, \"more\": 1}"
  told "-1 is below 0" "{${whole/1/-1}}"
  told "no fingerprint" '{"file": "x", "ok": true, "elements": 1}'
  told "is no integer" "{${whole/1/1.5}}"
  told "is not ^[0-9a-f]{32}\$" "{${whole/0000/xyz}}"
}

# bats test_tags=nightly
@test "train --tensorboard: TensorBoard reads what metrics.jsonl says, of a run that went on too" {
  [ -n "${TESSERA_PEERS:-}" ] || skip "TESSERA_PEERS is not set"
  "$TESSERA_PEERS" -c 'import tensorboard' || skip "TESSERA_PEERS has no tensorboard"
  events_of_run
  "$TESSERA_PEERS" - <<'END'
import json
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator("events").Reload()
lines = [json.loads(line) for line in open("events/metrics.jsonl")]
for name in "loss", "valid_loss", "lr", "gradient_norm":
    told = [(line["step"], line[name]) for line in lines if name in line]
    read = [(e.step, e.value) for e in events.Scalars(name)]
    assert len(told) == len(read) > 1, (name, told, read)
    assert all(a[0] == b[0] and abs(a[1] - b[1]) <= 1e-6 * abs(a[1]) for a, b in zip(told, read)), (told, read)
END
}

# A run of six updates in two starts, in the folder events.
events_of_run() {
  rm -rf events
  head -c 4000 "$root/tests/golden/tokenizers/sample.txt" | tokenize -q -t bytes >x.shard.zst
  set -- train -q --layers 1 --d-model 8 --heads 1 --segment 16 --batch 2 --steps 6 --valid-every 2 --log-every 1 --valid x.shard.zst \
    --tensorboard x.shard.zst -o events
  run "$@" --max-time 0:0:0
  [ "$status" -eq 75 ]
  "$@"
  [ "$(find events -name 'events.out.tfevents.*' | wc -l)" -eq 2 ]
}

@test "train --tensorboard: records in good form, one a line of metrics.jsonl" {
  events_of_run
  python3 - <<'END'
import glob, struct
steps = []
for name in sorted(glob.glob("events/events.out.tfevents.*")):
    data, at, first = open(name, "rb").read(), 0, True
    while at < len(data):
        length, _ = struct.unpack_from("<QI", data, at)
        event = data[at + 12 : at + 12 + length]
        assert event[0] == 0x09 and event[9] == 0x10 and event[10] < 128  # wall_time, step
        if first:
            assert event.endswith(b"\x1a\x0dbrain.Event:2")
        else:
            steps.append(event[10])
        at, first = at + length + 16, False
    assert at == len(data)
assert sorted(steps) == sorted(__import__("json").loads(line)["step"] for line in open("events/metrics.jsonl")), steps
END
}

