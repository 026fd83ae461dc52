#!/usr/bin/env bats
# eval-ppl --protocol and tokenize --format wikitext: other programs' figures.

load helpers

setup_file() {
  cd "$BATS_FILE_TMPDIR"
  "$root"/tests/cli/tiny_gpt2 model 5 0.3 0.2 300
  head -n 90 "$root"/LICENSE >text
  tokenize -q --learn bpe --vocab-size 300 "$root"/LICENSE -o model/tokenizer.json
  printf ' \n = First = \n \n He ran , 1 @,@ 000 times ( or so ) . \n = = Part = = \n It ended . \n' >pages
  printf ' \n = Second = \n \n She \xc2\xa0 sat . \n \n' >>pages
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

encode() { # FLAG...: the text, a paragraph a document
  tokenize -q -t model/tokenizer.json --document-separator $'\n\n' "$@" text
}

@test "each protocol has the figures of its program (kept by tests/golden/protocols.py)" {
  encode --end-of-document none -o text.shard.zst
  "$root"/tests/cli/follows_protocol "$root"/tests/golden/protocols.json model text.shard.zst
}

@test "a protocol's defaults are the model's positions, and stand in the signature with its name" {
  encode --end-of-document none -o text.shard.zst
  signature() { eval-ppl -m model --json "$@" text.shard.zst | field signature; }
  [[ $(signature) != *protocol* ]]
  [[ $(signature --protocol none) == "$(signature)" ]]
  [[ $(signature --protocol hf) == *'|protocol:hf|window:64|stride:64|reset:none|carry:off|first:skipped|'* ]]
  [[ $(signature --protocol lm-eval) == *'|protocol:lm-eval|window:64|stride:64|reset:document|carry:off|first:scored|'* ]]
  [[ $(signature --protocol llama.cpp) == *'|protocol:llama.cpp|window:64|stride:64|'* ]]
  [[ $(signature --protocol fairseq --window 20 --stride 7 --reset document) == *'|protocol:fairseq|window:20|stride:7|reset:document|'* ]]
  [[ $(signature --protocol lm-eval --reset none) == *'|reset:none|'* ]]
  run --separate-stderr eval-ppl -m model --protocol llama text.shard.zst
  [ "$status" -eq 64 ]
  [[ $stderr == *'hf, lm-eval, llama.cpp, fairseq'* ]]
  tokenize -q -t bytes text -o bytes.shard.zst
  "$root"/tests/cli/tiny_gpt2 of_bytes
  run --separate-stderr eval-ppl -m of_bytes --protocol lm-eval bytes.shard.zst
  [ "$status" -eq 64 ]
  [[ $stderr == 'eval-ppl: --protocol lm-eval: the tokenizer of bytes.shard.zst has no end-of-document token'*'give --bos'* ]]
}

@test "the token that closes a text is no part of it, but for fairseq" {
  encode -o marked.shard.zst
  encode --end-of-document none -o text.shard.zst
  tokenize -q -t model/tokenizer.json text -o one_marked.shard.zst
  tokenize -q -t model/tokenizer.json --end-of-document none text -o one.shard.zst
  figures() { eval-ppl -m model --json --protocol "$1" "$2" | sed 's/"signature.*//'; }
  [ "$(figures lm-eval marked.shard.zst)" = "$(figures lm-eval text.shard.zst)" ]
  for protocol in hf llama.cpp; do
    [ "$(figures "$protocol" one_marked.shard.zst)" = "$(figures "$protocol" one.shard.zst)" ]
  done
  [ "$(figures fairseq one_marked.shard.zst)" != "$(figures fairseq one.shard.zst)" ]
}

@test "word_perplexity and byte_perplexity are the same sum, by the source's words and bytes" {
  encode -o text.shard.zst
  eval-ppl -m model --json text.shard.zst >figures
  python3 - <<'END'
import json
r = json.load(open("figures"))
for unit in "byte", "word":
    assert abs(r[f"{unit}_perplexity"] / 2 ** r[f"bits_per_{unit}"] - 1) < 1e-9, r
END
  "$root"/tests/cli/follows_schema "$root"/man/schemas/eval-ppl.json <figures
}

@test "score --protocol lm-eval: a text has the log-probability of a document" {
  needs score
  encode --end-of-document none -o text.shard.zst
  python3 - <<'END'
import json
with open("requests.jsonl", "w") as file:
    for part in open("text").read().split("\n\n"):
        file.write(json.dumps({"text": part}) + "\n")
END
  eval-ppl -m model --protocol lm-eval --by document --json text.shard.zst >documents
  score -m model --protocol lm-eval -q requests.jsonl --report report >answers
  [[ $(cat report) == *'|protocol:lm-eval|window:64|stride:64|'* ]]
  python3 - <<'END'
import json
rows = [json.loads(line) for line in open("documents")]
answers = [json.loads(line) for line in open("answers")]
assert len(answers) == len(rows) - 1 > 10
for row, answer in zip(rows[1:], answers):
    assert row["tokens"] == answer["tokens"]
    assert abs(row["loss"] * row["tokens"] + answer["log_prob"]) < 1e-4 * abs(answer["log_prob"]), (row, answer)
END
}

@test "parts under a protocol have the sum of the whole" {
  encode -o text.shard.zst
  for protocol in hf lm-eval llama.cpp fairseq; do
    flags=(-m model -j 1 --protocol "$protocol" --batch-tokens 128 --memory "local,long" --long 50 --memory-weights constant)
    for i in 1 2 3; do eval-ppl "${flags[@]}" --part "$i/3" -o "part.$i" text.shard.zst; done
    [ "$(eval-ppl --sum --json part.*)" = "$(eval-ppl "${flags[@]}" --json text.shard.zst)" ]
  done
}

@test "--format wikitext: a page is a document, its bytes and words the file's, detokenised or not" {
  tokenize -q -t bytes --format wikitext pages -o pages.shard.zst
  # The blank line before the first title is no page; the newline before a title belongs to none.
  [ "$(tokenize --decode --format jsonl pages.shard.zst | python3 -c 'import json, sys; print(*(repr(json.loads(l)["text"]) for l in sys.stdin), sep="\n")')" = \
    "' = First = \\n \\n He ran , 1 @,@ 000 times ( or so ) . \\n = = Part = = \\n It ended . \\n '
' = Second = \\n \\n She \\xa0 sat . \\n \\n'" ]
  tokenize -q -t bytes --format wikitext --detokenise pages -o joined.shard.zst
  printf ' = First =\n\nHe ran, 1,000 times (or so).\n== Part ==\nIt ended.\n\n = Second =\n\nShe \xc2\xa0 sat.\n\n\n' >expected
  tokenize --decode --format wikitext joined.shard.zst | cmp - expected
  for flag in --no-detokenise --detokenise; do
    tokenize -t bytes --format wikitext "$flag" --json pages 2>&1 >/dev/null | python3 -c '
import json, re, sys
report = json.loads(sys.stdin.readline())
first, second = open("pages", newline="").read()[2:].split("\n = Second")
pages = [first, " = Second" + second]
assert report["documents"] == 2, report
assert report["bytes"] == sum(len(page.encode()) for page in pages), report
assert report["words"] == sum(len(re.split(r"\s+", page)) for page in pages), report'
  done
  # Pieces of any size give the same pages.
  for i in {1..400}; do cat pages; done >many
  tokenize -q -t bytes --format wikitext many -o many.shard.zst
  [ "$(shard info --json many.shard.zst | field documents)" -eq 800 ]
  tokenize -q -t bytes --format wikitext -j 1 - -o piped.shard.zst <many
  cmp many.shard.zst piped.shard.zst
  for i in 1 2 3; do tokenize -q -t bytes --format wikitext --part "$i/3" many -o "page_part.$i"; done
  shard merge page_part.* -o merged.shard.zst
  cmp <(zstdcat many.shard.zst) <(zstdcat merged.shard.zst)
  run -64 --separate-stderr tokenize -t bytes --detokenise pages
  [[ $stderr == 'tokenize: --detokenise: requires --format wikitext'* ]]
}
