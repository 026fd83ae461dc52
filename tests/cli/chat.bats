#!/usr/bin/env bats
# Special tokens of a prompt and chat templates: which ids they are, where a note says that they are ordinary text, and what is
# refused.

load helpers

# A tokenizer of bytes with three special tokens, of which the model's 259 words are the ids.
setup_file() {
  cd "$BATS_FILE_TMPDIR"
  "$root"/tests/cli/tiny_gpt2 model 1 0.3 0.0 259
  python3 - <<'PY'
import json
kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
names = {b: chr(b) for b in kept}
names.update({b: chr(256 + i) for i, b in enumerate(b for b in range(256) if b not in kept)})
added = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
json.dump({
    "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
    "added_tokens": [{"id": 256 + i, "content": t, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                      "special": True} for i, t in enumerate(added)],
    "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
    "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None,
              "fuse_unk": False, "byte_fallback": False, "vocab": {**{names[b]: b for b in range(256)},
                                                                 **{t: 256 + i for i, t in enumerate(added)}}, "merges": []},
}, open("model/tokenizer.json", "w"))
template = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + eos_token + '\n' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<|im_start|>a\n' }}{% endif %}")
json.dump({"eos_token": {"content": "<|im_end|>"}, "chat_template": template}, open("model/tokenizer_config.json", "w"))
PY
  cp -r model plain && rm plain/tokenizer_config.json
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

@test "tokenize --special: special tokens of a text are these tokens; without it a note says that they are text" {
  printf 'a<|im_end|>b' >text
  run --separate-stderr tokenize -t model/tokenizer.json text -o plain.shard
  [ "$status" -eq 0 ]
  [[ $stderr == *'contains the text of the special token <|im_end|>, encoded as ordinary text; --special encodes it as the token'* ]]
  run --separate-stderr tokenize -t model/tokenizer.json --special text -o special.shard
  [ "$status" -eq 0 ]
  [[ $stderr != *ordinary* ]]
  [ "$(shard cat plain.shard | wc -w)" -eq 13 ]
  [ "$(shard cat special.shard | tr '\n' ' ')" = '97 257 98 258 ' ]
  [ -z "$(tokenize -q -t model/tokenizer.json text -o plain.shard 2>&1)" ]
  run --separate-stderr tokenize --decode --special special.shard
  [ "$status" -eq 64 ]
}

@test "sample: --special, a line's own \"special\" and a token before the prompt are the same; without them a note" {
  sample -m model --temperature 0 --max-tokens 9 --special --prompt '<|im_start|>hi' --json >special
  sample -m model --temperature 0 --max-tokens 9 --bos '<|im_start|>' --prompt hi --json >begun
  [ "$(field tokens <special)" = "$(field tokens <begun)" ]
  echo '{"prompt": "<|im_start|>hi", "special": true}' >line.jsonl
  sample -m model --temperature 0 --max-tokens 9 --json line.jsonl | cmp - special
  run --separate-stderr sample -m model --temperature 0 --max-tokens 9 --prompt '<|im_start|>hi' --json
  [ "$status" -eq 0 ]
  [ "$(field tokens <<<"$output")" != "$(field tokens <special)" ]
  [ "$stderr" = 'sample: --prompt contains the text of the special token <|im_start|>, encoded as ordinary text; --special encodes it as the token' ]
}

@test "sample --chat: a prompt is a user's turn, messages are a conversation, --system stands before" {
  printf '{"prompt": "<|im_start|>system\\nbe<|im_end|>\\n<|im_start|>user\\nhi<|im_end|>\\n<|im_start|>a\\n"}\n' >text.jsonl
  sample -m model --temperature 0 --max-tokens 9 --special --json text.jsonl >text
  run --separate-stderr sample -m model --temperature 0 --max-tokens 9 --chat --system be --prompt hi --json
  [ "$status" -eq 0 ]
  [ -z "$stderr" ]
  [ "$output" = "$(cat text)" ]
  echo '{"messages": [{"role": "system", "content": "be"}, {"content": "hi", "role": "user"}]}' >talk.jsonl
  sample -m model --temperature 0 --max-tokens 9 --chat --json talk.jsonl | cmp - text
  # A content may be a list of texts.
  sed -i 's/"hi"/[{"type": "text", "text": "hi"}]/' talk.jsonl
  sample -m model --temperature 0 --max-tokens 9 --chat --json talk.jsonl | cmp - text
  sed -i 's/"type": "text"/"type": "image_url"/' talk.jsonl
  run --separate-stderr -65 sample -m model --chat talk.jsonl
  [ "$stderr" = 'sample: talk.jsonl:1: messages: content: takes a text, or a list of {"type": "text", "text"}' ]
}

