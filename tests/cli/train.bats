#!/usr/bin/env bats
# train: what it writes, how it stops and goes on, what it refuses.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  text_shards 6000 2000
}

setup() {
  data=$BATS_FILE_TMPDIR
  tiny=(--layers 1 --d-model 16 --heads 2 --context 32 --segment 32 --batch 4 --lr 0.01 -q -j 1)
  cd "$BATS_TEST_TMPDIR"
}

# die_after N COMMAND...: kill -9 once metrics.jsonl has N lines more than it had, or the command ended.
die_after() {
  local more=$1 pid lines
  shift
  lines=$(wc -l 2>/dev/null <parts/metrics.jsonl || echo 0)
  TESSERA_FORK_SERVERS='' "$@" &
  pid=$!
  while [ "$(wc -l 2>/dev/null <parts/metrics.jsonl || echo 0)" -lt $((lines + more)) ] && kill -0 "$pid" 2>/dev/null; do
    sleep 0.02
  done
  kill -9 "$pid" 2>/dev/null || return 0
  wait "$pid" || [ $? -eq 137 ]
}

@test "options are optional: a model of a shard alone, whole in its folder" {
  train --steps 3 --layers 1 --d-model 16 --heads 2 --segment 32 -q -j 1 -o model "$data/train.shard.zst"
  [ "$(find model -type f -printf '%f\n' | sort | tr '\n' ' ')" = \
    "config.json metrics.jsonl model.safetensors timings.jsonl tokenizer.json " ]
  python3 - <<'END'
import json
line = json.loads(open('model/metrics.jsonl').readlines()[-1])
assert list(line) == ['step', 'loss', 'perplexity', 'lr', 'gradient_norm'] and line['step'] == 3, line
line = json.loads(open('model/timings.jsonl').readlines()[-1])
assert line['tokens_per_s'] > 0 and line['peak_bytes'] > 1e6, line
config = json.load(open('model/config.json'))['tessera']
assert config['segment'] == 32 and config['training']['batches'] == 'shuffled', config
END
}

@test "the loss falls, with each memory and optimiser" {
  local flags
  for flags in "--memory local" "--memory local,long" "--memory ext --drop-local 0.5" \
    "--optimiser nag --lr 0.2 --momentum 0.9" "--optimiser adam --schedule inverse-sqrt" "--optimiser muon" "--batches streams --positions rope"; do
    rm -rf model
    # shellcheck disable=SC2086  # words
    train "${tiny[@]}" --steps 60 --log-every 5 $flags -o model "$data/train.shard.zst"
    python3 -c '
import json
loss = [json.loads(line)["loss"] for line in open("model/metrics.jsonl")]
assert loss[0] > 4.3 and loss[-1] < 3.9, loss'
  done
}

@test "the same command, seed and threads give the same bytes; another seed does not" {
  train "${tiny[@]}" --steps 10 --memory local,long -o a "$data/train.shard.zst"
  train "${tiny[@]}" --steps 10 --memory local,long -o b "$data/train.shard.zst"
  train "${tiny[@]}" --steps 10 --memory local,long --seed 2 -o c "$data/train.shard.zst"
  same a b
  run ! cmp -s a/model.safetensors c/model.safetensors
}

@test "killed with -9 at any moment and continued, a run ends in the same bytes" {
  local round command=(train "${tiny[@]}" --steps 120 --log-every 2 --checkpoint-every 7 --keep 2 --memory local,long --valid
    "$data/valid.shard.zst" --valid-every 30)
  "${command[@]}" -o whole "$data/train.shard.zst"
  for round in 3 1 8 $((RANDOM % 12 + 1)) $((RANDOM % 12 + 1)) $((RANDOM % 12 + 1)); do
    die_after "$round" "${command[@]}" -o parts "$data/train.shard.zst"
  done
  "${command[@]}" -o parts "$data/train.shard.zst"
  same whole parts
}

