#!/usr/bin/env bats
# Questions about long texts: what is asked stands in the text, and what is answered is counted.

load helpers

setup() {
  cd "$BATS_TEST_TMPDIR"
}

# knows FILTER: the answers of all problems, as jq's FILTER of a problem gives them, are its outputs.
knows() {
  jq -e -s "map(($1) == .outputs) | all" problems.jsonl >/dev/null || { jq -c "[$1, .outputs]" problems.jsonl && return 1; }
}

@test "gen-ruler: the same by seed and number; no prompt is longer than its length, and few parts would fit behind it" {
  for task in needles variables documents; do
    gen-ruler --task $task -n 12 --length 1500 -o problems.jsonl
    gen-ruler --task $task -n 5 --first 7 --length 1500 >rest
    tail -n 5 problems.jsonl | cmp - rest
    gen-ruler --task $task -n 12 --length 1500 --seed 2 | jq -c .prompt >other
    run -1 cmp -s <(jq -c .prompt problems.jsonl) other
    jq -e -s 'map((.tokens == (.prompt | utf8bytelength)) and (.tokens + .max_tokens <= 1500) and (.tokens + .max_tokens > 900)) | all' \
      problems.jsonl
    # Of another length, the same questions.
    gen-ruler --task $task -n 12 --length 6000 | jq -c .outputs | cmp - <(jq -c .outputs problems.jsonl)
  done
}

@test "gen-ruler: the answers of needles are those that the text gives the keys" {
  gen-ruler --task needles --num-keys 4 --num-queries 2 --num-values 3 --haystack needles --key-kind numbers -n 20 --length 3000 -o problems.jsonl
  jq -e -s 'map(.outputs | length == 6) | all' problems.jsonl
  python3 -c '
import json, re, sys
for line in open("problems.jsonl"):
    p = json.loads(line)
    text, question = p["prompt"].split("\nQuestion: ")
    keys = re.findall(r"\b\d{7}\b", question.split("?")[0])
    found = dict((k, []) for k in keys)
    for key, value in re.findall(r"The secret number of (\d+) is (\d+)\.", text):
        if key in found: found[key].append(value)
    sys.exit(1) if sorted(sum(found.values(), [])) != sorted(p["outputs"]) or len(keys) != 2 else None'
  run -64 gen-ruler --task needles --num-keys 2 --num-queries 3
  run -64 gen-ruler --task needles --haystack text
  run -64 gen-ruler --task needles --text x
  printf 'One was here.  Two\nwere there! And three?' >story
  gen-ruler --task needles --haystack text --text story -n 3 --length 1000 -o problems.jsonl
  jq -e -s 'map(.prompt | contains("One was here. Two were there! And three? One was here.")) | all' problems.jsonl
}

@test "gen-ruler: following the text gives all variables of the value that is asked for, and no others" {
  gen-ruler --task variables --chains 3 --hops 3 -n 20 --length 2000 -o problems.jsonl
  python3 -c '
import json, re, sys
for line in open("problems.jsonl"):
    p = json.loads(line)
    values = {}
    for name, value in re.findall(r"LET (\w+) = (\w+)\.", p["prompt"]):
        values[name] = values.get(value, value)  # set before it is read
    asked = re.search(r"have the value (\d+)\?", p["prompt"])[1]
    if [n for n, v in values.items() if v == asked] != p["outputs"] or len(values) != 12: sys.exit(1)'
  gen-ruler --task variables --shots 1 -n 2 --length 3000 -o problems.jsonl
  jq -e -s 'map(.prompt | [scan("Question:")] | length == 2) | all' problems.jsonl
}

