#!/usr/bin/env bats
# bats file_tags=nightly
# Adapters that go between Tessera's programs and peft.

load transformers
script=hf_peft.py window=64

setup_file() {
  find_peer || return 0
  text='The cat sat on a mat and that was that'
  ids=$(printf %s "$text" | od -An -v -tu1)
  export text ids
  printf %s "$text" | tokenize -q -t bytes -o text.shard.zst
  "$root/tests/cli/tiny_llama" llama
}

@test "peft gives the loss of an adapter that train --lora made, beside the run's config.json too" {
  train -q --from llama --segment 16 --batch 2 --steps 20 --lr 0.02 --lora 2 --lora-alpha 8 text.shard.zst -o run
  [ -e run/config.json ]
  # shellcheck disable=SC2086  # a word an id
  peer loss llama run $ids >losses
  ours=$(loss llama --adapter run)
  model merge -q llama run -o merged
  while read -r theirs; do
    echo "$theirs, $ours, $(loss merged)"
    close "$ours" "$theirs" 1e-5
    close "$(loss merged)" "$theirs" 1e-5
  done <losses
  [ "$(wc -l <losses)" -eq 2 ]
}

@test "an adapter as peft writes one has peft's loss" {
  # shellcheck disable=SC2086  # a word an id
  theirs=$(peer make llama theirs $ids)
  echo "$theirs, $(loss llama --adapter theirs), bare $(loss llama)"
  close "$(loss llama --adapter theirs)" "$theirs" 1e-5
  ! close "$(loss llama)" "$theirs" 1e-2 || false
}

@test "patterns, and terms of a shared embedding and head, are those of peft" {
  PYTHONPATH=$root/tests/golden "$python" "$root/tests/golden/peft_rules.py" | cmp - "$root/tests/golden/peft/rules.jsonl"
  "$root/tests/cli/tiny_llama" tied 64 1 '{"tie_word_embeddings": true}'
  for config in '{"target_modules": ["embed_tokens", "lm_head"]}' '{"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]}' \
    '{"target_modules": ["lm_head", "q_proj"], "ensure_weight_tying": true, "alpha_pattern": {"lm_head": 9, "^q_proj": 99}}'; do
    rm -rf theirs
    # shellcheck disable=SC2086  # a word an id
    theirs=$(CONFIG=$config peer make tied theirs $ids)
    echo "$config: $theirs, $(loss tied --adapter theirs), bare $(loss tied)"
    close "$(loss tied --adapter theirs)" "$theirs" 1e-5
    ! close "$(loss tied)" "$theirs" 1e-2 || false
  done
}
