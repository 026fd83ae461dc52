#!/usr/bin/env bats
# serve: completions over HTTP, the same as sample writes and score scores; and what a hostile client gets.

load helpers

# start NAME OPTION...: a server in the background; its process is in NAME.pid, its port in NAME.port.
start() {
  local name=$1
  shift
  serve -m "${model:-model}" --port 0 "$@" 2>"$name.log" 3>&- &
  echo $! >"$name.pid"
  for _ in {1..200}; do
    grep -q 'listening on' "$name.log" && break
    sleep 0.1
  done
  sed -n 's/.*listening on http:.*:\([0-9]*\)$/\1/p' "$name.log" >"$name.port"
  [ -s "$name.port" ] || { cat "$name.log" && return 1; }
}

setup_file() {
  unset TESSERA_FORK_SERVERS # the memory of the server is read
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
  "$root"/tests/cli/tiny_gpt2 model
  start one -t bytes --max-texts 8
}

# Also the servers of tests that failed.
teardown_file() {
  local file pid
  for file in "$BATS_FILE_TMPDIR"/*.pid; do
    pid=$(<"$file")
    [ "$(readlink "/proc/$pid/cwd")" != "$BATS_FILE_TMPDIR" ] || kill -9 "$pid"
  done
}

setup() {
  cd "$BATS_FILE_TMPDIR"
  port=$(cat one.port)
}

# ask JSON: the answer of /v1/completions.
ask() {
  curl -sS -m 20 -d "$1" "localhost:$port/v1/completions"
}

# status CURL-OPTION...: of the answer.
status() {
  curl -s -m 20 -o answer -w '%{http_code}' "$@"
}

@test "a completion is the text that sample writes, alone, together and in a stream" {
  sample -m model -t bytes --prompt 'The cat' --temperature 0 --max-tokens 20 --json >sampled
  ask '{"prompt": "The cat", "temperature": 0, "max_tokens": 20, "user": "me"}' >answer
  jq -e --slurpfile s sampled '.object == "text_completion" and .choices[0].text == $s[0].text
    and .choices[0].finish_reason == "length" and (.usage | del(.prompt_tokens_details)) == {prompt_tokens: 7, completion_tokens: 20, total_tokens: 27}' answer
  # Ids of bytes, and drawn with a seed.
  ask '{"prompt": [84, 104, 101, 32, 99, 97, 116], "temperature": 0, "max_tokens": 20}' | jq -e --slurpfile s sampled '.choices[0].text == $s[0].text'
  echo '{"prompt": "The cat", "seed": 7}' | sample -m model -t bytes --format jsonl --max-tokens 9 -n 2 --top-k 40 --json - >drawn
  ask '{"prompt": ["x", "The cat"], "n": 2, "seed": 7, "top_k": 40, "max_tokens": 9}' >answer
  jq -e --slurpfile s drawn '[.choices[].index] == [0, 1, 2, 3] and .choices[2].text == $s[0].text and .choices[3].text == $s[1].text' answer
  ask '{"prompt": "The cat", "temperature": 0, "max_tokens": 20, "stream": true, "echo": true, "stream_options": {"include_usage": true}}' >events
  [ "$(grep -c '^data: ' events)" -gt 3 ]
  [ "$(grep '^data: ' events | tail -n 1)" = 'data: [DONE]' ]
  sed -n 's/^data: {/{/p' events | jq -es --slurpfile s sampled '([.[].choices[]?.text] | add) == "The cat" + $s[0].text
    and .[-1].usage.completion_tokens == 20 and .[-2].choices[0].finish_reason == "length"'
  # The first byte of the text stops it.
  stop=$(jq -r '.text[0:1]' sampled)
  ask "$(jq -n --arg s "$stop" '{prompt: "The cat", temperature: 0, max_tokens: 20, stop: $s}')" | jq -e '.choices[0] | .text == "" and .finish_reason == "stop"'
}

@test "a short completion behind a long stream ends before it; a client that leaves frees its row" {
  drawn='{"prompt": ["x", "The cat"], "n": 2, "seed": 7, "top_k": 40, "max_tokens": 3}'
  scored='{"prompt": "The cat sat", "max_tokens": 0, "echo": true, "logprobs": 0}'
  ask "$drawn" | jq -c .choices >drawn
  ask "$scored" | jq -c .choices >scored
  start long -t bytes --batch 2 --max-tokens 100000000
  port=$(cat long.port)
  curl -sSN -d '{"prompt": "The cow", "max_tokens": 100000000, "stream": true}' "localhost:$port/v1/completions" >events 3>&- &
  streaming=$!
  for _ in {1..200}; do
    grep -q '^data: ' events && break
    sleep 0.05
  done
  # The first token is sent before it is counted.
  for _ in {1..200}; do
    curl -sS "localhost:$port/metrics" >metrics
    ! grep -qx 'tessera_running_texts 1' metrics || break
    sleep 0.05
  done
  grep -qx 'tessera_running_texts 1' metrics
  # The other row is free for one text after the other, more than it holds at once; scores need none.
  ask "$drawn" | jq -c .choices | cmp drawn
  ask "$scored" | jq -c .choices | cmp scored
  kill -0 "$streaming"
  kill "$streaming"
  wait "$streaming" || [ $? -eq 143 ]
  for _ in {1..100}; do
    curl -sS "localhost:$port/metrics" | grep -qx 'tessera_running_texts 0' && break
    sleep 0.05
  done
  curl -sS "localhost:$port/metrics" | grep -qx 'tessera_running_texts 0'
  # Two texts of one prompt take both rows.
  ask "$drawn" | jq -c .choices | cmp drawn
  kill -TERM "$(cat long.pid)"
}

# The members that serve(1) lists, a line for each: NAME, a tab, what serve does with it.
listed_members() {
  python3 - "$root/man/serve.1.scd" <<'END'
import sys
table = open(sys.argv[1]).read().split("# MEMBERS")[1].split("# OPTIONS")[0].split("\n|  ")[1:]
for row in table:
    names, of, what = row.strip().split("\n:  ")
    for name in " ".join(names.split()).split(", "):
        print(name, what.strip(), sep="\t")
END
}

@test "every member of the openai client is in the manual's table, which says what serve does" {
  listed_members >listed
  [ "$(wc -l <listed)" -gt 100 ]
  grep -v '^#' "$root/tests/cli/openai_members" >asked
  while read -r path name; do
    grep -q "^$name"$'\t' listed || { echo "$path: $name is not in serve(1)" && return 1; }
  done <asked
  # A value that no member takes: refused with the name by all but the ignored ones.
  while IFS=$'\t' read -r name what; do
    body=$(jq -n --arg name "$name" '{prompt: "x", max_tokens: 1} + {($name): {a: 1}}')
    case $what in
      ignored) [ "$(status -d "$body" "localhost:$port/v1/completions")" -eq 200 ] || { echo "$name" && return 1; } ;;
      *'in a chat' | *any*) ;;
      *)
        [ "$name" != model ] || continue
        [ "$name" != stream_options ] || continue
        [ "$name" != messages ] || continue
        [ "$name" != top_logprobs ] || continue
        [ "$(status -d "$body" "localhost:$port/v1/completions")" -eq 400 ] || { echo "$name" && return 1; }
        jq -e --arg name "$name" '.error.message | startswith($name + ":")' answer || { cat answer && return 1; }
        jq -e '.error.message | contains("knows") | not' answer || { echo "$name" && return 1; }
        ;;
    esac
  done <listed
  # The values that ask for nothing.
  while IFS=$'\t' read -r name what; do
    case $what in *read* | ignored | refused | *any* | *value*) continue ;; esac
    [ "$name" != suffix ] || continue
    python3 -c 'import json, sys; [print(json.dumps({"prompt": "x", "max_tokens": 1, sys.argv[1]: v})) for v in json.loads(f"[{sys.argv[2]}]")]' \
      "$name" "$what" >bodies
    while read -r body; do
      [ "$(status -d "$body" "localhost:$port/v1/completions")" -eq 200 ] || { echo "$body" && cat answer && return 1; }
    done <bodies
  done <listed
  [ "$(status -d '{"prompt": "x", "no_such_member": 1}' "localhost:$port/v1/completions")" -eq 400 ]
  jq -e '.error.message | startswith("no_such_member: is not a member")' answer
}

@test "penalties, biases and allowed tokens are those of sample" {
  rules=(--presence-penalty 0.5 --frequency-penalty 0.25 --repetition-penalty 1.3 --logit-bias 101:2)
  sample -m model -t bytes --prompt 'The cat' --temperature 0 --max-tokens 20 --json >plain
  sample -m model -t bytes --prompt 'The cat' --temperature 0 --max-tokens 20 --json "${rules[@]}" >changed
  [ "$(jq .text plain)" != "$(jq .text changed)" ]
  ask '{"prompt": "The cat", "temperature": 0, "max_tokens": 20, "presence_penalty": 0.5, "frequency_penalty": 0.25,
    "repetition_penalty": 1.3, "logit_bias": {"101": 2}}' | jq -e --slurpfile s changed '.choices[0].text == $s[0].text'
  sample -m model -t bytes --prompt 'The cat' --max-tokens 30 --allowed-token-ids 97,98 --json | jq -e '.text | test("^[ab]{30}$")'
  ask '{"prompt": "The cat", "max_tokens": 30, "allowed_token_ids": [97, 98]}' | jq -e '.choices[0].text | test("^[ab]{30}$")'
  ask '{"prompt": "The cat", "max_tokens": 5, "logit_bias": [[97, 1000]]}' | jq -e '.choices[0].text == "aaaaa"'
  # A penalty of frequency ends a run of one token.
  ask '{"prompt": "The cat", "max_tokens": 9, "temperature": 0, "allowed_token_ids": [97, 98], "frequency_penalty": 100}' |
    jq -e '.choices[0].text | test("^(ab|ba){4}[ab]$")'
  [ "$(status -d '{"prompt": "x", "allowed_token_ids": [256]}' "localhost:$port/v1/completions")" -eq 400 ]
  jq -e '.error.message | startswith("allowed_token_ids: 256 is not a token id")' answer
  run --separate-stderr sample -m model -t bytes --prompt x --logit-bias e:1
  [ "$status" -eq 64 ]
  [[ $stderr == *'--logit-bias e:1: takes ID:X'* ]]
  run --separate-stderr sample -m model -t bytes --prompt x --beam 2 --presence-penalty 1
  [ "$status" -eq 64 ]
  [[ $stderr == *'--beam: cannot be combined with --presence-penalty'* ]]
}

@test "a stream with logprobs: each event has its tokens, which are those of the whole answer" {
  asked='{"prompt": "The cat", "max_tokens": 20, "temperature": 0, "logprobs": 2, "stop": "\u0000\u0001"}'
  ask "$asked" >whole
  ask "$(jq -c '. + {stream: true}' <<<"$asked")" >events
  sed -n 's/^data: {/{/p' events >chunks
  jq -es 'map(select(.choices[0].text != "")) | length > 3 and all(.choices[0].logprobs.tokens | length > 0)' chunks
  jq -es --slurpfile w whole '$w[0].choices[0].logprobs as $all | [.[].choices[0].logprobs] as $each
    | ([$each[].tokens[]] == $all.tokens) and ([$each[].text_offset[]] == $all.text_offset)
      and ([$each[].top_logprobs[] | keys] == [$all.top_logprobs[] | keys])
      and ([[$each[].token_logprobs[]], $all.token_logprobs] | transpose | all(.[0] - .[1] | fabs < 1e-4))' chunks
  # With the prompt: the last event has all.
  asked=$(jq -c '. + {echo: true}' <<<"$asked")
  ask "$asked" >whole
  ask "$(jq -c '. + {stream: true}' <<<"$asked")" | sed -n 's/^data: {/{/p' >chunks
  jq -es --slurpfile w whole '[.[].choices[0] | select(.logprobs.tokens != [])] | length == 1 and .[0].finish_reason == "length"
    and .[0].logprobs == $w[0].choices[0].logprobs' chunks
}

@test "logprobs are those of score to 1e-6, the prompt's too; lm-evaluation-harness' request" {
  echo '{"text": "The cat sat on the mat."}' | score -q -m model -t bytes --per-token - >scored
  ask '{"prompt": "The cat sat on the mat.", "max_tokens": 0, "echo": true, "logprobs": 5, "temperature": 0}' >answer
  ask '{"prompt": [[84, 104, 101, 32, 99, 97, 116]], "max_tokens": 1, "echo": true, "logprobs": 1, "temperature": 0, "seed": 1234}' >asked
  python3 - <<'END'
import json
scored, answer, asked = (json.load(open(name)) for name in ("scored", "answer", "asked"))
logs = answer["choices"][0]["logprobs"]
assert answer["choices"][0]["text"] == "The cat sat on the mat."
assert "".join(logs["tokens"]) == "The cat sat on the mat." and logs["token_logprobs"][0] is None
theirs = [t["log_prob"] for t in scored["per_token"]]
ours = logs["token_logprobs"][len(logs["token_logprobs"]) - len(theirs):]
assert len(theirs) >= 22 and all(abs(a - b) < 1e-6 for a, b in zip(ours, theirs)), (ours, theirs)
for token, log_prob, top in list(zip(logs["tokens"], logs["token_logprobs"], logs["top_logprobs"]))[1:]:
    assert len(top) == 5 and max(top.values()) >= log_prob - 1e-9
    assert token not in top or abs(top[token] - log_prob) < 1e-5
# One more token than the prompt has; the drawn one is the likeliest.
logs = asked["choices"][0]["logprobs"]
assert len(logs["tokens"]) == 8 and logs["text_offset"] == list(range(8))
assert logs["tokens"][-1] == max(logs["top_logprobs"][-1], key=logs["top_logprobs"][-1].get)
# To the bit: by that the harness sees whether a token is the best one.
assert logs["token_logprobs"][-1] == max(logs["top_logprobs"][-1].values())
END
}

# The peak of a server's resident memory so far, in MB.
peak() {
  awk '/^VmHWM:/ { print int($2 / 1000) }' "/proc/$(cat "$1.pid")/status"
}

@test "narrow weights: texts are sample's and log-probabilities score's, without the float32 weights" {
  "$root"/tests/cli/tiny_llama large 64 1 '{"vocab_size": 8192, "hidden_size": 512, "intermediate_size": 1536,
    "num_hidden_layers": 7, "num_attention_heads": 8, "num_key_value_heads": 8}' # 129 MB of float32
  sample -m large -t bytes --dtype int8 --prompt 'The cat' --temperature 0 --max-tokens 4 --json >sampled
  echo '{"text": "The cat"}' | score -q -m large -t bytes --dtype int8 --per-token - >scored
  model=large start narrow -t bytes -j 1 --dtype int8
  port=$(cat narrow.port)
  ask '{"prompt": "The cat", "temperature": 0, "max_tokens": 4}' | jq -e --slurpfile s sampled '.choices[0].text == $s[0].text'
  without=$(peak narrow)
  for _ in 1 2; do
    ask '{"prompt": "The cat", "max_tokens": 0, "echo": true, "logprobs": 0}' |
      jq -e --slurpfile s scored '[.choices[0].logprobs.token_logprobs[-6:], [$s[0].per_token[-6:][].log_prob]]
        | transpose | all(.[0] - .[1] | fabs < 1e-4)'
  done
  ask '{"prompt": "The cat", "temperature": 0, "max_tokens": 4}' | jq -e --slurpfile s sampled '.choices[0].text == $s[0].text'
  echo "MB: $without, then $(peak narrow)"
  (($(peak narrow) - without < 40))
  kill -TERM "$(cat narrow.pid)"
}

@test "citations of a datastore, by file and line, and the same log-probabilities as score with it" {
  mkdir -p notes
  printf 'Once there was a cat.\nOnce there was a cow.\n' >notes/cat.txt
  tokenize -q -t bytes --recursive notes -o notes.shard.zst
  build-datastore --metric ip -q -m model notes.shard.zst -o notes-store >/dev/null
  memory=(--datastore notes-store --k 8 --combine both)
  start cited -t bytes "${memory[@]}" --cite
  one=$port
  port=$(cat cited.port)
  ask '{"prompt": "Once there", "max_tokens": 4, "temperature": 0}' >answer
  sample -m model -t bytes --prompt 'Once there' --temperature 0 --max-tokens 4 "${memory[@]}" --cite --json >sampled
  jq -e --slurpfile s sampled '.choices[0].text == $s[0].text and .choices[0].tessera.citations == $s[0].citations' answer
  jq -e '[.choices[0].tessera.citations[].contexts[].source] | any(. == "cat.txt:2")' answer
  jq -e --slurpfile s sampled '.choices[0].tessera.memories == $s[0].memories' answer
  echo '{"text": "Once there was a cow."}' | score -q -m model -t bytes "${memory[@]}" - >scored
  ask '{"prompt": "Once there was a cow.", "max_tokens": 0, "echo": true, "logprobs": 0}' |
    jq -e --slurpfile s scored '([.choices[0].logprobs.token_logprobs[] | numbers] | add) - $s[0].log_prob | fabs < 1e-4'
  # An index of n-grams keeps the names too: the last match is in the second line.
  build-ngrams -q notes.shard.zst -o notes-ngrams >/dev/null
  sample -m model -t bytes --prompt 'Once there was a co' --temperature 0 --max-tokens 1 --ngrams notes-ngrams --ngrams-lambda 0.9 \
    --cite --json | jq -e '.citations[0].contexts[0] | .matched == 19 and .source == "cat.txt:2"'
  # Without the datastore, its options are left out too, and nothing is cited.
  ask '{"prompt": "Once there", "max_tokens": 4, "temperature": 0, "memory": {"datastore": []}}' >answer
  sample -m model -t bytes --prompt 'Once there' --temperature 0 --max-tokens 4 --json >sampled
  jq -e --slurpfile s sampled '.choices[0].text == $s[0].text and .choices[0].tessera.citations == []' answer
  kill -TERM "$(cat cited.pid)"
  port=$one
}

@test "a request has memories of its own; the next one has the server's again" {
  ask '{"prompt": "The cat sat. The cat", "temperature": 0, "max_tokens": 8}' >plain
  ask '{"prompt": "The cat sat. The cat", "temperature": 0, "max_tokens": 8, "memory": {"cache": 100, "cache_lambda": 0.9}}' >cached
  ask '{"prompt": "The cat sat. The cat", "temperature": 0, "max_tokens": 8, "memory": {}}' >again
  sample -m model -t bytes --prompt 'The cat sat. The cat' --temperature 0 --max-tokens 8 --cache 100 --cache-lambda 0.9 --json >sampled
  jq -e --slurpfile s sampled '.choices[0].text == $s[0].text' cached
  [ "$(jq -c .choices plain)" = "$(jq -c .choices again)" ]
  [ "$(jq -c .choices plain)" != "$(jq -c .choices cached)" ]
  echo '{"text": "The cat sat. The cat sat."}' | score -q -m model -t bytes --cache 100 --cache-lambda 0.9 - >scored
  ask '{"prompt": "The cat sat. The cat sat.", "max_tokens": 0, "echo": true, "logprobs": 0, "memory": {"cache": 100, "cache_lambda": 0.9}}' |
    jq -e --slurpfile s scored '([.choices[0].logprobs.token_logprobs[] | numbers] | add) - $s[0].log_prob | fabs < 1e-4'
  for memory in '{"datastore": ["/etc"]}' '{"cache": -1}' '{"cache_lambda": 2}' '{"model": "x"}' '{"ngrams": ["x"]}' \
    '{"cache": 9, "cache_lambda": "gate"}'; do
    [ "$(status -d "{\"prompt\": \"x\", \"memory\": $memory}" "localhost:$port/v1/completions")" -eq 400 ]
    jq -e '.error.message | startswith("memory: ")' answer
  done
  ask '{"prompt": "The cat sat. The cat", "temperature": 0, "max_tokens": 8}' | jq -e --slurpfile p plain '.choices == $p[0].choices'
}

@test "the page at / asks, and shows what gave a token" {
  curl -sS -D page.headers "localhost:$port/" >page.html
  tr -d '\r' <page.headers | grep -q "^Content-Security-Policy: default-src 'none'; .*frame-ancestors 'none'$"
  tr -d '\r' <page.headers | grep -qx 'X-Frame-Options: DENY'
  grep -q '<title>' page.html
  ! grep -qE '(src|href)=|@STYLE@' page.html || false
  command -v chromium >/dev/null || skip 'chromium is missing: the page was not clicked through'
  mkdir told
  printf 'Once there was a cat.\nOnce there was a cow.\n' >told/cat.txt
  tokenize -q -t bytes --recursive told -o told.shard.zst
  build-datastore --metric ip -q -m model told.shard.zst -o told-store >/dev/null
  start told -t bytes --datastore told-store --k 8 --combine both --cite
  local at
  at=$(cat told.port)
  # What a person would do, in a page that the server itself sends: chromium runs what follows the page's own script.
  python3 - "$at" <<'END' >driver.py.out
import http.server, sys, threading, urllib.request, subprocess
at = sys.argv[1]
page = urllib.request.urlopen(f"http://127.0.0.1:{at}/").read().decode()
click = """
<script>
document.getElementById("prompt").value = "Once there";
document.getElementById("temperature").value = "0";
document.getElementById("ask").requestSubmit();
setInterval(() => {
  const token = document.querySelector("#text .c");
  if (token && !document.querySelector("#detail li")) token.click();
}, 50);
</script>
</body>"""
# The same origin: a server in front that hands the page out and passes requests on.
class Front(http.server.BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def answer(self, status, kind, body):
        self.send_response(status); self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body))); self.end_headers(); self.wfile.write(body)
    def do_GET(self):
        if self.path == "/": return self.answer(200, "text/html; charset=utf-8", page.replace("</body>", click).encode())
        with urllib.request.urlopen(f"http://127.0.0.1:{at}{self.path}") as r: self.answer(200, r.headers["Content-Type"], r.read())
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{at}{self.path}", body)) as r:
            self.answer(200, r.headers["Content-Type"], r.read())
front = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Front)
threading.Thread(target=front.serve_forever, daemon=True).start()
dom = subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--dump-dom",
                      f"http://127.0.0.1:{front.server_port}/"], capture_output=True, text=True, timeout=60).stdout
print(dom)
END
  kill -TERM "$(cat told.pid)"
  grep -q 'class="where">cat.txt:[12]<' driver.py.out
  grep -q '<span id="model">model</span>' driver.py.out
}

# bats test_tags=nightly
@test "the openai package: completions, log-probabilities, streams, errors" {
  [ -n "${TESSERA_PEERS:-}" ] || skip "TESSERA_PEERS is not set"
  "$TESSERA_PEERS" -c 'import openai' || skip "TESSERA_PEERS has no openai"
  special_model
  model=special start chats
  "$TESSERA_PEERS" - "$port" "$(cat chats.port)" <<'END'
import sys, openai
client = openai.OpenAI(base_url=f"http://127.0.0.1:{sys.argv[1]}/v1", api_key="none")
asked = dict(model="model", prompt="The cat", max_tokens=5, temperature=0)
whole = client.completions.create(**asked, logprobs=2, extra_body={"memory": {"cache": 100}})
assert len(whole.choices[0].logprobs.token_logprobs) == 5 and whole.usage.completion_tokens == 5
plain = client.completions.create(**asked).choices[0].text
assert "".join(event.choices[0].text for event in client.completions.create(**asked, stream=True)) == plain
assert [model.id for model in client.models.list().data] == ["model"]
assert client.models.retrieve("model").id == "model"
events = list(client.completions.create(**asked, stream=True, logprobs=2, stream_options={"include_usage": True}))
logs = [event.choices[0].logprobs for event in events if event.choices and event.choices[0].text]
assert sum(len(one.token_logprobs) for one in logs) == 5 and all(len(one.top_logprobs[0]) == 2 for one in logs)
assert events[-1].usage.completion_tokens == 5 and events[-1].usage.prompt_tokens_details.cached_tokens >= 0
only = client.completions.create(**asked, presence_penalty=.5, frequency_penalty=.5, logit_bias={"97": 5, "98": 5},
                                 extra_body={"repetition_penalty": 1.2, "allowed_token_ids": [97, 98]})
assert set(only.choices[0].text) <= set("ab") and len(only.choices[0].text) == 5
try:
    client.models.retrieve("other")
    raise SystemExit("another model was found")
except openai.NotFoundError:
    pass
chats = openai.OpenAI(base_url=f"http://127.0.0.1:{sys.argv[2]}/v1", api_key="none")
said = dict(model="special", messages=[{"role": "user", "content": [{"type": "text", "text": "The cat"}]}], temperature=0,
            max_completion_tokens=5, logprobs=True, top_logprobs=3)
whole = chats.chat.completions.create(**said, seed=-1, tools=[], tool_choice="none", parallel_tool_calls=True, n=2,
                                      metadata={"a": "b"}, store=False, user="me", response_format={"type": "text"})
assert [choice.index for choice in whole.choices] == [0, 1] and whole.choices[0].message.content == whole.choices[1].message.content
assert len(whole.choices[0].logprobs.content) == 5 and all(len(one.top_logprobs) == 3 for one in whole.choices[0].logprobs.content)
with chats.chat.completions.stream(**said) as stream:
    stream.until_done()
    final = stream.current_completion_snapshot
assert final.choices[0].message.content == whole.choices[0].message.content
assert [one.token for one in final.choices[0].logprobs.content] == [one.token for one in whole.choices[0].logprobs.content]
for wrong in (dict(response_format={"type": "json_schema", "json_schema": {"name": "a", "schema": {}}}), dict(reasoning_effort="low"),
              dict(tools=[{"type": "function", "function": {"name": "f"}}])):
    try:
        chats.chat.completions.create(**said, **wrong)
        raise SystemExit(f"{wrong} was not refused")
    except openai.BadRequestError as error:
        assert str(next(iter(wrong))) in str(error), error
try:
    client.completions.create(model="model", prompt="x", n=9)
    raise SystemExit("9 texts were not refused")
except openai.BadRequestError:
    pass
END
  kill -TERM "$(cat chats.pid)"
}

@test "requests of the kinds that the tests of llama.cpp's server send" {
  special_model
  model=special start kinds
  PORT=$(cat kinds.port) timeout 60 python3 - <<'END'
import http.client, json, os, threading
port = int(os.environ["PORT"])
def ask(method, path, body=None, headers={}):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    c.request(method, path, None if body is None else json.dumps(body), headers)
    answer = c.getresponse()
    text = answer.read().decode()
    if "event-stream" in answer.headers["Content-Type"]:
        lines = [line[6:] for line in text.split("\n") if line.startswith("data: ")]
        assert lines.pop() == "[DONE]"
        return answer.status, [json.loads(line) for line in lines]
    return answer.status, json.loads(text) if text.startswith("{") else text
def completion(**body):
    return ask("POST", "/v1/completions", body)
def chat(**body):
    return ask("POST", "/v1/chat/completions", body)
user = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "What?"}]
assert ask("GET", "/health")[1] == {"status": "ok"}
assert [m["id"] for m in ask("GET", "/v1/models")[1]["data"]] == ["special"]
assert ask("GET", "/v1/nothing")[0] == 404 and ask("GET", "/v1/completions")[0] == 405
# How many tokens; what was computed before is told; a prompt of ids is that of the text.
status, told = completion(prompt="I believe that", n_predict=8, seed=42, temperature=0.8, cache_prompt=True, id_slot=-1)
assert status == 200 and told["usage"]["completion_tokens"] <= 8 and told["choices"][0]["finish_reason"] in ("length", "stop")
ids = ask("POST", "/tokenize", {"content": "I believe that", "add_special": True})[1]["tokens"]
assert ids[0] == 257 and ask("POST", "/tokenize", {"content": "I believe that"})[1]["tokens"] == ids[1:]
assert ask("POST", "/detokenize", {"tokens": ids[1:]})[1]["content"] == "I believe that"
assert completion(prompt=ids, max_tokens=8, seed=42, temperature=0.8)[1]["choices"] == told["choices"]
question = dict(prompt="I believe that the meaning of life is a question", max_tokens=2)
assert completion(**question)[0] == 200 and completion(**question)[1]["usage"]["prompt_tokens_details"]["cached_tokens"] > 16
# The same seed gives the same text, others differ; top_k 1 and temperature 0 give one text, also among others.
texts = {s: completion(prompt="a", seed=s, max_tokens=12)[1]["choices"][0]["text"] for s in (1, 2, 3)}
assert len(set(texts.values())) == 3 and all(completion(prompt="a", seed=s, max_tokens=12)[1]["choices"][0]["text"] == t for s, t in texts.items())
best = completion(prompt="b", max_tokens=12, temperature=0)[1]["choices"][0]["text"]
made = []
threads = [threading.Thread(target=lambda: made.append(completion(prompt="b", max_tokens=12, top_k=1, seed=i)[1]["choices"][0]["text"])) for i in range(6)]
[t.start() for t in threads], [t.join() for t in threads]
assert set(made) == {best} and len(made) == 6
# Chats: whole, in a stream, with log-probabilities, with the members that clients leave at what they are by default.
default = dict(min_p=0, typical_p=1, repeat_penalty=1, repeat_last_n=64, mirostat=0, mirostat_tau=5, mirostat_eta=.1, dynatemp_range=0,
               dynatemp_exponent=1, xtc_probability=0, xtc_threshold=.1, dry_multiplier=0, dry_base=1.75, dry_allowed_length=2,
               dry_penalty_last_n=-1, top_n_sigma=-1, samplers=None, timings_per_token=True, return_progress=False, reasoning_format="auto")
status, whole = chat(model="any", messages=user, max_tokens=9, temperature=0, **default)
assert status == 200 and whole["object"] == "chat.completion" and whole["choices"][0]["message"]["role"] == "assistant"
status, events = chat(messages=user, max_tokens=9, temperature=0, stream=True, logprobs=True, top_logprobs=5, stream_options={"include_usage": True})
assert status == 200 and events[0]["choices"][0]["delta"]["role"] == "assistant"
assert "".join(e["choices"][0]["delta"].get("content", "") for e in events if e["choices"]) == whole["choices"][0]["message"]["content"]
for event in events:
    if event["choices"] and event["choices"][0]["delta"].get("content"):
        content = event["choices"][0]["logprobs"]["content"]
        assert content and all(one["logprob"] <= 0 and one["bytes"] and len(one["top_logprobs"]) == 5 for one in content)
assert events[-1]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"] and events[-1]["choices"] == []
# Biases: as an object, as pairs, and a token that is excluded.
assert completion(prompt="a", max_tokens=4, logit_bias={"98": 100}, temperature=0)[1]["choices"][0]["text"] == "bbbb"
assert completion(prompt="a", max_tokens=4, logit_bias=[[98, 100]], temperature=0)[1]["choices"][0]["text"] == "bbbb"
assert "b" not in completion(prompt="a", max_tokens=30, logit_bias=[["98", False]])[1]["choices"][0]["text"]
# What is not there, or wrong, is named.
for name, wrong in (("response_format", {"type": "json_object"}), ("grammar", "root ::= \"a\"{2,3}"), ("json_schema", {"type": "object"}),
                    ("tools", [{"type": "function", "function": {"name": "f"}}]), ("n_probs", 3), ("n_keep", 5), ("lora", [{"id": 0, "scale": 1}]),
                    ("max_tokens", "9"), ("temperature", "hot"), ("stop", 1), ("logit_bias", "a"), ("stream", "yes"), ("unheard_of", 1)):
    status, told = chat(messages=user, **{name: wrong})
    assert status == 400 and told["error"]["message"].startswith(name + ":"), (name, told)
    assert told["error"]["type"] == "invalid_request_error" and told["error"]["code"] == 400
for messages in ("a", [], [1], [{"content": "a"}], [{"role": "user", "content": [{"type": "image_url"}]}], None):
    status, told = chat(messages=messages)
    assert status == 400 and "messages" in told["error"]["message"], (messages, told)
assert completion(prompt="x" * 5000)[0] == 400
END
  kill -TERM "$(cat kinds.pid)"
}

# bats test_tags=nightly
@test "lm-evaluation-harness' own client gets the log-probabilities of score, with the server's tokenizer" {
  [ -n "${TESSERA_PEERS:-}" ] || skip "TESSERA_PEERS is not set"
  "$TESSERA_PEERS" -c 'import lm_eval, lm_eval.models.openai_completions, aiohttp, datasets' ||
    skip "TESSERA_PEERS has no lm_eval[api]"
  mkdir -p harness
  cat >harness/asked.jsonl <<'END'
{"context": "The cat sat", "choices": [" on the mat", " by the door.", " élan"], "gold": 0}
{"context": "Once there was a", "choices": [" cow", " cat and a cow", " dog"], "gold": 1}
END
  cat >harness/asked.yaml <<'END'
task: asked
dataset_path: json
dataset_kwargs: {data_files: {test: harness/asked.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{context}}"
doc_to_choice: "{{choices}}"
doc_to_target: "{{gold}}"
target_delimiter: ""
metric_list: [{metric: acc, aggregation: mean, higher_is_better: true}]
END
  cat >harness/written.yaml <<'END'
task: written
dataset_path: json
dataset_kwargs: {data_files: {test: harness/asked.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{context}}"
doc_to_target: "{{choices[0]}}"
generation_kwargs: {until: ["\n"], max_gen_toks: 8, do_sample: false}
metric_list: [{metric: exact_match, aggregation: mean, higher_is_better: true}]
END
  cat >harness/rolled.yaml <<'END'
task: rolled
dataset_path: json
dataset_kwargs: {data_files: {test: harness/asked.jsonl}}
test_split: test
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{context}}{{choices[2]}}"
metric_list: [{metric: byte_perplexity, aggregation: weighted_perplexity, higher_is_better: false}]
END
  score -q -m model -t bytes --json harness/asked.jsonl >scored
  jq -r .context harness/asked.jsonl | sample -q -m model -t bytes --temperature 0 --max-tokens 8 --stop $'\n' --json >written
  # Whole texts, which the model's first token precedes.
  special_model
  model=special start rolls
  jq -c '{text: (.context + .choices[2])}' harness/asked.jsonl | score -q -m special --json - >rolled
  local tasks model at
  for tasks in "asked,written:model:$port" "rolled:special:$(cat rolls.port)"; do
    IFS=: read -r tasks model at <<<"$tasks"
    HF_DATASETS_CACHE=$PWD/cache HF_HUB_OFFLINE=1 "$TESSERA_PEERS" -m lm_eval --model local-completions --tasks "$tasks" \
      --model_args "model=$model,base_url=http://127.0.0.1:$at/v1/completions,num_concurrent=3,max_length=64" \
      --include_path harness --output_path "harness/out/$model" --log_samples >harness/log 2>&1 || { cat harness/log && return 1; }
  done
  kill -TERM "$(cat rolls.pid)"
  "$TESSERA_PEERS" - <<'END'
import glob, json, math
def lines(name):
    return [json.loads(line) for line in open(name)]
def figure(task, metric):
    results = [json.load(open(name))["results"] for name in glob.glob("harness/out/**/results_*.json", recursive=True)]
    return next(one[task][metric + ",none"] for one in results if task in one)
def samples(task):
    return sorted(lines(glob.glob(f"harness/out/**/samples_{task}_*.jsonl", recursive=True)[0]), key=lambda s: s["doc_id"])
ours = lines("scored")
compared = 0
for mine, theirs in zip(ours, samples("asked"), strict=True):
    for choice, ((log_prob, greedy),) in zip(mine["choices"], theirs["resps"], strict=True):
        assert abs(float(log_prob) - choice["log_prob"]) < 1e-6 * choice["tokens"], (choice, log_prob)
        assert greedy in (choice["greedy"], str(choice["greedy"])), (choice, greedy)
        compared += 1
assert compared == 6, compared
right = [max(range(3), key=lambda i: mine["choices"][i]["log_prob"]) == mine["gold"] for mine in ours]
assert figure("asked", "acc") == sum(right) / 2, (figure("asked", "acc"), right)
for mine, theirs in zip(lines("written"), samples("written"), strict=True):
    assert theirs["resps"] == [[mine["text"]]], (mine, theirs["resps"])
whole = lines("rolled")
for mine, theirs in zip(whole, samples("rolled"), strict=True):
    assert abs(float(theirs["resps"][0][0]) - mine["log_prob"]) < 1e-6 * mine["tokens"], (mine, theirs["resps"])
perplexity = math.exp(-sum(one["log_prob"] for one in whole) / sum(one["bytes"] for one in whole))
assert abs(figure("rolled", "byte_perplexity") / perplexity - 1) < 1e-6, (figure("rolled", "byte_perplexity"), perplexity)
END
}

