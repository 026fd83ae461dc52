#!/usr/bin/env bats
# What a path means where a model, a tokenizer or a datastore is taken, and what is said of other paths and other programs' flags.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
  export OMP_NUM_THREADS=1
}

@test "a model is found by a file of its folder and in a hub's cache; its folder is a tokenizer" {
  needs model
  "$root/tests/cli/tiny_llama" m
  printf hello >x.txt
  mkdir -p models--org--name/refs models--org--name/snapshots
  cp -r m models--org--name/snapshots/abc
  printf abc >models--org--name/refs/main
  run -0 model info --json m/config.json m/model.safetensors models--org--name
  [ "$(jq -r .fingerprint <<<"$output" | sort -u | wc -l)" -eq 1 ]
  run --separate-stderr -66 sample -m org/name --prompt x
  [[ $stderr == "sample: org/name: does not exist, and models are not downloaded; "*"hf download org/name --local-dir DIR"* ]]
  mkdir -p "$PWD/hub" && mv models--org--name hub
  HF_HUB_CACHE=$PWD/hub run --separate-stderr -66 score -m org/name x.txt
  [[ $stderr == *"is in the hub cache: give $PWD/hub/models--org--name" ]]
  cp "$root/tests/golden/tokenizers/bpe.json" m/tokenizer.json
  tokenize -q -t m x.txt -o folder.zst
  tokenize -q -t m/tokenizer.json x.txt -o file.zst
  cmp folder.zst file.zst
}

@test "what no model, datastore or shard is is told with the way in" {
  needs model
  printf 'It was a bright cold day in April' >book.txt
  printf 'GGUF\3\0\0\0' >x.gguf
  mkdir store
  echo '{}' >store/store.json
  run --separate-stderr -66 model info store
  [ "$stderr" = "model: store: not a model's folder: it has no config.json; it is a datastore" ]
  run --separate-stderr -65 model verify x.gguf
  [[ $stderr == "model: x.gguf: "* ]]
  run --separate-stderr -66 store info nothing
  [[ $stderr == "store: nothing: not a datastore: it does not exist; "* ]]
  run --separate-stderr -66 store info book.txt
  [[ $stderr == *"not a datastore: it is a text file; give a folder of build-datastore" ]]
  run --separate-stderr -66 ngrams find -i store the
  [[ $stderr == *"not an index of n-grams: it is a datastore; give a folder of build-ngrams" ]]
  run --separate-stderr -66 shard info store
  [ "$stderr" = 'shard: store: is a datastore; give a file' ]
  run --separate-stderr -66 tokenize -t gpt2 book.txt -o x
  [ "$stderr" = 'tokenize: gpt2: does not exist; give a tokenizer.json, or a folder with one' ]
  run --separate-stderr -65 tokenize -t book.txt book.txt -o x
  [[ $stderr == 'tokenize: book.txt: not a tokenizer; give a tokenizer.json, '* ]]
  run --separate-stderr -73 train book.txt -o store
  [ "$stderr" = 'train: store: is a datastore; give an empty or new folder' ]
  tokenize -q -t bytes book.txt -o book.shard.zst
  run --separate-stderr -65 train book.shard.zst --memory ext --order book.txt -o x
  [[ $stderr == *'train: book.txt: is a text file; give an order of bm25-pack' ]]
  run --separate-stderr -65 shard info book.txt
  [[ $stderr == *"book.txt: not a shard, but text; encode a text with: tokenize -t TOKENIZER book.txt -o X.shard.zst" ]]
}

@test "other programs' names of options lead to those that are here" {
  needs train
  for pair in --learning-rate=1:--lr --batch_size=2:--batch --n-layer=2:--layers --block-size=8:--segment; do
    run --separate-stderr -64 train "${pair%:*}"
    [ "$stderr" = "train: ${pair%=*}: no such option; did you mean ${pair#*:}?; see --help" ]
  done
  run --separate-stderr -64 sample --max-new-tokens 5
  [[ $stderr == *"; did you mean --max-tokens?; see --help" ]]
}
