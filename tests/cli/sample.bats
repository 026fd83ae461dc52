#!/usr/bin/env bats
# sample: prompts in, texts out, in the same words whatever the batch; and what it refuses.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  "$root"/tests/cli/tiny_gpt2 model
  printf 'The cat\n\nsat on the mat, which was long\nx\n' >prompts.txt
  printf '{"prompt": "The cat"}\n{"prompt": ""}\n{"prompt": "sat on the mat, which was long"}\n{"prompt": "x"}\n' >prompts.jsonl
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

draw() {
  sample -m model -t bytes "$@"
}

@test "--bos: a token before the prompt" {
  sample -m model -t bytes --prompt 'a cat' --temperature 0 --max-tokens 8 -o with
  sample -m model -t bytes --bos a --prompt ' cat' --temperature 0 --max-tokens 8 -o begun
  cmp with begun
  run --separate-stderr sample -m model -t bytes --bos '<s>' --prompt ' cat'
  [ "$status" -eq 64 ]
  [[ $stderr == 'sample: --bos <s>: not a token of'* ]]
}

@test "--prompt, a file of lines, JSON lines and stdin give the same texts" {
  draw --max-tokens 20 --json prompts.txt >lines
  draw --max-tokens 20 --json prompts.jsonl >jsonl
  draw --max-tokens 20 --json <prompts.txt >stdin
  draw --max-tokens 20 --json --format jsonl --field prompt - <prompts.jsonl >dash
  cmp lines jsonl && cmp lines stdin && cmp lines dash
  [ "$(wc -l <lines)" -eq 4 ]
  draw --max-tokens 20 --json --prompt "The cat" >one
  cmp one <(head -n 1 lines)
}

@test "a JSON line has the prompt, the text, its tokens, their log-probability and the reason of its end" {
  draw --max-tokens 30 --stop e --json -n 3 prompts.txt >lines
  python3 - <<'EOF'
import json
rows = [json.loads(line) for line in open("lines")]
assert [(r["prompt"], r["sample"]) for r in rows[:4]] == [("The cat", 0), ("The cat", 1), ("The cat", 2), ("", 0)]
assert len(rows) == 12
for r in rows:
    assert list(r) == ["prompt", "sample", "text", "tokens", "log_prob", "finish"], r
    assert r["log_prob"] < 0 and 0 < len(r["tokens"]) <= 30
    raw = bytes(r["tokens"])
    if r["finish"] == "stop":
        assert raw.endswith(b"e")
        raw = raw[:-1]
    else:
        assert r["finish"] == "length" and len(raw) == 30
    assert b"e" not in raw
    if raw.isascii():
        assert raw.decode() == r["text"]
EOF
}

@test "a JSON line keeps its id, and may say max_tokens, stop, temperature and seed for itself" {
  cat >own.jsonl <<'EOF'
{"id": {"b": 1, "a": [2]}, "prompt": "The cat", "max_tokens": 4, "temperature": 0}
{"id": "second", "prompt": "The cat", "seed": 3}
{"prompt": "x", "stop": ["e", "a"]}
EOF
  draw --max-tokens 30 --json own.jsonl >own
  draw --max-tokens 4 --temperature 0 --json --prompt "The cat" >first
  draw --max-tokens 30 --seed 3 --json --prompt "The cat" >second
  cmp <(head -n 1 own) <(sed 's/^{/{"id":{"b": 1, "a": [2]},/' first)
  cmp <(sed -n 2p own) <(sed 's/^{/{"id":"second",/' second)
  sed -n 3p own | grep -q '^{"prompt":"x"'
  [ -z "$(sed -n 3p own | jq -r .text | grep '[ea]')" ]
  printf '{"prompt": "x", "max_tokens": 0}\n' >bad.jsonl
  run --separate-stderr draw --json bad.jsonl
  [ "$status" -eq 65 ]
  [ "${#stderr_lines[@]}" -eq 1 ]
  [[ $stderr == *"bad.jsonl:1: max_tokens: takes a whole number"* ]]
}

@test "texts do not depend on --batch or -n, and do on --seed" {
  draw --max-tokens 100 --json -n 3 prompts.txt >all
  draw --max-tokens 100 --json -n 3 --batch 1 prompts.txt | cmp all
  draw --max-tokens 100 --json -n 3 --batch 5 -j 1 prompts.txt | cmp all
  draw --max-tokens 100 --json prompts.txt | cmp - <(grep '"sample":0' all)
  ! draw --max-tokens 100 --json -n 3 --seed 2 prompts.txt | cmp -s all || false
}