@test "the tokenizer's paths: ids and texts, and what is refused" {
  curl -sS "localhost:$port/tokenizer_info" | jq -e 'has("eos_token") and .bos_token == null and .model_max_length == 64'
  curl -sS -d '{"prompt": "a\u00e9"}' "localhost:$port/tokenize" | jq -e '.tokens == [97, 195, 169] and .count == 3'
  curl -sS -d '{"tokens": [97, 195, 169]}' "localhost:$port/detokenize" | jq -e '.prompt == "a\u00e9"'
  curl -sS -d '{"content": "a"}' "localhost:$port/tokenize" | jq -e '.tokens == [97]'
  curl -sS -d '{"tokens": [97]}' "localhost:$port/detokenize" | jq -e '.content == "a"'
  for asked in tokenize:'{"prompt": "a", "content": "a"}' tokenize:'{"prompt": "a", "with_pieces": true}' tokenize:'{}' tokenize:'{"prompt": ["a"]}' tokenize:'[' detokenize:'{"tokens": [256]}' detokenize:'{"tokens": [-1]}' detokenize:'{"tokens": "a"}'; do
    [ "$(status -d "${asked#*:}" "localhost:$port/${asked%%:*}")" -eq 400 ]
    jq -e '.error.message | test("prompt|tokens|with_pieces|the request")' answer
  done
  [ "$(status "localhost:$port/tokenize")" -eq 405 ]
}

# A byte-level tokenizer of 256 bytes and two special tokens, one of which its template puts first.
special_model() {
  "$root"/tests/cli/tiny_gpt2 special 1 0.3 0 258
  python3 - <<'END'
import json
byte = [c for c in range(33, 127)] + [c for c in range(161, 173)] + [c for c in range(174, 256)]
rest = [c for c in range(256) if c not in byte]
vocab = {chr(c): c for c in byte} | {chr(256 + n): c for n, c in enumerate(rest)}
added = [{"id": 256, "content": "<|endoftext|>"}, {"id": 257, "content": "<s>"}]
for one in added:
    one.update(single_word=False, lstrip=False, rstrip=False, normalized=False, special=True)
level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
begin = {"SpecialToken": {"id": "<s>", "type_id": 0}}
json.dump({"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None,
  "pre_tokenizer": level, "decoder": level,
  "post_processor": {"type": "TemplateProcessing", "single": [begin, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<s>": {"id": "<s>", "ids": [257], "tokens": ["<s>"]}}},
  "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
    "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": vocab, "merges": []}}, open("special/tokenizer.json", "w"))
json.dump({"chat_template": "{{ bos_token }}{% for m in messages %}<|endoftext|>{{ m.content }}{% endfor %}", "bos_token": "<s>"},
          open("special/tokenizer_config.json", "w"))
END
}

@test "--retrieve: passages are part of a chat's last turn, as with sample --chat" {
  special_model
  printf 'the boiler hums\nthe green shed\n' | tokenize -q -t bytes --format lines -o passages.shard.zst
  bm25-search build -q passages.shard.zst -o passages.bm25
  echo '{{ passages[0] }}! {{ question }}' >form
  model=special start passages --retrieve passages.bm25 --retrieve-template form --retrieve-evidence 0.95
  curl -sS -d '{"messages": [{"role": "user", "content": "is a shed green"}], "temperature": 0, "max_tokens": 9}' \
    "localhost:$(cat passages.port)/v1/chat/completions" >chatted
  curl -sS -d '{"messages": [{"role": "user", "content": "is a shed zinc"}], "temperature": 0, "max_tokens": 9}' \
    "localhost:$(cat passages.port)/v1/chat/completions" >uncovered
  kill -TERM "$(cat passages.pid)"
  sample -q -m special --chat --retrieve passages.bm25 --retrieve-evidence 0.95 --retrieve-template form --temperature 0 --max-tokens 9 --json \
    --prompt 'is a shed green' >sampled
  jq -e --slurpfile s sampled '.choices[0].message.content == $s[0].text and .usage.prompt_tokens > 25 and
    .choices[0].tessera.retrieved == $s[0].retrieved[0].passages and (.choices[0].tessera.retrieved | length) > 0' chatted
  jq -e '.usage.prompt_tokens < 25 and .choices[0].tessera.retrieved == []' uncovered # the words of the question alone
  run -64 serve -m special --retrieve-k 2
}

@test "special tokens in a text are tokens in prompts, chats and /tokenize alike, as with sample --special" {
  special_model
  model=special start special
  one=$port
  port=$(cat special.port)
  curl -sS -d '{"prompt": "k <|endoftext|>"}' "localhost:$port/tokenize" | jq -e '.tokens == [257, 107, 32, 256]'
  curl -sS -d '{"prompt": "k <|endoftext|>", "add_special_tokens": false}' "localhost:$port/tokenize" | jq -e '.tokens == [107, 32, 256]'
  curl -sS -d '{"content": "k<s>", "parse_special": false}' "localhost:$port/tokenize" | jq -e '.tokens == [107, 60, 115, 62]'
  curl -sS -d '{"messages": [{"role": "user", "content": "k"}]}' "localhost:$port/tokenize" | jq -e '.tokens == [257, 256, 107]'
  ask '{"prompt": "k <|endoftext|>", "temperature": 0, "max_tokens": 9, "ignore_eos": false}' >answer
  sample -m special --special --prompt 'k <|endoftext|>' --temperature 0 --max-tokens 9 --json >sampled
  jq -e --slurpfile s sampled '.usage.prompt_tokens == 4 and .choices[0].text == $s[0].text' answer
  for off in '"parse_special": false':16 '"add_special_tokens": false':3; do
    ask "{\"prompt\": \"k <|endoftext|>\", \"max_tokens\": 1, ${off%:*}}" | jq -e ".usage.prompt_tokens == ${off##*:}"
  done
  sample -m special --prompt 'k <|endoftext|>' --temperature 0 --max-tokens 9 --json >sampled
  ask '{"prompt": "k <|endoftext|>", "temperature": 0, "max_tokens": 9, "parse_special": false}' | jq -e --slurpfile s sampled '.choices[0].text == $s[0].text'
  # A client that writes the conversation itself reads it as the server does.
  chat='{"messages": [{"role": "user", "content": "k"}], "temperature": 0, "max_tokens": 9}'
  curl -sS -d "$chat" "localhost:$port/v1/chat/completions" >chatted
  ask '{"prompt": "<s><|endoftext|>k", "add_special_tokens": false, "temperature": 0, "max_tokens": 9}' |
    jq -e --slurpfile c chatted '.usage == $c[0].usage and .choices[0].text == $c[0].choices[0].message.content'
  # Offsets of the tokens of a text that was sent.
  ask '{"prompt": "k\u00e9 <|endoftext|>x", "max_tokens": 0, "echo": true, "logprobs": 0}' |
    jq -e '.choices[0] | .text == "k\u00e9 <|endoftext|>x" and .logprobs.text_offset == [0, 1, 1, 2, 3, 16]'
  kill -TERM "$(cat special.pid)"
  port=$one
}

@test "offsets are of the text that was sent, where the tokenizer changes its characters too" {
  special_model
  jq '.normalizer = {type: "NFKC"} | .post_processor = null' special/tokenizer.json >changed
  mv changed special/tokenizer.json
  model=special start normal
  # offsets TEXT: those of its tokens, in one line.
  offsets() {
    curl -sS -m 20 -d "$(jq -n --arg text "$1" '{prompt: $text, max_tokens: 0, echo: true, logprobs: 0}')" \
      "localhost:$(cat normal.port)/v1/completions" |
      jq -r --arg text "$1" '.choices[0] | if .text == $text then .logprobs.text_offset | join(" ") else error("text") end'
  }
  [ "$(offsets 'a № b')" = '0 1 2 2 3 4' ]
  [ "$(offsets $'\uff28\uff45y \uff11x')" = '0 1 2 3 4 5' ]
  # One character of two, and three of one; bytes of one character.
  [ "$(offsets $'e\u0301z \ufdfay')" = "0 0 2 3 $(printf '4 %.0s' {1..33})5" ]
  [ "$(offsets $'\u1112\u1161\u11ab\u1112\u1161\u11abz')" = '0 0 0 3 3 3 6' ]
  long=$(printf '№%.0s' {1..30})
  [ "$(offsets "${long}x y")" = "$(printf '%s %s ' $(for i in {0..29}; do echo $i $i; done))30 31 32" ]
  kill -TERM "$(cat normal.pid)"
}

@test "the next turn of a chat, and an edited one, read only what is new; --keep-prompts none reads all" {
  special_model
  model=special start turns
  model=special start unkept --keep-prompts none
  local first second edited at
  edited='{"role": "user", "content": "Tell me about the cow."}'
  first='{"role": "user", "content": "Tell me about the cat."}'
  second='{"role": "assistant", "content": "It sat."}, {"role": "user", "content": "And then?"}'
  for at in turns unkept; do
    curl -sS -d "{\"messages\": [$first], \"temperature\": 0, \"max_tokens\": 3}" "localhost:$(cat $at.port)/v1/chat/completions" >$at.first
    curl -sS -d "{\"messages\": [$first, $second], \"temperature\": 0, \"max_tokens\": 5}" "localhost:$(cat $at.port)/v1/chat/completions" >$at.second
    curl -sS -d "{\"messages\": [$edited], \"temperature\": 0, \"max_tokens\": 5}" "localhost:$(cat $at.port)/v1/chat/completions" >$at.edited
    kill -TERM "$(cat $at.pid)"
  done
  jq -e '.usage.prompt_tokens_details.cached_tokens == 0' turns.first
  jq -e --slurpfile first turns.first '.usage.prompt_tokens_details.cached_tokens == $first[0].usage.prompt_tokens' turns.second
  jq -e '.usage.prompt_tokens_details.cached_tokens == 0' unkept.second
  jq -e '.usage.prompt_tokens_details.cached_tokens > 16' turns.edited
  [ "$(jq -c '.choices' turns.second turns.edited)" = "$(jq -c '.choices' unkept.second unkept.edited)" ]
}

# streaming NAME MEMBERS: asks for a stream without end in the background; returns when it has begun. Its process is in NAME.curl.
streaming() {
  curl -sSN -d "{\"prompt\": \"The cow\", \"max_tokens\": 100000000, \"stream\": true$2}" "localhost:$port/v1/completions" >"$1.events" 3>&- &
  echo $! >"$1.curl"
  for _ in {1..400}; do
    grep -q '^data: ' "$1.events" && return
    sleep 0.05
  done
  return 1
}

@test "requests with other memories are answered beside endless streams; one that has to wait holds up no other" {
  start lanes -t bytes --max-tokens 100000000
  one=$port
  port=$(cat lanes.port)
  streaming plain ''
  ask '{"prompt": "The cat sat. The cat", "temperature": 0, "max_tokens": 8, "memory": {"cache": 100, "cache_lambda": 0.9}}' >cached
  sample -m model -t bytes --prompt 'The cat sat. The cat' --temperature 0 --max-tokens 8 --cache 100 --cache-lambda 0.9 --json >sampled
  jq -e --slurpfile s sampled '.choices[0].text == $s[0].text' cached
  for n in 1 2 3; do streaming "cache$n" ", \"memory\": {\"cache\": $n}"; done
  curl -sS -m 60 -d '{"prompt": "x", "max_tokens": 2, "memory": {"cache": 4}}' "localhost:$port/v1/completions" >fifth 3>&- &
  fifth=$!
  for _ in {1..100}; do
    curl -sS "localhost:$port/metrics" | grep -qx 'tessera_queue_length 1' && break
    sleep 0.05
  done
  ask '{"prompt": "x", "max_tokens": 2}' | jq -e '.usage.completion_tokens == 2'
  ask '{"prompt": "x", "max_tokens": 2, "memory": {"cache": 3}}' | jq -e '.usage.completion_tokens == 2'
  # Scores need no place beside them.
  ask '{"prompt": "xyz", "max_tokens": 0, "echo": true, "logprobs": 0, "memory": {"cache": 5}}' | jq -e '.choices[0].logprobs.tokens == ["x", "y", "z"]'
  kill -0 "$fifth"
  [ "$(status -m 60 -d '{"prompt": "x", "memory": {"cache": -1}}' "localhost:$port/v1/completions")" -eq 400 ] &
  local wrong=$!
  kill "$(cat cache2.curl)"
  wait "$fifth"
  jq -e '.usage.completion_tokens == 2' fifth
  wait "$wrong"
  for name in plain cache1 cache3; do kill "$(cat "$name.curl")"; done
  kill -TERM "$(cat lanes.pid)"
  port=$one
}

@test "bodies of megabytes: answered or refused with a time to try again; their memory is given back" {
  start bodies -t bytes --max-bodies 16M
  PORT=$(cat bodies.port) PID=$(cat bodies.pid) timeout 120 python3 - <<'END'
import http.client, json, os, threading, time
port, pid = int(os.environ["PORT"]), os.environ["PID"]
def memory(key):
    return next(int(l.split()[1]) for l in open(f"/proc/{pid}/status") if l.startswith(key)) / 1000
def post(body):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    try:
        c.request("POST", "/v1/completions", body)
    except (BrokenPipeError, ConnectionResetError):
        pass  # refused before all was sent
    try:
        answer = c.getresponse()
    except ConnectionResetError:
        return 503, "1"
    answer.read()
    return answer.status, answer.headers["Retry-After"]
assert post(b'{"prompt": "a", "max_tokens": 4}')[0] == 200
before = memory("VmRSS")
body = b'{"prompt":[' + b",".join([b'""'] * 1_390_000) + b"]}"
assert 4_100_000 < len(body) < 4 << 20
told = []
threads = [threading.Thread(target=lambda: told.append(post(body))) for _ in range(24)]
[t.start() for t in threads], [t.join() for t in threads]
assert set(told) <= {(400, None), (503, "1")} and len(told) == 24, told
assert memory("VmHWM") < before + 700, (before, memory("VmHWM"))
for _ in range(100):
    if memory("VmRSS") < before + 60:
        break
    time.sleep(0.2)
assert memory("VmRSS") < before + 60, (before, memory("VmRSS"))
assert post(b'{"prompt": "a", "max_tokens": 4}')[0] == 200
# One request may have as many bytes as any, whatever the bound over all.
assert post(json.dumps({"prompt": "a" * 4_000_000}).encode())[0] == 400
# Bytes that have come count, not those that are announced.
import socket
waiting = [socket.create_connection(("127.0.0.1", port)) for _ in range(5)]
for s in waiting:
    s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4000000\r\n\r\n" + b" " * 100000)
assert post(b'{"prompt": "a", "max_tokens": 4}')[0] == 200
for s in waiting[:4]:
    s.sendall(b" " * 3_800_000)
def unread():  # whether bytes to the server, or from it, are in a queue of the system
    rows = [line.split() for line in list(open("/proc/net/tcp"))[1:]]
    return any(r[4] != "00000000:00000000" for r in rows if int(port) in [int(r[i][-4:], 16) for i in (1, 2)])
while unread():
    time.sleep(0.1)
assert post(b" " * 2_000_000) == (503, "1")
assert post(b'{"prompt": "a", "max_tokens": 4}')[0] == 200
END
  kill -TERM "$(cat bodies.pid)"
}

@test "large requests to the tokenizer are answered one after the other: their memory is that of a few" {
  start tokens -t bytes
  PORT=$(cat tokens.port) PID=$(cat tokens.pid) timeout 200 python3 - <<'END'
import http.client, json, os, socket, threading, time
port, pid = int(os.environ["PORT"]), os.environ["PID"]
def memory(key):
    return next(int(l.split()[1]) for l in open(f"/proc/{pid}/status") if l.startswith(key)) / 1000
def post(path, body):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=150)
    try:
        c.request("POST", path, body)
    except (BrokenPipeError, ConnectionResetError):
        pass  # refused before all was sent
    try:
        answer = c.getresponse()
    except ConnectionResetError:
        return 503, "1", b""
    return answer.status, answer.headers["Retry-After"], answer.read()
assert post("/tokenize", b'{"prompt": "a"}')[0] == 200
before = memory("VmRSS")
bodies = {"/tokenize": b'{"prompt":"' + "\u00e9".encode() * 2_000_000 + b'"}', "/detokenize": b'{"tokens":[' + b",".join([b"97"] * 1_300_000) + b"]}"}
for path, body in bodies.items():
    told = []
    threads = [threading.Thread(target=lambda: told.append(post(path, body))) for _ in range(14)]
    [t.start() for t in threads], [t.join() for t in threads]
    assert {(s, r) for s, r, _ in told} <= {(200, None), (503, "1")} and len(told) == 14, {t[:2] for t in told}
    assert sum(t[0] == 200 for t in told) >= 3
    for _, _, answer in (t for t in told if t[0] == 200):
        assert json.loads(answer).get("count", 4_000_000) == 4_000_000 and len(answer) > 2_600_000
    assert memory("VmHWM") < before + 700, (path, before, memory("VmHWM"))
for _ in range(100):
    if memory("VmRSS") < before + 60:
        break
    time.sleep(0.2)
assert memory("VmRSS") < before + 60, (before, memory("VmRSS"))
# Answers that clients do not read are bounded as bodies are; small ones are sent nevertheless.
def unread():
    s = socket.create_connection(("127.0.0.1", port))
    body = bodies["/tokenize"]
    s.sendall(b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    return s
waiting = [unread() for _ in range(4)]
for s in waiting:
    s.recv(1)
assert post("/tokenize", bodies["/tokenize"])[:2] == (503, "1")
assert post("/tokenize", b'{"prompt": "a"}')[0] == 200
for s in waiting:
    s.close()
assert post("/detokenize", b'{"tokens":[' + b",".join([b"97"] * 100_000) + b"]}")[0] == 200
END
  kill -TERM "$(cat tokens.pid)"
}

@test "the other paths; what is not known is refused by name" {
  curl -sS "localhost:$port/health" | jq -e '.status == "ok"'
  curl -sS "localhost:$port/v1/models" | jq -e '.data[0].id == "model"'
  curl -sS "localhost:$port/metrics" | grep -q '^tessera_completion_tokens_total [1-9]'
  for path in /index.html /etc/passwd /../../etc/passwd /v1/completions/../../etc/passwd '/%2e%2e/%2e%2e/etc/passwd' /model/config.json; do
    [ "$(status --path-as-is "localhost:$port$path")" -eq 404 ]
    ! grep -q root: answer || false
  done
  [ "$(status "localhost:$port/v1/completions")" -eq 405 ]
  [ "$(status -X DELETE "localhost:$port/v1/models")" -eq 405 ]
  curl -sS -D - -o answer -X DELETE "localhost:$port/v1/models" | tr -d '\r' | grep -qx 'Allow: GET, HEAD, OPTIONS'
  [ "$(status "localhost:$port/v1/models/model")" -eq 200 ]
  jq -e '.id == "model" and .object == "model"' answer
  [ "$(status "localhost:$port/v1/models/%6dodel")" -eq 200 ]
  for name in other model/ model/x %; do
    [ "$(status "localhost:$port/v1/models/$name")" -eq 404 ]
  done
  for body in '' '{' '[]' '{"prompt": 1}' '{"prompt": "x", "n": 9}' '{"prompt": "x", "logit_bias": {"256": 2}}' \
    '{"prompt": [256]}' '{"prompt": "x", "memory": {"datastore": "/etc"}}'; do
    [ "$(status -d "$body" "localhost:$port/v1/completions")" -eq 400 ]
    jq -e '.error.message | length > 0' answer
  done
  [ "$(status -d '{"messages": []}' "localhost:$port/v1/chat/completions")" -eq 400 ]
  grep -q 'no chat template' answer
  python3 -c 'import json; print(json.dumps({"prompt": "x" * 5000}))' >long
  [ "$(status -d @long "localhost:$port/v1/completions")" -eq 400 ]
  grep -q 'has 5000 tokens, more than the window' answer
  # Pages of other origins, and names that were bound to this machine.
  [ "$(status -H 'Host: evil.example' "localhost:$port/health")" -eq 403 ]
  [ "$(status -H 'Host: 127.evil.example' "localhost:$port/health")" -eq 403 ]
  [ "$(status -H 'Origin: http://evil.example' -d '{"prompt": "x"}' "localhost:$port/v1/completions")" -eq 403 ]
  [ "$(status -H 'Host: 127.0.0.1' "localhost:$port/health")" -eq 200 ]
  [ "$(status -H 'Host: LocalHost.' "localhost:$port/health")" -eq 200 ]
}

# headers CURL-OPTION...: of the answer, without carriage returns.
headers() {
  curl -sS -m 20 -D - -o answer "$@" | tr -d '\r'
}

@test "OPTIONS says what a path takes; pages of other origins may ask only where --allow-origin says so" {
  headers -X OPTIONS "localhost:$port/v1/completions" >asked.headers
  grep -qx 'HTTP/1.1 204 No Content' asked.headers
  grep -qx 'Allow: POST, OPTIONS' asked.headers
  run ! grep -qi '^access-control' asked.headers
  run ! grep -qi '^content-length' asked.headers
  headers -X OPTIONS --request-target '*' "localhost:$port/" | grep -qx 'HTTP/1.1 204 No Content'
  [ "$(status -X OPTIONS -H 'Origin: https://page.example' "localhost:$port/v1/completions")" -eq 403 ]
  echo a-key-of-27-characters-here >cors.key
  start cors -t bytes --api-key-file cors.key --allow-origin https://page.example
  local at
  at=$(cat cors.port)
  # A browser asks first, without the key.
  headers -X OPTIONS -H 'Origin: https://page.example' -H 'Access-Control-Request-Method: POST' "localhost:$at/v1/completions" >asked.headers
  grep -qx 'HTTP/1.1 204 No Content' asked.headers
  grep -qx 'Access-Control-Allow-Origin: https://page.example' asked.headers
  grep -qx 'Access-Control-Allow-Methods: POST' asked.headers
  grep -qx 'Access-Control-Allow-Headers: Authorization, Content-Type' asked.headers
  for body in '{"prompt": "a", "max_tokens": 1}' '{"prompt": "a", "max_tokens": 1, "stream": true}' '{'; do
    headers -H 'Origin: https://page.example' -H 'Authorization: Bearer a-key-of-27-characters-here' -d "$body" "localhost:$at/v1/completions" |
      grep -qx 'Access-Control-Allow-Origin: https://page.example'
  done
  [ "$(status -H 'Origin: https://page.example' -d '{"prompt": "a"}' "localhost:$at/v1/completions")" -eq 401 ]
  [ "$(status -H 'Origin: https://other.example' "localhost:$at/health")" -eq 403 ]
  kill -TERM "$(cat cors.pid)"
}

@test "a text with half of a character's two UTF-16 units has U+FFFD there, as browsers write it" {
  ask '{"prompt": "a\ud83d", "max_tokens": 0, "echo": true}' | jq -e '.choices[0].text == "a\ufffd"'
  curl -sS -d '{"prompt": "\ud83d\ude00\ude00"}' "localhost:$port/tokenize" | jq -e '.tokens == [240, 159, 152, 128, 239, 191, 189]'
}

@test "hostile clients are refused and forgotten, and the others are answered" {
  PORT=$port PID=$(cat one.pid) timeout 60 python3 - <<'END'
import http.client, os, socket, threading, time
port, pid = int(os.environ["PORT"]), os.environ["PID"]

def raw(data, wait=10):
    with socket.create_connection(("127.0.0.1", port), wait) as s:
        try:
            s.sendall(data)
        except OSError:
            pass
        answer = b""
        try:
            while chunk := s.recv(65536):
                answer += chunk
        except ConnectionResetError:
            pass
        return answer

def status(data):
    answer = raw(data)
    return int(answer.split()[1]) if answer else 0

head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
assert status(b"GET / HTTP/1.1\r\n\r\n") == 400
assert status(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n") == 400
assert status(b"GET / HTTP/3.0\r\nHost: localhost\r\n\r\n") == 505
chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
assert status(chunked + b"0\r\n\r\n") == 400  # no JSON
assert status(chunked + b'7\r\n{"promp\r\n10;x=y\r\nt":"a","n":2   }\r\n0\r\nA: b\r\n\r\n') == 200
assert status(chunked + b"1\r\n{}\r\n0\r\n\r\n") == 400
assert status(chunked + b"500000\r\n") == 413
assert status(head + b"Transfer-Encoding: gzip\r\n\r\n") == 501
assert status(head + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}") == 400
assert status(head + b"\r\n") == 411
assert status(head + b"Content-Length: 4194305\r\n\r\n") == 413
assert status(head + b"Content-Length: 99999999999999999999\r\n\r\n") == 413
assert status(head + b"Content-Length: -1\r\n\r\n") == 400
assert status(head + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}") == 400
assert status(b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 5000 + b"\r\n") == 431
assert status(b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n") == 431
deep = b"[" * 100000
assert status(head + b"Content-Length: %d\r\n\r\n" % len(deep) + deep) == 400
# A head without end: as much as is taken, and no more.
def rss():
    return int(next(l for l in open(f"/proc/{pid}/status") if l.startswith("VmRSS")).split()[1])
before = rss()
assert status(b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 2_000_000) in (431, 0)
assert rss() - before < 50_000, (before, rss())
# Requests on one connection, one behind the other, and two at once.
c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
for _ in range(3):
    c.request("POST", "/v1/completions", b'{"prompt": "a", "max_tokens": 2}', {"Content-Type": "application/json"})
    r = c.getresponse()
    assert r.status == 200 and b"choices" in r.read()
both = raw(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
assert both.count(b'{"status":"ok"}') == 2
# A chunked body, and another request behind it.
both = raw(chunked.replace(b"Connection: close\r\n", b"") + b'e\r\n{"prompt":"a"}\r\n0\r\n\r\nGET http://localhost/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
assert both.count(b"HTTP/1.1 200 ") == 2 and both.endswith(b'{"status":"ok"}'), both
# The absolute form's host counts, whatever Host says.
assert status(b"GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n") == 403
# A client that waits for leave to send its body gets it once, and a refusal instead for a body that is too large.
for more in (b"Content-Length: 14\r\n", b"Transfer-Encoding: chunked\r\n"):
    with socket.create_connection(("127.0.0.1", port), 10) as s:
        s.sendall(head + more + b"Expect: 100-continue\r\n\r\n")
        assert s.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        s.sendall(b'{"prompt":"a"}' if b"Length" in more else b'e\r\n{"prompt":"a"}\r\n0\r\n\r\n')
        assert s.recv(1000).startswith(b"HTTP/1.1 200 ")
assert status(head + b"Content-Length: 4194305\r\nExpect: 100-continue\r\n\r\n") == 413
headed = raw(b"HEAD /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
assert headed.startswith(b"HTTP/1.1 200 ") and b"Content-Length: 15\r\n" in headed and headed.endswith(b"\r\n\r\n"), headed
# Silent and slow clients take connections, not answers; one more than there may be is told so.
silent = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
for s in silent[:20]:
    s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
c.request("GET", "/health")
assert c.getresponse().read() == b'{"status":"ok"}'
more = [socket.create_connection(("127.0.0.1", port)) for _ in range(30)]
time.sleep(0.3)
refused = 0
for s in more:
    s.settimeout(0.1)
    try:
        refused += b"503" in s.recv(100)
    except TimeoutError:
        pass
assert refused >= 5, refused
for s in silent + more:
    s.close()
time.sleep(0.3)
# A client that leaves is not written for: the next one does not wait for its tokens.
def leave(stream):
    s = socket.create_connection(("127.0.0.1", port))
    body = b'{"prompt": "a", "max_tokens": 4096, "stream": %s}' % stream
    s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
    time.sleep(0.3)
    s.close()
for stream in (b"true", b"false"):
    leave(stream)
start = time.time()
c = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
c.request("POST", "/v1/completions", b'{"prompt": "a", "max_tokens": 2}')
assert c.getresponse().status == 200
assert time.time() - start < 10, time.time() - start
# Many at once are all answered.
codes = []
def one(i):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    c.request("POST", "/v1/completions", b'{"prompt": "a%d", "max_tokens": 3, "temperature": 0}' % i)
    codes.append(c.getresponse().status)
threads = [threading.Thread(target=one, args=(i,)) for i in range(32)]
[t.start() for t in threads], [t.join() for t in threads]
assert codes == [200] * 32, codes
END
  kill -0 "$(cat one.pid)"
}

@test "a slow sender is cut off, whatever it does" {
  PORT=$port timeout 29 python3 - <<'END'
import os, socket, time
s = socket.create_connection(("127.0.0.1", int(os.environ["PORT"])))
start, answer = time.time(), b""
s.settimeout(0.5)
while time.time() - start < 27:
    try:
        s.sendall(b"a")
        if not (more := s.recv(100)):
            break
        answer += more
    except TimeoutError:
        pass
    except OSError:
        break
assert 15 < time.time() - start < 26, time.time() - start
END
}

@test "another address takes a key, which every request but /health has to know; a key is no short word" {
  run --separate-stderr serve -m model -t bytes --listen 0.0.0.0 --port 0
  [ "$status" -eq 64 ]
  [[ $stderr == *'give --api-key-file'* ]]
  run --separate-stderr serve -m model -t bytes --listen localhost --port 0
  [ "$status" -eq 64 ]
  [[ $stderr == *'takes a numeric address'* ]]
  echo short >key
  run --separate-stderr serve -m model -t bytes --api-key-file key --port 0
  [ "$status" -eq 65 ]
  echo 'a key of 27 characters here ' >key
  run --separate-stderr serve -m model -t bytes --api-key-file key --port 0
  [ "$status" -eq 65 ]
  [[ $stderr == *'visible ASCII characters without spaces'* ]]
  run --separate-stderr serve -m model -t bytes --port "$port"
  [ "$status" -eq 73 ]
  [[ $stderr == *'cannot listen'* ]]
  echo a-key-of-27-characters-here >key
  start keyed -t bytes --api-key-file key
  port=$(cat keyed.port)
  [ "$(status "localhost:$port/health")" -eq 200 ]
  [ "$(status "localhost:$port/v1/models")" -eq 401 ]
  for wrong in '' a a-key-of-27-characters-her a-key-of-27-characters-herf a-key-of-27-characters-here- \
    a-key-of-27-characters-herea-key-of-27-characters-here; do
    [ "$(status -H "Authorization: Bearer $wrong" "localhost:$port/v1/models")" -eq 401 ]
  done
  curl -sS -D - -o answer "localhost:$port/v1/models" | tr -d '\r' | grep -qx 'WWW-Authenticate: Bearer'
  [ "$(status -H 'Authorization: Bearer a-key-of-27-characters-here' "localhost:$port/v1/models")" -eq 200 ]
  [ "$(status -H 'Authorization: bearer a-key-of-27-characters-here' "localhost:$port/v1/models")" -eq 200 ]
  kill -TERM "$(cat keyed.pid)"
}

@test "a long text that is scored does not hold others up once its client has left; there is a bound" {
  start scores -t bytes --max-scored 2M
  port=$(cat scores.port)
  python3 -c 'import json; print(json.dumps({"prompt": "The cat sat. " * 100000, "max_tokens": 0, "echo": True, "logprobs": 0}))' >scored.json
  # Bytes of a further request behind it do not hide that the client leaves.
  PORT=$port timeout 60 python3 - <<'END'
import http.client, json, os, socket, time
port, body = int(os.environ["PORT"]), open("scored.json", "rb").read()
def ask(body):
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=50)
    c.request("POST", "/v1/completions", json.dumps(body))
    return json.loads(c.getresponse().read())
# While it is scored, others are: texts that are generated, and shorter ones that are scored.
long = socket.create_connection(("127.0.0.1", port))
long.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
time.sleep(0.5)
for n in (4000, 40):
    assert len(ask({"prompt": "x" * n, "max_tokens": 0, "echo": True, "logprobs": 0})["choices"][0]["logprobs"]["tokens"]) == n
    assert ask({"prompt": "a", "max_tokens": 9, "logprobs": 1})["usage"]["completion_tokens"] == 9
long.setblocking(False)
try:
    assert not long.recv(1), "it has ended"
except BlockingIOError:
    pass
long.close()
s = socket.create_connection(("127.0.0.1", port))
s.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body + b"GET")
time.sleep(1)
s.close()
c = http.client.HTTPConnection("127.0.0.1", port, timeout=50)
c.request("POST", "/v1/completions", b'{"prompt": "a", "max_tokens": 1}')
assert c.getresponse().status == 200
END
  kill -TERM "$(cat scores.pid)"
  port=$(cat one.port)
  [ "$(status -d @scored.json "localhost:$port/v1/completions")" -eq 400 ]
  jq -e '.error.message | test("1300000 tokens.*at most 256000")' answer
}

@test "SIGTERM: what was asked is answered, and the server ends with 0" {
  start term -t bytes
  port=$(cat term.port)
  curl -sS -m 20 -d '{"prompt": "a", "max_tokens": 300}' "localhost:$port/v1/completions" >answer &
  asking=$!
  sleep 0.3
  kill -TERM "$(cat term.pid)"
  wait "$asking"
  jq -e '.usage.completion_tokens >= 1' answer
  for _ in {1..50}; do
    [ -e "/proc/$(cat term.pid)" ] || break
    sleep 0.1
  done
  [ ! -e "/proc/$(cat term.pid)" ]
  run ! curl -sS -m 2 "localhost:$port/health"
}
