#!/usr/bin/env bats
# bats file_tags=nightly
# Models of transformers' families that go between Tessera's programs and transformers.

load transformers
script=hf_families.py window=64

setup_file() {
  find_peer || return 0
  # Longer than what the scaled kinds say they were trained with, and than the windows.
  text='The cat sat on a mat and that was that'
  ids=$(printf %s "$text" | od -An -v -tu1)
  export text ids
  printf %s "$text" | tokenize -t bytes -o text.shard.zst
  mkdir made
  # shellcheck disable=SC2086  # a word an id
  peer make made $ids >made.losses
  # shellcheck disable=SC2086
  peer exact make made $ids >exact.losses
}

made() { # NAME...: their folders, as hf_families.py takes them
  printf ',made/%s' "$@" | cut -c2-
}

@test "eval-ppl gives transformers' loss for folders of each family, in single and in double precision" {
  [ "$(wc -l <made.losses)" -ge 24 ]
  [ "$(wc -l <exact.losses)" -eq "$(wc -l <made.losses)" ]
  while read -r name expected; do
    [ "$(find "made/$name" -name '*.safetensors' | wc -l)" -gt 1 ]
    found=$(loss "made/$name")
    echo "$name: $expected, $found"
    close "$found" "$expected" 1e-4
  done <made.losses
  while read -r name expected; do
    found=$(loss "made/$name" --dtype float64)
    echo "$name: $expected, $found"
    close "$found" "$expected" 1e-9
  done <exact.losses
}

@test "sample without chance goes on as transformers' generate does, one text or several" {
  names=(llama llama_yarn mistral qwen2 qwen3 olmo2 gpt_neox opt phi3 phi3_longrope phi ministral3 gpt_neo gemma gemma2 gemma3_text
    mixtral qwen3_moe_stacked olmoe mamba mamba2 qwen3_5_text qwen3_5_every_third)
  # shellcheck disable=SC2086  # a word an id
  peer generate "$(made "${names[@]}")" 16 $ids >expected
  printf '%s\n%s\nA dog\n' "$text" "$text" >prompts
  for i in "${!names[@]}"; do
    sample -m "made/${names[i]}" -t bytes --temperature 0 --max-tokens 16 --json prompts >found
    sed -n "$((i + 1))p" expected | tr ' ' '\n' >line
    echo "${names[i]}: $(tr '\n' ' ' <line)"
    for row in 1 2; do
      sed -n "${row}p" found | python3 -c 'import json, sys; print(*json.loads(sys.stdin.readline())["tokens"], sep="\n")' | diff line -
    done
  done
}

@test "keys of a datastore are what the last feed-forward network reads" {
  # shellcheck disable=SC2086  # a word an id
  peer keys "$(made llama qwen3 olmo2 gemma2)" $ids
  for name in llama qwen3 olmo2 gemma2; do
    build-datastore -m "made/$name" --index exact --window 64 -o "store_$name" text.shard.zst
    "$python" - "store_$name/keys.npy" "made/$name.keys" <<'END'
import sys
import numpy

keys, expected = numpy.load(sys.argv[1]).astype(float), numpy.loadtxt(sys.argv[2])
assert len(keys) == len(expected) - 1
assert abs(keys - expected[:-1]).max() < 1e-2 * abs(expected).max(), abs(keys - expected[:-1]).max()
END
  done
}

@test "transformers gives what model export made of Tessera's usual model the same loss" {
  train --layers 2 --d-model 16 --heads 4 --context 64 --segment 8 --batch 1 --steps 3 --memory local -o usual text.shard.zst
  model export usual --family gpt2 -o usual_gpt2
  # shellcheck disable=SC2086  # a word an id
  peer loss usual_gpt2 $ids >losses
  cat losses
  [ "$(cut -d ' ' -f 2 losses)" = GPT2LMHeadModel ]
  close "$(sed 's/ .*//' losses)" "$(loss usual)" 1e-4
}

@test "transformers loads what train wrote: a family's goes on as that family, a shape of Llama's is a Llama" {
  names=(llama mistral_wide qwen2 qwen3 olmo2 gpt_neox opt phi3 phi3_longrope phi ministral3 gpt_neo gemma gemma2 gemma3_text
    mixtral_stacked qwen3_moe olmoe)
  for name in "${names[@]}"; do
    train --from "made/$name" --segment 8 --batch 1 --steps 2 --lr 1e-9 -o "on_$name" text.shard.zst
  done
  train --layers 2 --d-model 16 --heads 4 --kv-heads 2 --d-ff 24 --positions rope --rope-theta 500 --norm-kind rms \
    --feed-forward gated --activation silu --no-bias --no-scale-embedding --no-tied --context 64 --segment 8 --batch 1 \
    --steps 3 --init gpt2 -o on_nothing text.shard.zst
  # shellcheck disable=SC2086  # a word an id
  peer loss "$(printf ',on_%s' "${names[@]}" nothing | cut -c2-)" $ids >losses
  cat losses
  [ "$(cut -d ' ' -f 2 losses | tr '\n' ' ')" = 'LlamaForCausalLM MistralForCausalLM Qwen2ForCausalLM Qwen3ForCausalLM Olmo2ForCausalLM GPTNeoXForCausalLM OPTForCausalLM Phi3ForCausalLM Phi3ForCausalLM PhiForCausalLM Ministral3ForCausalLM GPTNeoForCausalLM GemmaForCausalLM Gemma2ForCausalLM Gemma3ForCausalLM MixtralForCausalLM Qwen3MoeForCausalLM OlmoeForCausalLM LlamaForCausalLM ' ]
  i=0
  for name in "${names[@]}" nothing; do
    i=$((i + 1))
    now=$(sed -n "${i}s/ .*//p" losses)
    close "$now" "$(loss "on_$name")" 1e-4
    [ "$name" = nothing ] || close "$now" "$(awk -v name="$name" '$1 == name { print $2 }' made.losses)" 1e-4
  done
}