@test "sample --chat --retrieve: passages are part of the last turn, by a template, and --json names them" {
  printf 'the boiler hums\nthe green shed\n' >notes
  tokenize -q -t bytes --format lines notes -o notes.shard
  bm25-search build -q notes.shard -o notes.bm25
  echo '{{ passages[0] }}! {{ question }}' >form
  flags=(-q -m model --chat --temperature 0 --max-tokens 9 --json)
  sample "${flags[@]}" --retrieve notes.bm25 --retrieve-evidence 0.5 --retrieve-template form --prompt 'does a green shed hum' >found
  [ "$(jq -c .retrieved[0].passages[0].passage <found)" = 1 ]
  sample "${flags[@]}" --prompt 'the green shed! does a green shed hum' >written
  [ "$(field text <found)" = "$(field text <written)" ]
  [ "$(field prompt <found)" = "$(field prompt <written)" ]
  sample "${flags[@]}" --retrieve notes.bm25 --prompt 'who are you' >unknown
  sample "${flags[@]}" --prompt 'who are you' | cmp - unknown
  printf 'a shed\nwho are you\n' >turns
  run --separate-stderr sample -m model --chat --max-tokens 9 --retrieve notes.bm25 --retrieve-evidence 0.5 turns
  [[ $stderr == *'sample: passages were used for 1 of 2 turns' ]] || { echo "$stderr" && return 1; }
  printf 'a shed\na shed of zinc\n' >turns
  run --separate-stderr sample -m model --chat --max-tokens 9 --retrieve notes.bm25 --retrieve-evidence 0.9 turns
  [[ $stderr == *'sample: passages were used for 1 of 2 turns' ]] || { echo "$stderr" && return 1; }
  run --separate-stderr sample -m model --chat --max-tokens 9 --retrieve notes.bm25 --retrieve-evidence none turns
  [[ $stderr == *'sample: passages were used for 2 of 2 turns' ]] || { echo "$stderr" && return 1; }
  run --separate-stderr sample "${flags[@]}" --retrieve-k 2 --prompt hi
  [ "$status" -eq 64 ]
  [ "$stderr" = 'sample: --retrieve-k: requires --chat and --retrieve' ]
  run --separate-stderr sample "${flags[@]}" --retrieve notes.bm25 --retrieve-mix 2 --prompt hi
  [ "$status" -eq 64 ]
  [[ $stderr == *'--retrieve-mix: cannot be combined with --chat'* ]]
}

@test "sample --chat --retrieve: of BM25's candidates, the turn has that after which score finds it most probable" {
  local questions=('a green boiler' 'who has a red shed' 'boiler hums' 'red green')
  printf 'the boiler hums\nthe green shed\na red boiler\nthe shed has a red and green door\n' >four
  tokenize -q -t bytes --format lines four -o four.shard
  bm25-search build -q four.shard -o four.bm25
  printf '%s\n' "${questions[@]}" >asked
  sample -q -m model --chat --max-tokens 1 --json --retrieve four.bm25 --retrieve-evidence none --retrieve-k 1 --retrieve-candidates 4 asked |
    jq -c '.retrieved[0].passages[0].passage' >chosen
  python3 - "${questions[@]}" <<'END' >requests
import json, sys
for question in sys.argv[1:]:
    for note in open("four"):
        print(json.dumps({"context": note.rstrip("\n") + "\nQuestion:", "continuation": " " + question}))
END
  score -q -m model requests >scored
  python3 - "${questions[@]}" <<'END' | cmp - chosen
import json, sys
scores = [json.loads(line)["log_prob"] for line in open("scored")]
notes = [set(line.split()) for line in open("four")]
for i, question in enumerate(sys.argv[1:]):
    known = [n for n in range(4) if notes[n] & (set(question.split()) - {"a", "who", "has"})]
    print(max(known, key=lambda n: scores[4 * i + n]))
END
  bm25-search find -i four.bm25 --k 1 asked | jq -c .passage >first
  run cmp -s first chosen
  [ "$status" -eq 1 ]
}