@test "the text is the bytes of its tokens, whatever they are" {
  draw --max-tokens 60 --json --prompt x >line
  draw --max-tokens 60 --prompt x >text
  python3 -c 'import json; assert bytes(json.load(open("line"))["tokens"]) + b"\n" == open("text", "rb").read()'
  draw --max-tokens 60 --prompt x --echo | cmp - <(printf x && cat text)
  draw --max-tokens 60 --prompt x -o file
  cmp file text
  draw --max-tokens 5 --temperature 0 --separator ---- -n 2 --prompt x >two
  [ "$(grep -ac '^----$' two)" -eq 1 ]
}

@test "the first text streams; the others wait for it" {
  mkfifo in out
  draw --max-tokens 5 <in >out 3>&- &
  exec 7>in 8<out
  echo "The cat" >&7
  read -r -t 60 -n 1 -u 8 _ # something comes while stdin is still open
  exec 7>&-
  cat <&8 >rest
  exec 8<&-
  wait $!
  [ -s rest ]
}

@test "a beam is at least as probable as greedy, and its best come in order" {
  greedy=$(draw --max-tokens 12 --temperature 0 --json --prompt "The cat")
  draw --max-tokens 12 --beam 8 -n 4 --json --prompt "The cat" >beam
  draw --max-tokens 12 --beam 8 -n 4 --prompt "The cat" >text
  python3 - "$greedy" <<'EOF'
import json, sys
greedy = json.loads(sys.argv[1])
rows = [json.loads(line) for line in open("beam")]
assert [r["sample"] for r in rows] == [0, 1, 2, 3]
assert rows[0]["log_prob"] >= greedy["log_prob"] - 1e-6
scores = [r["log_prob"] / len(r["tokens"]) for r in rows]
assert scores == sorted(scores, reverse=True)
assert open("text", "rb").read() == b"".join(bytes(r["tokens"]) + b"\n" for r in rows)
EOF
}

@test "a beam returns no text twice where tokens differ only behind a stop string" {
  needs train
  tokenize -q --learn bpe --vocab-size 400 "$root/LICENSE" -o words.json
  tokenize -q -t words.json "$root/LICENSE" -o words.shard.zst
  train -q -j 1 --layers 1 --d-model 16 --heads 2 --segment 32 --batch 4 --steps 20 --lr 0.01 words.shard.zst -o words
  sample -q -m words --beam 12 -n 12 --stop ' ' --max-tokens 6 --prompt 'This' --json >beam
  [ "$(jq -c 'select(.finish == "stop")' beam | wc -l)" -gt 2 ]
  [ -z "$(jq -c .text beam | sort | uniq -d)" ]
}

@test "a search that finds fewer texts than were asked for says so" {
  run --separate-stderr draw --max-tokens 1 --beam 400 -n 400 --prompt "The cat" --json
  [ "$status" -eq 0 ]
  found=$(wc -l <<<"$output")
  [ "$found" -lt 400 ]
  [ "$stderr" = "sample: --samples 400: beam search found only $found of 400 texts" ]
  run --separate-stderr draw --max-tokens 2 --beam 4 -n 4 --prompt "The cat"
  [ -z "$stderr" ]
}

@test "a temperature that is all but 0 gives the text of temperature 0" {
  draw --max-tokens 12 --temperature 0 --prompt "The cat" >greedy
  for near in "1e-39" "1e-300 --top-k 5" "1e-300 --top-p 0.9"; do
    # shellcheck disable=SC2086
    draw --max-tokens 12 --temperature $near --prompt "The cat" | cmp - greedy
  done
}

@test "memories change the words, and a tuned config is read" {
  printf 'memory = "local"\ncache = 20\ncache-lambda = 0.5\n' >tuned.conf
  draw --max-tokens 40 --temperature 0 --prompt "abcabcabcabc" >plain
  draw --max-tokens 40 --temperature 0 --prompt "abcabcabcabc" --config tuned.conf >memory
  ! cmp -s plain memory || false
}