@test "SIGTERM saves and exits 75; the same command goes on to the same bytes, then has nothing to do" {
  local command=(train "${tiny[@]}" --steps 100 --log-every 1 --batches streams --positions alibi --dropout 0.1 --attention-dropout 0.1)
  "${command[@]}" -o whole "$data/train.shard.zst"
  stops_at TERM parts "${command[@]}" -o parts "$data/train.shard.zst"
  [ ! -e parts/model.safetensors ]
  [ "$(find parts -maxdepth 1 -name 'step-*' | wc -l)" -eq 1 ]
  "${command[@]}" -o parts "$data/train.shard.zst"
  same whole parts
  cp -r parts before
  run "${command[@]/-q/-v}" -o parts "$data/train.shard.zst"
  [ "$status" -eq 0 ]
  [[ $output == *"already finished"* ]]
  diff -r parts before
}

@test "--max-time saves and exits 75, as often as it takes" {
  local code=75 rounds=0 command=(train "${tiny[@]}" --steps 400)
  "${command[@]}" -o whole "$data/train.shard.zst"
  while [ "$code" -eq 75 ]; do
    code=0
    "${command[@]}" --max-time 1 -o parts "$data/train.shard.zst" || code=$?
    rounds=$((rounds + 1))
  done
  [ "$code" -eq 0 ]
  same whole parts
}

@test "a piped run keeps its data and goes on, with the pipe or without" {
  local command=(train "${tiny[@]}" --steps 40)
  "${command[@]}" -o whole "$data/train.shard.zst"
  run -75 "${command[@]}" --max-time 0 -o parts <"$data/train.shard.zst"
  [ -e parts/stdin.shard.zst ]
  run -75 "${command[@]}" --max-time 0 -o parts - < <(cat "$data/train.shard.zst")
  run -65 "${command[@]}" -o parts - <"$data/valid.shard.zst"
  [[ $output == *"stdin: differs from the data"* ]]
  "${command[@]}" -o parts </dev/null
  same whole parts
  "${command[@]}" -o parts - <"$data/train.shard.zst"
}

@test "another configuration or other data in the folder are refused by name, nothing changes" {
  run -75 train "${tiny[@]}" --steps 40 --max-time 0 -o model "$data/train.shard.zst"
  cp -r model before
  run -64 train "${tiny[@]}" --steps 41 -o model "$data/train.shard.zst"
  [[ $output == *"steps 40, now 41"* ]]
  run -64 train "${tiny[@]}" --steps 40 --memory local -o model "$data/train.shard.zst"
  [[ $output == *'memory "none", now "local"'* ]]
  run -64 train "${tiny[@]}" --steps 40 -o model "$data/valid.shard.zst"
  [[ $output == *"begun with another FILE than $data/valid.shard.zst"* ]]
  run -64 train "${tiny[@]}" --steps 40 --valid "$data/valid.shard.zst" -o model "$data/train.shard.zst"
  [[ $output == *"begun with no --valid, now $data/valid.shard.zst"* ]]
  diff -r model before
}

@test "a second process in the folder is refused, the first one goes on" {
  local pid lines code=0 command=(train "${tiny[@]}" --steps 10000000 --log-every 1 -o model "$data/train.shard.zst")
  "${command[@]}" &
  pid=$!
  while [ ! -s model/metrics.jsonl ]; do sleep 0.02; done
  run -73 "${command[@]}"
  [[ $output == *"another process"* ]]
  lines=$(wc -l <model/metrics.jsonl)
  while [ "$(wc -l <model/metrics.jsonl)" -le "$lines" ]; do sleep 0.02; done
  kill -TERM "$pid"
  wait "$pid" || code=$?
  [ "$code" -eq 75 ]
}

