#!/usr/bin/env bats
# What make dist packs: a tree that runs wherever it is put. TESSERA_DIST=FILE, a tarball of make dist's, is unpacked in an
# empty root and runs the demo there.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
  command -v readelf >/dev/null || skip "readelf is not installed"
  command -v cc >/dev/null || skip "cc is not installed"
}

# A tree of one program and one library, which is as it should be but for what the arguments say to the linker.
tree() { # [LINKER-OPTION...]
  rm -rf tree
  mkdir -p tree/libexec/tessera tree/lib/tessera tree/share/doc/tessera/licences
  echo 'int other(void) { return 0; }' >other.c
  echo 'int other(void); int main(void) { return other(); }' >main.c
  cc -shared -fPIC -Wl,-soname,libother.so.1 other.c -o tree/lib/tessera/libother.so.1
  cc main.c tree/lib/tessera/libother.so.1 -Wl,-rpath,"${1:-\$ORIGIN/../../lib/tessera}" "${@:2}" -o tree/libexec/tessera/program
  touch tree/share/doc/tessera/licences/libother.txt
}

# finds WORDS: one fault, and these are its words.
finds() {
  run "$root/tools/dist-check" tree
  [ "$status" -eq 1 ] && [ "${#lines[@]}" -eq 2 ] && [[ ${lines[0]} == *"$1"* ]] || { echo "not '$1': $output" && return 1; }
}

@test "a tree that is as it should be says the oldest C library that it runs with" {
  tree
  run "$root/tools/dist-check" tree
  [ "$status" -eq 0 ]
  [[ $output =~ ^"2 programs and libraries; the oldest C library that they run with: glibc 2."[0-9]+$ ]]
}

@test "a library looked for elsewhere, missing, or without a licence; an RPATH; a link outside; a C library too new" {
  tree "$PWD/tree/lib/tessera"
  finds "libexec/tessera/program: looks for libraries in $PWD/tree/lib/tessera"
  tree "\$ORIGIN/../../lib/tessera:/usr/lib"
  finds "looks for libraries in /usr/lib"
  tree '' -Wl,--disable-new-dtags -Wl,-rpath,"\$ORIGIN/../../lib/tessera"
  finds "has an RPATH, not a RUNPATH"
  tree
  mv tree/lib/tessera/libother.so.1 tree/lib/
  finds "needs libother.so.1, which is not in lib/tessera"
  tree
  rm tree/share/doc/tessera/licences/libother.txt
  finds "lib/tessera/libother.so.1: no licence of it"
  tree
  ln -s /bin/sh tree/libexec/tessera/sh
  finds "libexec/tessera/sh: leads to /bin/sh"
  tree
  run "$root/tools/dist-check" tree 2.1
  [ "$status" -eq 1 ]
  [[ $output == *"libexec/tessera/program: needs glibc 2."*", newer than 2.1"* ]]
  rm -rf tree/*
  finds "there is no program"
}

@test "tools/dist refuses what is not there or not portable" {
  export BUILD=$PWD/none
  run "$root/tools/dist"
  [ "$status" -eq 66 ]
  [[ $output == *"has no programs; make dist builds them" ]]
  mkdir none
  echo 'TESSERA_ARCH:STRING=native' >none/CMakeCache.txt
  run "$root/tools/dist"
  [ "$status" -eq 66 ]
  [[ $output == *"is not portable; make dist builds one that is" ]]
}

@test "the recipe of conda, the citation and the changelog are of the version that CMake has" {
  version=$(sed -n 's/^project(tessera VERSION \([0-9.]*\).*/\1/p' "$root/CMakeLists.txt")
  [ -n "$version" ]
  grep -qF "set version = \"$version\"" "$root/packaging/conda/meta.yaml"
  grep -qx "version: $version" "$root/CITATION.cff"
  grep -q "^## \[$version\] - " "$root/CHANGELOG.md"
}