@test "narrow weights write, and -v says how far they are off" {
  for weights in float32 bfloat16 int8; do
    run --separate-stderr draw --max-tokens 10 --dtype "$weights" -v --prompt "The cat sat"
    [ "$status" -eq 0 ]
    [[ $stderr == *"--dtype $weights: log-probabilities differ from float32 by"*" per second"* ]]
  done
}

# The peak of the resident memory of `sample` with these arguments, in MB.
peak() {
  TESSERA_FORK_SERVERS='' python3 - "$@" <<'END'
import resource, subprocess, sys
subprocess.run(["sample", "-q", "-j", "1", "-t", "bytes", "--prompt", "The cat", "--max-tokens", "2", *sys.argv[1:]],
               check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000)
END
}

@test "narrow weights are packed as they are read: the float32 model is never whole in memory" {
  "$root"/tests/cli/tiny_llama large 64 1 '{"vocab_size": 8192, "hidden_size": 512, "intermediate_size": 1536,
    "num_hidden_layers": 7, "num_attention_heads": 8, "num_key_value_heads": 8}' # 32 million weights
  "$root"/tests/cli/tiny_llama small
  floor=$(peak -m small --dtype int8)
  wide=$(($(peak -m large) - floor)) half=$(($(peak -m large --dtype bfloat16) - floor)) byte=$(($(peak -m large --dtype int8) - floor))
  echo "MB above $floor: $wide, $half, $byte"
  # 129, 65 and 32 MB of weights, what is being read, and working memory. A float32 copy beside them would add 129.
  ((wide > 110 && half < wide * 9 / 10 && byte < wide * 3 / 4))
}

@test "a text goes on past the window" {
  draw --max-tokens 300 --json --prompt "$(head -c 150 "$root/LICENSE")" |
    python3 -c 'import json, sys; assert len(json.load(sys.stdin)["tokens"]) == 300'
}

@test "exit codes: usage 64, bad data 65, no input 66" {
  refuses() { # CODE PART ARGUMENT...
    local code=$1 part=$2
    shift 2
    run --separate-stderr sample "$@" </dev/null
    [ "$status" -eq "$code" ]
    [ -z "$output" ]
    [[ $stderr == "sample: "*"$part"* ]]
    [ "${#stderr_lines[@]}" -eq 1 ]
  }
  refuses 64 --top-p -m model -t bytes --top-p 0 --prompt x
  refuses 64 --beam -m model -t bytes --beam 2 --top-k 3 --prompt x
  refuses 64 "give one" -m model -t bytes --prompt x prompts.txt
  refuses 64 --window -m model -t bytes --window 100 --prompt x
  refuses 65 --tokenizer -m model --prompt x
  refuses 66 nowhere -m nowhere --prompt x
  refuses 66 nowhere -m model -t bytes nowhere
  printf '{"prompt": "a"}\n{"text": "b"}\n' >bad.jsonl
  run sample -m model -t bytes bad.jsonl
  [ "$status" -eq 65 ]
  [[ $output == *"bad.jsonl:2"* ]]
}