@test "--from starts from a model, with another objective; what contradicts it is refused" {
  train "${tiny[@]}" --steps 60 -o plain "$data/train.shard.zst"
  train --from plain --segment 32 --batch 4 --steps 20 --lr 0.003 --log-every 5 --memory local,long -q -j 1 -o trime \
    "$data/train.shard.zst"
  python3 -c '
import json
first = json.loads(open("trime/metrics.jsonl").readline())["loss"]
assert first < 3.9, first
config = json.load(open("trime/config.json"))["tessera"]
assert config["model"]["d_model"] == 16 and config["memory"] == "local,long", config'
  run --separate-stderr -0 train --from plain --segment 32 --plan --json "$data/train.shard.zst"
  [[ $stderr == *"train: --from: rate 2e-5, one epoch; --lr and --steps set others" ]]
  run -64 train --from plain --layers 2 --steps 20 -o other "$data/train.shard.zst"
  [[ $output == *"--layers: plain has 1, not 2"* ]]
  head -c 3000 "$data/train.txt" >small.txt
  tokenize -q --learn bpe --vocab-size 300 small.txt -o tokenizer.json
  tokenize -q -t tokenizer.json small.txt -o small.shard.zst
  run -65 train --from plain --steps 20 -o other small.shard.zst
}

@test "--bos: each row begins with the token, and validation is eval-ppl's with it" {
  train "${tiny[@]}" --steps 3 --bos none -o plain "$data/train.shard.zst"
  train "${tiny[@]}" --steps 3 -o auto "$data/train.shard.zst" # its tokenizer has no template
  cmp plain/metrics.jsonl auto/metrics.jsonl
  train "${tiny[@]}" --steps 3 --bos e --valid "$data/valid.shard.zst" -o begun "$data/train.shard.zst"
  ! cmp -s plain/model.safetensors begun/model.safetensors || false
  [ "$(jq -r .tessera.training.bos begun/config.json)" = e ]
  valid=$(jq .valid_loss begun/metrics.jsonl | grep -v null | tail -n 1)
  near "$(eval-ppl -m begun --bos e --bos-at window --json "$data/valid.shard.zst" | field loss)" "$valid" 1e-5
  run --separate-stderr -64 train "${tiny[@]}" --steps 3 --bos '<s>' -o other "$data/train.shard.zst"
  [[ $stderr == "train: --bos <s>: not a token of"* ]]
}

@test "the memories' temperature at test is calibrated, stands in config.json, and every program goes by it" {
  train "${tiny[@]}" --dropout 0.4 --steps 40 --memory long --valid "$data/valid.shard.zst" -o trime "$data/train.shard.zst"
  python3 - trime <<'END'
import json, sys
config = json.load(open(sys.argv[1] + '/config.json'))['tessera']
lines = [json.loads(line) for line in open(sys.argv[1] + '/metrics.jsonl')]
lines = [line for line in lines if 'valid_loss' in line]
best = min(lines, key=lambda line: line['valid_loss'])
assert config['joint_temperature'] == best['joint_temperature'], (config['joint_temperature'], best)
assert config['memory_temperature'] == 1, config
END
  chosen=$(python3 -c 'import json; print(json.load(open("trime/config.json"))["tessera"]["joint_temperature"])')
  for temperature in auto 0.5 1 10; do
    eval-ppl -q -j 1 -m trime --joint-temperature $temperature --json "$data/valid.shard.zst" >>figures
  done
  python3 - "$chosen" <<'END'
import json, sys
chosen, *others = [json.loads(line) for line in open('figures')]
assert f'|temperature:{float(sys.argv[1]):g}|' in chosen['signature'], chosen
assert all(chosen['loss'] < other['loss'] + 0.01 for other in others), (chosen, others)
END
  # Another figure in its place is another default; none is the temperature of the training.
  sed -i -E 's/("joint_temperature": )[0-9.]+/\17.5/' trime/config.json
  [[ $(eval-ppl -q -j 1 -m trime --json "$data/valid.shard.zst") == *"|temperature:7.5|"* ]]
  cmp <(sample -q -j 1 -m trime --prompt "the " --max-tokens 9 --temperature 0 --json) \
    <(sample -q -j 1 -m trime --prompt "the " --max-tokens 9 --temperature 0 --joint-temperature 7.5 --json)
  run -1 cmp -s <(sample -q -j 1 -m trime --prompt "the " --max-tokens 9 --temperature 0 --json) \
    <(sample -q -j 1 -m trime --prompt "the " --max-tokens 9 --temperature 0 --joint-temperature 0.1 --json)
  sed -i '/"joint_temperature"/d' trime/config.json
  [[ $(eval-ppl -q -j 1 -m trime --json "$data/valid.shard.zst") == *"|temperature:1|"* ]]
}

