#!/usr/bin/env bats
# model: what it says of models, what it finds wrong with them, and how they go to others and come in.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1 golden=$root/tests/golden
  cd "$BATS_FILE_TMPDIR"
  head -c 4000 "$golden/tokenizers/sample.txt" >x.txt
  tokenize -q -t bytes x.txt -o x.shard.zst
  train -q --layers 2 --d-model 16 --heads 2 --context 32 --segment 16 --batch 2 --steps 4 --checkpoint-every 2 --keep 1 \
    --memory local x.shard.zst -o trained
  "$root/tests/cli/tiny_gpt2" gpt2
}

setup() {
  needs model
  cd "$BATS_TEST_TMPDIR"
  ln -s "$BATS_FILE_TMPDIR"/* .
}

loss() { # MODEL: of x.shard.zst
  eval-ppl -q -m "$1" --window 16 --memory none --json x.shard.zst | field loss
}

says() { # CODE WORDS COMMAND...
  local code=$1 words=$2
  shift 2
  run --separate-stderr "$@"
  # shellcheck disable=SC2154  # stderr is bats'
  [ "$status" -eq "$code" ] && [[ $stderr == *"$words"* ]] && [ "$(wc -l <<<"$stderr")" -eq 1 ] ||
    { echo "$*: exit $status: $stderr" && return 1; }
}

@test "info says what a model is and how it was trained" {
  model info trained >info
  grep -qx 'arch  *transformer' info
  grep -qx 'parts.transformer.wte  *4096' info
  grep -qx 'tokenizer  *bytes' info
  grep -qx 'options.layers  *2' info
  grep -qx 'trained.memory  *local' info
  grep -qx 'types.F32  *[0-9]*' info
  model info --json trained "$golden/families/qwen3" >lines
  [ "$(wc -l <lines)" -eq 2 ]
  python3 - <<'END'
import json
ours, theirs = map(json.loads, open("lines"))
assert sum(ours["parts"].values()) == ours["parameters"] == ours["types"]["F32"], ours
assert ours["state"]["bytes"] == 0 and ours["state"]["bytes_per_token"] == 2 * 2 * 16 * 4, ours
assert theirs["family"] == "qwen3" and list(theirs["types"]) == ["BF16"] and theirs["files"] == 3, theirs
assert "tokenizer" not in theirs and "trained" not in theirs
END
  # Where none stands with the weights they are read: the same as a store names.
  build-datastore -q -m gpt2 --index exact --json x.shard.zst -o store >/dev/null
  grep -q "$(model info --json gpt2 | field fingerprint)" store/store.json
  [ "$(model info --json trained | field fingerprint)" = "$(model verify --json trained | field fingerprint)" ]
}

@test "verify reads all that a program would read" {
  local families=("$golden"/families/*)
  model verify trained "${families[@]}" gpt2 >lines
  [ "$(wc -l <lines)" -eq $((${#families[@]} + 2)) ]
  grep -q '^trained: ok, [0-9]* tensors, [0-9]* parameters, fingerprint [0-9a-f]\{32\}$' lines
}

@test "verify names every fault, one a line, and exits 65" {
  cp -rL trained broken
  # In a tensor, in a checkpoint and in the tokenizer.
  printf '\377' | dd of=broken/model.safetensors bs=1 seek=9000 conv=notrunc status=none
  printf '\377' | dd of="$(echo broken/step-*)/state.safetensors" bs=1 seek=9000 conv=notrunc status=none
  sed -i 's/"<0x41>"/"<0x41>x"/; s/ *$/ /' broken/tokenizer.json
  echo '{}' >broken/tokenizer.json
  run --separate-stderr model verify broken gpt2
  [ "$status" -eq 65 ]
  echo "$output"
  [[ $output == *"broken/tokenizer.json"* ]]
  [[ $output == *"broken/model.safetensors: corrupt file"* ]]
  [[ $output == *"/state.safetensors"* ]]
  [[ ${lines[-1]} == "gpt2: ok, "* ]]
  [[ $stderr == "model: broken/"*" (and "*" more)" ]]
  # A shape, a type, a tensor that is missing and one too many, all told.
  python3 - "$golden/families/llama" <<'END'
import json, shutil, sys
shutil.copytree(sys.argv[1], "llama")
path = "llama/config.json"
config = json.load(open(path))
config["intermediate_size"] += 1
config["attention_bias"] = True
json.dump(config, open(path, "w"))
END
  run model verify --json llama
  [ "$status" -eq 65 ]
  # 2 layers: 4 biases, and 3 matrices of another shape.
  echo "${lines[0]}" | python3 -c 'import json, sys; faults = json.load(sys.stdin)["faults"]; assert len(faults) == 14, faults'
  # A value that is not finite, in a folder of others.
  python3 - gpt2 <<'END'
import shutil, sys
shutil.copytree(sys.argv[1], "nan")
with open("nan/model.safetensors", "r+b") as file:
    file.seek(-4, 2)
    file.write(b"\0\0\xc0\x7f")
END
  says 65 "ln_f.bias has a value that is not finite" model verify nan
  says 66 "nothing: does not exist" model verify "$BATS_TEST_TMPDIR/nothing"
  cp -rL trained wordless && rm wordless/tokenizer.json
  run model verify wordless
  [ "$status" -eq 65 ]
  [[ $output == *"has no tokenizer.json, although config.json names it"* ]]
  mkdir begun && cp trained/config.json begun
  says 66 "its training has not finished" model verify begun
}

@test "export: what train made goes to a family that has its shape, with the same function" {
  # Its embedding is scaled and shared: the scale goes into the one, the other stays.
  model export trained --family gpt2 -o out >line
  [[ $(cat line) == *"gpt2"* ]]
  model info --json out | python3 -c 'import json, sys; i = json.load(sys.stdin); assert i["family"] == "gpt2" and i["trained"]["memory"] == "local" and not i["options"]["tied"], i'
  [ "$(loss out)" = "$(loss trained)" ]
  eval-ppl -q -m out --json x.shard.zst >a && eval-ppl -q -m trained --json x.shard.zst >b
  [ "$(field loss <a)" = "$(field loss <b)" ]
  # Its card: fields to fill in, what it was trained on and how.
  grep -qx 'license:' out/README.md
  grep -qx '# out' out/README.md
  grep -qx -e "- training data: $(jq -r .tessera.training.data trained/config.json)" out/README.md
  grep -q '"memory": "local"' out/README.md
  [[ $(model --version) == *"(git $(jq -r '.tessera.builds[0].revision' out/config.json))" ]]
  echo 'filled in' >out/README.md
  # The same again finds it done; another model does not replace it.
  run --separate-stderr model export trained --family gpt2 -o out
  [ "$status" -eq 0 ]
  [ "$output" = "$(cat line)" ]
  [ "$stderr" = "model: out already holds this model; nothing to do" ]
  [ "$(cat out/README.md)" = 'filled in' ]
  model export trained --family gpt2 --results a -o with_results
  grep -q "\"signature\": \"$(field signature <a)" with_results/README.md
  says 65 line model export trained --family gpt2 --results line -o no_results
  [ ! -e no_results ]
  says 64 "requires --output-format transformers" model export trained --output-format gguf --results a -o x.gguf
  says 73 "already contains a model" model export "$golden/families/mistral" -o out
  says 78 "cannot be exported as llama: positions is \"learned\", not \"rope\"" model export trained --family llama -o other
  # What changes the scores and what the family has not: said, not dropped.
  for option in --head-bias --logit-softcap=5; do
    train -q --layers 1 --d-model 16 --heads 2 --positions rope --norm-kind rms --feed-forward gated --activation silu --no-bias \
      --no-scale-embedding --no-tied --init gpt2 --segment 8 --batch 1 --steps 1 "$option" x.shard.zst -o "with$option"
    key=${option#--} && key=${key%=5}
    says 78 "cannot be exported as llama: ${key/-/_} is " model export "with$option" --family llama -o other
  done
  says 64 "-o DIR is missing" model export trained
  says 64 "'bert' is not one of gpt2, llama," model export trained --family bert -o other
  [ ! -e other ]
  # One of a family stays of it unless another is asked for.
  model export "$golden/families/mistral" -o mistral
  [ "$(model info --json mistral | field family)" = mistral ]
  model verify mistral
  [ "$(model info --json mistral | jq -c '.types | keys')" = '["BF16"]' ]
  model export "$golden/families/mistral" --dtype float16 -o half
  [ "$(model info --json half | jq -c '.types | keys')" = '["F16"]' ]
  says 73 "already contains a model" model export gpt2 -o gpt2
  # What one that was stopped left behind is no model; what stands there of others' stays.
  rm mistral/model.safetensors
  model export "$golden/families/mistral" -o mistral
  model verify mistral
  mkdir mine && cp trained/tokenizer.json mine
  says 73 "already contains a tokenizer" model export trained --family gpt2 -o mine
}

@test "import: a checkpoint of another program is a model here" {
  for name in nanogpt nanogpt_stream nanomosaics fairseq_tied xl_bands xl_table; do
    model import "$golden/checkpoints/$name.pt" -o "$name" --json >line
    model verify "$name"
    [ "$(model info --json "$name" | field parameters)" = "$(field parameters <line)" ]
  done
  [ "$(model info --json nanomosaics | field arch)" = mosaic ]
  says 0 "nanogpt already holds this model; nothing to do" model import "$golden/checkpoints/nanogpt.pt" -o nanogpt
  says 73 "already contains a model" model import "$golden/checkpoints/nanogpt_stream.pt" -o nanogpt
  says 66 "nothing.pt: cannot open" model import nothing.pt -o other
  says 65 "not a file of torch.save" model import x.txt -o other
  says 65 "a tokenizer of 256 tokens, more than the 40 of the model" model import "$golden/checkpoints/nanogpt.pt" -t bytes -o other
  head -c 3000 "$golden/checkpoints/nanogpt.pt" >cut.pt
  says 65 "cut short or malformed" model import cut.pt -o other
  [ ! -e other ]
  no_leftovers
}

@test "import and export: a file of RWKV-LM is a model here, and comes back" {
  model import "$golden/checkpoints/rwkv7.pth" -o rwkv --json >line
  [ "$(field program <line)" = RWKV-LM ]
  model verify rwkv
  model info --json rwkv >info
  [ "$(field arch <info)" = rwkv7 ]
  [ "$(jq -c '.types | keys' info)" = '["BF16"]' ]
  model export rwkv --output-format rwkv -o back.pth
  model import back.pth -o again
  cmp rwkv/model.safetensors again/model.safetensors
  model export rwkv --output-format rwkv --dtype float32 -o back.safetensors
  model import back.safetensors -o wide
  [ "$(model info --json wide | field fingerprint)" = "$(field fingerprint <info)" ]
  says 64 "--dtype q8_0: requires --output-format gguf" model export rwkv --output-format rwkv --dtype q8_0 -o x.pth
  says 64 "requires --output-format transformers" model export rwkv --output-format rwkv --results info -o x.pth
  says 78 "cannot be exported as RWKV-LM: arch is transformer, not rwkv7" model export trained --output-format rwkv -o x.pth
  says 78 "cannot be exported as rwkv7: rwkv7: \"norm_eps\": 1e-05 with heads of 4 channels" model export rwkv --family rwkv7 -o x
  # The folder of flash-linear-attention is a model as it is.
  model export "$golden/families/rwkv7" -o fla
  [ "$(model info --json fla | field family)" = rwkv7 ]
  [ "$(model info --json fla | field fingerprint)" = "$(model info --json "$golden/families/rwkv7" | field fingerprint)" ]
  head -c 3000 "$golden/checkpoints/rwkv7.pth" >cut.pth
  says 65 "cut short or malformed" model import cut.pth -o other
  [ ! -e x.pth ] && [ ! -e x ] && [ ! -e other ]
  no_leftovers
}

@test "a pipe in a model's folder is refused, not waited for" {
  for file in config.json model.safetensors tokenizer.json; do
    rm -rf piped && cp -r "$golden"/families/llama piped
    rm -f "piped/$file" && mkfifo "piped/$file"
    run --separate-stderr timeout 20 model info piped
    [ "$status" -eq 66 ]
    [[ $stderr == "model: piped/$file: not seekable; give a regular file" ]]
  done
}

@test "an adapter is used by name: by every program, merged, and trained" {
  "$root/tests/cli/tiny_llama" llama
  train -q --from llama --segment 16 --batch 2 --steps 3 --lr 0.01 --lora 2 --lora-alpha 8 --lora-targets q_proj \
    --lora-targets down_proj x.shard.zst -o lora
  [ "$(field target_modules <<<"$(tr -d '\n' <lora/adapter_config.json)")" = "['down_proj', 'q_proj']" ]
  [ ! -e lora/model.safetensors ]
  # Finished is finished.
  cp -r lora before
  run --separate-stderr train --from llama --segment 16 --batch 2 --steps 3 --lr 0.01 --lora 2 --lora-alpha 8 \
    --lora-targets q_proj --lora-targets down_proj x.shard.zst -o lora
  # shellcheck disable=SC2154  # stderr is bats'
  [ "$status" -eq 0 ]
  [[ $stderr == *'train: lora: already finished; nothing to do' ]]
  diff -r before lora
  model merge -q llama lora -o merged --json >record
  [ "$(field family <record)" = llama ]
  model verify merged | grep -q '^merged: ok'
  # The sum is one model, whoever makes it.
  printf 'An adapter is a part of a model.\n' >text
  score -q -t bytes -m llama text >base
  score -q -t bytes -m llama --adapter lora text >adapted
  score -q -t bytes -m merged text >sum
  [ "$(field log_prob <adapted)" = "$(field log_prob <sum)" ]
  [ "$(field log_prob <adapted)" != "$(field log_prob <base)" ]
  [ "$(eval-ppl -q -m llama --adapter lora --json x.shard.zst | field loss)" = "$(eval-ppl -q -m merged --json x.shard.zst | field loss)" ]
  [ "$(sample -q -t bytes -m llama --adapter lora --temperature 0 --max-tokens 8 --prompt cat | od -c)" = \
    "$(sample -q -t bytes -m merged --temperature 0 --max-tokens 8 --prompt cat | od -c)" ]
  # A store is of the model with its adapter.
  build-datastore -q -m llama --adapter lora --index exact x.shard.zst -o store
  eval-ppl -q -m merged --datastore store --datastore-lambda 0.2 x.shard.zst >/dev/null
  says 65 'llama' eval-ppl -q -m llama --datastore store --datastore-lambda 0.2 x.shard.zst
  annotate -q -t bytes -m llama --adapter lora --format text text -o page.html
  # Alone, beside a model, and of another model it is told what it is.
  says 65 'lora: is an adapter of llama, not a model; give the model and --adapter lora' eval-ppl -m lora x.shard.zst
  cp -r llama both
  cp lora/adapter_* both
  says 78 'give --adapter both to apply the adapter' eval-ppl -m both x.shard.zst
  [ "$(score -q -t bytes -m both --adapter both text | field log_prob)" = "$(field log_prob <sum)" ]
  says 65 'is the adapter for another model?' eval-ppl -q -m gpt2 --adapter lora x.shard.zst
  says 66 'not an adapter'"'"'s folder' eval-ppl -q -m llama --adapter gpt2 x.shard.zst
  sed -i 's/"bias": "none"/"use_dora": true/' lora/adapter_config.json
  says 78 '"use_dora": true is not supported' eval-ppl -q -m llama --adapter lora x.shard.zst
}

@test "a Mamba and a Qwen 3.5 as train makes them are exported, and take an adapter" {
  for arch in mamba mamba2 hybrid; do
    small=(--arch $arch --layers 1 --d-model 24 --heads 2 --segment 16 --batch 2 --steps 2)
    family=$arch
    if [ $arch = hybrid ]; then
      family=qwen3_5_text
      small+=(--layers 2 --mixer delta,gated-attention --norm-kind rms-one --feed-forward gated --activation silu --no-bias
        --delta-key-heads 1 --delta-value-heads 2 --delta-d-key 6 --delta-d-value 8 --kv-heads 1 --d-head 16 --rope-partial-factor 0.25)
    fi
    train -q -j 1 "${small[@]}" x.shard.zst -o scaled-$arch
    model export -q scaled-$arch --family $family -o out-$arch
    model verify out-$arch | grep -q ': ok'
    near "$(loss out-$arch)" "$(loss scaled-$arch)" 1e-6
    train -q -j 1 "${small[@]}" --no-scale-embedding --init gpt2 x.shard.zst -o plain-$arch
    for base in plain-$arch out-$arch; do
      train -q -j 1 --from $base --segment 16 --batch 2 --steps 2 --lr 0.1 --lora 2 x.shard.zst -o $base-lora
      model merge -q $base $base-lora -o $base-merged
      adapted=$(eval-ppl -q -m $base --adapter $base-lora --json x.shard.zst | field loss)
      [ "$adapted" = "$(eval-ppl -q -m $base-merged --json x.shard.zst | field loss)" ]
      [ "$adapted" != "$(eval-ppl -q -m $base --json x.shard.zst | field loss)" ]
      [ "$(sample -q -t bytes -m $base --adapter $base-lora --temperature 0 --max-tokens 8 --prompt cat | od -c)" = \
        "$(sample -q -t bytes -m $base-merged --temperature 0 --max-tokens 8 --prompt cat | od -c)" ]
    done
  done
}
