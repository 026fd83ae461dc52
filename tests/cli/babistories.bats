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
  [ "$(gen-babistories-prompts -n 20 --seed 4 --form text | sort -u | wc -l)" -eq 20 ]
}

@test "prompts: lists of one's own" {
  printf 'noun cat\nverb purr\nadjective soft\n' >words
  echo "1. Mia" >names
  echo "It began." >openings
  run -0 gen-babistories-prompts -n 1 --words words --names names --openings openings
  [ "$(jq -r '"\(.noun) \(.verb) \(.adjective) \(.name)"' <<<"$output")" = "cat purr soft Mia" ]
  echo "adverb soon" >>words
  run -65 gen-babistories-prompts --words words
  [[ $output == "gen-babistories-prompts: words:4: 'adverb soon' is none of "* ]]
}

@test "prompts: requests of a batch" {
  run -0 gen-babistories-prompts -n 2 --request openai --model some/model --max-tokens 99
  [ "$(jq -r '"\(.custom_id) \(.method) \(.url) \(.body.model) \(.body.max_tokens) \(.body.messages[0].role)"' <<<"${lines[1]}")" = \
    "story-1-1 POST /v1/chat/completions some/model 99 user" ]
  run -64 gen-babistories-prompts --request openai
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
    clean-babistories -q --format text --form text --least-words 3 >out
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
  [[ $output == 'clean-babistories: stdin:1: no "story" in it' ]]
}