@test "idle threads sleep after microseconds, unless the environment says otherwise" {
  # seen VARIABLE=VALUE...: the GOMP_SPINCOUNT that a command of the program inherits.
  seen() {
    rm -rf spins waiting
    env -u OMP_WAIT_POLICY -u GOMP_SPINCOUNT "$@" "$BIN/train" -q --layers 1 --d-model 8 --heads 1 --segment 16 --batch 2 --steps 1 \
      --valid "$data/train.shard.zst" --valid-command "printenv GOMP_SPINCOUNT >$PWD/spins; echo 1" -o waiting "$data/train.shard.zst"
    cat spins
  }
  [ "$(seen A=b)" = 1500 ]
  [ "$(seen GOMP_SPINCOUNT=7)" = 7 ]
  [ "$(seen OMP_WAIT_POLICY=passive)" = '' ]
}

@test "without a text to validate on, or with ext, training's own text calibrates; --valid-command sees it too" {
  local memory
  for memory in local ext; do
    train "${tiny[@]}" --steps 6 --memory $memory -o $memory --valid-every 3 \
      --valid-command 'grep -q joint_temperature {}/config.json && echo 1' "$data/train.shard.zst"
    grep -qE '"joint_temperature": [1-9]' $memory/config.json
  done
  train "${tiny[@]}" --steps 2 -o plain "$data/train.shard.zst"
  run -1 grep -q joint_temperature plain/config.json
}

@test "--plan says what a run takes and leaves nothing behind" {
  run train "${tiny[@]}" --memory long --plan --json "$data/train.shard.zst"
  [ "$status" -eq 0 ]
  python3 -c '
import json, sys
plan = json.loads(sys.argv[1])
assert plan["parameters"] == 256 * 16 + 32 * 16 + 12 * 16 * 16 + 13 * 16 + 2 * 16, plan
assert plan["optimiser_bytes"] == 2 * plan["weights_bytes"] and plan["steps"] == 470, plan
assert len(plan["per_rank"]) == 12 and plan["per_rank"][0]["optimiser_bytes"] == plan["optimiser_bytes"], plan
assert plan["hours"] > 0 and plan["peak_memory_bytes"] > 1e6 and plan["disk_bytes"] > 0, plan
assert plan["state_bytes"] > 0 and plan["state_bytes"] % (2 * 16 * 4) == 0, plan' "$output"
  run -0 train "${tiny[@]}" --memory long --sbatch "$data/train.shard.zst"
  [[ $output =~ ^--cpus-per-task=1\ --mem=[1-9][0-9]*M\ --time=[0-9]+:[0-5][0-9]:00$ ]]
  [ -z "$(ls)" ]
}

@test "inputs that are wrong or not there: one line, its exit code, no model" {
  run -66 train -q -o model missing.shard.zst
  head -c 3000 /dev/zero >zeros
  run -65 train -q -o model zeros
  [ "${#lines[@]}" -eq 1 ]
  run -64 train -q "$data/train.shard.zst"
  run -64 train -q --batches runs --run-length 3 --batch 8 -o model "$data/train.shard.zst"
  [[ $output == *"--run-length"* ]]
  run -64 train -q --memory sideways -o model "$data/train.shard.zst"
  run -64 train -q --segment 64 --context 32 -o model "$data/train.shard.zst"
  [[ $output == *"--segment"* ]]
  run -64 train -q --keep 2 -o model "$data/train.shard.zst"
  run -64 train -q --heads 3 -o model "$data/train.shard.zst"
  [[ $output == *"--heads: 3 does not divide"* ]]
  run -64 train -q --checkpoint-every -1 -o model "$data/train.shard.zst"
  [ ! -e model/model.safetensors ]
}

