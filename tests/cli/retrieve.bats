#!/usr/bin/env bats
# --retrieve: passages in front of what a model reads.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
  "$root"/tests/cli/tiny_gpt2 model # positions for 64 tokens
  novel 200 | grep -E '^.{40,}' | sed '40s/^/- /' >text # the first byte that is scored follows no word
  head -n 60 text | tokenize -q -t bytes --format lines -o train.shard.zst
  sed -n 40,64p text | tokenize -q -t bytes --format lines -o test.shard.zst
  bm25-search build -q --passage 20 train.shard.zst -o train.bm25
}

setup() { cd "$BATS_FILE_TMPDIR"; }

refused() { # WORDS FLAGS...
  local words=$1
  shift
  run --separate-stderr -64 eval-ppl -q -m model --retrieve train.bm25 "$@" test.shard.zst
  [[ $stderr == *"$words"* ]] || { echo "$stderr" && return 1; }
}

@test "eval-ppl: the log says what stood where, and only other documents did" {
  eval-ppl -q -m model --retrieve train.bm25 --retrieve-every 5 --retrieve-tokens 15 --retrieve-mix 2 --retrieve-log log \
    --per-token with.tsv --json test.shard.zst >with.json
  eval-ppl -q -m model --stride 5 --per-token alone.tsv --json test.shard.zst >alone.json
  [ "$(field tokens <with.json)" -eq "$(field tokens <alone.json)" ]
  [ "$(field loss <with.json)" != "$(field loss <alone.json)" ]
  [[ $(field signature <with.json) == *'|window:64|stride:5|'*'|retrieve:'*':20:0.9:0.4|retrieve-query:32|retrieve-tokens:15|retrieve-mix:2|retrieve-temperature:1|'* ]]
  python3 - "$(field tokens <with.json)" <<'END'
import json, sys
lines = [json.loads(line) for line in open('log')]
assert sum(line['tokens'] for line in lines) == int(sys.argv[1])
at = 1
text = open('text').read().split('\n')
ends, end = [], 0
for line in text[39:64]:
    end += len(line.encode())
    ends.append(end)
seen = own = 0
for line in lines:
    assert line['token'] == at and line['tokens'] <= 5, line
    at += line['tokens']
    document = 39 + sum(end <= line['token'] for end in ends)  # its number in the text
    for passage in line['passages']:
        assert passage['length'] <= 15 and passage['document'] != document, (line, document)
        seen += 1
    if line['passages']:
        assert abs(sum(p['weight'] for p in line['passages']) - 1) < 1e-9
        assert line['passages'][0]['score'] >= line['passages'][-1]['score']
assert seen > 100, seen
END
}

@test "eval-ppl: parts sum to the whole; tuning sees passages; a signature that differs by --retrieve" {
  flags=(-q -m model --retrieve train.bm25 --retrieve-every 9 --cache 40 --memory-weights constant -j 1)
  eval-ppl "${flags[@]}" --json test.shard.zst >whole
  for i in 1 2 3; do eval-ppl "${flags[@]}" --part $i/3 test.shard.zst -o part.$i; done
  eval-ppl --sum --json part.1 part.2 part.3 | cmp - whole
  eval-ppl "${flags[@]}" --tune test.shard.zst -o tuned.conf
  tuned=$(eval-ppl "${flags[@]}" --config tuned.conf --json test.shard.zst | field loss)
  python3 -c 'import sys; assert float(sys.argv[1]) <= float(sys.argv[2]) + 1e-9' "$tuned" "$(field loss <whole)"
}

@test "eval-ppl refuses by name what does not go with passages" {
  refused '--stride 8: with --retrieve, the stride is --retrieve-every, 4' --stride 8
  refused '--carry on' --carry on
  refused '--bos-at window' --bos-at window
  refused '--protocol lm-eval' --protocol lm-eval
  refused '--protocol llama.cpp' --protocol llama.cpp
  refused '--retrieve-tokens 60: does not fit into a window of 64 tokens of which 8 are scored' --retrieve-tokens 60 --retrieve-every 8
  refused '--retrieve-mix 2: --memory local cannot join' --retrieve-mix 2 --memory local
  run --separate-stderr -64 eval-ppl -q -m model --retrieve-log log test.shard.zst
  [[ $stderr == *'--retrieve-log: requires --retrieve'* ]]
  tokenize -q --learn word text -o word.json
  tokenize -q -t word.json text | bm25-search build -q -o word.bm25
  run --separate-stderr -65 eval-ppl -q -m model --retrieve word.bm25 test.shard.zst
  [[ $stderr == *'word.bm25'* ]] || { echo "$stderr" && return 1; }
  run --separate-stderr -66 eval-ppl -q -m model --retrieve nowhere test.shard.zst
  run --separate-stderr -64 eval-ppl -q -m model --retrieve train.bm25 -o train.bm25 test.shard.zst
}

