#!/usr/bin/env bats
# bats file_tags=nightly
# bm25-pack and bm25-search find what bm25s (method="lucene") finds for the same terms. The peer's python is $TESSERA_PEERS, else the
# bench's, else python3.

bats_require_minimum_version 1.5.0

setup() {
  root=$(cd "$BATS_TEST_DIRNAME/../.." && pwd)
  PATH=${BIN:-$root/build/bin}:$PATH
  python=${TESSERA_PEERS:-}
  [ -n "$python" ] || python=$root/build/peers/bin/python
  [ -x "$python" ] || python=python3
  "$python" -c 'import bm25s, numpy' 2>/dev/null || skip "no python module bm25s for $python"
  cd "$BATS_TEST_TMPDIR"
}

@test "scores to 1e-5, and the ranking but for ties" {
  cat "$root"/man/*.scd "$root"/CONTRIBUTING.md >text
  tokenize -q --learn word text -o word.json
  tokenize -q -t word.json text -o text.shard.zst
  for settings in '0.9 0.4 40' '1.5 0.75 200'; do
    read -r k1 b segment <<<"$settings"
    options=(--segment "$segment" --k1 "$k1" --b "$b")
    bm25-pack "${options[@]}" --dump terms text.shard.zst -o terms
    bm25-pack "${options[@]}" --dump hits text.shard.zst -o hits
    "$python" "$root/tests/golden/bm25s_hits.py" "$k1" "$b" terms hits
  done
}

@test "bm25-search: of queries that are no passages, some of whose words the index has not" {
  cp "$root/CONTRIBUTING.md" text
  cat "$root"/README.md "$root"/CHANGELOG.md >queries
  for name in text queries; do
    grep . $name | tokenize -q -t bytes --format lines -o $name.shard.zst
    bm25-pack -q --unit document --dump terms $name.shard.zst -o $name.terms
  done
  for settings in '0.9 0.4' '1.5 0.75'; do
    read -r k1 b <<<"$settings"
    bm25-search build -q --k1 "$k1" --b "$b" text.shard.zst -o text.bm25
    grep . queries | bm25-search find -q --k 20 -i text.bm25 -o hits
    "$python" "$root/tests/golden/bm25s_hits.py" "$k1" "$b" text.terms hits queries.terms
  done
}
