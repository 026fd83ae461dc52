#!/usr/bin/env bats
# Prompts for stories, and the cleaning of what a model wrote.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
}

@test "prompts: the same by seed, in parts as whole, every part named" {
  gen-babistories-prompts -n 20 --seed 3 >whole
  gen-babistories-prompts -n 8 --seed 3 >part
  gen-babistories-prompts -n 12 --first 8 --seed 3 >>part
  cmp whole part
  [ "$(jq -r 'keys_unsorted | join(" ")' whole | sort -u)" = "number prompt noun verb adjective features name opening" ]
  [ "$(gen-babistories-prompts -n 20 --seed 4 --output-format text | sort -u | wc -l)" -eq 20 ]
}

@test "prompts: lists of one's own" {
  printf 'noun cat\nverb purr\nadjective soft\n' >words
  echo "1. Mia" >names
  echo "It began." >openings
  run -0 gen-babistories-prompts -n 1 --words words --names names --openings openings
  [ "$(jq -r '"\(.noun) \(.verb) \(.adjective) \(.name)"' <<<"$output")" = "cat purr soft Mia" ]
  echo "adverb soon" >>words
  run -65 gen-babistories-prompts --words words
  [[ $output == "gen-babistories-prompts: words:4: 'adverb soon' is not "* ]]
}

@test "prompts: lists may be compressed, a shard is none, and stdin is read for one" {
  printf 'noun cat\nverb purr\nadjective soft\n' >words
  printf '1. Mia\n2. Zoe\n' >names
  printf 'It began one night.\nOnce more.\n' >openings
  gen-babistories-prompts -n 50 --words words --names names --openings openings >whole
  for list in words names openings; do
    zstd -qf $list -o $list.zst && gzip -k $list
  done
  for kind in zst gz; do
    gen-babistories-prompts -n 50 --words words.$kind --names names.$kind --openings openings.$kind | cmp - whole
    gen-babistories-prompts -n 50 --words words --names names --openings - <openings.$kind | cmp - whole
    gen-babistories-prompts -n 50 --words words --names - --openings openings < <(cat names.$kind) | cmp - whole
  done
  head -c 15 openings.gz >short
  run -65 gen-babistories-prompts --openings short
  [ "$output" = "gen-babistories-prompts: short: cut short: it ends within its compressed data" ]
  tokenize -q -t bytes openings -o openings.shard.zst
  run -65 gen-babistories-prompts --openings openings.shard.zst
  [[ $output == "gen-babistories-prompts: openings.shard.zst: is a shard of tokens"* ]]

  for two in '--names - --openings -' '--words - --openings -' '--words - --names -'; do
    # shellcheck disable=SC2086  # words
    run -64 gen-babistories-prompts $two -o none <names
    [ "$output" = "gen-babistories-prompts: two inputs are -, but stdin can be read only once" ]
  done
  [ ! -e none ]
}

@test "prompts: requests of a batch" {
  run -0 gen-babistories-prompts -n 2 --request openai --model some/model --max-tokens 99
  [ "$(jq -r '"\(.custom_id) \(.method) \(.url) \(.body.model) \(.body.max_tokens) \(.body.messages[0].role)"' <<<"${lines[1]}")" = \
    "story-1-1 POST /v1/chat/completions some/model 99 user" ]
  run -64 gen-babistories-prompts --request openai
}

@test "prompts: lists are asked for, in every form" {
  for ask in names openings; do
    gen-babistories-prompts --ask $ask -n 4 --first 3 --output-format text >text
    [ "$(grep -c 'numbered list' text)" -eq 4 ]
    gen-babistories-prompts --ask $ask -n 4 --first 3 >json
    [ "$(jq -r 'keys_unsorted | join(" ")' json | uniq)" = "number prompt" ]
    jq -r .prompt json | cmp - text
    gen-babistories-prompts --ask $ask -n 4 --first 3 --seed 5 --request openai --model some --max-tokens 2048 >batch
    jq -r '.body.messages[0].content' batch | cmp - text
    [ "$(jq -r '"\(.custom_id) \(.body.max_tokens) \(.body.messages | length)"' batch | head -n 1)" = "$ask-5-3 2048 1" ]
  done
  [ "$(sort -u text | wc -l)" -eq 2 ]
  [ "$(sed -n 1p text)" = "$(sed -n 3p text)" ]
  # Settings that were printed are taken back.
  gen-babistories-prompts --ask names --print-config >settings
  run -0 gen-babistories-prompts --config settings -n 1
}

