#!/usr/bin/env bash
# pack/*: queries a CPU second of bm25-pack's search beside bm25s (numba) with the same terms, one thread, WikiText-2 in segments
# of 150 and 512 words, all against all; best of PACK_ROUNDS [5] turns. Then how cost grows: 1,000 sampled queries on 10^4 and
# more segments of 150 words that a word-bigram model of WikiText-2 writes; the peer of each is the same search on a tenth,
# so that a ratio of 0.1 means that cost grows as the units do. PACK_GROWTH [10000 100000]: how many; 1000000 takes
# about 6 GB of disk and ten minutes.
#
# TESSERA_DATA: a folder with wikitext-2/train.txt.zst; without it nothing is measured.
set -euo pipefail
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

root=$(cd "$(dirname "$0")/../.." && pwd)
data=${TESSERA_DATA:-$root/../shared/data}
text=$data/wikitext-2/train.txt.zst
[ -e "$text" ] || {
  echo "pack.sh: $text is missing (TESSERA_DATA): its figures are left out" >&2
  exit 0
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
zstd -dcq "$text" >"$work/text"
tokenize -q --learn word "$work/text" -o "$work/word.json"
tokenize -q -t "$work/word.json" "$work/text" -o "$work/text.shard.zst"

# search ARGUMENTS...: queries a CPU second.
search() {
  bm25-pack -q -j1 --timings "$work/timings" --dump hits "$@" -o "$work/hits"
  member queries_per_cpu_s <"$work/timings"
}
best() { sort -g | tail -n 1; }

if has_peer bm25s && has_peer numba; then
  for words in 150 512; do
    bm25-pack -q --segment "$words" --dump terms "$work/text.shard.zst" -o "$work/terms"
    # The peer indexes once, then answers a line with a figure.
    mkfifo "$work/go" "$work/rate"
    "$PEERS" "$(dirname "$0")/pack_peer.py" "$work/terms" <"$work/go" >"$work/rate" 2>/dev/null &
    exec 3>"$work/go" 4<"$work/rate"
    : >"$work/ours.rates" && : >"$work/theirs.rates"
    for _ in $(seq "${PACK_ROUNDS:-5}"); do
      search --segment "$words" "$work/text.shard.zst" >>"$work/ours.rates"
      echo go >&3
      read -r rate <&4
      echo "$rate" >>"$work/theirs.rates"
    done
    exec 3>&- 4<&-
    wait
    rm "$work/go" "$work/rate"
    figure "pack/bm25-$words" queries/s "$(best <"$work/ours.rates")" "bm25s numba" "$(best <"$work/theirs.rates")"
  done
fi

# bigrams WORDS: so many words, each drawn from those that follow the one before it in the text.
bigrams() {
  tr '\n' ' ' <"$work/text" | awk -v words="$1" -v RS=' +' '
    $0 != "" { word[n++] = $0 }
    END {
      srand(1)
      for (i = n - 2; i >= 0; --i) { count[word[i]]++ }
      # The k-th place of a word, by a table of places sorted by word.
      for (w in count) { start[w] = total; total += count[w] }
      for (i = 0; i < n - 1; ++i) place[start[word[i]] + filled[word[i]]++] = i
      now = word[0]
      for (i = 0; i < words; ++i) {
        printf "%s%s", now, (i % 150 == 149 ? "\n" : " ")
        if (count[now] == 0) now = word[0]
        now = word[place[start[now] + int(rand() * count[now])] + 1]
      }
    }'
}
before='' rate_before=0
for units in ${PACK_GROWTH:-10000 100000}; do
  bigrams $((units * 150)) | tokenize -q -t "$work/word.json" --format lines -o "$work/bigrams.shard.zst"
  rate=$(for _ in 1 2 3; do search --unit document --queries 1000 "$work/bigrams.shard.zst"; done | best)
  [ -z "$before" ] || figure "pack/growth-$units" queries/s "$rate" "$before units" "$rate_before"
  before=$units rate_before=$rate
done