@test "a run that diverges says so and leaves no model" {
  run -65 train "${tiny[@]}" --lr 1000 --optimiser nag --clip none --steps 20 -o model "$data/train.shard.zst"
  [[ $output == *"not finite"* ]]
  [ ! -e model/model.safetensors ]
}

@test "what others write or keep in the folder stays, and only the run's own leftovers go" {
  mkfifo pipe
  mkdir -p model/step-7.tmp.99 model/x.tmp.99 model/step-8.tmp.99 model/valid.tmp.99
  echo mine | tee model/step-7.tmp.99/mine model/x.tmp.99/mine >model/notes.tmp.tessera
  touch model/config.json.tmp.tessera model/step-8.tmp.99/state.json model/valid.tmp.99/config.json # of a killed run
  cp -r model before
  tokenize -q -t bytes - -o model/x.zst <pipe &
  exec 9>pipe
  echo hello >&9
  until [ -e model/x.zst.tmp.tessera ]; do sleep 0.02; done
  head -c 3000 /dev/zero >zeros
  run -65 train "${tiny[@]}" --steps 2 -o model zeros
  diff -r -x x.zst.tmp.tessera model before # refused: nothing changed
  train "${tiny[@]}" --steps 2 -o model "$data/train.shard.zst"
  exec 9>&-
  wait $!
  [ "$(shard cat --text model/x.zst)" = hello ]
  [ "$(cat model/step-7.tmp.99/mine model/x.tmp.99/mine model/notes.tmp.tessera)" = $'mine\nmine\nmine' ]
  [ ! -e model/config.json.tmp.tessera ]
  [ ! -e model/step-8.tmp.99 ]
  [ ! -e model/valid.tmp.99 ]
}

@test "a folder with lines, notes or a tokenizer of somebody else's is refused; links and pipes are not written" {
  local name
  for name in metrics.jsonl timings.jsonl tokenizer.json; do
    mkdir "d.$name"
    printf 'my notes' >"d.$name/$name"
    run -64 train "${tiny[@]}" --steps 2 -o "d.$name" "$data/train.shard.zst"
    [[ $output == *"$name: exists, but no run was begun in the folder"* ]]
    [ "$(cat "d.$name"/*)" = 'my notes' ]
  done
  train "${tiny[@]}" --steps 4 --max-time 0 -o model "$data/train.shard.zst" || [ $? -eq 75 ]
  rm model/metrics.jsonl
  printf keep >kept
  ln -s "$PWD/kept" model/metrics.jsonl
  run -73 train "${tiny[@]}" --steps 4 -o model "$data/train.shard.zst"
  [ "$(cat kept)" = keep ]
  rm model/metrics.jsonl
  mkfifo model/metrics.jsonl
  run -73 train "${tiny[@]}" --steps 4 -o model "$data/train.shard.zst"
  [[ $output == *"metrics.jsonl: already exists; move it away"* ]]
}

@test "a second run in a folder ends with 73 and leaves the first alone" {
  mkfifo pipe
  train "${tiny[@]}" --steps 2 -o model - <pipe &
  exec 9>pipe
  until [ -e model/stdin.shard.zst.tmp.tessera ]; do sleep 0.02; done
  run -73 train "${tiny[@]}" --steps 2 -o model "$data/train.shard.zst"
  [[ $output == *"another process is training in this folder"* ]]
  cat "$data/train.shard.zst" >&9
  exec 9>&-
  wait $!
  [ -e model/model.safetensors ]
}