@test "eval-ppl: hf's and fairseq's windows have passages too" {
  for protocol in hf fairseq; do
    eval-ppl -q -m model --protocol $protocol --bos none --retrieve train.bm25 --retrieve-every 8 --retrieve-log $protocol.log --json \
      test.shard.zst >$protocol.json
  done
  python3 - <<'END'
import json
for protocol, first in ('hf', 63), ('fairseq', 8):
    lines = [json.loads(line) for line in open(protocol + '.log')]
    assert lines[0]['tokens'] == first and not lines[0]['passages'], lines[0]
    assert all(line['tokens'] <= 8 for line in lines[1:])
    assert sum(bool(line['passages']) for line in lines) > 50
END
}

@test "sample: what it wrote has eval-ppl's log-probabilities, and JSON names the passages" {
  # One token of prompt, so that the windows of both begin with the same tokens.
  sample -q -m model -t bytes --retrieve train.bm25 --retrieve-every 6 --prompt t --max-tokens 40 --ignore-end --top-k 20 --json >sampled
  python3 - <<'END'
import json
r = json.loads(open('sampled').readline())
open('written', 'wb').write(b't' + bytes(r['tokens']))
searches = r['retrieved']
assert [s['token'] for s in searches] == [0, 6, 12, 18, 24, 30, 36], searches
assert any(s['passages'] for s in searches)
END
  tokenize -q -t bytes written | eval-ppl -q -m model --retrieve train.bm25 --retrieve-every 6 --json >scored
  python3 - "$(field log_prob <sampled)" "$(field loss <scored)" "$(field tokens <scored)" <<'END'
import sys
log_prob, loss, tokens = map(float, sys.argv[1:])
assert tokens == 40 and abs(log_prob + loss * tokens) < 1e-3, sys.argv
END
  for flags in '--retrieve-mix 3' '--beam 2' '--cache 20' '-n 3 --dtype int8'; do
    # shellcheck disable=SC2086  # words
    sample -q -m model -t bytes --retrieve train.bm25 --retrieve-every 6 --max-tokens 20 --json $flags --prompt 'his own company' >"$flags.json"
    "$root/tests/cli/follows_schema" "$root/man/schemas/sample.json" <"$flags.json"
  done
  for flags in '--cache 20' '--memory none --ensemble model:0.3'; do
    # shellcheck disable=SC2086  # flags are words
    run --separate-stderr -64 sample -q -m model -t bytes --retrieve train.bm25 --retrieve-mix 2 $flags --prompt t
    [[ $stderr == *'--retrieve-mix 2: '*'cannot be combined with memories, datastores, n-grams or further models'*'leave them out'* ]]
  done
}

@test "score: a text has eval-ppl's log-probability; choices are read behind passages" {
  head -c 150 text | tr '\n' ' ' >one
  score -q -m model -t bytes --retrieve train.bm25 --retrieve-every 6 one >scored
  tokenize -q -t bytes one | eval-ppl -q -m model --retrieve train.bm25 --retrieve-every 6 --json >expected
  python3 - "$(field log_prob <scored)" "$(field loss <expected)" "$(field tokens <expected)" <<'END'
import sys
log_prob, loss, tokens = map(float, sys.argv[1:])
assert abs(log_prob + loss * tokens) < 1e-3, sys.argv
END
  echo '{"context": "his own company, my", "choices": [" programs are in bats", " cat"], "gold": 0}' >choices
  score -q -m model -t bytes --retrieve train.bm25 --retrieve-every 6 --cache 20 choices >behind
  score -q -m model -t bytes --cache 20 choices >alone
  ! cmp -s behind alone || false
  cat scored behind | "$root/tests/cli/follows_schema" "$root/man/schemas/score.json"
  python3 - <<'END'
import json
choice = json.loads(open('behind').readline())['choices'][0]
assert [s['token'] for s in choice['retrieved']] == [0, 6, 12, 18], choice
assert choice['retrieved'][0]['passages'], choice
END
  run --separate-stderr -64 score -q -m model -t bytes --retrieve train.bm25 --retrieve-mix 2 one
  [[ $stderr == *'--retrieve-mix 2'* ]]
}
