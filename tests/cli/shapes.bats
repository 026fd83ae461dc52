#!/usr/bin/env bats
# The papers' shapes are configurations that train takes.

load helpers

@test "every shape is a configuration of train, each value taken as written" {
  local shape key value
  for shape in "$root"/examples/shapes/*.toml; do
    train --config "$shape" --print-config >"$BATS_TEST_TMPDIR/printed"
    while IFS=' = ' read -r key value; do
      case $key in '' | '#'*) continue ;; esac
      got=$(sed -n "s/^$key = //p" "$BATS_TEST_TMPDIR/printed")
      # Numbers may be written otherwise: 1e-4 and 0.0001.
      awk -v a="$got" -v b="$value" 'BEGIN { exit !(a == b || a + 0 == b + 0 && b ~ /^[0-9.e-]+$/) }' || {
        echo "$shape: $key = $value, but train has $got"
        return 1
      }
    done <"$shape"
  done
}

@test "flags win over a shape: the data's vocabulary may need other bands" {
  run -0 train --config "$root/examples/shapes/trime-247m.toml" --cutoffs 4000,16000 --print-config
  [[ "$output" == *"cutoffs = [4000, 16000]"* ]]
  [[ "$output" == *"d-model = 1024"* ]]
}
