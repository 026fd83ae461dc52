#!/usr/bin/env bats
# annotate: eval-ppl's losses on a page, which a browser is made to click through.

load helpers

setup_file() {
  export OMP_NUM_THREADS=1
  cd "$BATS_FILE_TMPDIR"
  "$root"/tests/cli/tiny_gpt2 model
  printf 'Once there was a cat. <script>document.title = "stolen"</script> A caf\xc3\xa9.\n\nIt sat on the mat.\n' >text.txt
  { cats 12 && cat text.txt; } | tokenize -q -t bytes --format lines -o stored.shard.zst
  { cats 3 && cat text.txt; } | tokenize -q -t bytes --format lines -o test.shard.zst
  if [ -x "$BIN/build-datastore" ]; then
    build-datastore -q -m model stored.shard.zst -o store >/dev/null
    build-ngrams -q stored.shard.zst -o ngrams >/dev/null
  fi
}

setup() {
  cd "$BATS_FILE_TMPDIR"
}

note() {
  annotate -q -m model -t bytes "$@"
}

# in_browser PAGE: what stands in the document after the script on stdin has run behind the page's own.
in_browser() {
  local profile
  profile=$(mktemp -d)
  { cat "$1" && echo '<script>' && cat && echo '</script>'; } >clicked.html
  chromium --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$profile" \
    --host-resolver-rules='MAP * ~NOTFOUND' --dump-dom "file://$PWD/clicked.html" 2>/dev/null
  rm -rf "$profile"
}

@test "the tokens cost what eval-ppl says, whatever is remembered; shares sum to one" {
  for memory in '' '--cache 40' '--unigram --cache 20 --online-ngrams' '--memory local,long --long 30 --cache 20' '--memory local,long --combine interpolate' \
    '--datastore store --k 30' '--datastore store --combine both --ngrams ngrams' '--reset document --stride 16'; do
    # shellcheck disable=SC2086
    eval-ppl -q -m model $memory --per-token scores.tsv test.shard.zst >/dev/null
    # shellcheck disable=SC2086
    note $memory --json test.shard.zst >lines.jsonl
    "$root/tests/cli/follows_schema" "$root/man/schemas/annotate.json" <lines.jsonl
    python3 - <<'END'
import csv, json
lines = [json.loads(line) for line in open("lines.jsonl")]
scores = {int(row["position"]): float(row["nats"]) for row in csv.DictReader((line for line in open("scores.tsv") if line[0] != "#"), delimiter="\t", quoting=csv.QUOTE_NONE)}
scored = {line["number"]: line["nats"] for line in lines if "nats" in line}
assert scored.keys() == scores.keys() and len(scores) > 150
assert all(abs(scored[i] - scores[i]) < 1e-4 for i in scores)
for line in lines:
    if "nats" in line:
        assert abs(sum(line["shares"].values()) - 1) < 1e-5 and min(line["shares"].values()) >= -1e-6, line
        assert len(line["likely"]) == 5 and (line["rank"] > 0 or line["likely"][0]["text"] in (line["text"], "\ufffd")), line
END
  done
}

@test "a text is what its shard is, and the page is the same from run to run" {
  note --title t text.txt -o text.html
  note --title t text.txt -o again.html
  cmp text.html again.html
  note --title auto text.txt | cmp - <(note text.txt)
  grep -q "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';" text.html
  tokenize -q -t bytes text.txt --no-end-of-document -o text.shard.zst || tokenize -q -t bytes text.txt -o text.shard.zst
  note --json text.txt >text.jsonl
  note --json --max-tokens 70 text.shard.zst >shard.jsonl
  head -n 70 text.jsonl | diff - shard.jsonl
  # A character of two bytes stands with the second.
  python3 -c '
import json
text = [json.loads(line)["text"] for line in open("text.jsonl")]
assert "".join(text) == open("text.txt").read() and "" in text'
}

@test "--beside: the difference, and where it is largest" {
  eval-ppl -q -m model --memory none --per-token plain.tsv test.shard.zst >/dev/null
  note --cache 40 --beside plain.tsv test.shard.zst -o beside.html
  grep -q 'Where it helps most' beside.html
  grep -q 'value="difference"' beside.html
  note --cache 40 --beside plain.tsv --json test.shard.zst | python3 -c '
import csv, json, sys
rows = csv.DictReader((line for line in open("plain.tsv") if line[0] != "#"), delimiter="\t", quoting=csv.QUOTE_NONE)
plain = {int(row["position"]): float(row["nats"]) for row in rows}
lines = [json.loads(line) for line in sys.stdin]
assert all(line["beside"] == plain[line["number"]] for line in lines if "nats" in line)'
  printf 'Another text than that.\n' | tokenize -q -t bytes -o other.shard.zst
  run --separate-stderr note --beside plain.tsv other.shard.zst -o refused.html
  [ "$status" -eq 65 ]
  [[ $stderr == "annotate: plain.tsv:"*"belongs to another text"* ]]
  [ ! -e refused.html ]
}