@test "--cite: stored contexts, the text before the token, and shares; on stderr or in the JSON line" {
  command -v build-datastore || skip "build-datastore is not built"
  printf 'Once there was a cat.\nOnce there was a cow.\n' | tokenize -q -t bytes --format lines -o cite.shard.zst
  build-datastore --metric ip -q -m model cite.shard.zst -o cite-store >/dev/null
  sample -m model -t bytes --prompt 'Once there' --datastore cite-store --k 8 --combine both --cite --max-tokens 5 --json >cited
  "$root/tests/cli/follows_schema" "$root/man/schemas/sample.json" <cited
  python3 - <<'EOF'
import json
r = json.load(open("cited"))
text = "Once there was a cat.Once there was a cow."
assert len(r["citations"]) == len(r["tokens"]) == 5
contexts = 0
for token, cited in zip(r["tokens"], r["citations"]):
    assert cited["token"] == token
    assert -1e-6 <= cited["share"] <= 1 + 1e-6 and len(cited["contexts"]) <= 3
    for c in cited["contexts"]:
        contexts += 1
        assert c["share"] <= cited["share"] + 1e-9 and c["document"] in (0, 1)
        assert c["context"] + cited["text"] in text
EOF
  run --separate-stderr sample -m model -t bytes --prompt 'Once there' --datastore cite-store --k 40 --combine both --temperature 0 --cite --cite-k 1 --max-tokens 5
  [ "$status" -eq 0 ]
  [ "$(awk -F '\t' 'NF == 10 && $6 == "cite-store"' <<<"$stderr" | wc -l)" -ge 1 ]
  [ "$(head -n 1 <<<"$stderr")" = $'prompt\tsample\tnumber\ttext\tshare\tstore\tdocument\trow\tcontext\tsource' ]
  # a folder's name with control characters stays in its column
  folder=$'a\x1b[31mb\nc'
  cp -r cite-store "$folder"
  sample -m model -t bytes --prompt 'Once there' --datastore "$folder" --k 40 --combine both --temperature 0 --cite --max-tokens 5 -n 2 2>table
  [ "$(awk -F '\t' 'NF == 10' table | wc -l)" -eq "$(wc -l <table)" ]
  [ "$(awk -F '\t' '$6 == "store"' table | wc -l)" -eq 1 ]
  [ "$(awk -F '\t' '$6 == "a\\x1b[31mb\\x0ac"' table | wc -l)" -ge 1 ]
  run -64 sample -m model -t bytes --prompt x --cite --max-tokens 5
  # files of a folder are cited by name and line
  mkdir -p notes/deep
  printf 'A first line.\n\nOnce there was a cat.\n' >notes/cat.txt
  printf 'Once there was a cow.\n' >'notes/deep/a cow.md'
  tokenize -q -t bytes --recursive notes -o notes.shard.zst
  build-datastore --metric ip -q -m model notes.shard.zst -o notes-store >/dev/null
  sample -m model -t bytes --prompt 'Once there' --datastore notes-store --k 60 --combine both --cite --cite-k 60 --max-tokens 8 --json >cited
  "$root/tests/cli/follows_schema" "$root/man/schemas/sample.json" <cited
  python3 - <<'EOF'
import json
texts = {"cat.txt": open("notes/cat.txt").read(), "deep/a cow.md": open("notes/deep/a cow.md").read()}
lines = set()
for token in json.load(open("cited"))["citations"]:
    for c in token["contexts"]:
        name, line = c["source"].rsplit(":", 1)
        assert name == list(texts)[c["document"]]
        # Rows are bytes behind the first of the stream.
        at = c["row"] + 1 - (0 if name == "cat.txt" else len(texts["cat.txt"]))
        assert texts[name][at] == token["text"] and int(line) == 1 + texts[name][:at].count("\n")
        lines.add(c["source"])
assert {"cat.txt:1", "cat.txt:3", "deep/a cow.md:1"} <= lines, lines
EOF
  sample -m model -t bytes --prompt 'Once there' --datastore notes-store --k 60 --combine both --cite --cite-k 60 --max-tokens 8 --json | annotate -o page.html
  grep -q 'deep/a cow.md:1' page.html
  # the best of a beam is cited as it would be if it had been drawn
  sample -m model -t bytes --prompt 'Once there' --datastore cite-store --k 8 --combine both --cite --max-tokens 5 --beam 1 --json >searched
  sample -m model -t bytes --prompt 'Once there' --datastore cite-store --k 8 --combine both --cite --max-tokens 5 --temperature 0 --json >drawn
  jq -e --slurpfile drawn drawn '.citations == $drawn[0].citations' searched
}

@test "--copy-spans: stretches of the store with their places; none where nothing agrees; counted in --report" {
  command -v build-datastore || skip "build-datastore is not built"
  printf 'Once there was a cat.\nOnce there was a cow.\n' | tokenize -q -t bytes --format lines -o spans.shard.zst
  build-datastore --metric l2 -q -m model spans.shard.zst -o spans-store >/dev/null
  near=(--datastore spans-store --k 8 --combine interpolate --datastore-lambda 0.9 --datastore-temperature 0.1 --max-tokens 12 --seed 4 --prompt 'Once there')
  draw "${near[@]}" --copy-spans 6 --span-gamma 0.1 --cite --report figures --json >spanned
  "$root/tests/cli/follows_schema" "$root/man/schemas/sample.json" <spanned
  "$root/tests/cli/follows_schema" "$root/man/schemas/sample-report.json" <figures
  python3 - <<'EOF'
import json
r, figures = json.load(open("spanned")), json.load(open("figures"))
stored = b"Once there was a cat.Once there was a cow."
assert r["spans"] and len(r["citations"]) == len(r["tokens"]) == figures["tokens"]
for span in r["spans"]:
    tokens = bytes(r["tokens"][span["token"]:span["token"] + span["tokens"]])
    assert 2 <= len(tokens) <= 7 and tokens.decode() == span["text"]
    first = span["row"] + 1  # no row has the first byte of all
    assert stored[first:first + len(tokens)] == tokens and 0 < span["share"] <= 1
    assert span["document"] == (first >= 21)
assert figures["searches"] == {"made": figures["tokens"], "followed": 0, "skipped": 0}
assert figures["spans"]["tokens"] == sum(span["tokens"] - 1 for span in r["spans"])
EOF
  annotate --json spanned >annotated
  [ "$(wc -l <annotated)" -ge 13 ]
  run --separate-stderr draw "${near[@]}" --copy-spans 6 --span-gamma 0.1 --cite -v -o /dev/null
  [[ $stderr == *" spans, "*" tokens copied from them"* ]]
  draw "${near[@]}" --json >plain
  draw "${near[@]}" --copy-spans 6 --span-gamma 1.01 --json | cmp - plain
  draw "${near[@]}" --temperature 0 >plain
  draw "${near[@]}" --temperature 0 --copy-spans 6 --span-gamma 1 | cmp - plain
  run --separate-stderr draw --prompt x --copy-spans 6
  [ "$status" -eq 64 ]
  [[ $stderr == "sample: --copy-spans: requires --datastore" ]]
  run --separate-stderr draw --prompt x --report x -o x
  [ "$status" -eq 64 ]
}

@test "--kv-dtype float16: nearly the same probabilities, and refused for a model without keys and values of its own loops" {
  local models=$root/tests/golden/artefacts/models
  for type in float32 float16; do
    sample -q -m "$models/transformer" --kv-dtype $type --temperature 0 --max-tokens 30 --json --prompt 'the cat' >$type
  done
  near "$(field log_prob <float16)" "$(field log_prob <float32)" 0.01
  run ! cmp -s float32 float16
  run -64 --separate-stderr sample -m "$models/mosaic" --kv-dtype float16 --prompt x
  [ "$stderr" = 'sample: --kv-dtype float16: not supported for this mosaic; leave it out' ]
}

@test "dynamic evaluation: a continuation has the probability that score gives it after training on the prompt" {
  local prompt='The cat sat on the mat; cat 1, ma' options weights
  cats 40 >text
  tokenize -q -t bytes text -o text.shard.zst
  # Each token depends on the last 4 only, so that windows of any length give it the same probability.
  train -q --arch window --mixer-window 4 --layers 1 --d-model 32 --heads 2 --segment 32 --batch 8 --steps 40 --warmup 0 text.shard.zst -o near
  for weights in all norms lora; do
    options=(-q -m near -t bytes --dynamic-evaluation --dynamic-rate 0.01 --dynamic-weights $weights)
    sample "${options[@]}" --window 64 --prompt "$prompt" --max-tokens 12 --temperature 0 --json >sampled
    jq -c '{text: .prompt}, {text: (.prompt + .text)}' sampled |
      score "${options[@]}" --window 32 --stride 16 --format jsonl - >scored
    jq -se --slurpfile s sampled '.[1].log_prob - .[0].log_prob - $s[0].log_prob | fabs < 0.001' scored
  done
  plain() { sample -q -m near -t bytes --window 64 --temperature 0 --max-tokens 12 --json "$@"; }
  plain --prompt "$prompt" >without
  cmp without <(plain --prompt "$prompt" --dynamic-evaluation --dynamic-rate 0)
  # Every prompt begins with the weights of the file; steps of fewer tokens learn more.
  learning=(--dynamic-evaluation --dynamic-rate 0.01)
  printf '%s\nThe dog\n' "$prompt" | plain "${learning[@]}" >both
  cmp both <(plain --prompt "$prompt" "${learning[@]}" && plain --prompt 'The dog' "${learning[@]}")
  ! cmp -s both <(printf '%s\nThe dog\n' "$prompt" | plain "${learning[@]}" --dynamic-block 8)
  run -64 --separate-stderr sample -m near -t bytes --dynamic-evaluation --dtype int8 --prompt x
  [[ $stderr == 'sample: --dynamic-evaluation: not supported with'* ]]
  run -64 --separate-stderr serve -m near -t bytes --dynamic-evaluation
  [[ $stderr == *'--dynamic-evaluation: no such option; all requests share one set of weights; score and sample have it'* ]]
}