@test "score: a conversation is a context, by --chat" {
  cat >asked.jsonl <<'LINES'
{"messages": [{"role": "user", "content": "hi"}], "continuation": "yo"}
{"context": "<|im_start|>user\nhi<|im_end|>\n<|im_start|>a\n", "continuation": "yo", "special": true}
{"context": "<|im_start|>user\nhi<|im_end|>\n<|im_start|>a\n", "continuation": "yo"}
{"messages": [{"role": "user", "content": "hi"}], "choices": ["yo", "no"]}
LINES
  run --separate-stderr score -m model --chat asked.jsonl
  [ "$status" -eq 0 ]
  [ "${lines[0]}" = "${lines[1]}" ]
  [ "${lines[1]}" != "${lines[2]}" ]
  near "$(jq .choices[0].log_prob <<<"${lines[3]}")" "$(jq .log_prob <<<"${lines[0]}")" 1e-4
  [[ $stderr == *'asked.jsonl:3 contains the text of the special token <|im_start|>, encoded as ordinary text'* ]]
  run --separate-stderr score -m model asked.jsonl
  [ "$status" -eq 65 ]
  [[ $stderr == *'asked.jsonl:1: messages: a conversation requires --chat'* ]]
}

@test "what --chat refuses: no template, a template's own refusal, a part of Jinja that is not there, options that do not go with it" {
  run --separate-stderr sample -m plain --chat --prompt hi
  [ "$status" -eq 65 ]
  [ "$stderr" = 'sample: plain: has no chat template (chat_template.jinja, or "chat_template" in tokenizer_config.json); add one' ]
  printf '\n{{ raise_exception("no, " + messages[0].role) }}' >plain/chat_template.jinja
  run --separate-stderr sample -m plain --chat --prompt hi
  [ "$status" -eq 65 ]
  [ "$stderr" = 'sample: --prompt: plain/chat_template.jinja:2: no, user' ]
  printf '{%% include "x" %%}' >plain/chat_template.jinja
  run --separate-stderr sample -m plain --chat --prompt hi
  [ "$status" -eq 65 ]
  [ "$stderr" = 'sample: plain/chat_template.jinja:1: {% include %} is not supported' ]
  rm plain/chat_template.jinja
  run --separate-stderr sample -m model --system be --prompt hi
  [ "$status" -eq 64 ]
  run --separate-stderr sample -m model --chat --bos none --prompt hi
  [ "$status" -eq 64 ]
  run --separate-stderr sample -m model talk.jsonl --format jsonl
  [ "$status" -eq 65 ]
}

@test "annotate --special: special tokens of a text are these tokens" {
  printf 'a<|im_end|>b' >text
  [ "$(annotate -m model --format text --special --json text | wc -l)" -lt "$(annotate -q -m model --format text --json text | wc -l)" ]
  run --separate-stderr annotate -m model --special special.shard
  [ "$status" -eq 64 ]
}