@test "a source that gives less than 1 % of the text is named" {
  [ -d store ] || skip 'build-datastore is missing'
  run --separate-stderr annotate -m model -t bytes --datastore store --datastore-joint-bias without test.shard.zst -o none.html
  [ "$status" -eq 0 ]
  [[ $stderr == *"store: gives 0.00 % of the text"* ]]
  run --separate-stderr annotate -m model -t bytes --datastore store --combine interpolate test.shard.zst -o some.html
  [ "$status" -eq 0 ]
  [[ $stderr != *"% of the text"* ]]
}

@test "in a browser: clicks, keys, colours; stored markup stays text" {
  command -v chromium >/dev/null || skip 'chromium is missing'
  eval-ppl -q -m model --memory none --per-token plain.tsv test.shard.zst >/dev/null
  note --datastore store --combine both --k 40 --cache 20 --beside plain.tsv test.shard.zst -o page.html
  in_browser page.html >dom.html <<'END'
const said = [];
const spans = document.querySelectorAll("#text .t");
const text = document.getElementById("text");
const told = () => document.getElementById("detail").textContent;
const key = (name) => text.dispatchEvent(new KeyboardEvent("keydown", {key: name, bubbles: true, cancelable: true}));
said.push(spans.length, document.title, document.querySelectorAll("#text script").length, text.textContent.includes("<script>"));
spans[40].click();
said.push(document.querySelectorAll(".chosen").length, spans[40].classList.contains("chosen"), told());
key("ArrowRight");
said.push(spans[41].classList.contains("chosen"), told().includes("token 41"));
key("Home");
said.push(spans[0].classList.contains("chosen"));
key("End");
said.push(spans[spans.length - 1].classList.contains("chosen"));
document.querySelector("input[value=difference]").click();
said.push(text.dataset.colour, getComputedStyle(document.querySelector(".legend.difference")).display);
const go = document.querySelector("button[data-go]");
go.click();
said.push(spans[Number(go.dataset.go)].classList.contains("chosen"), document.activeElement === text);
const stolen = [...spans].findIndex((span, i) => { span.click(); return told().includes("<script>"); });
said.push(stolen > 0, document.title);
document.body.replaceChildren(document.createTextNode("SAID" + JSON.stringify(said) + "DIAS"));
END
  python3 - <<'END'
import html, json, re
said = json.loads(html.unescape(re.search("SAID(.*)DIAS", open("dom.html").read(), re.S).group(1)))
count, title, scripts, shown, chosen, right_one, told, next_one, tells, home, end, colour, legend, went, focus, stolen, title_then = said
assert count > 200 and title == "test.shard.zst" == title_then and scripts == 0 and shown
assert chosen == 1 and right_one and next_one and tells and home and end and went and focus and stolen
assert colour == "difference" and legend != "none"
for part in ("token 40", "probability", "nats", "beside", "vocabulary", "cache", "store", "Stored contexts", "document", "Likeliest words"):
    assert part in told, (part, told)
END
}

@test "samples with their citations" {
  sample -q -m model -t bytes --datastore store --combine both --cite --json --prompt 'Once' --max-tokens 20 >sample.jsonl
  annotate -q -o sample.html <sample.jsonl
  [ "$(grep -o '<span class="t' sample.html | wc -l)" -eq 21 ]
  annotate -q --json sample.jsonl | tail -n +2 | python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
log_prob = json.load(open("sample.jsonl"))["log_prob"]
assert abs(sum(line["nats"] for line in lines) + log_prob) < 1e-3
assert any(line.get("contexts") for line in lines)'
  sample -q -m model -t bytes --json --prompt 'Once' --max-tokens 5 >plain.jsonl
  run --separate-stderr annotate -q plain.jsonl
  [ "$status" -eq 65 ]
  [ "$stderr" = 'annotate: plain.jsonl:1: has no citations; write it with sample --cite --json' ]
}

@test "a page of many tokens is whole in a browser" {
  command -v chromium >/dev/null || skip 'chromium is missing'
  { cats 400 && cat text.txt; } | head -c 12000 >long.txt
  note --cache 20 --max-tokens 10000 long.txt -o long.html
  in_browser long.html >dom.html <<'END'
const tokens = document.querySelectorAll("#text .t");
tokens[9999].click();
document.body.replaceChildren(document.createTextNode(`SAID ${tokens.length} ${document.querySelector("#detail h2").textContent}`));
END
  grep -q 'SAID 10000 .* token 9999' dom.html
}

@test "what cannot be annotated" {
  refused() { # CODE WORDS ARGUMENT...
    local code=$1 words=$2
    shift 2
    run --separate-stderr annotate -q "$@" -o refused.html
    [ "$status" -eq "$code" ] && [[ $stderr == "annotate: "*"$words"* ]] && [ "${#stderr_lines[@]}" -eq 1 ] && [ ! -e refused.html ] && no_leftovers
  }
  refused 64 '--model is missing' --format text text.txt
  refused 64 'samples have scores already' -m model --format sample text.txt
  refused 64 'samples cannot be compared' --beside plain.tsv sample.jsonl
  refused 65 'has no tokenizer' -m model text.txt
  refused 65 'needs at least two tokens' -m model -t bytes /dev/null
  refused 66 'missing.txt' -m model -t bytes missing.txt
  refused 65 'text.txt:1' text.txt
  head -c 100 test.shard.zst >cut.shard.zst
  refused 65 'cut.shard.zst' -m model -t bytes cut.shard.zst
}
