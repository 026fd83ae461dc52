#!/usr/bin/env bats
# score: requests in, a JSON line each, the same figures however they are asked.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
  "$root"/tests/cli/tiny_gpt2 model
  cat >requests.jsonl <<'END'
{"id": 1, "context": "The cat sat", "continuation": " on the mat"}
{"id": {"doc": "b"}, "text": "A cat is a cat is a cat."}

{"id": "c", "context": "The cat sat ", "choices": ["on", "off it", "x"], "gold": 2, "subject": "cats"}
{"context": "", "continuation": "cat"}
{"id": null, "context": "The cat sat", "choices": ["s", "!"]}
END
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

ask() {
  score -q -m model -t bytes "$@"
}

# close A B: the same JSON, numbers to 1e-4.
close() {
  python3 - "$1" "$2" <<'END'
import json, sys
def same(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return abs(a - b) <= 1e-4
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b
a, b = ([json.loads(line) for line in open(name)] for name in sys.argv[1:])
assert a and same(a, b), (a, b)
END
}

@test "each request gets a line, in order, with its id as it was given" {
  ask requests.jsonl >answers
  python3 - <<'END'
import json
rows = [json.loads(line) for line in open("answers")]
assert [r.get("id", "none") for r in rows] == [1, {"doc": "b"}, "c", "none", None]
assert list(rows[0]) == ["id", "log_prob", "tokens", "bytes", "greedy"]
assert [(r["tokens"], r["bytes"]) for r in rows[:2]] == [(11, 11), (23, 23)]
# White space of the context is the choices'.
assert [(c["tokens"], c["bytes"]) for c in rows[2]["choices"]] == [(3, 3), (7, 7), (2, 2)]
assert (rows[3]["tokens"], rows[3]["bytes"]) == (2, 2)  # nothing stands before the first
for r in (rows[2], rows[4]):
    values = {"sum": lambda c: c["log_prob"], "byte": lambda c: c["log_prob"] / c["bytes"], "token": lambda c: c["log_prob"] / c["tokens"]}
    for rule, value in values.items():
        best = max(range(len(r["choices"])), key=lambda i: value(r["choices"][i]))
        assert r["prediction"][rule] == best
        assert "gold" not in r or r["correct"][rule] == (best == r["gold"])
assert "gold" not in rows[4] and "correct" not in rows[4]
END
}

@test "requests may be compressed, begin with a byte order mark or after an empty line; a shard is none" {
  ask requests.jsonl >answers
  { printf '\357\273\277\n' && cat requests.jsonl; } >marked
  zstd -qf requests.jsonl -o requests.zst && gzip -k -c requests.jsonl >requests.gz
  for file in marked requests.zst requests.gz; do
    ask "$file" >"answers.$file"
    cmp answers "answers.$file"
  done
  ask <requests.zst | cmp answers
  tokenize -q -t bytes --format lines requests.jsonl -o x.shard.zst
  run --separate-stderr ask x.shard.zst
  [ "$status" -eq 65 ]
  [[ $stderr == "score: x.shard.zst: is a shard of tokens"* ]]
}

@test "an id comes back with its digits and its order" {
  echo '{"id": {"b": 12345678901234567890123, "a": [1.50]}, "text": "The cat"}' >id.jsonl
  ask id.jsonl >answer
  [[ $(cat answer) == '{"id":{"b": 12345678901234567890123, "a": [1.50]},"log_prob":'* ]]
  sample -q -m model -t bytes --format jsonl --field text --max-tokens 1 --json id.jsonl >answer
  [[ $(cat answer) == '{"id":{"b": 12345678901234567890123, "a": [1.50]},"prompt":'* ]]
}

@test "where nobody reads the answers the program dies of it, and leaves nothing behind" {
  python3 - <<'END'
import os, subprocess
unread, answers = os.pipe()
os.close(unread)
command = ["score", "-q", "-m", "model", "-t", "bytes", "--report", "unwritten.json", "requests.jsonl"]
assert subprocess.run(command, stdout=answers).returncode == -13
END
  [ -z "$(find . -name '*unwritten*' -o -name '*.tmp.*')" ]
}

@test "the protocol of lm-eval wants a token to begin with" {
  "$root"/tests/cli/tiny_gpt2 plain
  run --separate-stderr score -q -m plain -t bytes --protocol lm-eval requests.jsonl
  [ "$status" -eq 64 ]
  [[ $stderr == "score: --protocol lm-eval: "*"give --bos" ]]
  score -q -m plain -t bytes --protocol lm-eval --bos none requests.jsonl
}

@test "a pipe, a file, batches of any size and choices asked one by one have the same figures" {
  ask requests.jsonl >answers
  ask <requests.jsonl >stdin
  cmp answers stdin
  cat requests.jsonl | ask >pipe
  close answers pipe
  ask --batch 2 --batch-tokens 10 requests.jsonl >two
  close answers two
  cat requests.jsonl | ask --format jsonl --batch 3 - >three
  close answers three
  for choice in on 'off it' x; do
    echo "{\"context\": \"The cat sat \", \"continuation\": \"$choice\"}"
  done | ask >alone
  jq -c '.choices[]?' answers | head -n 3 >together
  close together alone
}

@test "lines of text, and what begins them" {
  printf 'A cat is a cat is a cat.\n\n{"x\n' >lines
  ask lines | jq -c '[.tokens, .bytes]' >counts
  printf '[23,23]\n[0,0]\n[2,2]\n' | cmp - counts
  ask requests.jsonl | sed -n 2p | jq .log_prob >one
  ask lines | sed -n 1p | jq .log_prob | cmp - one
  ask --bos '!' --format lines lines | sed -n 1p | jq .tokens | grep -qx 24
  run --separate-stderr ask --bos '<s>' lines
  [ "$status" -eq 64 ]
  [[ $stderr == 'score: --bos <s>: not a token of'* ]]
}

@test "a text has the loss that eval-ppl finds, beyond the window too, with every memory" {
  needs eval-ppl
  head -c 300 "$root/tests/golden/tokenizers/sample.txt" | tr '\n' ' ' >text
  tokenize -q -t bytes text -o text.shard.zst
  train -q --layers 1 --d-model 8 --heads 1 --segment 16 --batch 2 --steps 4 text.shard.zst -o trained
  build-datastore -q -m trained --index exact text.shard.zst -o store 2>/dev/null
  head -c 200 text >other
  tokenize -q -t bytes other -o other.shard.zst
  for memory in "--memory none" "--memory local,long --long 40" "--memory local --cache 30 --stride 7" \
    "--memory none --datastore store --k 5 --combine interpolate" "--memory local,long --cache 9 --datastore store --k 4 --combine both"; do
    # shellcheck disable=SC2086 # several words
    eval-ppl -q -m trained $memory --json other.shard.zst | jq -c '{loss, tokens}' >expected
    # shellcheck disable=SC2086 # several words
    score -q -m trained $memory other | jq -c '{loss: (-.log_prob / .tokens), tokens}' >found
    close expected found
  done
}

@test "a coprocess: a request in, a line out" {
  coproc SCORE { score -q -m model -t bytes --format jsonl; }
  for word in cat mat; do
    echo "{\"id\": \"$word\", \"context\": \"The\", \"continuation\": \" $word\"}" >&"${SCORE[1]}"
    read -r -t 60 line <&"${SCORE[0]}"
    [ "$(jq -r .id <<<"$line")" = "$word" ]
  done
  pid=$SCORE_PID
  eval "exec ${SCORE[1]}>&-"
  wait "$pid"
}

@test "--per-token: what adds up to the whole" {
  ask --per-token requests.jsonl | jq -s '[.[] | (.choices // [.])[]] | map((.per_token | map(.log_prob) | add) - .log_prob | fabs < 1e-9) | all' |
    grep -qx true
  ask --per-token requests.jsonl | sed -n 1p | jq -r '[.per_token[].text] | add' | grep -qx ' on the mat'
}

@test "--domain-context and --verbalizers" {
  ask --domain-context 'So:' requests.jsonl | sed -n 3p >answer
  for choice in on 'off it' x; do
    echo "{\"context\": \"So:\", \"continuation\": \"$choice\"}"
  done | ask | jq .log_prob >domain
  python3 - <<'END'
import json
r = json.load(open("answer"))
domain = [float(line) for line in open("domain")]
assert all(abs(c["domain_log_prob"] - d) < 1e-4 for c, d in zip(r["choices"], domain))
gain = [c["log_prob"] - d for c, d in zip(r["choices"], domain)]
assert r["prediction"]["mutual_information"] == gain.index(max(gain))
END
  echo '{"on": ["on", "upon", "o"]}' >verbalizers.json
  ask --verbalizers verbalizers.json requests.jsonl | sed -n 3p >answer
  for choice in on upon o 'off it'; do
    echo "{\"context\": \"The cat sat \", \"continuation\": \"$choice\"}"
  done | ask | jq .log_prob >alone
  python3 - <<'END'
import json, math
choices = json.load(open("answer"))["choices"]
alone = [float(line) for line in open("alone")]
assert abs(choices[0]["log_prob"] - math.log(sum(map(math.exp, alone[:3])))) < 1e-4
assert abs(choices[1]["log_prob"] - alone[3]) < 1e-4
END
  echo '{"on": []}' >verbalizers.json
  run --separate-stderr ask --verbalizers verbalizers.json requests.jsonl
  [ "$status" -eq 65 ]
  [ "$stderr" = 'score: verbalizers.json: "on" has an empty list of texts' ]
}

@test "--cite: the stored contexts behind each scored token" {
  needs build-datastore
  printf 'Once there was a cat.\nOnce there was a cow.\n' | tokenize -q -t bytes --format lines -o cite.shard.zst
  build-datastore -q -m model cite.shard.zst -o cite-store >/dev/null
  echo '{"context": "Once there", "choices": [" was a cat", " is"]}' >question.jsonl
  ask --datastore cite-store --k 40 --combine both --cite --cite-k 2 question.jsonl >cited
  "$root/tests/cli/follows_schema" "$root/man/schemas/score.json" <cited
  python3 - <<'END'
import json
choices = json.load(open("cited"))["choices"]
text = "Once there was a cat.Once there was a cow."
contexts = 0
for choice, said in zip(choices, (" was a cat", " is")):
    assert "".join(token["text"] for token in choice["citations"]) == said
    for token in choice["citations"]:
        assert -1e-6 <= token["share"] <= 1 + 1e-6 and len(token["contexts"]) <= 2
        for c in token["contexts"]:
            contexts += 1
            assert c["context"] + token["text"] in text
assert contexts > 10
END
  run --separate-stderr ask --cite question.jsonl
  [ "$status" -eq 64 ]
  [ "$stderr" = 'score: --cite: requires --datastore, --ngrams, --online-ngrams or --ensemble' ]
}

@test "a wrong request is named by its line; with --keep-going the others are answered" {
  {
    head -n 1 requests.jsonl
    echo '{"id": 7, "context": "x"}'
    sed -n 2p requests.jsonl
    echo 'no JSON'
  } >wrong.jsonl
  run --separate-stderr ask wrong.jsonl
  [ "$status" -eq 65 ]
  [ "${#lines[@]}" -eq 1 ]
  [ "$stderr" = 'score: wrong.jsonl:2: "context" needs "continuation" or "choices"; give one' ]
  run --separate-stderr ask wrong.jsonl -o out
  [ "$status" -eq 65 ]
  [ ! -e out ]
  [ -z "$(find . -name 'out*')" ]
  run --separate-stderr score -m model -t bytes --keep-going wrong.jsonl -o out
  [ "$status" -eq 65 ]
  [[ $stderr == *"score: wrong.jsonl:2: "* && $stderr == *"score: wrong.jsonl:4: "* ]]
  [[ $stderr == *"score: 2 of 4 requests failed" ]]
  jq -c '[.id, has("error"), has("log_prob")]' out >shape
  printf '[1,false,true]\n[7,true,false]\n[{"doc":"b"},false,true]\n[null,true,false]\n' | cmp - shape
  long=$(printf 'x%.0s' {1..65})
  echo "{\"context\": \"a\", \"continuation\": \"$long\"}" >long.jsonl
  run --separate-stderr ask long.jsonl
  [ "$status" -eq 65 ]
  [ "$stderr" = 'score: long.jsonl:1: continuation has 65 tokens, more than the window of 64' ]
}

@test "--report: figures of all answers, the same for the same seed whatever -j" {
  python3 - >questions.jsonl <<'END'
import json
for i in range(12):
    print(json.dumps({"context": f"Question {i}:", "choices": ["a", "bc", "d"], "gold": i % 3}))
END
  ask questions.jsonl --json --report a -o answers
  ask questions.jsonl --json --report b -j 2 --batch 5 -o /dev/null
  python3 - <<'END'
import json
a, b = json.load(open("a")), json.load(open("b"))
rows = [json.loads(line) for line in open("answers")]
for rule in ("sum", "byte", "token"):
    share = sum(r["correct"][rule] for r in rows) / 12
    assert a[rule] == b[rule] and abs(a[rule] - share) < 1e-12
    assert a[rule + "_low"] <= share <= a[rule + "_high"] and a[rule + "_low"] == b[rule + "_low"]
assert a["questions"] == 12 and a["perplexity"] is None and a["signature"] == b["signature"]
END
  run --separate-stderr score -m model -t bytes questions.jsonl
  [[ $stderr == *"score: 12 requests, sum 0."* ]]
  run --separate-stderr ask requests.jsonl --report ./x -o x
  [ "$status" -eq 64 ]
  [ "$stderr" = 'score: --report ./x: is the output of the answers; give another file' ]
  run --separate-stderr ask requests.jsonl --report -
  [ "$status" -eq 64 ]
}

@test "a context that is cut where a window ends is as one that is cut elsewhere" {
  python3 -c 'import json
for before in ("", "x"):
    print(json.dumps({"context": before + "The cat sat on the mat, and sat. ", "continuation": "a"}))' >cut.jsonl
  ask --memory local --memory-weights constant --window 17 cut.jsonl | jq '.log_prob * 1e4 | round' >cut
  ask --memory local --memory-weights constant --window 16 cut.jsonl | jq '.log_prob * 1e4 | round' >>cut
  ask --memory local --memory-weights constant --window 33 cut.jsonl | jq '.log_prob * 1e4 | round' >>cut
  [ "$(wc -l <cut)" -eq 6 ]
  [ "$(uniq cut | wc -l)" -eq 3 ]
}

@test "a model that was trained with another tokenizer refuses the one that is given" {
  printf 'some words\n' | tokenize -q -t bytes -o some.shard.zst
  train -q --layers 1 --d-model 8 --heads 1 --segment 4 --batch 1 --steps 1 some.shard.zst -o taught
  rm taught/tokenizer.json
  echo text | score -q -m taught -t bytes >/dev/null
  tokenize -q --learn bpe --vocab-size 257 "$root/LICENSE" -o other.json
  run --separate-stderr score -q -m taught -t other.json requests.jsonl
  [ "$status" -eq 65 ]
  [[ $stderr == *"was trained with tokenizer"* ]]
}

@test "--verbalizers: texts that are not empty, each once" {
  for texts in '["a", "a"]' '[""]' '[]'; do
    echo "{\"x\": $texts}" >bad.json
    run --separate-stderr ask --verbalizers bad.json requests.jsonl
    [ "$status" -eq 65 ]
    [[ $stderr == 'score: bad.json: "x"'* ]]
  done
}

@test "--boundary prefix: a token that joins a context and a continuation is scored whole" {
  cat >joins.json <<'END'
{"version": "1.0", "added_tokens": [], "normalizer": null, "post_processor": null,
 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
 "decoder": {"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true},
 "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "c": 2, "ab": 3}, "merges": ["a b"]}}
END
  # "cab" is c, ab: the texts' first token is not scored, the others stand behind the same as the choices.
  printf '%s\n' '{"context": "ca", "choices": ["b", "c"]}' '{"text": "cab"}' '{"text": "cac"}' >joins.jsonl
  score -q -m model -t joins.json --boundary prefix --per-token --json --report figures joins.jsonl >answers
  python3 - <<'END'
import json
question, *texts = map(json.loads, open("answers"))
assert [[t["token"] for t in c["per_token"]] for c in question["choices"]] == [[3], [0, 2]]
assert [(c["tokens"], c["bytes"]) for c in question["choices"]] == [(1, 2), (2, 2)]
for choice, text in zip(question["choices"], texts):
    assert text["bytes"] == 2 and abs(choice["log_prob"] - text["log_prob"]) < 1e-4
assert "|boundary:prefix" in json.load(open("figures"))["signature"]
END
  run --separate-stderr score -q -m model -t joins.json joins.jsonl
  [ "$status" -eq 65 ]
  [ "$stderr" = 'score: joins.jsonl:1: continuation 0 is empty' ]
}

@test "weights that are learned: a continuation after its context has the log-probability that sample prints" {
  needs train
  head -c 20000 "$root/LICENSE" | tokenize -q -t bytes -o some.shard.zst
  train -q -j 1 --layers 1 --d-model 16 --heads 2 --segment 32 --batch 4 --steps 60 --lr 0.01 some.shard.zst -o bytes
  prompt='the the license of the license of the work, the'
  local follow memory
  for memory in '--cache 50' '--cache 50 --unigram --memory local' '--unigram --ensemble bytes:0.2 --memory-weights online'; do
    for follow in --memory-weights-follow --no-memory-weights-follow; do
      # shellcheck disable=SC2086  # several options
      sample -q -m bytes --window 128 $memory $follow --temperature 0.3 --max-tokens 20 --seed 3 --prompt "$prompt" --json >drawn
      jq -c '{context: .prompt, continuation: .text}' drawn >request
      # shellcheck disable=SC2086
      score -q -m bytes --window 128 $memory $follow request >scored
      [ "$(jq '.tokens | length' drawn)" -eq 20 ]
      python3 -c 'import json, sys
drawn, scored = (json.load(open(name)) for name in ("drawn", "scored"))
assert abs(drawn["log_prob"] - scored["log_prob"]) < 2e-3, (sys.argv[1:], drawn, scored)' "$memory" "$follow"
    done
  done
  # Each continuation begins with the weights after the context.
  printf '%s\n' '{"context": "the the the the ", "choices": ["the", "work", "the work"]}' >choices
  score -q -m bytes --cache 50 choices | jq -c '.choices[].log_prob // .log_probs[]' >together
  for choice in the work 'the work'; do
    printf '{"context": "the the the the ", "continuation": "%s"}\n' "$choice" | score -q -m bytes --cache 50 | jq .log_prob
  done >alone
  paste together alone | awk '{ d = $1 - $2; exit !(d * d < 1e-6) }'
}

@test "dynamic evaluation: a text has the figures of eval-ppl, another text changes none, a continuation is refused" {
  cats 12 >long
  tokenize -q -t bytes long -o long.shard.zst
  options=(-q -m model --window 32 --stride 16 --dynamic-evaluation --dynamic-rate 0.003)
  jq -cRs '{text: .}' long >asked
  { cat asked && jq -c '{text: ("A dog. " * 30)}' <<<null && cat asked; } | score "${options[@]}" -t bytes --format jsonl - >scored
  eval-ppl "${options[@]}" --json long.shard.zst |
    jq -e --slurpfile s scored '.loss * .tokens + $s[0].log_prob | fabs < 0.001'
  jq -se '.[0].log_prob == .[2].log_prob' scored
  score -q -m model --window 32 --stride 16 -t bytes --format jsonl asked | jq -e --slurpfile s scored '.log_prob < $s[0].log_prob'
  echo '{"context": "The cat", "continuation": " sat"}' >continuation
  run -65 --separate-stderr score "${options[@]}" -t bytes --format jsonl continuation
  [[ $stderr == *"continuation:1: --dynamic-evaluation takes texts"* ]]
  run -64 --separate-stderr score "${options[@]}" -t bytes --dtype int8 asked
  [[ $stderr == *"--dynamic-evaluation"* ]]
}