@test "tokenize --loss-on: prompts, conversations and segments are learned in part; train and eval-ppl count that part" {
  cat >talk.jsonl <<'END'
{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}, {"role": "user", "content": "so"}]}
{"messages": [{"role": "user", "content": "hm"}]}
END
  # The template asks for answers by another role than it writes: no answer of these begins where it was asked for.
  sed 's/"assistant"/"a"/' talk.jsonl >none.jsonl
  tokenize -q --json -t model --loss-on assistant --end-of-document none none.jsonl -o none.shard 2>report
  [ "$(field marked <report)" -eq 0 ]
  run --separate-stderr -65 tokenize -q -t model --loss-on assistant talk.jsonl -o talk.shard
  [[ $stderr == "tokenize: talk.jsonl:1: the chat template does not begin turn 2 as it begins an answer"* ]]
  cp -r model forgets
  cat >forgets/chat_template.jinja <<'END'
{% for m in messages %}[{{ m.role }}]{% if loop.last or m.role != "assistant" %}{{ m.content }}{% endif %}{% endfor -%}
{% if add_generation_prompt %}[assistant]{% endif %}
END
  run --separate-stderr -65 tokenize -q -t forgets --loss-on assistant talk.jsonl -o talk.shard
  [[ $stderr == "tokenize: talk.jsonl:1: the chat template formats turn 2 differently"* ]]
  cp -r model assistant
  sed -i "s/|im_start|>a/|im_start|>assistant/" assistant/tokenizer_config.json
  tokenize -q --json -t assistant --loss-on assistant --end-of-document none talk.jsonl -o talk.shard 2>report
  [ "$(field marked <report)" -eq 4 ] # y, o, <|im_end|>, newline
  [ "$(shard info --json talk.shard | field marked)" -eq 4 ]
  for i in $(seq 60); do printf '{"prompt": "what is %s? ", "completion": "it is %s."}\n' "$i" "$((i * 7 % 10))"; done >pairs.jsonl
  tokenize -q -t bytes --loss-on completion pairs.jsonl -o pairs.shard
  small=(--layers 1 --d-model 16 --heads 2 --segment 32 --batch 4 --steps 60 --lr 5e-3)
  run --separate-stderr train "${small[@]}" --valid pairs.shard pairs.shard -o learned
  [[ $stderr == *"learns the 480 of "*" tokens that are marked; to learn all, give --loss-on all"* ]]
  train -q "${small[@]}" --loss-on all pairs.shard -o all
  run ! cmp -s learned/model.safetensors all/model.safetensors
  eval-ppl -q -m learned --loss-on marked --json pairs.shard >marked
  eval-ppl -q -m all --loss-on marked --json pairs.shard >of_all
  [ "$(field tokens <marked)" -eq 480 ]
  [[ $(field signature <marked) == *"|loss-on:marked|"* ]]
  python3 -c 'import sys; assert float(sys.argv[1]) < float(sys.argv[2])' "$(field loss <marked)" "$(field loss <of_all)"
  tokenize -q -t bytes --format jsonl --field completion pairs.jsonl -o plain.shard
  run --separate-stderr -64 train -q "${small[@]}" --loss-on marked plain.shard -o x
  [[ $stderr == *"plain.shard has no marks"* ]]
  run --separate-stderr -64 eval-ppl -q -m all --loss-on marked --json plain.shard
  [[ $stderr == *"plain.shard has no marks"* ]]
  run --separate-stderr -64 tokenize -q -t bytes --loss-on completion --format lines pairs.jsonl -o x
  [[ $stderr == *"--format jsonl"* ]]
  run --separate-stderr -65 tokenize -q -t bytes --loss-on segments pairs.jsonl -o x
  [[ $stderr == *'pairs.jsonl:1: has no "segments"'* ]]
  run --separate-stderr -64 tokenize -q -t bytes --loss-on completion --field body pairs.jsonl -o x
  [[ $stderr == *"--field: cannot be combined with --loss-on"* ]]
}

@test "train: a stretch of steps in which no target is marked has no loss; of first tokens nothing is learned" {
  # One token in four documents is marked, so that most steps have none.
  for i in 1 2 3 4; do printf '{"prompt": "%s", "completion": "x"}\n' "$(head -c 400 /dev/zero | tr '\0' "$i")"; done >rare.jsonl
  tokenize -q -t bytes --loss-on completion rare.jsonl -o rare.shard
  few=(--layers 1 --d-model 16 --heads 2 --segment 16 --batch 2 --steps 40 --log-every 1)
  train -q "${few[@]}" --batches sequential rare.shard -o rare
  [ "$(wc -l <rare/metrics.jsonl)" -eq 40 ]
  [ "$(grep -c '"loss"' rare/metrics.jsonl)" -lt 10 ]
  grep -q '"loss"' rare/metrics.jsonl
  run ! grep -q 'null\|nan' rare/metrics.jsonl
  for a in a b; do printf '{"segments": [{"text": "%s", "label": true}, {"text": "cd", "label": false}]}\n' $a; done >first.jsonl
  tokenize -q -t bytes --loss-on segments --end-of-document none first.jsonl -o first.shard
  run --separate-stderr -65 train -q "${few[@]}" --batches documents first.shard -o x
  [[ $stderr == "train: first.shard: nothing to learn: only first tokens are marked"* ]]
  [ ! -e x ]
  run --separate-stderr shard export first.shard -o first.npy
  [[ $stderr == "shard: first.shard: the marks are left out"* ]]
  printf '{"prompt": "ab", "completion": ""}\n' >none.jsonl
  tokenize -q -t bytes --loss-on completion --end-of-document none none.jsonl -o none.shard
  run --separate-stderr -65 eval-ppl -q -m rare --loss-on marked none.shard
  [[ $stderr == *"nothing to score; no token after the first is marked" ]]
}
