# shellcheck shell=bash
# What the benchmarks share. A benchmark prints one JSON line a figure through `figure`; the ratio is above 1 where
# ours is better than the peer's. Peers are python programs in $PEERS; a peer that is missing is said on stderr.

# figure NAME UNIT VALUE PEER PEER_VALUE [lower]: `lower` where less is better
figure() {
  awk -v name="$1" -v unit="$2" -v value="$3" -v peer="$4" -v other="$5" -v lower="${6:-}" 'BEGIN {
    ratio = lower != "" ? other / value : value / other
    printf "{\"name\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",\"peer\":\"%s\",\"peer_value\":%.6g,\"ratio\":%.4g}\n",
      name, value, unit, peer, other, ratio
  }'
}

# The number of a member of a JSON line.
member() { sed -E "s/.*\"$1\": ?([-+.0-9e]+).*/\1/"; }

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

has_peer() { # MODULE
  "$PEERS" -c "import $1" 2>/dev/null && return
  echo "${0##*/}: no python module $1 for $PEERS: its figures are left out" >&2
  return 1
}

# novels_bpe FOLDER: text, the novels, and tokenizer.json, 8,000 types of them.
novels_bpe() {
  local novel
  for novel in "$(dirname "$0")"/../../examples/novels/*.zst; do zstdcat "$novel"; done >"$1/text"
  tokenize -q --learn bpe --vocab-size 8000 "$1/text" -o "$1/tokenizer.json"
}
