#!/usr/bin/env bats
# CUDA is loaded where it is asked for, and what is missing is one line.
#
# TESSERA_CUDA_LIBRARIES: folders, with colons, of a CUDA build of LibTorch and of libtessera_cuda.so, for programs that
# were built without (make cuda builds them with).

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  seq 400 | tr '\n' ' ' >t.txt
  tokenize -q -t bytes t.txt -o t.shard.zst
  train -q --arch srupp --layers 1 --d-model 16 --heads 2 --segment 32 --batch 2 --steps 2 --device cpu -o model t.shard.zst
}

setup() {
  cd "$BATS_FILE_TMPDIR"
  ! nvidia-smi -L >/dev/null 2>&1 || skip "there is a CUDA device here: tests of what is missing"
}

tiny_train() { train -q --arch srupp --layers 1 --d-model 16 --heads 2 --segment 32 --batch 2 --steps 2 "$@" t.shard.zst; }

# says_why COMMAND...: exit status 69, one line, nothing on stdout.
says_why() {
  run --separate-stderr -69 "$@"
  [ -z "$output" ] && [ "${#stderr_lines[@]}" -eq 1 ] || { echo "$stderr" && return 1; }
}

@test "without CUDA every program says in one line what is missing" {
  says_why tiny_train --device cuda -o none
  [[ $stderr == "train: --device cuda: "* ]]
  [ ! -e none/model.safetensors ]
  says_why eval-ppl --device cuda -m model t.shard.zst
  says_why sample --device cuda:0 -m model --prompt x
  [[ $stderr == "sample: --device cuda:0: "* ]]
  says_why build-datastore --device cuda -m model t.shard.zst -o store
  run ! --separate-stderr train --device tpu -o none t.shard.zst
  [[ $stderr == *"'tpu' is not a device"* ]]
}

@test "a LibTorch of another version than the program was built for is refused by name" {
  command -v cc >/dev/null || skip "cc is not installed"
  echo 'unsigned long aoti_torch_abi_version(void) { return 2UL << 56 | 11UL << 48 | 1UL << 40; }' >other.c
  cc -shared -fPIC other.c -o other.so
  LD_PRELOAD=$PWD/other.so says_why tiny_train -o none
  [[ $stderr == "train: built for LibTorch "*", but loaded 2.11.1; "* ]]
  [ ! -e none ]
  LD_PRELOAD=$PWD/other.so says_why eval-ppl -m model t.shard.zst
}

@test "--device auto says once that an NVIDIA device is not used, and trains on the CPU" {
  export LD_PRELOAD=$BIN/../tests/libfaults.so FAULT_THERE=/dev/nvidiactl
  [ -e "$LD_PRELOAD" ] || skip "no libfaults.so: make tests builds it"
  run --separate-stderr -0 train --arch srupp --layers 1 --d-model 16 --heads 2 --segment 32 --batch 2 --steps 2 -o auto t.shard.zst
  [ "$(grep -c 'NVIDIA device' <<<"$stderr")" -eq 1 ]
  unset LD_PRELOAD
  run --separate-stderr -0 tiny_train -o without
  cmp auto/model.safetensors without/model.safetensors
}

@test "the plug-in and LibTorch's CUDA library load before anything asks for CUDA" {
  if [ -n "${TESSERA_CUDA_LIBRARIES:-}" ]; then
    export LD_LIBRARY_PATH=$TESSERA_CUDA_LIBRARIES
  elif train --build-info | grep -q '^CUDA *none'; then
    skip "no CUDA build of LibTorch here (make cuda, or TESSERA_CUDA_LIBRARIES)"
  fi
  says_why tiny_train --device cuda -o none
  [[ $stderr == *"no NVIDIA driver"* ]] || { echo "$stderr" && return 1; }
}

# wheels FOLDER MAJOR.MINOR LIBRARY [VERSION]: a torch for that CUDA with LIBRARY in it, and all that it asks for, of a few bytes
# each.
wheels() {
  python3 - "$@" <<'PY'
import sys, zipfile
folder, cuda, library, *version = sys.argv[1:]
def wheel(name, version, files, requires=()):
    stem = f"{name.replace('-', '_')}-{version}"
    with zipfile.ZipFile(f"{folder}/{stem}-py3-none-any.whl", "w") as z:
        info = f"{stem}.dist-info"
        z.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n" +
                   "".join(f"Requires-Dist: {r}\n" for r in requires))
        z.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        z.writestr(f"{info}/RECORD", "")
        for file in files:
            z.writestr(file, "#!/bin/sh\n")
wheel("torch", version[0] if version else "2.13.0", ["torch/include/torch/csrc/api/include/torch/torch.h", "torch/lib/libtorch_cpu.so", f"torch/lib/{library}",
                          "torch/nn/module.py"],
      ["sympy>=1", f'nvidia-cuda-runtime=={cuda}.96; platform_system == "Linux"', 'nvidia-nccl-cu13==2.1; platform_system == "Linux"'])
wheel("nvidia-nccl-cu13", "2.1", ["nvidia/nccl/lib/libnccl.so.2"])
for name, file in (("nvidia-cuda-runtime", "lib/libcudart.so.13"), ("nvidia-cuda-nvcc", "bin/nvcc"), ("nvidia-cuda-crt", "include/crt/a.h"),
                   ("nvidia-nvvm", "nvvm/bin/cicc"), ("nvidia-cuda-cccl", "include/cccl/a.h")):
    wheel(name, f"{cuda}.96", [f"nvidia/cu13/{file}"])
PY
}

@test "tools/setup cuda takes LibTorch's CUDA build, its libraries and its compiler from wheels" {
  python3 -m pip --version >/dev/null 2>&1 || skip "no pip"
  unset TESSERA_TORCH TESSERA_PIP_ARGS
  mkdir -p tree/tools wheels
  cp "$root/tools/setup" tree/tools/
  export PIP_NO_INDEX=1 PIP_FIND_LINKS=$PWD/wheels
  wheels wheels 13.0 libtorch_cuda.so
  wheels wheels 13.0 libc10.so 2.13.0+cpu # pip prefers it where the version alone is asked for
  run --separate-stderr -0 tree/tools/setup cuda
  [[ $stderr == *"GB to download"* ]]
  [ -x tree/.deps/cuda/nvidia/cu13/bin/nvcc ]
  [ -x tree/.deps/cuda/nvidia/cu13/nvvm/bin/cicc ]
  [ -e tree/.deps/cuda/torch/lib/libtorch_cuda.so ]
  [ -e tree/.deps/cuda/nvidia/nccl/lib/libnccl.so.2 ]
  [ ! -e tree/.deps/cuda/torch/nn ]
  [ ! -e tree/.deps/torch ]
  run --separate-stderr -0 tree/tools/setup cuda
  [ -z "$output$stderr" ]
  rm -r tree/.deps wheels/*

  wheels wheels 13.0 libc10.so
  run --separate-stderr -69 tree/tools/setup cuda
  [[ $stderr == *"pip gave a CPU build"*"PIP_CONFIG_FILE=/dev/null"* ]]
  rm wheels/*
  wheels wheels 12.8 libtorch_cuda.so
  run --separate-stderr -69 tree/tools/setup cuda
  [[ $stderr == *"is not for CUDA 13"* ]] || { echo "$stderr" && return 1; }
  [ ! -e tree/.deps/cuda ]
  [ -z "$(ls -d tree/.deps/work* 2>/dev/null)" ]
}
