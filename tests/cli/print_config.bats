#!/usr/bin/env bats
# The file that --print-config writes repeats the command that wrote it.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR" || return 1
  needs train
  awk 'BEGIN { for (i = 0; i < 400; ++i) print "line", i % 7, "of", i * i % 11 }' >text
  tokenize -q --learn bpe --vocab-size 280 text -o bpe.json
  tokenize -q -t bpe.json text -o x.shard.zst
  small="--layers 1 --d-model 16 --heads 2 --segment 16 --batch 2 -q"
  # shellcheck disable=SC2086  # several options
  train $small --dropout 0.3 --steps 3 x.shard.zst -o from
  bm25-pack -q --segment 16 x.shard.zst -o order.shard.zst
}

setup() {
  cd "$BATS_FILE_TMPDIR" || return 1
}

# same ARGUMENT COMMAND...: the command with ARGUMENT at its end, and by its own file with ARGUMENT alone; each writes out,
# a file or a folder, and these are compared. With EVERY=yes the file also sets each option that was not given to its default.
same() {
  local argument=$1 by
  shift
  "$@" --print-config >settings
  [ "${EVERY-}" != yes ] || sed -i -E 's/^#([a-z0-9-]+ = )/\1/' settings
  rm -rf flags file
  for by in flags file; do
    mkdir "$by"
    [ "$by" = flags ] || set -- "$1" --config settings
    "$@" -q "$argument" -o out >"$by/stdout"
    [ -d out ] || sed -i -E 's/"(tokens_per_s|seconds)":[^,}]*//g' out
    mv out "$by/out"
  done
  diff -r -x timings.jsonl flags file
}

@test "options that a program chooses if they are not given stay its choice" {
  printf '{"text": "one"}\n{"text": "two"}\n' >b.jsonl
  same b.jsonl tokenize -t bytes
  [ "$(shard info --json flags/out | grep -o '"documents":[0-9]*')" = '"documents":2' ]
  same x.shard.zst eval-ppl -m from --protocol lm-eval --json
  # What a model brings: its dropout, its shape, its vocabulary.
  same x.shard.zst train --from from --steps 2
  grep -q '"dropout": *0.3' flags/out/config.json
  same x.shard.zst train --from from --order order.shard.zst --steps 2
  same x.shard.zst train --layers 1 --d-model 16 --heads 2 --order order.shard.zst --steps 2
  printf 'line 3 of\n' >prompts.txt
  same prompts.txt sample -m from --max-tokens 4
  same x.shard.zst build-datastore -m from
  printf '{"context": "line 3", "continuation": " of"}\n' >requests.jsonl
  same requests.jsonl score -m from
}

@test "a file that sets every option to its default changes nothing" {
  export EVERY=yes
  same x.shard.zst eval-ppl -m from --protocol lm-eval --json
  same x.shard.zst train --layers 1 --d-model 16 --heads 2 --order order.shard.zst --steps 2
  same x.shard.zst build-datastore -m from
  printf '{"prompt": "a", "completion": "b"}\n' >parts.jsonl
  same parts.jsonl tokenize -t bytes --loss-on completion
  printf 'line 3 of\n' >prompts.txt
  same prompts.txt sample -m from
  run --separate-stderr -64 sample -m from --config settings --system be prompts.txt
  [ "$stderr" = 'sample: --system: requires --chat' ]
}

@test "a value that no config file can have is refused, and nothing is printed" {
  run --separate-stderr -64 tokenize -t bytes --document-separator $'\xff' --print-config x.txt
  [ -z "$output" ]
  [[ $stderr == 'tokenize: --print-config: a config file cannot have --document-separator '*'is not UTF-8'* ]]
}

@test "a model of pairs is decoded by a beam, from its own file too" {
  printf 'a b\nb a\n' >source.txt
  tokenize -q -t bpe.json --pairs source.txt source.txt -o pairs.shard.zst
  train -q --arch encoder-decoder --layers 1 --d-model 16 --heads 2 --steps 1 pairs.shard.zst -o translator
  sample -q -m translator --source --max-len-b 4 --print-config >settings
  sample -q -m translator --source --max-len-b 4 <source.txt >flags.txt
  sample --config settings <source.txt | cmp - flags.txt
  sed -E 's/^#([a-z0-9-]+ = )/\1/' settings >every
  sample --config every <source.txt | cmp - flags.txt
  sample -q -m translator --source --max-len-b 4 --beam 4 <source.txt | cmp - flags.txt
}
