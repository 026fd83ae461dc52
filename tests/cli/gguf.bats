#!/usr/bin/env bats
# GGUF files as models: read as they are, imported, refused.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
  "$root/tests/cli/tiny_llama" llama
  "$root/tests/cli/tiny_gguf" llama llama.gguf
}

setup() {
  needs model
  cd "$BATS_TEST_TMPDIR"
  ln -s "$BATS_FILE_TMPDIR"/* .
}

# The real model: $TESSERA_SMOLLM2, else what tools/setup model brought.
needs_smollm2() {
  local found=("$root"/.deps/model/*.gguf)
  smollm2=${TESSERA_SMOLLM2:-${found[0]}}
  [ -e "$smollm2" ] || skip "no GGUF of SmolLM2; tools/setup model brings one, TESSERA_SMOLLM2 names one"
}

@test "a GGUF file is the model that the folder of transformers is" {
  model info --json llama llama.gguf >lines
  python3 - <<'END'
import json
theirs, ours = map(json.loads, open("lines"))
assert ours["family"] == "llama" and ours["types"] == {"F32": ours["parameters"]}, ours
for key in ("fingerprint", "options", "parameters", "tensors"):
    assert ours[key] == theirs[key], key
END
  printf 'GGUF files are models too.\n' >text
  score -q -t bytes -m llama text >theirs
  score -q -t bytes -m llama.gguf text >ours
  [ "$(field log_prob <ours)" = "$(field log_prob <theirs)" ]
  model verify llama.gguf | grep -q '^llama.gguf: ok, '
}

@test "a GGUF file can be imported, trained on and asked by its own name" {
  model import -q llama.gguf -t bytes -o made --json >record
  [ "$(field program <record)" = gguf ]
  [ "$(model info --json made | field fingerprint)" = "$(model info --json llama | field fingerprint)" ]
  cats 40 >x.txt
  tokenize -q -t bytes x.txt -o x.shard.zst
  train -q --from llama.gguf --segment 16 --batch 2 --steps 1 x.shard.zst -o trained
  [ "$(model info --json trained | field family)" = llama ]
}

@test "a model goes into a GGUF file and comes back" {
  model export -q llama --output-format gguf -o out.gguf --json >record 2>note
  [ "$(field architecture <record)" = llama ]
  [ "$(model info --json out.gguf | field fingerprint)" = "$(model info --json llama | field fingerprint)" ]
  # Rows of 16 and 24 have no blocks of 32.
  run --separate-stderr model export llama --output-format gguf --dtype q8_0 -o small.gguf
  # shellcheck disable=SC2154  # stderr is bats'
  [ "$status" -eq 0 ]
  [[ $stderr == *'their rows are not multiples of 32'* ]]
  printf 'GGUF files are models too.\n' >text
  near "$(score -q -t bytes -m small.gguf text | field log_prob)" "$(score -q -t bytes -m llama text | field log_prob)" 1e-2
  for type in q8_0 q4_0 q4_1; do
    run --separate-stderr model export llama --dtype $type -o folder
    [ "$status" -eq 64 ]
    [[ $stderr == *"--dtype $type: requires --output-format gguf"* ]]
    [ ! -e folder ]
  done
}

# Makes wide, whose rows have whole blocks of 32.
make_wide() { "$root/tests/cli/tiny_llama" wide 64 1 '{"hidden_size": 64, "intermediate_size": 96}'; }

@test "a model goes into a GGUF file of 4 bits, norms excepted" {
  make_wide
  printf 'GGUF files are models too.\n' >text
  for type in q4_0 q4_1; do
    model export -q wide --output-format gguf --dtype $type -o $type.gguf
    model info --json $type.gguf >info
    python3 -c 'import json, sys; assert set(json.load(open("info"))["types"]) == {sys.argv[1].upper(), "F32"}' $type
    near "$(score -q -t bytes -m $type.gguf text | field log_prob)" "$(score -q -t bytes -m wide text | field log_prob)" 5e-2
  done
}

@test "--dtype file computes from the blocks of a GGUF file" {
  make_wide
  model export -q wide --output-format gguf --dtype q8_0 -o q8.gguf
  printf 'GGUF files are models too.\n' >text
  tokenize -q -t bytes text -o x.shard.zst
  for type in float32 file auto; do
    score -q -t bytes -m q8.gguf --dtype $type text | field log_prob >score.$type
    eval-ppl -q -m q8.gguf --dtype $type --memory none --json x.shard.zst | field loss >loss.$type
    sample -q -t bytes -m q8.gguf --dtype $type --temperature 0 --max-tokens 8 --prompt GGUF >text.$type
    annotate -q -t bytes -m q8.gguf --dtype $type --json text | sed -n 2p | field nats >annotated.$type
  done
  for name in score loss annotated; do
    near "$(cat $name.file)" "$(cat $name.float32)" 1e-4
    run -1 cmp $name.file $name.float32
    cmp $name.auto $name.file
  done
  cmp text.file text.float32
  # The types of this file have no products; one note says what becomes of them.
  run --separate-stderr score -t bytes -m llama.gguf --dtype file text
  [ "$status" -eq 0 ]
  [ "$(grep -c 'dtype file: F32 is unpacked to float32' <<<"$stderr")" -eq 1 ]
}

@test "weights in blocks are the default, but not with options that need numbers" {
  make_wide
  model export -q wide --output-format gguf --dtype q8_0 -o q8.gguf
  cats 40 >text
  tokenize -q -t bytes text -o x.shard.zst
  train -q --lora 2 --from q8.gguf --segment 16 --batch 2 --steps 1 x.shard.zst -o adapter
  precision() { # PROGRAM ARGUMENT...
    local program=$1
    shift
    case $program in
      eval-ppl) eval-ppl -q --json "$@" x.shard.zst | field signature ;;
      score) score -q -t bytes "$@" --report figures --json text >/dev/null && field signature <figures ;;
    esac | tr '|' '\n' | sed -n 's/^precision://p'
  }
  for program in eval-ppl score; do
    [ "$(precision $program -m q8.gguf)" = file ]
    [ "$(precision $program -m q8.gguf --dtype float32)" = float32 ]
    [ "$(precision $program -m q8.gguf --dynamic-evaluation)" = float32 ]
    [ "$(precision $program -m q8.gguf --adapter adapter)" = float32 ]
    [ "$(precision $program -m wide)" = float32 ]
    [ "$(precision $program -m llama.gguf)" = float32 ]
  done
  run -64 eval-ppl -m q8.gguf --dtype file --dynamic-evaluation x.shard.zst
  run -64 score -t bytes -m q8.gguf --dtype file --dynamic-evaluation text
  sample -q -t bytes -m q8.gguf --adapter adapter --max-tokens 4 --prompt x
  annotate -q -t bytes -m q8.gguf --adapter adapter --json text >/dev/null
  build-datastore -q -m q8.gguf x.shard.zst -o store
  eval-ppl -q -m q8.gguf --datastore store --json x.shard.zst | field signature | grep -q 'precision:file'
  sample -q -t bytes -m q8.gguf --datastore store --max-tokens 4 --prompt x
}

@test "--dtype file without a GGUF file is refused in one line" {
  printf 'text\n' >text
  tokenize -q -t bytes text -o x.shard.zst
  refused() {
    run --separate-stderr "$@"
    [ "$status" -eq 64 ]
    [ "$stderr" = "$1: --dtype file: llama is not a GGUF file; leave it out" ]
  }
  refused sample -t bytes -m llama --dtype file --prompt x
  refused serve -t bytes -m llama --dtype file --port 0
  refused score -t bytes -m llama --dtype file text
  refused eval-ppl -m llama --dtype file x.shard.zst
  refused annotate -t bytes -m llama --dtype file text
}

@test "a model that transformers saved from a GGUF file goes into a GGUF file" {
  "$root/tests/cli/tiny_llama" saved 64 1 '{"rms_norm_eps": 9.999999747378752e-06, "rope_theta": 10000.10000001}'
  model export -q saved --output-format gguf -o saved.gguf
  printf 'GGUF files are models too.\n' >text
  near "$(score -q -t bytes -m saved.gguf text | field log_prob)" "$(score -q -t bytes -m saved text | field log_prob)" 1e-4
}

@test "a GGUF file that is damaged or of another architecture is refused in one line" {
  refused() { # CODE WORDS FILE
    run --separate-stderr model info "$3"
    # shellcheck disable=SC2154  # stderr is bats'
    [ "$status" -eq "$1" ] && [[ $stderr == "model: $3: "*"$2"* ]] && [ "$(wc -l <<<"$stderr")" -eq 1 ] ||
      { echo "$3: exit $status: $stderr" && return 1; }
  }
  head -c 9000 llama.gguf >cut.gguf
  refused 65 'cut short' cut.gguf
  sed 's/llama/mamba/g' llama.gguf >mamba.gguf
  refused 78 'general.architecture "mamba" is not supported' mamba.gguf
  printf 'no model' >text.gguf
  refused 65 'a text file' text.gguf
  run --separate-stderr tokenize -q -t llama.gguf text.gguf -o x.shard.zst
  [ "$status" -eq 65 ]
  [[ $stderr == 'tokenize: llama.gguf: is a GGUF file of a model; convert it with model import llama.gguf -o DIR'* ]]
}

# bats test_tags=nightly
@test "llama.cpp with float32 keys and values gives SmolLM2's tokens the log-probabilities of score" {
  needs_smollm2
  [ -n "${TESSERA_PEERS:-}" ] || skip "TESSERA_PEERS is not set"
  "$TESSERA_PEERS" -c 'import xllamacpp' || skip "TESSERA_PEERS has no xllamacpp"
  model export -q "$smollm2" --output-format gguf --dtype float32 -o float32.gguf
  "$TESSERA_PEERS" "$root/tests/bench/llama_peer.py" score float32.gguf \
    'The capital of France is Paris, and the river that runs through it is' f32 >theirs
  score -q -m "$smollm2" --dtype float32 --per-token theirs >ours
  python3 - <<'END'
import json
theirs, ours = (json.load(open(name)) for name in ("theirs", "ours"))
pairs = list(zip(theirs["log_probs"], (token["log_prob"] for token in ours["per_token"]), strict=True))
assert len(pairs) == 32 and max(abs(a - b) for a, b in pairs) < 5e-4, pairs
END
}

@test "SmolLM2's GGUF file continues a text, and is the same model when it is imported" {
  needs_smollm2
  sample -q -m "$smollm2" --temperature 0 --max-tokens 8 --prompt 'The capital of France is' >text
  grep -q Paris text
  model import -q "$smollm2" -o imported
  grep -q 'im_start' imported/chat_template.jinja
  printf 'The capital of France is Paris, and the river that runs through it is the Seine.\n' >fixed
  score -q -m "$smollm2" --dtype float32 fixed >direct
  score -q -m imported fixed >folder
  [ "$(field log_prob <direct)" = "$(field log_prob <folder)" ]
  # What a forward pass in float64 by numpy gives of the numbers that the package gguf reads.
  near "$(field log_prob <direct)" -37.165912 1e-4
  # Back again: the same numbers, ids, template and ends of a text.
  model export -q imported --output-format gguf -o again.gguf
  [ "$(model info --json again.gguf | field fingerprint)" = "$(model info --json imported | field fingerprint)" ]
  model import -q again.gguf -o third
  cmp imported/tokenizer.json third/tokenizer.json
  cmp imported/chat_template.jinja third/chat_template.jinja
  model export -q imported --output-format gguf --dtype q8_0 -o small.gguf
  near "$(score -q -m small.gguf fixed | field log_prob)" "$(field log_prob <direct)" 2e-2
  near "$(score -q -m "$smollm2" fixed | field log_prob)" "$(field log_prob <direct)" 1e-4
}