@test "more steps train a finished run further, with a new schedule that is said; stopped, it resumes" {
  local command=(train --layers 1 --d-model 16 --heads 2 --segment 32 --batch 4 -j 1)
  "${command[@]}" -q --steps 6 -o whole "$data/train.shard.zst"
  cp -r whole parts
  run --separate-stderr "${command[@]}" --steps 10 -o whole "$data/train.shard.zst"
  [ "$status" -eq 0 ]
  [[ $stderr == *"whole: trains on after step 6 to 10, from the model's weights with new moments"* ]]
  [[ $stderr == *"begins its schedule again (warm-up, cosine) for these 4"* ]]
  run -75 "${command[@]}" -q --steps 10 --max-time 0 -o parts "$data/train.shard.zst"
  [ ! -e parts/model.safetensors ]
  eval-ppl -q -m parts "$data/valid.shard.zst"
  "${command[@]}" -q --steps 10 -o parts "$data/train.shard.zst"
  same whole parts
  run -64 "${command[@]}" --steps 6 -o whole "$data/train.shard.zst"
  [[ $output == *"steps 10, now 6"* ]]
}

@test "a run that was refused before it saved anything leaves its folder free" {
  run -65 train "${tiny[@]}" --lr 1000 --optimiser nag --clip none --steps 20 -o model "$data/train.shard.zst"
  train "${tiny[@]}" --steps 3 -o model "$data/train.shard.zst"
  [ -e model/model.safetensors ]
  run -66 train -q -o other missing.shard.zst
  [ ! -e other ]
  mkdir foreign
  echo '{"model_type": "gpt2"}' >foreign/config.json
  run -64 train "${tiny[@]}" --steps 3 -o foreign "$data/train.shard.zst"
  [ "$(cat foreign/config.json)" = '{"model_type": "gpt2"}' ]
}

@test "a family of transformers is written only if its class computes the model; else a line says what differs" {
  local llama="--positions rope --norm-kind rms --feed-forward gated --activation silu --no-scale-embedding"
  local options family line
  # Options, the family or none, and what the line says.
  while IFS='|' read -r options family line; do
    rm -rf model
    # shellcheck disable=SC2086  # words
    run --separate-stderr -0 train --layers 2 --d-model 16 --heads 2 --segment 32 --batch 4 -j 1 $llama $options --steps 1 -o model "$data/train.shard.zst"
    [ "$(python3 -c 'import json; print(json.load(open("model/config.json")).get("model_type", "none"))')" = "$family" ]
    if [ "$family" = none ]; then
      [[ $stderr == *"train: config.json: no family of transformers computes this model, so only Tessera loads it; $line"* ]]
    else
      [[ $stderr != *"no family"* ]]
    fi
  done <<'END'
--no-bias|llama|
--no-bias --rope-partial-factor 0.5|phi3|
--rope-partial-factor 0.5 --bias-of qkv|none|the nearest is qwen2, but rope_partial_factor is 0.5, not 1.0
--no-bias --rope-partial-factor 0.5 --rope-scaling linear --rope-factor 2|none|the nearest is llama, but rope_partial_factor is 0.5, not 1.0
--no-bias --attention-softcap 2|none|the nearest is llama, but attention_softcap is 2.0, not 0.0
--no-bias --attention-window 5 --attention-window 3|none|the nearest is
--no-bias --rope-skip 2 --attention-window 5|smollm3|
--no-bias --norm sublayer --qk-norm whole --attention-window 5 --attention-window none --rope-theta 500|olmo3|
END
}

@test "bfloat16 on a processor without such products: the program says once that there are none" {
  export ATEN_CPU_CAPABILITY=avx2 # hides them
  local slow=": this processor has no products in bfloat16"
  for precision in float32 bfloat16; do
    train "${tiny[@]:0:12}" -j 1 --steps 1 --precision $precision -o $precision "$data/train.shard.zst" 2>notes-$precision
    eval-ppl -m float32 --dtype $precision --window 32 -j 1 "$data/valid.shard.zst" >/dev/null 2>>notes-$precision
  done
  [ "$(grep -c "$slow" notes-float32)" -eq 0 ]
  grep -q "^train: .*--precision bfloat16$slow" notes-bfloat16
  grep -q "^eval-ppl: .*--dtype bfloat16$slow" notes-bfloat16
  [ "$(grep -c "$slow" notes-bfloat16)" -eq 2 ]
}