@test "gen-ruler: documents, made up or of SQuAD: the answer stands in one of them" {
  gen-ruler -n 30 --length 8000 -o problems.jsonl
  jq -e -s 'map(.outputs[0] as $a | (.prompt | split("\n\nQuestion: ")[0] | [scan("\\b" + $a + "\\b")] | length) >= 1) | all' problems.jsonl
  jq -e -s 'map(.prompt | [scan("Document \\d+:")] | length > 10) | all' problems.jsonl
  jq -n '{version: "v2.0", data: [
    {title: "a", paragraphs: [
      {context: "Ann has a red hat.", qas: [
        {id: "1", question: "What has Ann?", is_impossible: false, answers: [{text: "a red hat", answer_start: 8}, {text: "hat", answer_start: 14}]},
        {id: "2", question: "What has Bob?", is_impossible: true, answers: []}]},
      {context: "Ann is old.", qas: []}]},
    {title: "b", paragraphs: [{context: "It rains.", qas: []}]}]}' >squad.json
  gen-ruler --squad squad.json -n 2 -o problems.jsonl
  knows '["a red hat", "hat"]'
  jq -e -s 'map((.prompt | contains("It rains.")) and (.prompt | endswith("Question: What has Ann?\nAnswer:"))) | all' problems.jsonl
  gen-ruler --squad squad.json -n 1 --length 248 | jq -e '.prompt | contains("Ann is old.") and (contains("It rains.") | not)'
  run -64 --separate-stderr gen-ruler --squad squad.json --length 100
  # shellcheck disable=SC2154  # stderr is bats'
  [[ $stderr == "gen-ruler: --length 100: problem 0 has "* ]]
  printf '{"data": [{"paragraphs": 3}]}' >bad.json
  run -65 --separate-stderr gen-ruler --squad bad.json -o never
  [[ $stderr == 'gen-ruler: bad.json: not in SQuAD'*'s format: it has no list "paragraphs"' ]]
  [ ! -e never ]
  # An answer longer than what RULER reserves has as many tokens as it needs, of --length too.
  gen-ruler --task variables -n 20 --length 400 | jq -e -s 'map((.outputs | join(", ") | length + 1) as $n |
    .max_tokens == ([30, $n] | max) and .tokens + .max_tokens <= 400) | all'
  gen-ruler --task variables -n 20 --length 400 --output-format answered | jq -e -s 'map(.text | length <= 400) | all'
  run -64 --separate-stderr gen-ruler --task variables --length 400 --answer-tokens 9
  [[ $stderr == "gen-ruler: --answer-tokens 9: the answer of problem 0 has "*" tokens; give more" ]]
  gen-ruler --squad squad.json --output-format answered -n 1 | jq -e '.text | endswith("Answer: a red hat")'
  gen-ruler --squad squad.json --output-format completions -n 1 | jq -e '.completion == " a red hat" and (.prompt | endswith("Answer:"))'
}

@test "eval-ruler: a share of needles, any of documents, wherever they stand, in any case" {
  cat >problems.jsonl <<'END'
{"id": 1, "task": "needles", "length": 100, "prompt": "", "outputs": ["123", "Abc"], "max_tokens": 9, "tokens": 4}
{"id": "two", "task": "documents", "length": 100, "prompt": "", "outputs": ["red hat", "hat"], "max_tokens": 9, "tokens": 4}
{"id": 3, "task": "documents", "length": 100, "prompt": "", "outputs": ["no"], "max_tokens": 9, "tokens": 4}
END
  cat >answers.jsonl <<'END'
{"id": "two", "text": "Her HAT, of course"}
{"id": 1, "text": "It is aBC\t"}
{"id": 3, "text": "yes"}
END
  eval-ruler --problems problems.jsonl --json answers.jsonl >figures
  [ "$(jq -c '[.type, .task, .problems, .score]' figures)" = '["report",null,3,50]
["part","documents",2,50]
["part","needles",1,50]' ]
  # Two texts of one problem share its part.
  cat - answers.jsonl <<<'{"id": 3, "text": "No."}' | eval-ruler --problems problems.jsonl --json |
    jq -e -s '.[0] | .answers == 4 and .problems == 3 and .score * 3 == 200'
  run -65 --separate-stderr eval-ruler --problems problems.jsonl <(head -n 2 answers.jsonl)
  # shellcheck disable=SC2154
  [ "$stderr" = 'eval-ruler: problems.jsonl: problem 3 has no answer' ]
  run -65 --separate-stderr eval-ruler --problems problems.jsonl <<<'{"id": 4, "text": ""}'
  [ "$stderr" = 'eval-ruler: stdin:1: answers 4, which is not among the problems' ]
  cat problems.jsonl problems.jsonl >twice
  run -65 --separate-stderr eval-ruler --problems twice answers.jsonl
  [ "$stderr" = 'eval-ruler: twice:4: a second problem with the id 1' ]
}

@test "what gen-ruler writes sample answers, and eval-ruler counts" {
  for program in train sample; do
    command -v $program || skip "$program is not built"
  done
  export OMP_NUM_THREADS=1
  gen-ruler --output-format answered --length 800 -n 20 | tokenize -q -t bytes --format jsonl -o train.shard.zst
  train -q -j 1 --arch mosaic2 --layers 1 --d-model 8 --heads 1 --segment 32 --batch 2 --steps 2 train.shard.zst -o model
  gen-ruler --length 800 --first 20 -n 3 -o problems.jsonl
  sample -q -j 1 -m model --temperature 0 --json problems.jsonl | tee answers.jsonl | eval-ruler --problems problems.jsonl --json >figures
  jq -e -s '.[0].problems == 3' figures
  jq -e -s 'map(.tokens | length <= 32) | all' answers.jsonl
}
