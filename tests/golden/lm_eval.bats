#!/usr/bin/env bats
# bats file_tags=nightly
# examples/lm-eval: lm-evaluation-harness is answered by Tessera what its Hugging Face backend answers for the same model.
#
# TESSERA_PEERS: a python with lm_eval, torch, transformers and accelerate.

load transformers
script=lm_eval_answers.py

field() { python3 -c 'import json, sys; print(json.loads(sys.stdin.readline())[sys.argv[1]])' "$1"; }

setup_file() {
  find_peer || return 0
  tasks=$root/examples/lm-eval/tasks
  harness() { make -s -C "$root/examples/lm-eval" BIN="${BIN:-$root/build/bin}" OUT="$PWD/out" PYTHON="$python" J=1 "$@"; }
  harness all
  cp -r out/model hf
  echo '{"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<|endoftext|>"}' >hf/tokenizer_config.json
  model=$PWD/hf
  (cd out && HF_DATASETS_CACHE=$PWD/cache peer hf "$model" last-word,second-half,pages,next-words "$tasks" hf.answers)
  harness store
}

@test "continuations, choices, rolling windows and texts are those of the Hugging Face backend" {
  peer compare out/bare.answers out/hf.answers >found || { cat found && return 1; }
  [ "$(cat found)" = 'last-word 16
next-words 16
pages 4
second-half 16' ]
  # Pages longer than the model's 128 positions.
  awk 'length($0) > 1500 { ++n } END { exit !(n >= 2) }' out/pages.jsonl
}

@test "its task wikitext has the figures of tokenize --format wikitext and eval-ppl --protocol lm-eval" {
  for title in First Second Third; do
    printf ' \n = %s = \n \n The %s was known , in 1 @,@ 000 places ( and more ) , as \" the best \" . \n' "$title" "$title"
    zstdcat "$root"/examples/novels/the-lost-world.txt.zst | sed -n '300,330p' | sed "s/[.,;]/ &/g; s/^/ /; s/$/ /"
  done | tr -d '\\' >wiki
  tokenize -q -t hf/tokenizer.json --format wikitext --detokenise wiki -o wiki.shard.zst
  eval-ppl -m hf --protocol lm-eval --json wiki.shard.zst >ours
  HF_DATASETS_CACHE=$PWD/cache peer wikitext hf wiki wiki.out >theirs
  read -r word byte bits <theirs
  close "$(field word_perplexity <ours)" "$word" "$(python3 -c "print(1e-4 * $word)")"
  close "$(field byte_perplexity <ours)" "$byte" 1e-4
  close "$(field bits_per_byte <ours)" "$bits" 1e-4
}

@test "with a datastore attached every task is answered, and pages of the novel are more probable" {
  perplexity() { awk -F '|' '/byte_perplexity/ { print $8 }' "out/$1.txt"; }
  [ "$(grep -c '^|' out/store.txt)" -eq "$(grep -c '^|' out/bare.txt)" ]
  awk -v a="$(perplexity store)" -v b="$(perplexity bare)" 'BEGIN { exit !(a > 1 && a < b) }'
}
