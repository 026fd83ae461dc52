#!/usr/bin/env bats
# gpu-check, gpu-bench and gpu-pack, as far as they go without a GPU.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
  export OMP_NUM_THREADS=1
}

# unpacked: the folder tessera, as gpu-pack's tarball has it, of links to the programs.
unpacked() {
  mkdir -p tessera/bin tessera/tools tessera/tests/bench tessera/examples
  cp -r "$root/examples/shapes" tessera/examples/
  cp "$root"/tools/gpu-{check,bench,parts,first-contact} tessera/tools/
  cp "$root"/tests/bench/gpu_step_peer.py tessera/tests/bench/
  ln -s "$BIN"/* tessera/bin/
  ln -s "$(dirname "$BIN")/bench" tessera/bench
}

@test "without a GPU gpu-check and gpu-bench end with one line and 69" {
  ! nvidia-smi -L >/dev/null 2>&1 || skip "there is a CUDA device here"
  unpacked
  run --separate-stderr -69 tessera/tools/gpu-check
  [ -z "$output" ]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [[ $stderr == "gpu-check: --device cuda: "* ]]
  GPU_BENCH_SHAPE=tiny run --separate-stderr -69 tessera/tools/gpu-bench
  [ -z "$output" ]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [[ $stderr == "gpu-bench: --device cuda: "* ]]
  rm tessera/bin/train
  run --separate-stderr -69 tessera/tools/gpu-check
  [[ $stderr == *"has no programs"* ]]
}

@test "parts by name, shares of them and their minutes are alike in all three tools" {
  unpacked
  local tool
  echo 'a text' >text
  export FIRST_CONTACT_TEXT=$PWD/text
  for tool in check bench first-contact; do
    run --separate-stderr -0 "tessera/tools/gpu-$tool" --list
    [[ ${lines[-1]} == "all "*" min" ]]
    [ "${#lines[@]}" -ge 7 ]
    [ -z "$stderr" ]
    # Every part that the list has is one that the file's head explains.
    for part in "${lines[@]:0:${#lines[@]}-1}"; do grep -q "^#   ${part%% *} " "tessera/tools/gpu-$tool" || { echo "$tool: $part" && return 1; }; done
    run --separate-stderr -64 "tessera/tools/gpu-$tool" nothing
    [[ $stderr == "gpu-$tool: no part is called nothing"* ]]
    [ -z "$output" ]
    run --separate-stderr -64 "tessera/tools/gpu-$tool" --part 3/2
    [ "$stderr" = "gpu-$tool: --part: there is no part 3 of 2" ]
    run --separate-stderr -64 "tessera/tools/gpu-$tool" --part x
    [[ $stderr == "gpu-$tool: --part: takes I/N or launcher, not x" ]]
    run --separate-stderr -64 "tessera/tools/gpu-$tool" --part launcher
    [ "$stderr" = "gpu-$tool: --part launcher: no launcher started this process" ]
    run --separate-stderr -64 "tessera/tools/gpu-$tool" --fast
    [[ $stderr == "gpu-$tool: there is no option --fast"* ]]
  done
  # Shares are all parts together, each once, whatever started them.
  . tessera/tools/gpu-parts
  choose_parts t 'a:1 b:2 c:3 d:0.5' --part 2/3
  [ "$parts" = ' b' ]
  [ "$part_suffix" = .2 ]
  RANK=0 WORLD_SIZE=3 choose_parts t 'a:1 b:2 c:3 d:0.5' --part launcher
  [ "$parts" = ' a d' ]
  [ "$minutes" = 1.5 ]
  SLURM_ARRAY_TASK_ID=6 SLURM_ARRAY_TASK_MIN=4 SLURM_ARRAY_TASK_STEP=2 SLURM_ARRAY_TASK_COUNT=2 choose_parts t 'a:1 b:2 c:3' --part launcher b c
  [ "$parts" = ' c' ]
  choose_parts t 'a:1 b:2' b
  [ "$parts" = ' b' ]
  [ -z "$part_suffix" ]
}

# stubs: programs of a machine with a GPU, first in PATH. nvidia-smi counts memory until it is stopped.
stubs() {
  mkdir stubs
  printf '%s\n' '#!/bin/sh' 'case $* in' '*loop-ms*) echo 10 && echo 20000 && exec sleep 60 ;;' '*) echo "a card, 1 MiB, 1.0" ;;' 'esac' >stubs/nvidia-smi
  printf '%s\n' '#!/bin/sh' '[ "$1" = --tool ] && shift 2 && exec "$@"' >stubs/compute-sanitizer
  printf '%s\n' '#!/bin/sh' 'echo "tests: $*"' | tee tessera/tests/cuda_kernels >tessera/tests/unit_nn
  chmod +x stubs/* tessera/tests/{cuda_kernels,unit_nn}
  PATH=$PWD/stubs:$PATH
}

# These parts have every command of gpu-check and gpu-bench too.
@test "gpu-first-contact: every command, rehearsed without a GPU" {
  unpacked
  seq 20000 | tr '\n' ' ' | xz >text.xz
  export FIRST_CONTACT_TEXT=$PWD/text.xz OUT=$PWD/out
  run --separate-stderr -66 env FIRST_CONTACT_TEXT=/nowhere tessera/tools/gpu-first-contact
  if ! nvidia-smi -L >/dev/null 2>&1; then
    run --separate-stderr -69 tessera/tools/gpu-first-contact
    [ "${#stderr_lines[@]}" -eq 1 ]
    [[ $stderr == "gpu-first-contact: --device cuda: "* ]]
  fi
  stubs
  FIRST_CONTACT_DEVICE=cpu run --separate-stderr tessera/tools/gpu-first-contact
  [ "$status" -eq 0 ] || { echo "$output$stderr" && return 1; }
  [[ $stderr == *"load check train shapes search learn: about 32 minutes on an H100"* ]]
  [ "$(grep -c '^rc=0 ' <<<"$output")" -ge 25 ] || { echo "$output" && return 1; }
  run ! grep -E '^rc=[^0]|FAILED|not there' <<<"$output"
  [ "$(grep -c '^rc=0 .*compute-sanitizer --tool' out/load.log)" -eq 2 ]
  grep -qx 'the same bytes twice' out/learn.log
  [ -s out/learn/q-float32-none/metrics.jsonl ]
  for part in kernels device train resume graphs sample stores; do grep -q "^$part  *ok " out/check.*.log; done
  [ "$(cat out/check.*.log | grep -cE '^(gla|lstm) ')" -eq 6 ]
  # Figures are those that wait in examples/gpu, sizes and the peaks of a card aside.
  python3 - "$root/examples/gpu/README.md" out/bench-*.jsonl <<'PY'
import json, re, sys
figures = [json.loads(line) for file in sys.argv[2:] for line in open(file)]
assert all(f["value"] > 0 and set(f) == {"name", "value", "unit", "peer", "peer_value", "ratio"} for f in figures), figures
asked = {m[1] for m in re.finditer(r"^\| \w+ \| (\S+/\S+) \|", open(sys.argv[1]).read(), re.M) if m[1] != "tokens/s"}
named = lambda names: {re.sub(r"search/\d+", "search", name) for name in names}
shown, asked = named(f["name"] for f in figures), named(asked)
if not any(name.startswith("search/") for name in shown):  # no benchmarks are built
    asked = {name for name in asked if not name.startswith("search/")}
assert shown == asked, (shown - asked, asked - shown)
PY
}

@test "gpu-check says where a device does not agree, in the parts that are named" {
  unpacked
  export GPU_CHECK_DEVICE=cpu GPU_CHECK_ARCHITECTURES=gla-delta
  run --separate-stderr -64 tessera/tools/gpu-check nothing
  [[ $stderr == "gpu-check: no part is called nothing"* ]]
  rm tessera/bin/eval-ppl
  printf '%s\n' '#!/bin/sh' 'while [ "$1" != -o ]; do shift; done' 'echo "{\"loss\":$$}" >"$2"' >tessera/bin/eval-ppl
  chmod +x tessera/bin/eval-ppl
  run --separate-stderr -1 tessera/tools/gpu-check train resume
  [[ $output == *"train     FAILED"*"resume    ok"* ]] || { echo "$output" && return 1; }
  [ "$(grep -c '^gla-delta ' <<<"$output")" -eq 3 ]
  run ! grep -qE '^(stores|graphs|sample) ' <<<"$output"
}

@test "gpu-bench writes a line a figure, of its share of the parts, though nvidia-smi ends early" {
  unpacked
  mkdir stubs
  printf '%s\n' '#!/bin/sh' 'exit 9' >stubs/nvidia-smi
  chmod +x stubs/nvidia-smi
  PATH=$PWD/stubs:$PATH GPU_BENCH_DEVICE=cpu GPU_BENCH_SHAPE=tiny run --separate-stderr -0 tessera/tools/gpu-bench --part 1/2 xl search
  [[ $stderr == "gpu-bench: xl: about 1 minutes on an H100"* ]]
  [ "${#lines[@]}" -eq 4 ]
  [ "$(grep -c '"name":"xl/[0-9]*-long",' tessera/bench-gpu.1.jsonl)" -eq 3 ]
  [ ! -e tessera/bench-gpu.1.jsonl.new ]
}

@test "what gpu-pack packs runs in another folder, with LibTorch's libraries and the system's C and C++ alone" {
  build=$(dirname "$BIN")
  [ -e "$build/CMakeCache.txt" ] || skip "$build is no build folder"
  torch=$(sed -n 's/^TORCH_ROOT:[A-Z]*=//p' "$build/CMakeCache.txt")
  [ -e "$build/lib/tessera/libtessera_cuda.so" ] || export GPU_PACK_WITHOUT_PLUGIN=1
  BUILD=$build run --separate-stderr -0 "$root/tools/gpu-pack" "$PWD/pack.tar.xz"
  [[ $output == *"MiB, for LibTorch "* ]]
  tar -xJf pack.tar.xz
  export LD_LIBRARY_PATH=$PWD/tessera/lib/tessera:$torch/lib
  for file in tessera/bin/* tessera/tests/unit_* tessera/lib/tessera/*; do
    [ -x "$file" ] && [ "${file##*/}" != libtessera_cuda.so ] || continue
    foreign=$(ldd "$file" | sed -n 's/.* => \(.*\) (0x.*/\1/p;/not found/p' | grep -v -e "^$PWD/tessera/" -e "^$torch" -e '/torch\.libs/' \
      -e '/lib\(c\|m\|dl\|rt\|pthread\|resolv\|stdc++\|gcc_s\)\.so' || [ $? -eq 1 ])
    [ -z "$foreign" ] || { echo "$file: $foreign" && return 1; }
  done
  for program in tessera/bin/*; do "$program" --version >/dev/null; done
  if ! nvidia-smi -L >/dev/null 2>&1; then
    run --separate-stderr -69 tessera/tools/gpu-check
    [[ $stderr == "gpu-check: --device cuda: "* ]]
  fi
}
