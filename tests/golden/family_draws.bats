#!/usr/bin/env bats
# bats file_tags=nightly
# Models drawn at random, between Tessera's programs and transformers, in both directions.

load transformers
script=family_draws.py

setup_file() {
  find_peer || return 0
}

# column NAME: of the table's last row, that of all families
column() {
  awk -F ' [|] ' -v name="$1" '/^family/ { for (i = 1; i <= NF; i++) if ($i == name) at = i } /^all/ { print $at }' table
}

@test "200 drawn models: those that train writes as a family have transformers' log-probabilities, others say why" {
  run peer write written 200
  tee table <<<"$output"
  [ "$status" -eq 0 ]
  [ "$(column drawn)" -eq 200 ]
  [ "$(column written)" -ge 80 ]
}

@test "200 drawn folders of transformers: eval-ppl gives its log-probabilities, or refuses a key by name" {
  run peer read folders 200
  tee table <<<"$output"
  [ "$status" -eq 0 ]
  [ "$(column drawn)" -eq 200 ]
  [ "$(column agree)" -ge 300 ]
}

@test "transformers still computes what the check compares with" {
  peer golden now.json
  python3 - now.json "$root/tests/golden/family_classes.json" <<'PY'
import json, sys
now, then = (json.load(open(path))["cases"] for path in sys.argv[1:])
assert len(now) == len(then)
for a, b in zip(now, then):
    assert a["config"] == b["config"], (a, b)
    gap = max(abs(x - y) for x, y in zip(a["nll"], b["nll"], strict=True))
    assert gap < 1e-4, (a["family"], a["case"], gap)
PY
}
