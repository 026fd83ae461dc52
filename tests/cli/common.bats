#!/usr/bin/env bats
# What every program in $BIN promises: help, version, exit codes, config files, streams.

load helpers

# What --help says of each program and verb, once: every test asks for it.
setup_file() {
  helps=$BATS_FILE_TMPDIR/help
  export helps
  mkdir "$helps"
  local program verb
  for program in $(programs); do
    "$program" --help=all >"$helps/${program##*/}"
    for verb in $(verbs "$program"); do "$program" "$verb" --help=all >"$helps/${program##*/} $verb"; done
  done
}

setup() {
  cd "$BATS_TEST_TMPDIR"
}

programs() {
  find "$BIN" -maxdepth 1 -type f -perm -u+x | sort
}

verbs() { # PROGRAM
  sed -n '/^Subcommands:/,/^$/s/^  \([a-z-]*\) .*/\1/p' "$helps/${1##*/}"
}

# help_of PROGRAM [VERB]: a file.
help_of() {
  echo "$helps/${1##*/}${2:+ $2}"
}

# Runs `check PROGRAM [VERB]` for each program; of a program with verbs for each verb too.
for_each() {
  local program verb failed=0 seen=0
  for program in $(programs); do
    seen=$((seen + 1))
    "$@" "$program" || { echo "# fails: ${program##*/}" && failed=1; }
    for verb in $(verbs "$program"); do
      "$@" "$program" "$verb" || { echo "# fails: ${program##*/} $verb" && failed=1; }
    done
  done
  [ "$seen" -gt 0 ] && [ "$failed" -eq 0 ]
}

# Options are a verb's where a program has verbs.
has_options() {
  grep -q -- '--print-config' "$(help_of "$@")"
}

# exits CODE COMMAND...: says what came instead.
exits() {
  local want=$1 got=0
  shift
  "$@" >out 2>err </dev/null || got=$?
  [ "$got" -eq "$want" ] || { echo "$*: exit $got, not $want: $(head -n 1 err)" && return 1; }
}

# One line on stderr that begins with the program's name.
one_line_of() {
  [ "$(wc -l <err)" -eq 1 ] && grep -q "^${1##*/}: ." err && [ ! -s out ]
}

@test "--help and -h go to stdout, exit 0, and say how to use it" {
  check() {
    exits 0 "$@" -h && cp out short && exits 0 "$@" --help && cmp out short && [ ! -s err ] &&
      grep -q '^Usage: ' out
  }
  for_each check
}

@test "help has the flags that all programs share" {
  check() {
    local flag
    has_options "$@" || return 0
    for flag in --help --version --quiet --verbose --json --jobs --config --print-config --output --build-info; do
      grep -q -- "$flag" "$(help_of "$@")" || { echo "no $flag" && return 1; }
    done
  }
  for_each check
}

@test "a program has --seed if it draws random numbers" {
  check() {
    ! has_options "$@" || ! grep -q -- --seed "$(help_of "$@")" || echo "${*##*/}" >>draw
  }
  for_each check
  printf '%s\n' bm25-pack eval-forecast gen-babistories-prompts gen-induction gen-moons gen-regbench gen-ruler 'probe attention' \
    sample serve train | diff - <(sort draw)
}

@test "--version is one line: name, version, revision" {
  check() {
    exits 0 "$@" --version && grep -Eqx "${1##*/} [0-9]+\.[0-9]+\.[0-9]+ \(git [^)]+\)" out && [ "$(wc -l <out)" -eq 1 ] &&
      cp out version && exits 0 "$@" -V && cmp out version && exits 0 "$@" --build-info && grep -q '^compiler ' out
  }
  for_each check
}

@test "an unknown flag exits 64 with one line on stderr" {
  check() { exits 64 "$@" --no-such-flag && one_line_of "$1"; }
  for_each check
}

@test "an unknown key in a config file exits 78 and is named with its line" {
  printf '\nno-such-key = 1\n' >bad.conf
  check() {
    has_options "$@" || return 0
    exits 78 "$@" --config bad.conf && one_line_of "$1" && grep -q 'bad.conf:2: .*no-such-key' err
  }
  for_each check
}

@test "a config file that is not there exits 66" {
  check() { ! has_options "$@" || exits 66 "$@" --config nowhere.conf; }
  for_each check
}

@test "--print-config is TOML, and reads back as it was printed, its tables as dotted keys too" {
  python3 -c "import tomllib" 2>/dev/null || skip "python3 has no tomllib, which came with 3.11"
  local shown
  shown() { echo "shown/${1##*/}${2:+ $2}"; }
  print() {
    has_options "$@" || return 0
    exits 0 "$@" --jobs 17 --print-config && grep -qx 'jobs = 17' out && grep -qx '#json = false' out &&
      sed 's/^#\([a-z]\)/\1/' out >"$(shown "$@")" # all options as if they had been given
  }
  read_back() {
    has_options "$@" || return 0
    exits 0 "$@" --config "$(shown "$@").dotted" --print-config && cmp out "$(shown "$@")"
  }
  mkdir shown
  for_each print
  # Strings, numbers and lists of JSON are TOML; so are true and false.
  python3 - shown/* <<'PY'
import json, sys, tomllib
for path in sys.argv[1:]:
    with open(path, "rb") as file:
        config = tomllib.load(file)
    with open(path + ".dotted", "w") as file:
        for name, value in config.items():
            for key, one in value.items() if isinstance(value, dict) else [(None, value)]:
                print(name if key is None else f"{name}.{key}", "=", json.dumps(one), file=file)
PY
  for_each read_back
}

@test "a full disk exits 74" {
  [ -e /dev/full ] || skip "no /dev/full here"
  check() {
    local got=0
    "$@" --help >/dev/full 2>err </dev/null || got=$?
    [ "$got" -eq 74 ]
    [ "$(wc -l <err)" -eq 1 ]
  }
  for_each check
}

@test "- is stdin: nothing there ends with a documented code" {
  check() {
    local got=0
    timeout 60 "$@" - >out 2>err </dev/null || got=$?
    case $got in
      0 | 1 | 64 | 65 | 66 | 69 | 73 | 75 | 78) ;;
      *) echo "$* -: exit $got: $(head -n 1 err)" && return 1 ;;
    esac
  }
  for_each check
}

# Two threads that first ask MKL for its functions at once may be given others than are meant.
@test "MKL looks at the processor while a program has one thread" {
  local faults=$BIN/../tests/libfaults.so
  [ -e "$faults" ] || skip "no libfaults.so: make tests builds it"
  ! grep -q 'TESSERA_SANITIZE:BOOL=ON' "$BIN/../CMakeCache.txt" || skip "sanitizers want to be preloaded first"
  "$root"/tests/cli/tiny_gpt2 model
  text_shards 300 200
  looks() { # COMMAND...
    LD_PRELOAD=$faults FIRST_LOOK=$PWD/threads "$@" >/dev/null
    [ -e threads ] || skip "torch was built without MKL"
    [ "$(cat threads)" -eq 1 ] || { echo "$1: $(cat threads) threads" && return 1; }
    rm threads
  }
  looks train -q --layers 1 --d-model 16 --heads 2 --segment 32 --batch 2 --steps 1 -o trained train.shard.zst
  looks eval-ppl -q -m model valid.shard.zst
  looks score -q -m model -t bytes valid.txt
  looks sample -q -m model -t bytes --prompt The --max-tokens 2
  looks build-datastore -q -m model --index exact -o store train.shard.zst
}