# What a tiny system has: a shell, its tools and the C library, nothing else.
bare_root() { # DIR
  local tool file
  mkdir -p "$1"/{bin,tmp,dev,proc,lib64,lib/x86_64-linux-gnu}
  ln -s bin "$1/usr-bin"
  for tool in bash sh env cat mkdir rm dirname realpath readlink sed awk wc stat nproc ls; do
    cp -L "$(command -v "$tool")" "$1/bin/$tool"
    for file in $(ldd "$(command -v "$tool")" | grep -oE '/[^ ]+\.so[^ ]*'); do
      mkdir -p "$1${file%/*}"
      cp -L "$file" "$1$file"
    done
  done
  for file in libm.so.6 libdl.so.2 librt.so.1 libpthread.so.0; do cp -L "/lib/x86_64-linux-gnu/$file" "$1/lib/x86_64-linux-gnu/"; done
  mkdir -p "$1/usr/bin" && ln -s /bin/env "$1/usr/bin/env"
  mknod -m 666 "$1/dev/null" c 1 3
  mknod -m 666 "$1/dev/urandom" c 1 9
}

# in_root DIR NAME=VALUE... COMMAND...: where that folder is all there is. The loader finds $ORIGIN by /proc.
in_root() {
  # shellcheck disable=SC2016  # for the inner shell
  unshare -m sh -c 'mount -t proc proc "$1/proc" && exec chroot "$@"' in_root "$1" /bin/env -i PATH=/bin HOME=/tmp "${@:2}"
}

@test "the tarball runs the demo in an empty root, and its kernels are those of the processor" {
  [ -n "${TESSERA_DIST:-}" ] || skip "TESSERA_DIST names no tarball of make dist"
  [ "$(id -u)" -eq 0 ] || skip "an empty root needs root"
  bare_root empty
  zstd -dc --long=27 "$TESSERA_DIST" | tar -x -C empty
  name=$(cd empty && echo tessera-*)
  "$root/tools/dist-check" "empty/$name"
  mv "empty/$name" empty/elsewhere
  [ -s empty/elsewhere/docs/index.html ]
  [ -s empty/elsewhere/docs/train.1.html ]
  # Nothing of the system's is loaded but the C library.
  train=/elsewhere/libexec/tessera/train
  in_root empty LD_TRACE_LOADED_OBJECTS=1 "$train" >loaded
  cat loaded
  strangers=$(grep -v vdso loaded | grep -vE '/elsewhere/|/lib(64)?/.*(ld-linux|lib(c|m|dl|rt|pthread)\.so)') || [ -z "$strangers" ]
  kernels='lib/tessera/libtessera_nn_kernels.so'
  if grep -qw avx512vl /proc/cpuinfo; then
    kernels='lib/tessera/glibc-hwcaps/x86-64-v4/libtessera_nn_kernels.so'
  fi
  grep -qF "$kernels" loaded
  in_root empty GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F LD_TRACE_LOADED_OBJECTS=1 "$train" |
    grep -qF 'lib/tessera/libtessera_nn_kernels.so'
  in_root empty /elsewhere/bin/tessera tokenize --version
  # Where the system's C library is too old, which it says of itself by failing, everything comes from the tarball.
  glibc=/elsewhere/lib/tessera/glibc
  in_root empty "$glibc/ld-linux-x86-64.so.2" --library-path "$glibc:/elsewhere/lib/tessera" --list "$train" >loaded
  strangers=$(grep -v vdso loaded | grep -v /elsewhere/) || [ -z "$strangers" ]
  if command -v patchelf >/dev/null; then
    cp -r empty/elsewhere/libexec kept
    for program in empty/elsewhere/libexec/tessera/*; do patchelf --set-interpreter /too/old "$program"; done
    in_root empty /elsewhere/bin/tessera tokenize --version | grep '^tokenize '
    rm -r empty/elsewhere/libexec
    mv kept empty/elsewhere/libexec
  fi
  in_root empty DEMO_STEPS="${DEMO_STEPS:-20}" /bin/bash -c 'cd /tmp && /elsewhere/share/tessera/demo/demo' >demo
  cat demo
  grep -Eq '^plain \+ cache, datastore, n-grams +[0-9]+\.[0-9]+' demo
}