@test "prompts: what has no meaning for a list is refused" {
  echo Mia >list
  for flag in '--words list' '--names list' '--openings list' '--opening-in answer'; do
    # shellcheck disable=SC2086  # two words
    run -64 gen-babistories-prompts --ask openings $flag -o out
    [ "$output" = "gen-babistories-prompts: --ask openings: ${flag% *} requires --ask story; leave it out" ]
  done
  [ ! -e out ]
  run -64 gen-babistories-prompts --ask poems
}

# answers CONTENT: to the requests on stdin, as a server gives them; CONTENT is jq's.
answers() {
  jq -c "{custom_id, response: {status_code: 200, body: {choices: [{message: {content: ($1)}}]}}, error: null}"
}

@test "prompts: the answers to a batch are the lists of the next, by the manual's command" {
  sed -n 's/^jq -r .* >names.txt$/&/p' "$root/man/gen-babistories-prompts.1.scd" >command
  gen-babistories-prompts --ask names -n 2 --request openai --model some |
    answers '"Here are 100 names:\n\n1. N\(.custom_id[-1:])a\n2. Mia\n3. Bartholomew\n\nEnjoy!"' >answers.jsonl
  echo '{"custom_id":"names-1-2","response":null,"error":{"code":"expired"}}' >>answers.jsonl
  bash -e command
  gen-babistories-prompts -n 200 --names names.txt >prompts
  [ "$(jq -r .name prompts | sort -u | tr '\n' ' ')" = "Mia N0a N1a " ]
}

@test "prompts: the opening as the beginning of the answer" {
  gen-babistories-prompts -n 3 >before
  gen-babistories-prompts -n 3 --opening-in answer >json
  jq -c 'del(.prompt)' before | cmp - <(jq -c 'del(.prompt)' json)
  [ "$(jq -c '.opening as $o | .prompt | [endswith($o), endswith("the story.")]' json | uniq)" = '[false,true]' ]
  gen-babistories-prompts -n 3 --opening-in answer --output-format text | cmp - <(jq -r '"\(.prompt) \(.opening)"' json)
  gen-babistories-prompts -n 3 --opening-in answer --request openai --model some >batch
  jq -r '.body.messages[0] | "\(.role) \(.content)"' batch | cmp - <(jq -r '"user \(.prompt)"' json)
  jq -r '.body.messages[1] | "\(.role) \(.content)"' batch | cmp - <(jq -r '"assistant \(.opening)"' json)
  [ "$(jq -c '.body | [(.messages | length), .continue_final_message, .add_generation_prompt]' batch | uniq)" = '[2,true,false]' ]
  gen-babistories-prompts -n 1 --request openai --model some |
    jq -e '.body | (.messages | length) == 1 and (has("continue_final_message") or has("add_generation_prompt") | not)'
}

@test "prompts: stories that a model's list begins are kept, whatever markup stands in it" {
  printf '1. In a *dark* wood\n2. One day [name] ran\n' >list
  gen-babistories-prompts -n 100 --openings list --opening-in answer --request openai --model some >batch
  answers '" the cat sat down."' <batch >answers.jsonl
  clean-babistories --json --least-words 3 --format openai --requests batch answers.jsonl >out 2>figures
  [ "$(jq -c '[.read, .kept, .dropped]' figures)" = '[100,100,{}]' ]
}

@test "prompts: many openings take little more memory than their text" {
  python3 - <<'EOF' >list
for i in range(60000):
    print(i, *(f"{(i * 7919 + j * 104729) % 99991:x}" for j in range(11)))
EOF
  (
    ulimit -v 100000
    gen-babistories-prompts -n 1 --openings list >out
  )
  [ "$(wc -l <out)" -eq 1 ]
}

