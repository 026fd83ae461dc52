#!/usr/bin/env bats
# bats file_tags=nightly
# eval-ppl --protocol, held to what each of the four programs computes, in plain Python around transformers. What that says of
# some of the LICENSE is kept in protocols.json, to which tests/cli/protocols.bats holds eval-ppl where transformers is missing.
#
# TESSERA_PEERS: a python with torch and transformers; TESSERA_DATA: a folder with wikitext-2.

load transformers
script=protocols.py

setup_file() {
  find_peer || return 0
  "$root"/tests/cli/tiny_gpt2 model 5 0.3 0.2 300
  tokenize -q --learn bpe --vocab-size 300 "$root"/LICENSE -o model/tokenizer.json
}

# agrees KIND TEXT [FLAG...]: encoded by these flags, eval-ppl has the peer's figures.
agrees() {
  local kind=$1 text=$2
  shift 2
  tokenize -q -t model/tokenizer.json "$@" "$text" -o marked.shard.zst
  tokenize -q -t model/tokenizer.json "$@" --end-of-document none "$text" -o text.shard.zst
  zstdcat marked.shard.zst >ids
  peer model "$kind" "$text" ids >expected
  [ "$(wc -l <expected)" -eq 16 ]
  "$root"/tests/cli/follows_protocol expected model text.shard.zst
}

@test "each protocol has the figures of its program, and protocols.json those of today" {
  head -n 90 "$root"/LICENSE >text
  agrees text text --document-separator $'\n\n'
  python3 - expected "$root"/tests/golden/protocols.json <<'END'
import json, sys
found, kept = ([json.loads(line) for line in open(name)] for name in sys.argv[1:])
for a, b in zip(found, kept, strict=True):
    assert a.keys() == b.keys() and a["protocol"] == b["protocol"], (a, b)
    assert all(abs(a[key] - b[key]) <= 1e-7 * abs(b[key]) for key in a if key != "protocol"), (a, b)
END
}

@test "each protocol has the figures of its program on WikiText-2, as it is and with its words joined again" {
  data=${TESSERA_DATA:-$root/../shared/data}
  [ -e "$data/wikitext-2/test.txt.zst" ] || skip "wikitext-2 is missing (TESSERA_DATA names a folder that has it)"
  zstdcat "$data/wikitext-2/test.txt.zst" | sed -n '1,40p' >pages.txt
  agrees wikitext pages.txt --format wikitext
  agrees wikitext pages.txt --format wikitext --detokenise
}
