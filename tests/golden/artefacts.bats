#!/usr/bin/env bats
# Models, stores, indices, shards and adapters that an earlier version wrote: every later version reads them and computes the same.
# artefacts.sh wrote them; it adds what is new, and rewrites nothing.

load ../cli/helpers

setup_file() { export artefacts=$root/tests/golden/artefacts; }
setup() { cd "$BATS_TEST_TMPDIR"; }

# as_written NAME...: what each artefact gives, against what it gave when it was written: numbers to TOLERANCE [1e-5], the rest exactly.
as_written() {
  local name
  for name in "$@"; do
    "$root/tests/golden/artefacts.sh" show "$name" >given
    python3 - "$name" given "$artefacts/expected/$name" "${TOLERANCE:-1e-5}" <<'PYTHON'
import re, sys
name, given, expected, tolerance = sys.argv[1], open(sys.argv[2]).read(), open(sys.argv[3]).read(), float(sys.argv[4])
number = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e-?\d+)?(?![\w.])")
same = number.sub("#", given) == number.sub("#", expected) and expected
pairs = zip(map(float, number.findall(given)), map(float, number.findall(expected)))
if not same or any(not abs(a - b) <= tolerance * max(1, abs(b)) for a, b in pairs):
    sys.exit(f"{name}: gives\n{given}instead of\n{expected}")
PYTHON
  done
}

names() { "$root/tests/golden/artefacts.sh" names | grep "$1"; }

@test "tokenizers and shards of every kind are read, and orders and targets accepted" {
  as_written $(names '^tokenizers/\|^shards/')
}

@test "transformers of every variant give the same log-probabilities" {
  as_written $(names '^models/transformer\(-[^x]\|$\)')
}

@test "so do all other architectures" {
  as_written $(names '^models/' | grep -v '^models/transformer\(-[^x]\|$\)')
}

@test "every architecture of this version has an artefact" {
  train --help=all | sed -n 's/^  --arch \([^=]*\)=.*/\1/p' | tr '|' '\n' >architectures
  [ "$(wc -l <architectures)" -ge 8 ]
  while read -r arch; do
    grep -qs "\"arch\": \"$arch\"" "$artefacts"/models/*/config.json || {
      echo "$arch: add a line to artefacts.sh and run it"
      false
    }
  done <architectures
}

@test "stores, n-grams and passages are searched, and adapters and tuned settings applied" {
  as_written store/exact store/ivf store/codes ngrams passages adapter tuned.conf
}

@test "a run that an earlier version began goes on" {
  # The processor's rounding counts for more in a step of training.
  TOLERANCE=1e-3 as_written checkpoint
}