@test "cleaning: openings before the stories that go on from them" {
  cat >in.jsonl <<'EOF'
{"opening": "One day", "story": " a cat sat down."}
{"opening": "One day", "story": "One day a dog ran off."}
EOF
  clean-babistories -q --least-words 3 --opening-field opening in.jsonl >out
  [ "$(cat out)" = '"One day a cat sat down."
"One day a dog ran off."' ]
  run -65 clean-babistories --opening-field opening -o out.jsonl - <<<'{"story": "A cat sat down."}'
  [ "$output" = 'clean-babistories: stdin:1: has no "opening"' ]
  [ ! -e out.jsonl ]
  run -64 clean-babistories --format text --opening-field opening in.jsonl
  [ "$output" = 'clean-babistories: --opening-field: requires --format jsonl' ]
  run -64 clean-babistories --requests in.jsonl in.jsonl
  [ "$output" = 'clean-babistories: --requests: requires --format openai' ]
}

@test "cleaning: openings out of the batch's requests, in whatever order the answers come" {
  gen-babistories-prompts -n 50 --opening-in answer --request openai --model some >batch
  answers '" went on for \(.custom_id)."' <batch | tac >reversed
  answers '.body.messages[1].content + " went on for \(.custom_id)."' <batch | tac >repeated
  clean-babistories -q --format openai --least-words 3 --requests batch reversed >out
  jq '.body.messages[1].content + " went on for \(.custom_id)."' batch | tac | cmp - out
  clean-babistories -q --format openai --least-words 3 --requests batch repeated | cmp - out
  clean-babistories -q --format openai --least-words 3 --requests - reversed <batch | cmp - out
  # Requests without beginnings of answers: these are as they came.
  gen-babistories-prompts -n 50 --request openai --model some >plain
  clean-babistories -q --format openai --least-words 3 --requests plain reversed >out
  [ "$(head -n 1 out)" = '"went on for story-1-49."' ]

  head -n 9 batch >few
  run -65 clean-babistories --format openai --requests few reversed -o none
  [ "$output" = "clean-babistories: reversed:1: its custom_id occurs in no request of few: 'story-1-49'" ]
  echo '{"custom_id": "a"}' >>few
  run -65 clean-babistories --format openai --requests few reversed -o none
  [ "$output" = 'clean-babistories: few:10: has no "body"' ]
  [ ! -e none ]
  run -66 clean-babistories --format openai --requests missing reversed
  run -64 clean-babistories --format openai --requests - - <batch
  cp batch kept
  run -64 clean-babistories --format openai --requests batch reversed -o batch
  cmp batch kept
}

@test "cleaning: kept, cut and dropped are counted; strings, objects and texts" {
  cat >in.jsonl <<'EOF'
"A cat sat on a mat.\n\nIt slept.\nThe end."
{"prompt": "Go on: One", "story": "Go on: One day a dog ran away. Moral: stay."}
{"story": "See www.example.org now"}
EOF
  clean-babistories --least-words 3 --json in.jsonl >out 2>figures
  [ "$(cat out)" = '"A cat sat on a mat. It slept."
"day a dog ran away."' ]
  [ "$(jq -c '[.read, .kept, .dropped.url, .cut["the end"]]' figures)" = '[3,2,1,1]' ]
  printf 'A cat sat down.\n<|endoftext|>\nA dog (brown) sat.<|endoftext|>Three birds sang.' |
    clean-babistories -q --format text --output-format text --least-words 3 >out
  [ "$(cat out)" = 'A cat sat down.
<|endoftext|>
Three birds sang.
<|endoftext|>' ]
  cat >answers.jsonl <<'EOT'
{"custom_id":"story-1-0","response":{"status_code":200,"body":{"choices":[{"message":{"content":"A cat sat down. The end."}}]}},"error":null}
{"custom_id":"story-1-1","response":null,"error":{"code":"expired"}}
EOT
  clean-babistories --format openai --least-words 3 --json answers.jsonl >out 2>figures
  [ "$(cat out)" = '"A cat sat down."' ]
  [ "$(jq -c '[.read, .kept, .dropped["no answer"]]' figures)" = '[2,1,1]' ]
  run -65 clean-babistories --format openai - <<<'{"text": "no answer"}'
  run -65 clean-babistories - <<<'{"text": "no story"}'
  [[ $output == 'clean-babistories: stdin:1: has no "story"' ]]
}
