#!/usr/bin/env bats
# Texts where shards are asked for.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  zstdcat "$root"/examples/novels/the-lost-world.txt.zst | sed -n 1,700p >book.txt
  zstdcat "$root"/examples/novels/the-lost-world.txt.zst | tail -n 60 >other.txt
  tiny=(--layers 1 --d-model 16 --heads 2 --segment 32 --batch 4 --lr 0.01 -j 1)
  train "${tiny[@]}" --steps 20 --log-every 10 --valid other.txt --valid-every 10 book.txt -o model 2>train.err
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

@test "train book.txt, eval-ppl other.txt: a tokenizer is learned and kept, and what is guessed is said" {
  grep -qx 'train: no tokenizer was given: learned a byte-level BPE of 500 tokens; -t uses another' train.err
  grep -qx "train: book.txt: is a text, encoded with the run's tokenizer: 1 document, [0-9]* tokens, $(wc -c <book.txt) bytes, [0-9]* words" train.err
  [ -e model/tokenizer.json ]
  run --separate-stderr eval-ppl -m model --json other.txt
  [ "$status" -eq 0 ]
  [[ $stderr == *"eval-ppl: other.txt: is a text, encoded with the model's tokenizer: 1 document, "* ]]
  # The same as by a shard.
  tokenize -q -t model/tokenizer.json other.txt -o other.shard.zst
  [ "$(eval-ppl -q -m model --json other.shard.zst)" = "$output" ]
}

@test "the same figures from stdin, a pipe, a compressed file; JSON lines are documents" {
  eval-ppl -q -m model --json other.txt >want
  gzip -c other.txt >other.txt.gz
  eval-ppl -q -m model --json other.txt.gz | cmp - want
  eval-ppl -q -m model --json <other.txt | cmp - want
  cat other.txt | eval-ppl -q -m model --json - | cmp - want
  eval-ppl -q -m model --json <(cat other.txt) | cmp - want
  tokenize -q -t model other.txt | eval-ppl -q -m model --json - | cmp - want
  jq -R -s '{text: .}' -c other.txt >other.jsonl
  eval-ppl -q -m model --json other.jsonl | cmp - want
  eval-ppl -q -m model --json <other.jsonl | cmp - want
}

@test "datastores and n-grams of texts are those of their shards" {
  tokenize -q -t model book.txt -o book.shard.zst
  build-datastore -q -j 1 -m model --index exact book.txt -o store >/dev/null
  build-datastore -q -j 1 -m model --index exact book.shard.zst -o store.shard >/dev/null
  cmp store/rows.shard.zst store.shard/rows.shard.zst || diff -rq store store.shard
  build-ngrams -q -t model book.txt -o ngrams >/dev/null
  build-ngrams -q book.shard.zst -o ngrams.shard >/dev/null
  diff -r ngrams ngrams.shard
  run --separate-stderr -64 build-ngrams book.txt -o none
  [[ $stderr == "build-ngrams: give a tokenizer: -t tokenizer.json"* ]]
  [ ! -e none ]
}

@test "what is no text, and a text that is not UTF-8, is refused in one line" {
  head -c 3000 /dev/zero >zeros
  run --separate-stderr -65 eval-ppl -m model zeros
  [ "$stderr" = "eval-ppl: zeros: not a shard and not text" ]
  run --separate-stderr -65 train "$root/tests/golden/parquet/rows.parquet" -o trained
  [[ $stderr == *"rows.parquet: not a shard, but Parquet, not text; tokenize --format parquet reads such files, by name" ]]
  [ ! -e trained ]
  : >empty.txt
  run --separate-stderr -65 eval-ppl -m model empty.txt
  [ "$stderr" = "eval-ppl: empty.txt: is empty: no text and no shard, or cut short" ]
  { head -c 5000 "$root/LICENSE" && printf 'caf\351 noir' && head -c 100 "$root/LICENSE"; } >latin.txt
  run --separate-stderr -65 eval-ppl -m model latin.txt
  [[ $stderr == "eval-ppl: latin.txt: byte 5003 (0xe9) is not UTF-8; "* ]]
  run --separate-stderr -65 bash -c 'eval-ppl -m model <latin.txt'
  [[ $stderr == "eval-ppl: stdin: byte 5003 (0xe9) is not UTF-8; "* ]]
  run --separate-stderr -65 eval-ppl -m model model/config.json
  [[ $stderr == "eval-ppl: model/config.json: not a shard"* ]]
  head -c 40 <(tokenize -q -t bytes other.txt) >cut.shard.zst
  run --separate-stderr -65 eval-ppl -m model cut.shard.zst
  [[ $stderr == *"cut.shard.zst"*"cut short"* ]]
}

@test "a run that has not finished is a model: its best weights so far, or those of a step" {
  local tiny=(--layers 1 --d-model 16 --heads 2 --segment 32 --batch 4 --lr 0.01 -j 1)
  train -q "${tiny[@]}" --steps 100000 --checkpoint-every 10 --keep 2 --valid other.txt --valid-every 10 book.txt -o run &
  local pid=$!
  until compgen -G 'run/step-[2-9]0' >/dev/null; do sleep 0.1; done
  kill -TERM "$pid"
  wait "$pid" || [ $? -eq 75 ]
  run --separate-stderr eval-ppl -m run --json other.txt
  [ "$status" -eq 0 ]
  [[ $stderr == *"eval-ppl: run: its training has not finished; uses the weights of its best validation so far, "*" after step "* ]]
  step=$(basename "$(compgen -G 'run/step-*' | head -n 1)")
  run --separate-stderr eval-ppl -m "run/$step" --json other.txt
  [ "$status" -eq 0 ]
  [[ $stderr == *"run: its training has not finished; uses the weights after step ${step#step-}"* ]]
  sample -q -m run --max-tokens 5 --prompt 'The ' >said
  [ -s said ]
  # What the best validation was is nearly what these weights have.
  jq -s 'map(select(.valid_loss)) | min_by(.valid_loss) | .valid_loss' run/metrics.jsonl >best
  eval-ppl -q -m run --json other.txt | jq .loss >now
  python3 -c 'a, b = float(open("best").read()), float(open("now").read()); assert abs(a - b) < 0.02, (a, b)  # eval-ppl scores the first token too'
}

@test "train says how far it is where stderr is no terminal, and at the end what came of it" {
  grep -Eq '^training: 10 steps \(50 %\).*loss [0-9.]+, valid [0-9.]+$' train.err
  grep -Eq '^train: model: finished: 20 steps, [0-9:.]+ in this process, loss [0-9.]+; best valid_loss [0-9.]+ after step (10|20), whose weights the model has$' train.err
}
